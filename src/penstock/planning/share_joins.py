"""Window joins: which of them one shared join serves.

Queries with the same streams and the same join predicate differ in their windows, selections and
columns only. They share one join over the largest of their windows. The difference of the times
then routes each pair to the queries whose windows cover it. Selections stay above the join, so that
they do not keep queries apart; what may be left out before it is a decision of its own
(`penstock.planning.early_selections`).

Window aggregates over a join share one with those that select alike and group alike: its pairs go
into the panes of their one synopsis.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import quote

from penstock.model import (
    MOST_PAIR_PANES,
    SHORTEST_PANE,
    STREAM,
    Branch,
    Query,
    is_expensive,
)
from penstock.plan import Member, Operator, Path, Plan, SharedJoin
from penstock.planning.early_selections import early_selection
from penstock.planning.path_operators import fanned_out, identified, lookup_operators, operators
from penstock.planning.share_aggregates import group_id, pane_of
from penstock.rendering import render


def own_join(query: Query, member: Member) -> SharedJoin:
    """The join of one query by itself."""
    branch = query.branches[member.branch]
    return _join(f"{quote(query.name, safe='')}#{member.branch}", [branch], (member,), query)


def share_joins(before: Plan) -> Plan:
    """Let queries with the same streams, predicate and lookups share one join.

    One whose rows go to Python keeps a join of its own: the others must not wait for a slow or
    raising function. Window aggregates that call the same functions alike have one synopsis.
    """
    alike: dict[str, list[SharedJoin]] = {}
    for join in before.joins:
        alike.setdefault(_shared_id(before, join), []).append(join)
    shared = [(id, joins) for id, joins in alike.items() if _shares_panes(before, joins)]
    apart = [join for _, joins in alike.items() if not _shares_panes(before, joins)
             for join in joins]
    return replace(before, joins=(*(_shared(before, id, joins) for id, joins in shared), *apart))


def _shares_panes(plan: Plan, joins: Sequence[SharedJoin]) -> bool:
    """Whether the windows and slides of aggregates over a join have panes that are not too fine."""
    branches = [plan.branch(member) for join in joins for member in join.members]
    windows = [branch.window for branch in branches if branch.window is not None]
    if not windows:
        return True
    pane = pane_of(windows)
    longest = max(window.length for window in windows)
    return pane % SHORTEST_PANE == 0 and longest // pane <= MOST_PAIR_PANES


def _shared_id(plan: Plan, join: SharedJoin) -> str:
    """The streams, the relations, and a checksum of the conditions on which they are joined."""
    branch = plan.branch(join.members[0])
    if branch.grouping is not None:
        return group_id(branch)
    if join.path.expensive or branch.join is None:
        return join.id
    names = "*".join(quote(stream, safe="") for stream in branch.streams)
    relations = "".join(f"+{quote(lookup.relation, safe='')}" for lookup in branch.lookups)
    looked_up = map(identified, branch.lookups)
    written = "; ".join([*sorted(render(one) for one in branch.join.on), *looked_up])
    written += " over rows" if branch.join.rows else ""
    return f"{names}{relations}@{zlib.crc32(written.encode()):08x}"


def _shared(plan: Plan, id: str, joins: Sequence[SharedJoin]) -> SharedJoin:
    members = tuple(member for join in joins for member in join.members)
    branches = [plan.branch(member) for member in members]
    return _join(id, branches, members, plan.query(members[0].query))


def _join(
    id: str, branches: Sequence[Branch], members: tuple[Member, ...], first: Query
) -> SharedJoin:
    """The join that serves these branches, and the path behind it."""
    one = branches[0]
    assert one.join is not None
    expensive = any(is_expensive(e) for branch in branches for e in branch.expressions)
    behind = f"{id}/pairs"
    steps = (_panes(behind, one, len(members)) if one.grouping is not None
             else operators(behind, one.over_pairs, first.into) if len(members) == 1
             else fanned_out(behind, one.lookups, len(members)))
    path = Path(behind, id, one.lookups, members, steps, expensive=expensive,
                end="sink" if one.grouping is None else "panes")
    reaches = [branch.join.reach for branch in branches if branch.join is not None]
    return SharedJoin(
        id=id, streams=one.streams, on=one.join.on, members=members, span=max(reaches), path=path,
        where=tuple(early_selection(branches, STREAM + side).where
                    for side in range(len(one.streams))),
        rows=one.join.rows)


def _panes(id: str, branch: Branch, members: int) -> tuple[Operator, ...]:
    """The operators of a path into panes. Members that call Python do so alike."""
    whose = "a window aggregate" if members == 1 else f"{members} window aggregates"
    panes = Operator(f"{id}:panes", "panes", f"panes of {whose}")
    steps = (operators(id, replace(branch, where=branch.selected), "")[:-1]
             if any(map(is_expensive, branch.expressions))
             else tuple(lookup_operators(id, branch.lookups)))
    return (*steps, panes)
