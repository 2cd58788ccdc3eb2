"""What must hold of every plan, whichever passes made it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from penstock.errors import PlanError
from penstock.model import (
    STREAM,
    Application,
    Branch,
    Field,
    Lookup,
    is_expensive,
    lookup_source,
    name_key,
)
from penstock.plan import Path, Plan, SharedJoin, members_of
from penstock.planning.early_selections import lets_through
from penstock.planning.shapes import columns
from penstock.planning.share_predicates import may_share, shared_predicates

MEMBER = "@member"
"""The column that says whose answer a row is."""
_ORDER = ("lookup", "filter", "python", "fanout", "panes", "window", "project", "sink")
"""The kinds of operators in the only order in which they can run."""


def check(plan: Plan, application: Application | None = None) -> None:
    """Raise PlanError if the plan breaks an invariant.

    With the application, a path may read any of its streams.
    """
    for fault in _faults(plan, application):
        raise PlanError(fault)


def check_names(application: Application) -> None:
    """Raise PlanError if a query names what was not declared. No pass can change that."""
    for query in application.queries.values():
        for branch in query.branches:
            for fault in _unknown(branch, application):
                raise PlanError(f"query {query.name!r}: {fault}")


def _faults(plan: Plan, application: Application | None) -> Iterator[str]:
    yield from _repeated("query", (query.name for query in plan.queries))
    every = [*plan.paths, *(join.path for join in plan.joins)]
    yield from _repeated("path", (path.id for path in every))
    yield from _repeated("operator", (op.id for path in every for op in path.operators))
    yield from _repeated("join", (join.id for join in plan.joins))
    yield from _reading(plan, application)
    yield from _riding(plan)
    yield from _answering(plan)
    for join in plan.joins:
        yield from _join(plan, join)
    paths = {path.id: path for path in plan.paths}
    for path in plan.paths:
        yield from _path(plan, [*reversed(_upstream(paths, path)), path])


def _repeated(what: str, names: Iterable[str]) -> Iterator[str]:
    for name, times in Counter(names).items():
        if times > 1:
            yield f"{what} {name!r} occurs {times} times"


def _reading(plan: Plan, application: Application | None) -> Iterator[str]:
    """Every path reads a stream, or what an earlier path has put into a window.

    So the paths are in an order in which rows can travel, and none reads what it makes itself.
    """
    streams = {stream for query in plan.queries for stream in query.streams}
    streams |= set(application.streams) if application is not None else set()
    paths, earlier = {path.id: path for path in plan.paths}, set[str]()
    for path in plan.paths:
        if path.reads in earlier:
            if (end := paths[path.reads].end) != "window":
                yield f"path {path.id!r} reads path {path.reads!r}, which ends in a {end}"
        elif path in _upstream(paths, path):
            yield f"path {path.id!r} reads what it makes itself"
        elif path.reads in paths:
            yield f"path {path.id!r} stands before path {path.reads!r}, which it reads"
        elif path.reads not in streams:
            yield f"path {path.id!r} reads {path.reads!r}, which is no stream and no path"
        earlier.add(path.id)
    read = {path.reads for path in plan.paths}
    for path in plan.paths:
        if path.end == "window" and path.id not in read:
            yield f"no path reads the window of path {path.id!r}"


def _upstream(paths: Mapping[str, Path], path: Path) -> list[Path]:
    """The paths that a path reads, nearest first; a path that reads itself is among them."""
    found: list[Path] = []
    while (before := paths.get(path.reads)) is not None and before not in found:
        found.append(before)
        path = before
    return found


def _riding(plan: Plan) -> Iterator[str]:
    """Every input of a branch rides exactly one path of a stream, and paths that read it."""
    ids = {path.id for path in plan.paths}
    riding = Counter(member for path in plan.paths if path.reads not in ids
                     for member in path.members)
    for path in plan.paths:
        if path.reads in ids:
            for member in set(path.members) - set(plan.path(path.reads).members):
                yield f"{member} rides path {path.id!r}, but not path {path.reads!r} that it reads"
    riding.update(member for join in plan.joins for member in join.members)
    expected = {member: stream for query in plan.queries for member, stream in members_of(query)
                if not member.input or plan.branch(member).join is None}
    for member, times in riding.items():
        if member not in expected:
            yield f"{member} rides a path but is no branch of a query"
        elif times > 1:
            yield f"{member} rides {times} paths"
    missing = [f"{m.query}#{m.branch}" for m in expected if m not in riding]
    if missing:
        yield f"no path carries {', '.join(missing[:8])}"


def _answering(plan: Plan) -> Iterator[str]:
    """Every window aggregate belongs to one group, on a path that makes panes."""
    grouped = Counter(member for group in plan.groups for member in group.members)
    for path in (*plan.paths, *(join.path for join in plan.joins)):
        for member in path.members:
            windowed = plan.branch(member).grouping is not None
            if path.end != "window" and windowed != (path.end == "panes"):
                how = "makes panes" if path.end == "panes" else "makes none"
                yield f"{member} rides path {path.id!r}, which {how}"
            if plan.groups and grouped[member] != windowed:
                yield f"{member} belongs to {grouped[member]} groups"
    for group in plan.groups:
        windows = [window for member in group.members
                   if (window := plan.branch(member).window) is not None]
        if any(w.length % group.pane or w.slide % group.pane for w in windows):
            yield f"the pane of group {group.id!r} does not divide its windows and slides"


def _join(plan: Plan, join: SharedJoin) -> Iterator[str]:
    """A join is what its members ask for, and its path reads it."""
    if join.path.reads != join.id:
        yield f"path {join.path.id!r} reads {join.path.reads!r}, not join {join.id!r}"
    if join.path.members != join.members:
        yield f"path {join.path.id!r} does not have the members of join {join.id!r}"
    for member in join.members:
        branch = plan.branch(member)
        if branch.join is None:
            yield f"{member} is no window join but shares join {join.id!r}"
            continue
        if (branch.streams, branch.join.rows) != (join.streams, join.rows) or (
                set(branch.join.on) != set(join.on)):
            yield f"{member} joins other rows than join {join.id!r}"
        if branch.lookups != join.path.lookups:
            yield f"{member} does not have the lookups of path {join.path.id!r}"
        if branch.join.reach > join.span:
            yield f"the window of {member} is longer than that of join {join.id!r}"
        if not all(lets_through(conditions, branch, side)
                   for side, conditions in enumerate(join.where, start=STREAM)):
            yield f"join {join.id!r} leaves rows out that {member} wants"
    if plan.groups and join.path.end == "panes" and len(plan.groups_on(join.path.id)) != 1:
        yield f"the pairs of join {join.id!r} go into the panes of several groups"
    yield from _members(plan, join.path)
    yield from _order(join.path)


def _path(plan: Plan, whole: Sequence[Path]) -> Iterator[str]:
    """A path is what its members ask for, together with the paths that it reads."""
    path = whole[-1]
    if not path.members:
        yield f"path {path.id!r} has no members"
        return
    branches = [plan.branch(member) for member in path.members]
    lookups = tuple(lookup for part in whole for lookup in part.lookups)
    for member, branch in zip(path.members, branches, strict=True):
        if (stream := branch.streams[member.input]) != whole[0].reads:
            yield f"{member} reads {stream!r} but rides on {whole[0].reads!r}"
        if len(branch.inputs) > 1 and len(whole) == 1 and path.end != "window":
            yield f"{member} is one of several inputs, but path {path.id!r} ends in a {path.end}"
        asked = branch.lookups[: len(lookups)] if path.end == "window" else branch.lookups
        if asked != lookups:
            yield f"{member} does not have the lookups of path {path.id!r}"
    yield from _members(plan, path)
    expensive = any(part.expensive for part in whole)
    if path.end != "window" and expensive != _calls_python(branches):
        yield f"path {path.id!r} is wrongly marked {'' if path.expensive else 'not '}expensive"
    yield from _order(path)


def _members(plan: Plan, path: Path) -> Iterator[str]:
    """What holds of the members of every path."""
    branches = [plan.branch(member) for member in path.members]
    for member, branch in zip(path.members, branches, strict=True):
        if any(name_key(output.name) == MEMBER for output in branch.select):
            yield f"{member} names a column {MEMBER}, which is ours"
        if any(is_expensive(lookup.on) for lookup in branch.lookups):
            yield f"{member} joins on a Python function"
    if len(path.members) > 1 and path.end == "sink" and _calls_python(branches):
        if not path.shared:
            yield f"path {path.id!r} shares a branch that calls Python"
        elif not all(map(may_share, branches)):
            yield f"path {path.id!r} shares a branch that needs Python for itself"
        elif path.movable != len(shared_predicates(branches)):
            yield f"path {path.id!r} does not have the predicates of its members"


def _calls_python(branches: Iterable[Branch]) -> bool:
    return any(is_expensive(e) for branch in branches for e in branch.expressions)


def _order(path: Path) -> Iterator[str]:
    """Operators are executable: known, in order, from the lookups to one end."""
    kinds = [operator.kind for operator in path.operators]
    if unknown := [kind for kind in kinds if kind not in _ORDER]:
        yield f"path {path.id!r} has an operator of kind {unknown[0]!r}"
        return
    for before, after in pairwise(kinds):
        repeats = before == after and after not in ("lookup", "python")
        if repeats or _ORDER.index(before) > _ORDER.index(after):
            yield f"path {path.id!r} runs {after} after {before}"
    shared = len(path.members) > 1
    ending = {"sink", "fanout" if shared else "project"} if path.end == "sink" else {path.end}
    needed = {*ending, *(["python"] if path.expensive else [])}
    for kind in _ORDER:
        if kind in needed and kind not in kinds:
            yield f"path {path.id!r} has no {kind}"
    if (found := kinds.count("lookup")) != len(path.lookups):
        yield f"path {path.id!r} has {found} lookups for {len(path.lookups)} relations"


def _unknown(branch: Branch, application: Application) -> Iterator[str]:
    """Names that were not declared."""
    for stream in branch.streams:
        if stream not in application.streams:
            yield f"no stream {stream!r}"
            return
    sources: list[set[Field]] = [set(application.streams[s].columns) for s in branch.streams]
    for lookup in branch.lookups:
        if lookup.unnests:
            sources.append(set(lookup.columns))
            continue
        if lookup.relation not in application.relations:
            yield f"no relation {lookup.relation!r}"
            return
        sources.append(set(application.relations[lookup.relation].columns))
    yield from _columns(branch, sources)


def _columns(branch: Branch, sources: list[set[Field]]) -> Iterator[str]:
    for number, lookup in enumerate(branch.lookups):
        yield from _lookup(lookup, lookup_source(number, len(branch.inputs)))
    for column in columns(branch.expressions):
        if not 0 <= column.source < len(sources):
            yield f"column {column.name!r} of source {column.source}, of {len(sources)}"
        elif Field(column.name, column.type) not in sources[column.source]:
            yield f"no column {column.name!r} of type {column.type} in source {column.source}"


def _lookup(lookup: Lookup, source: int) -> Iterator[str]:
    """A lookup sees the stream and the relations up to its own."""
    if lookup.kind not in ("inner", "left"):
        yield f"a join of kind {lookup.kind!r}"
    for column in columns([lookup.on]):
        if column.source > source:
            yield f"the join with {lookup.relation!r} refers to a later one"
