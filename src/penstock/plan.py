"""What planning produces: paths of operators, and who shares them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias, TypeVar

from penstock.errors import PlanError
from penstock.model import Aggregate, Branch, Expression, Input, Lookup, Output, Query, Type

_T = TypeVar("_T")
EARLIEST = -(1 << 62)
"""A pane, or a time in microseconds, before all that can occur."""


@dataclass(frozen=True, slots=True)
class Member:
    """One input of one branch of one query, as a rider on a path."""

    query: str
    branch: int
    input: int = 0

    def __str__(self) -> str:
        """The query's name, with the numbers that tell its branches and their inputs apart.

        >>> [str(Member("q", branch, input)) for branch, input in ((0, 0), (1, 0), (1, 2))]
        ['q', 'q#1', 'q#1.2']
        """
        if self.input:
            return f"{self.query}#{self.branch}.{self.input}"
        return self.query if self.branch == 0 else f"{self.query}#{self.branch}"


def members_of(query: Query) -> Iterator[tuple[Member, str]]:
    """The members of a query, one per input of each branch, each with the stream that it reads."""
    for number, branch in enumerate(query.branches):
        for input, stream in enumerate(branch.streams):
            yield Member(query.name, number, input), stream


OperatorKind: TypeAlias = Literal[
    "lookup", "filter", "python", "fanout", "panes", "window", "project", "sink", "stage"]
"""A ``stage`` is what a record tells of operators that it does not name."""
End: TypeAlias = Literal["sink", "panes", "window"]
"""Where a path ends: its rows are delivered, make panes, or wait in the window of a join."""


@dataclass(frozen=True, slots=True)
class Operator:
    """A step of a path; its cost and selectivity are measured under its id."""

    id: str
    kind: OperatorKind
    text: str
    """What it does, in words for `penstock explain`."""


@dataclass(frozen=True, slots=True)
class Key:
    """How a row finds the members that may want it: by equality, or by the bin of a range.

    A fan-out computes each of its keys once per row and looks all of them up in one table.
    """

    kind: Literal["equal", "range", "always"]
    """``always``: no look-up can help, and every row is a candidate."""
    expression: Expression | None = None
    """What is looked up; None for always."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What remains of a branch when its constants are taken out.

    ``where`` and ``select`` refer to the constants as `Column` s of source `PARAMETER` named
    ``?slot``.
    """

    key: Key
    where: tuple[Expression, ...]
    select: tuple[tuple[str, Expression], ...]
    parameters: tuple[Type, ...]
    """The type of each slot: the constants that fill it are data, one per member."""


@dataclass(frozen=True, slots=True)
class Path:
    """The operators from one input to one end, in order.

    A path of one member evaluates that branch; a path of several is a fan-out. Its id stays the
    same when queries join it and leave it.
    """

    id: str
    reads: str
    """A stream, a shared join, or an earlier path that ends in a window: what comes out of it."""
    lookups: tuple[Lookup, ...]
    members: tuple[Member, ...]
    operators: tuple[Operator, ...]
    end: End = "sink"
    expensive: bool = False
    """Whether rows travel to Python."""
    movable: int = 0
    """How many of its conditions in Python, the first ones, are a conjunction: they may be
    evaluated in any order."""
    shared: bool = False
    """Whether its members share predicates in Python: then it is one job."""
    conditions: tuple[Operator, ...] = ()
    """The SQL conditions of its filter, if their order is decided: of one branch over a stream that
    neither looks up a relation nor calls Python."""

    @property
    def before_python(self) -> int:
        """How many of its operators come before those in Python."""
        return sum(1 for operator in self.operators if operator.kind in ("lookup", "filter"))

    @property
    def conjunction(self) -> tuple[Operator, ...]:
        """The predicates that may be evaluated in any order, in the present one."""
        first = self.before_python
        return self.conditions or self.operators[first:first + self.movable]

    def in_order(self, order: Sequence[int]) -> Path:
        """The same path with its conjunction in another order; none means as it is."""
        if not order or tuple(order) == tuple(range(len(order))):
            return self
        first, predicates = self.before_python, [self.conjunction[number] for number in order]
        if self.conditions:
            return replace(self, conditions=tuple(predicates))
        return replace(self, operators=(
            *self.operators[:first], *predicates, *self.operators[first + self.movable:]))

    @property
    def stages(self) -> tuple[tuple[Operator, ...], ...]:
        """The operators in the smallest parts that a job may run, in order.

        A job may stop after every operator of a path that calls Python for one query; its rows are
        kept until they go on. Projecting and writing belong together. Queries that share predicates
        need one job. Any other path is one pass of code that Spark generates, and is not worth a
        cut.
        """
        if not self.expensive or self.shared:
            return (self.operators,)
        last = -2 if self.end == "sink" else -1
        return (*((operator,) for operator in self.operators[:last]), self.operators[last:])


@dataclass(frozen=True, slots=True)
class Group:
    """Window aggregates over the same rows, grouped alike: one synopsis answers them all."""

    id: str
    """It stays the same when queries join it and leave it."""
    path: str
    """The path that makes its panes."""
    reads: str
    """What that path reads."""
    lookups: tuple[Lookup, ...]
    where: tuple[Expression, ...]
    keys: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]
    """Those of all its queries, each once."""
    members: tuple[Member, ...]
    pane: int
    """Microseconds: the longest that divides every window and every slide."""
    span: int
    """Panes in its longest window."""
    parts: tuple[str, ...] = ()
    """Groups of the same path whose panes, merged, are its own: nothing is computed for it."""
    paired: bool = False
    """Whether its rows are the pairs of a shared join: each lies in the pane of its earlier row,
    and in that of its later one."""

    @property
    def rows(self) -> Branch:
        """The query for the rows that are summarised: the keys, and what is aggregated."""
        args = dict.fromkeys(arg for aggregate in self.aggregates for arg in aggregate.args)
        named = [(f"key{n}", key) for n, key in enumerate(self.keys)]
        named += [(f"arg{n}", arg) for n, arg in enumerate(args)]
        select = tuple(Output(name, expression) for name, expression in named)
        return Branch((Input(self.reads),), select, self.where, self.lookups)


@dataclass(frozen=True, slots=True)
class SharedJoin:
    """Window joins of the same streams on the same predicate: one window is probed for them all."""

    id: str
    """It stays the same when queries join it and leave it."""
    streams: tuple[str, ...]
    """Two or more; one may stand several times."""
    on: tuple[Expression, ...]
    """What must hold of the rows of a pair, beside their times."""
    members: tuple[Member, ...]
    """By their first inputs."""
    span: int
    """The largest reach of their windows, in microseconds."""
    path: Path
    """What comes out of the join is what this path reads. If it ends in panes, the members are one
    group of window aggregates."""
    where: tuple[tuple[Expression, ...], ...] = ()
    """By stream: selections made before the join. No member wants the rows that fail them."""
    rows: bool = False
    """Whether its windows are windows of rows; ``span`` is then a number of rows."""

    @property
    def selections(self) -> tuple[Expression, ...]:
        """All selections that are made before the join."""
        return tuple(condition for conditions in self.where for condition in conditions)


@dataclass(frozen=True)  # no slots: the look-ups below are made once and kept
class Plan:
    """All paths of an application, in the order in which their first queries were declared."""

    queries: tuple[Query, ...]
    paths: tuple[Path, ...]
    """Those over streams; what comes out of a shared join is read by the path of the join."""
    groups: tuple[Group, ...] = ()
    """The synopses of window aggregates."""
    joins: tuple[SharedJoin, ...] = ()
    changing: tuple[tuple[str, float], ...] = ()
    """The relations that are looked up and may change, with the seconds between two reads."""

    def branch(self, member: Member) -> Branch:
        """The branch that a member stands for."""
        return self.query(member.query).branches[member.branch]

    def query(self, name: str) -> Query:
        """A query by name."""
        return _found(self._queries, name, "query")

    def path(self, id: str) -> Path:
        """A path by its id."""
        return _found(self._paths, id, "path")

    def group(self, id: str) -> Group:
        """A group of window aggregates by its id."""
        return _found(self._groups, id, "group")

    def join(self, id: str) -> SharedJoin:
        """A shared join by its id."""
        return _found(self._joins, id, "join")

    def join_of(self, query: str) -> SharedJoin | None:
        """The join that serves a query; None for one that is no window join."""
        return self._joining.get(query)

    def group_of(self, query: str) -> Group | None:
        """The group that answers a query; None for one that is no window aggregate."""
        return self._answering.get(query)

    def groups_on(self, path: str) -> tuple[Group, ...]:
        """The groups whose panes a path makes."""
        return tuple(group for group in self.groups if group.path == path)

    def paths_of(self, query: str) -> tuple[Path, ...]:
        """The paths on which a query's branches ride, each once, in plan order."""
        return self._riding.get(query, ())

    @cached_property
    def alone(self) -> frozenset[str]:
        """The queries that write files only, into folders no other query writes to."""
        folders = Counter(sink.folder for query in self.queries for sink in query.sinks)
        return frozenset(query.name for query in self.queries if all(
            sink.folder and folders[sink.folder] == 1 for sink in query.sinks))

    @cached_property
    def _queries(self) -> dict[str, Query]:
        return {query.name: query for query in self.queries}

    @cached_property
    def _paths(self) -> dict[str, Path]:
        return {path.id: path for path in (*self.paths, *(join.path for join in self.joins))}

    @cached_property
    def _joins(self) -> dict[str, SharedJoin]:
        return {join.id: join for join in self.joins}

    @cached_property
    def _joining(self) -> dict[str, SharedJoin]:
        return {member.query: join for join in self.joins for member in join.members}

    @cached_property
    def _groups(self) -> dict[str, Group]:
        return {group.id: group for group in self.groups}

    @cached_property
    def _answering(self) -> dict[str, Group]:
        return {member.query: group for group in self.groups for member in group.members}

    @cached_property
    def _riding(self) -> dict[str, tuple[Path, ...]]:
        riding: dict[str, dict[str, Path]] = {}
        for path in self._paths.values():
            for member in path.members:
                riding.setdefault(member.query, {})[path.id] = path
        return {query: tuple(paths.values()) for query, paths in riding.items()}


def _found(known: dict[str, _T], name: str, what: str) -> _T:
    try:
        return known[name]
    except KeyError:
        raise PlanError(f"the plan has no {what} {name!r}") from None
