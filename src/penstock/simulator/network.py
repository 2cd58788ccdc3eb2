"""What is simulated: routes of operators, where they meet, and their figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.policies.operators import Route, Segment, Stage
from penstock.policies.operators.model.routes import remainders


@dataclass(frozen=True, slots=True)
class Network:
    """Routes that may share operators.

    Stages of one name are one operator with one queue (a merge). The two names of a join are one
    operator with two queues, served in the order of arrival across both and blocked while either
    is empty.
    """

    routes: tuple[Route, ...]
    joins: tuple[tuple[str, str], ...] = ()
    believed: tuple[Route, ...] = ()
    """The routes with the figures a policy is given; empty: the true ones."""

    def told(self, measured: Mapping[str, Stage] | None = None) -> tuple[Route, ...]:
        """The routes as policies see them, with measured figures in place of beliefs."""
        routes = self.believed or self.routes
        if not measured:
            return routes
        return tuple(
            replace(route, stages=tuple(measured.get(s.operator, s) for s in route.stages))
            for route in routes)

    @property
    def operators(self) -> tuple[str, ...]:
        """The names of all queues, in plan order."""
        names = (stage.operator for route in self.routes for stage in route.stages)
        return tuple(dict.fromkeys(names))

    def places(self, routes: Sequence[Route], cuts: Sequence[Segment]) -> list[Segment]:
        """For every queue what waits there: the rest of a segment from that operator on.

        Where routes meet, the operator has the lowest rank among them and the strictest latency
        goal. Both sides of a join have the better rank of the two, since whichever side is the
        older is served.
        """
        found: dict[str, Segment] = {}
        for route in routes:
            rests = remainders(route, [cut for cut in cuts if cut.path == route.id])
            for stage, rest in zip(route.stages, rests, strict=True):
                here = replace(rest, id=stage.operator)
                found[stage.operator] = _better(found.get(stage.operator), here)
        for left, right in self.joins:
            rank = min(found[left].rank, found[right].rank)
            found[left], found[right] = (replace(found[side], rank=rank) for side in (left, right))
        return [found[name] for name in self.operators]


def _better(known: Segment | None, here: Segment) -> Segment:
    if known is None:
        return here
    best = min(known, here, key=lambda segment: segment.rank)
    return replace(best, grace=min(known.grace, here.grace),
                   latency=min(known.latency, here.latency), first=max(known.first, here.first))


def path(name: str, stages: Sequence[tuple[float, float]], **promises: float) -> Route:
    """A route from (cost, selectivity) pairs, its operators named after it.

    >>> path("q", [(1.0, 0.2), (5.0, 1.0)]).stages[1]
    Stage(operator='q.2', cost=5.0, selectivity=1.0, width=1.0)
    """
    made = tuple(Stage(f"{name}.{i}", cost, kept) for i, (cost, kept) in enumerate(stages, 1))
    return Route(name, made, **promises)
