"""Planning: many queries become one shared plan, in an explicit order of passes.

Every pass takes a plan and returns a better one. `check` runs after each, so that an error names
the pass that broke the plan.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from urllib.parse import quote

from penstock.errors import PlanError
from penstock.model import (
    Application,
    Branch,
    Expression,
    Lookup,
    PythonCall,
    Query,
    Sink,
    is_expensive,
    walk,
)
from penstock.plan import Member, Operator, Path, Plan, members_of
from penstock.planning.check import check
from penstock.planning.shapes import conjunction
from penstock.planning.share_aggregates import group_id, share_aggregates
from penstock.rendering import render

Pass = Callable[[Plan], Plan]


def plan(source: Application | Iterable[Query]) -> Plan:
    """The plan of an application, or of some bound queries.

    The paths of a query, and their ids, do not depend on the other queries. So a plan made after a
    query was added or dropped keeps the queues of the previous plan.
    """
    application = source if isinstance(source, Application) else None
    queries = source.queries.values() if isinstance(source, Application) else source
    result = Plan(tuple(queries), ())
    for step in PASSES:
        result = step(result)
        try:
            check(result, application)
        except PlanError as error:
            raise PlanError(f"after {step.__name__}: {error}") from None
    return result


def isolate(before: Plan) -> Plan:
    """Give every branch a path of its own: later plans must give the same answers as this one."""
    paths = tuple(
        _own_path(query, member)
        for query in before.queries
        for member, _ in members_of(query)
    )
    return replace(before, paths=paths)


def share(before: Plan) -> Plan:
    """Let cheap branches over one stream, with the same lookups, ride one path.

    Rows that go to Python keep a path of their own: a thousand queries must not wait for one slow
    or raising function.
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
        operators=_operators(id, branch, query.sink),
        end="sink" if branch.grouping is None else "panes",
        expensive=expensive,
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
    written = "; ".join(f"{one.kind} {one.relation} {render(one.on)}" for one in path.lookups)
    return f"{names}@{zlib.crc32(written.encode()):08x}/{end}"


def _shared_path(id: str, group: list[Path], before: Plan) -> Path:
    members = tuple(member for path in group for member in path.members)
    first = before.branch(members[0])
    if len(members) == 1:
        sink = before.query(members[0].query).sink
        return replace(group[0], id=id, operators=_operators(id, first, sink))
    fanout = Operator(f"{id}:fanout", "fanout", f"{len(members)} queries in one pass")
    operators = (*_lookups(id, first.lookups), fanout, _sink(id, "each query's own"))
    return replace(group[0], id=id, members=members, operators=operators)


def _pane_path(id: str, group: list[Path], before: Plan) -> Path:
    """One pass over a block makes the panes of all window aggregates that it serves."""
    members = tuple(member for path in group for member in path.members)
    first = before.branch(members[0])
    if group[0].expensive:
        # They are alike, so conditions in Python are evaluated once. The intermediate rows depend
        # on the aggregates, so with other aggregates it is another path.
        columns = sorted({repr(e) for member in members for e in before.branch(member).expressions})
        id = f"{id}/{zlib.crc32(repr(columns).encode()):08x}"
        operators = _operators(id, first, Sink())[:-1]  # its own panes stand for all
    else:
        operators = tuple(_lookups(id, first.lookups))
    panes = Operator(f"{id}:panes", "panes", f"panes of {len(members)} window aggregates")
    return replace(group[0], id=id, members=members, operators=(*operators, panes))


def _operators(id: str, branch: Branch, sink: Sink) -> tuple[Operator, ...]:
    cheap = [conjunct for conjunct in branch.where if not is_expensive(conjunct)]
    operators = _lookups(id, branch.lookups)
    if cheap:
        operators.append(Operator(f"{id}:filter", "filter", conjunction(cheap)))
    operators += _python(id, branch)
    if branch.grouping is not None:
        return (*operators, Operator(f"{id}:panes", "panes", "panes of a window aggregate"))
    shown = ", ".join(output.name for output in branch.select)
    operators.append(Operator(f"{id}:project", "project", shown))
    delivered = sink.kind if sink.target is None else f"{sink.kind} '{sink.target}'"
    return (*operators, _sink(id, delivered))


def _lookups(id: str, lookups: Iterable[Lookup]) -> list[Operator]:
    return [
        Operator(f"{id}:lookup{number}", "lookup",
                 f"{lookup.kind} {lookup.relation} on {render(lookup.on)}")
        for number, lookup in enumerate(lookups, start=1)
    ]


def _python(id: str, branch: Branch) -> list[Operator]:
    """One operator for each condition that calls Python, as written, and one for the answers."""
    texts = [render(conjunct) for conjunct in branch.where if is_expensive(conjunct)]
    computed = (branch.grouping.expressions if branch.grouping is not None
                else [output.expression for output in branch.select])
    if called := _functions(computed):
        texts.append(", ".join(called))
    return [Operator(f"{id}:python{number}", "python", text)
            for number, text in enumerate(texts, start=1)]


def _functions(expressions: Iterable[Expression]) -> list[str]:
    """The calls of Python functions, as written, outermost first, each once."""
    calls = {
        render(part): None
        for expression in expressions
        for part in walk(expression)
        if isinstance(part, PythonCall)
    }
    return list(calls)


def _sink(id: str, text: str) -> Operator:
    return Operator(f"{id}:sink", "sink", text)
