"""Window aggregates: which of them one synopsis answers.

Queries over the same rows of a stream (the same relations and conditions) that group them alike
differ in their windows, slides and aggregates only. They share the panes: slices of time as long as
the greatest common divisor of all their windows and slides, of which every one of their windows is
made. ``AVG`` is read off the same sums and counts as ``SUM`` and ``COUNT``.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from math import gcd
from typing import TypeAlias
from urllib.parse import quote

from penstock.model import Branch, Expression, Grouping, Join, is_expensive
from penstock.plan import Group, Member, Path, Plan
from penstock.rendering import render

Likeness: TypeAlias = tuple[
    str, tuple[Join, ...], tuple[Expression, ...], tuple[Expression, ...], tuple[Expression, ...]
]


def share_aggregates(before: Plan) -> Plan:
    """Gather the window aggregates of the plan into groups with one synopsis each."""
    alike: dict[tuple[str, Likeness], list[tuple[Path, Member]]] = {}
    for path in before.paths:
        if path.panes:
            for member in path.members:
                likeness = likeness_of(before.branch(member))
                alike.setdefault((path.id, likeness), []).append((path, member))
    groups = [_group(before, path, [member for _, member in members])
              for members in alike.values() for path, _ in members[:1]]
    return replace(before, groups=tuple(groups))


def likeness_of(branch: Branch) -> Likeness:
    """What two window aggregates must have in common to share a synopsis.

    Conditions in SQL may come in any order; those that call Python reject rows, so theirs counts.
    """
    assert branch.grouping is not None
    cheap = sorted({c for c in branch.where if not is_expensive(c)}, key=repr)
    costly = tuple(c for c in branch.where if is_expensive(c))
    # What Python computes for one query may raise, and must not cost another its rows.
    calls = tuple(e for e in branch.grouping.expressions if is_expensive(e))
    return branch.stream, branch.joins, (*cheap, *costly), branch.grouping.keys, calls


def group_id(branch: Branch) -> str:
    """The stream, what it is grouped by, and a checksum of the rest.

    >>> from penstock.model import INT, Column, Grouping, Window
    >>> counted = Grouping(Window(10, 5), (Column("src", INT),), ())
    >>> group_id(Branch("packets", (), grouping=counted))
    'packets/src@...'
    """
    assert branch.grouping is not None
    keys = ", ".join(render(key) for key in branch.grouping.keys) or "all"
    checksum = zlib.crc32(repr(likeness_of(branch)).encode())
    return f"{quote(branch.stream, safe='')}/{keys}@{checksum:08x}"


def _group(plan: Plan, path: Path, members: Sequence[Member]) -> Group:
    branches = [plan.branch(member) for member in members]
    groupings = [branch.grouping for branch in branches if branch.grouping is not None]
    first, pane = branches[0], _pane(groupings)
    return Group(
        id=group_id(first), path=path.id, stream=first.stream, joins=first.joins,
        where=first.where, keys=groupings[0].keys,
        aggregates=tuple(dict.fromkeys(a for g in groupings for a in g.aggregates)),
        members=tuple(members), pane=pane,
        span=max(grouping.window.length for grouping in groupings) // pane,
    )


def _pane(groupings: Sequence[Grouping]) -> int:
    """The longest slice of which all windows and all slides are made."""
    return gcd(*(length for grouping in groupings
                 for length in (grouping.window.length, grouping.window.slide)))
