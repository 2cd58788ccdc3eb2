"""Window aggregates: which of them one synopsis answers.

Some queries read the same rows of a stream (with the same relations and conditions) and group them
alike. They differ only in their windows, slides and aggregates. Such queries share their panes:
slices of time as long as the greatest common divisor of all their windows and slides. Every one of
their windows consists of panes. ``AVG`` is computed from the same sums and counts as ``SUM`` and
``COUNT``.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from math import gcd
from typing import TypeAlias
from urllib.parse import quote

from penstock.model import Branch, Call, Expression, Lookup, Window, is_expensive
from penstock.plan import Group, Member, Path, Plan
from penstock.planning.operations import EQUAL, IN
from penstock.rendering import render

Likeness: TypeAlias = tuple[
    str, tuple[Lookup, ...], tuple[Expression, ...], tuple[Expression, ...], tuple[Expression, ...]
]


def share_aggregates(before: Plan) -> Plan:
    """Put the window aggregates of the plan into groups with one synopsis each."""
    alike: dict[tuple[str, Likeness], list[tuple[Path, Member]]] = {}
    for path in before.paths:
        if path.end == "panes":
            for member in path.members:
                likeness = likeness_of(before.branch(member))
                alike.setdefault((path.id, likeness), []).append((path, member))
    groups = [_group(before, path, [member for _, member in members])
              for members in alike.values() for path, _ in members[:1]]
    groups += [_group(before, join.path, join.members) for join in before.joins
               if join.path.end == "panes"]
    return replace(before, groups=tuple(derived(groups)))


def derived(groups: Sequence[Group]) -> list[Group]:
    """The groups; a group whose panes can be added up from others names those.

    A group by fewer keys is made of one by more. A group for which ``x IN (1, 2)`` is made of those
    for which ``x = 1`` and ``x = 2``: the parts have no row in common. A group that is made of
    others is no part of any.
    """
    whole: dict[str, Group] = {group.id: group for group in groups}
    made: dict[str, Group] = {}
    for group in groups:
        others = [one for one in groups if one.id not in made and _may_be_part(one, group)]
        parts = _finer(group, others) or _pieces(group, others)
        if parts and not any(group.id in one.parts for one in made.values()):
            made[group.id] = replace(group, parts=tuple(part.id for part in parts))
    return list((whole | made).values())


def _may_be_part(one: Group, group: Group) -> bool:
    return (one.id != group.id and one.path == group.path and group.pane % one.pane == 0
            and set(group.aggregates) <= set(one.aggregates)
            and not any(map(is_expensive, (*group.where, *group.keys))))


def _finer(group: Group, others: Sequence[Group]) -> list[Group]:
    """A group of the same rows with more keys, as few more as possible."""
    found = [one for one in others
             if set(one.where) == set(group.where) and set(group.keys) < set(one.keys)]
    return sorted(found, key=lambda one: len(one.keys))[:1]


def _pieces(group: Group, others: Sequence[Group]) -> list[Group]:
    """Groups for the single values of a list that the group asks for."""
    alike = {frozenset(one.where): one for one in others if one.keys == group.keys}
    for conjunct in group.where:
        if not isinstance(conjunct, Call) or conjunct.function != IN:
            continue
        tested, *listed = conjunct.args
        rest = [other for other in group.where if other != conjunct]
        found = [alike.get(frozenset((*rest, Call(EQUAL, (tested, value), conjunct.type))))
                 for value in dict.fromkeys(listed)]
        pieces = [one for one in found if one is not None]
        if len(pieces) == len(found):
            return pieces
    return []


def likeness_of(branch: Branch) -> Likeness:
    """What two window aggregates must have in common to share a synopsis.

    Conditions in SQL may come in any order. Conditions that call Python reject rows, so their order
    counts.
    """
    assert branch.grouping is not None
    on = () if branch.join is None else branch.join.on
    cheap = sorted({c for c in (*on, *branch.selected) if not is_expensive(c)}, key=repr)
    costly = tuple(c for c in branch.where if is_expensive(c))
    # A function may raise for one query's rows, and must not cost another query its rows.
    calls = tuple(e for e in branch.grouping.expressions if is_expensive(e))
    return _streams(branch), branch.lookups, (*cheap, *costly), branch.grouping.keys, calls


def group_id(branch: Branch) -> str:
    """The stream, what it is grouped by, and a checksum of the rest.

    >>> from penstock.model import INT, Column, Grouping, Input
    >>> counted = Grouping((Column("src", INT),), ())
    >>> group_id(Branch((Input("packets", Window(10, 5)),), (), grouping=counted))
    'packets/src@...'
    """
    assert branch.grouping is not None
    keys = ", ".join(render(key) for key in branch.grouping.keys) or "all"
    checksum = zlib.crc32(repr(likeness_of(branch)).encode())
    return f"{_streams(branch)}/{keys}@{checksum:08x}"


def _streams(branch: Branch) -> str:
    return "+".join(quote(stream, safe="") for stream in branch.streams)


def _group(plan: Plan, path: Path, members: Sequence[Member]) -> Group:
    branches = [plan.branch(member) for member in members]
    groupings = [branch.grouping for branch in branches if branch.grouping is not None]
    windows = [branch.window for branch in branches if branch.window is not None]
    first, pane = branches[0], pane_of(windows)
    return Group(
        id=path.reads if first.join is not None else group_id(first),
        path=path.id, reads=path.reads, lookups=first.lookups,
        where=first.selected, keys=groupings[0].keys,
        aggregates=tuple(dict.fromkeys(a for g in groupings for a in g.aggregates)),
        members=tuple(members), pane=pane,
        span=max(window.length for window in windows) // pane,
        paired=first.join is not None,
    )


def pane_of(windows: Sequence[Window]) -> int:
    """The longest slice of which all windows and all slides are multiples."""
    return gcd(*(length for window in windows
                 for length in (window.length, window.covered, window.slide)))
