"""What must hold of every plan, whatever passes made it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

from penstock.errors import PlanError
from penstock.model import Application, Branch, Field, Join, is_expensive, name_key
from penstock.plan import Member, Path, Plan
from penstock.planning.shapes import columns

MEMBER = "@member"
"""The column that tells the answers of members apart."""
_ORDER = ("join", "filter", "python", "fanout", "panes", "project", "sink")
"""The kinds of operators in the only order in which they can run."""


def check(plan: Plan, application: Application | None = None) -> None:
    """Raise PlanError when the plan breaks an invariant.

    With the application, streams, relations, functions and columns are looked up too.
    """
    for fault in _faults(plan, application):
        raise PlanError(fault)


def _faults(plan: Plan, application: Application | None) -> Iterator[str]:
    yield from _repeated("query", (query.name for query in plan.queries))
    yield from _repeated("path", (path.id for path in plan.paths))
    yield from _repeated("operator", (op.id for path in plan.paths for op in path.operators))
    yield from _riding(plan)
    yield from _answering(plan)
    for path in plan.paths:
        yield from _path(plan, path)
    if application is not None:
        for query in plan.queries:
            for branch in query.branches:
                for fault in _unknown(branch, application):
                    yield f"query {query.name!r}: {fault}"


def _repeated(what: str, names: Iterable[str]) -> Iterator[str]:
    for name, times in Counter(names).items():
        if times > 1:
            yield f"{what} {name!r} occurs {times} times"


def _riding(plan: Plan) -> Iterator[str]:
    """Every branch rides exactly one path."""
    riding = Counter(member for path in plan.paths for member in path.members)
    expected = {Member(q.name, n) for q in plan.queries for n in range(len(q.branches))}
    for member, times in riding.items():
        if member not in expected:
            yield f"{member} rides a path but is no branch of a query"
        elif times > 1:
            yield f"{member} rides {times} paths"
    missing = [f"{q.name}#{n}" for q in plan.queries for n in range(len(q.branches))
               if Member(q.name, n) not in riding]  # fmt: skip
    if missing:
        yield f"no path carries {', '.join(missing[:8])}"


def _answering(plan: Plan) -> Iterator[str]:
    """Every window aggregate belongs to one group, on a path that makes panes."""
    grouped = Counter(member for group in plan.groups for member in group.members)
    for path in plan.paths:
        for member in path.members:
            windowed = plan.branch(member).grouping is not None
            if windowed != path.panes:
                how = "makes panes" if path.panes else "makes none"
                yield f"{member} rides path {path.id!r}, which {how}"
            if plan.groups and grouped[member] != windowed:
                yield f"{member} belongs to {grouped[member]} groups"
    for group in plan.groups:
        windows = [grouping.window for member in group.members
                   if (grouping := plan.branch(member).grouping) is not None]
        if any(w.length % group.pane or w.slide % group.pane for w in windows):
            yield f"the pane of group {group.id!r} does not divide its windows and slides"


def _path(plan: Plan, path: Path) -> Iterator[str]:
    if not path.members:
        yield f"path {path.id!r} has no members"
        return
    branches = [plan.branch(member) for member in path.members]
    for member, branch in zip(path.members, branches, strict=True):
        if branch.stream != path.stream:
            yield f"{member} reads {branch.stream!r} but rides on {path.stream!r}"
        if branch.joins != path.joins:
            yield f"{member} does not have the joins of path {path.id!r}"
        if any(name_key(output.name) == MEMBER for output in branch.select):
            yield f"{member} names a column {MEMBER}, which is ours"
        if any(is_expensive(join.on) for join in branch.joins):
            yield f"{member} joins on a Python function"
    expensive = [any(map(is_expensive, branch.expressions)) for branch in branches]
    if any(expensive) and len(path.members) > 1 and not path.panes:
        yield f"path {path.id!r} shares a branch that calls Python"
    if path.expensive != any(expensive):
        yield f"path {path.id!r} is wrongly marked {'' if path.expensive else 'not '}expensive"
    yield from _order(path)


def _order(path: Path) -> Iterator[str]:
    """Operators are executable: known, in order, from the joins to one sink."""
    kinds = [operator.kind for operator in path.operators]
    if unknown := [kind for kind in kinds if kind not in _ORDER]:
        yield f"path {path.id!r} has an operator of kind {unknown[0]!r}"
        return
    for before, after in pairwise(kinds):
        repeats = before == after and after not in ("join", "python")
        if repeats or _ORDER.index(before) > _ORDER.index(after):
            yield f"path {path.id!r} runs {after} after {before}"
    shared = len(path.members) > 1
    ending = {"panes"} if path.panes else {"sink", "fanout" if shared else "project"}
    needed = {*ending, *(["python"] if path.expensive else [])}
    for kind in _ORDER:
        if kind in needed and kind not in kinds:
            yield f"path {path.id!r} has no {kind}"
    if kinds.count("join") != len(path.joins):
        yield f"path {path.id!r} has {kinds.count('join')} joins for {len(path.joins)} relations"


def _unknown(branch: Branch, application: Application) -> Iterator[str]:
    """Names that were not declared."""
    if branch.stream not in application.streams:
        yield f"no stream {branch.stream!r}"
        return
    sources: list[set[Field]] = [set(application.streams[branch.stream].columns)]
    for join in branch.joins:
        if join.relation not in application.relations:
            yield f"no relation {join.relation!r}"
            return
        sources.append(set(application.relations[join.relation].columns))
    yield from _columns(branch, sources)


def _columns(branch: Branch, sources: list[set[Field]]) -> Iterator[str]:
    for number, join in enumerate(branch.joins, start=1):
        yield from _join(join, number)
    for column in columns(branch.expressions):
        if not 0 <= column.source < len(sources):
            yield f"column {column.name!r} of source {column.source}, of {len(sources)}"
        elif Field(column.name, column.type) not in sources[column.source]:
            yield f"no column {column.name!r} of type {column.type} in source {column.source}"


def _join(join: Join, number: int) -> Iterator[str]:
    """A join sees the stream and the relations up to its own."""
    if join.kind not in ("inner", "left"):
        yield f"a join of kind {join.kind!r}"
    for column in columns([join.on]):
        if column.source > number:
            yield f"the join with {join.relation!r} refers to a later one"
