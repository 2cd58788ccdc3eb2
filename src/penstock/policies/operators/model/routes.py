"""A path as policies see it: stages with a cost and a selectivity, cut into segments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, prod


@dataclass(frozen=True, slots=True)
class Stage:
    """An operator on a path, with its measured figures."""

    operator: str
    cost: float = 0.0
    """Seconds per row (or unit of memory) in; 0 while unknown."""
    selectivity: float = 1.0
    """Rows out per row in. It may exceed 1: a join may multiply."""
    width: float = 1.0
    """Bytes of a row out per byte of a row in: columns may be dropped or added."""

    @property
    def kept(self) -> float:
        """Bytes out per byte in."""
        return self.selectivity * self.width


@dataclass(frozen=True, slots=True)
class Route:
    """The stages from one stream to one output, and the latency goal of its query."""

    id: str
    stages: tuple[Stage, ...]
    latency: float = inf
    """The latency goal: seconds from arrival within which answers are to come."""
    priority: float = 1.0
    """A row of priority 3 counts as three."""

    @property
    def cost(self) -> float:
        """Expected seconds for a row from arrival to output: T of the chain paper."""
        return rest(self.stages)

    def promised(self, latency: float) -> Route:
        """The same with this latency goal, if its query has none."""
        return self if self.latency < inf else replace(self, latency=latency)


def rest(stages: Sequence[Stage]) -> float:
    """Expected seconds of a row through these stages: C1 + S1 C2 + S1 S2 C3 + ...

    >>> rest([Stage("filter", 1.0, 0.2), Stage("join", 5.0, 1.0)])
    2.0
    """
    seconds, rows = 0.0, 1.0
    for stage in stages:
        seconds += rows * stage.cost
        rows *= stage.selectivity
    return seconds


def gain(stages: Sequence[Stage]) -> float:
    """Expected rows out per row into these stages.

    >>> gain([Stage("filter", 1.0, 0.2), Stage("join", 5.0, 2.0)])
    0.4
    """
    return prod(stage.selectivity for stage in stages)


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive operators of a path that always run together, as one job."""

    id: str
    path: str
    operators: tuple[str, ...]
    rank: float = 0.0
    """The lower, the sooner."""
    reason: str = ""
    """Why it runs when it does."""
    grace: float = 0.0
    """The tie-breaker: among equals the block runs that is due first, this long after its arrival.
    """
    rest: float = 0.0
    """Expected seconds of a row from here to the output."""
    gain: float = 1.0
    """Expected rows out per row from here to the output."""
    latency: float = inf
    """The latency goal of the query."""
    priority: float = 1.0
    first: int = 0
    """Stages of its path that lie before it."""
    place: int = 0
    """Its number in plan order."""


def whole(route: Route, rank: float = 0.0, reason: str = "", grace: float = 0.0) -> Segment:
    """A route as a single segment."""
    return segment(route, 0, len(route.stages), rank, reason, grace)


def segment(
    route: Route, first: int, last: int, rank: float = 0.0, reason: str = "", grace: float = 0.0
) -> Segment:
    """The stages first to last - 1 of a route as one segment."""
    onward = route.stages[first:]
    return Segment(
        id=route.id if first == 0 else f"{route.id}@{first}",
        path=route.id,
        operators=tuple(stage.operator for stage in route.stages[first:last]),
        rank=rank,
        reason=reason,
        grace=grace,
        rest=rest(onward),
        gain=gain(onward),
        latency=route.latency,
        priority=route.priority,
        first=first,
    )


def each(route: Route) -> Iterable[tuple[int, int]]:
    """The spans that make every operator a segment of its own."""
    return pairwise(range(len(route.stages) + 1))


def remainders(route: Route, cuts: Sequence[Segment]) -> list[Segment]:
    """For every stage of a route, the rest of its segment from there on.

    A block may wait in the middle of a segment, because a host stopped there or because the
    segments were cut again since. It then waits before the rest of the segment, and has the
    segment's rank.

    >>> route = Route("p", (Stage("a", 1.0), Stage("b", 2.0), Stage("c", 3.0)))
    >>> rests = remainders(route, [segment(route, 0, 2, rank=-5.0), segment(route, 2, 3)])
    >>> [(rest.id, rest.operators, rest.rank) for rest in rests]
    [('p', ('a', 'b'), -5.0), ('p@1', ('b',), -5.0), ('p@2', ('c',), 0.0)]
    """
    found = []
    for cut in cuts:
        last = cut.first + len(cut.operators)
        for first in range(cut.first, last):
            here = segment(route, first, last, cut.rank, cut.reason, cut.grace)
            found.append(replace(here, latency=cut.latency))
    return found
