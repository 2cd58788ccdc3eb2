"""Planning: many queries become one shared plan, in an explicit order of passes.

Every pass takes a plan and returns a better one. `check` runs after each that has changed it, so
that an error names the pass that broke the plan.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from urllib.parse import quote

from penstock.errors import PlanError
from penstock.model import Application, Query, is_expensive
from penstock.plan import Member, Operator, Path, Plan, members_of
from penstock.planning.check import check, check_names
from penstock.planning.conjunctions import computed_by, conditions
from penstock.planning.path_operators import (
    fanned_out,
    identified,
    lookup_operators,
    operators,
    sql_conditions,
)
from penstock.planning.share_aggregates import group_id, share_aggregates
from penstock.planning.share_joins import own_join, share_joins
from penstock.planning.share_predicates import share_predicates

Pass = Callable[[Plan], Plan]


def plan(source: Application | Iterable[Query]) -> Plan:
    """The plan of an application, or of some bound queries.

    The paths of a query, and their ids, do not depend on the other queries. So a plan made after a
    query was added or dropped keeps the queues of the previous plan.
    """
    application = source if isinstance(source, Application) else None
    queries = source.queries.values() if isinstance(source, Application) else source
    if application is not None:
        check_names(application)
    result = Plan(tuple(queries), (), changing=_changing(application, queries))
    for step in PASSES:
        before, result = result, step(result)
        if result == before:
            continue
        try:
            check(result, application)
        except PlanError as error:
            raise PlanError(f"after {step.__name__}: {error}") from None
    return result


def _changing(
    application: Application | None, queries: Iterable[Query]
) -> tuple[tuple[str, float], ...]:
    """The relations that queries look up and that are read again."""
    known = {} if application is None else application.relations
    names = (lookup.relation for query in queries for branch in query.branches
             for lookup in branch.lookups)
    used = (known[name] for name in dict.fromkeys(names) if name in known)
    return tuple((one.name, one.refresh) for one in used if one.refresh is not None)


def isolate(before: Plan) -> Plan:
    """Give every branch a path of its own: later plans must give the same answers as this one.

    A window join has its path behind a join of its own.
    """
    members = [(query, member) for query in before.queries for member, _ in members_of(query)]
    paths = (_own_path(query, member) for query, member in members
             if query.branches[member.branch].join is None)
    joins = (own_join(query, member) for query, member in members
             if query.branches[member.branch].join is not None and member.input == 0)
    return replace(before, paths=tuple(paths), joins=tuple(joins))


def share(before: Plan) -> Plan:
    """Let cheap branches over one stream, with the same lookups, ride one path.

    Rows that go to Python keep a path of their own: a thousand queries must not wait for one slow
    or raising function. `share_predicates` is about those that have predicates in common.
    """
    groups: dict[str, list[Path]] = {}
    for path in before.paths:
        groups.setdefault(_shared_id(path, before), []).append(path)
    paths = [
        _pane_path(id, group, before) if group[0].end == "panes"
        else group[0] if group[0].expensive
        else _shared_path(id, group, before)
        for id, group in groups.items()
    ]
    return replace(before, paths=tuple(paths))


PASSES: tuple[Pass, ...] = (
    isolate,  # first, because sharing compares whole paths
    share,
    share_predicates,
    share_joins,
    share_aggregates,  # last, because a group's panes are made by one path
)


def _own_path(query: Query, member: Member) -> Path:
    branch = query.branches[member.branch]
    input = f".{member.input}" if member.input else ""
    id = f"{quote(query.name, safe='')}#{member.branch}{input}"
    expensive = any(is_expensive(expression) for expression in branch.expressions)
    return Path(
        id=id,
        reads=branch.inputs[member.input].stream,
        lookups=branch.lookups,
        members=(member,),
        operators=operators(id, branch, query.into),
        end="sink" if branch.grouping is None else "panes",
        expensive=expensive,
        movable=len(conditions(branch.where, computed_by(branch)).movable),
        conditions=sql_conditions(id, branch),
    )


def _shared_id(path: Path, before: Plan) -> str:
    """The stream and its relations; a checksum tells apart lookups with other conditions."""
    if path.expensive:
        return group_id(before.branch(path.members[0])) if path.end == "panes" else path.id
    end = "panes" if path.end == "panes" else "fanout"
    relations = (lookup.relation for lookup in path.lookups)
    names = "+".join(quote(name, safe="") for name in (path.reads, *relations))
    if not path.lookups:
        return f"{names}/{end}"
    written = "; ".join(map(identified, path.lookups))
    return f"{names}@{zlib.crc32(written.encode()):08x}/{end}"


def _shared_path(id: str, group: list[Path], before: Plan) -> Path:
    members = tuple(member for path in group for member in path.members)
    first = before.branch(members[0])
    if len(members) == 1:
        into = before.query(members[0].query).into
        return replace(group[0], id=id, operators=operators(id, first, into),
                       conditions=sql_conditions(id, first))
    return replace(group[0], id=id, members=members, conditions=(),
                   operators=fanned_out(id, first.lookups, len(members)))


def _pane_path(id: str, group: list[Path], before: Plan) -> Path:
    """One pass over a block makes the panes of all window aggregates that it serves."""
    members = tuple(member for path in group for member in path.members)
    first = before.branch(members[0])
    if group[0].expensive:
        # They are alike, so conditions in Python are evaluated once. The intermediate rows depend
        # on the aggregates, so with other aggregates it is another path.
        columns = sorted({repr(e) for member in members for e in before.branch(member).expressions})
        id = f"{id}/{zlib.crc32(repr(columns).encode()):08x}"
        steps = operators(id, first, "")[:-1]  # its own panes stand for all
    else:
        steps = tuple(lookup_operators(id, first.lookups))
    panes = Operator(f"{id}:panes", "panes", f"panes of {len(members)} window aggregates")
    return replace(group[0], id=id, members=members, operators=(*steps, panes))
