"""Greedy: run the operator that frees the most memory per second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.policies.operators.base import Ranked
from penstock.policies.operators.model.charts import Chart
from penstock.policies.operators.model.routes import Route, Segment, each, segment


@dataclass(frozen=True, slots=True)
class Greedy(Ranked):
    """Looks at one operator at a time: priority (1 - s) / t.

    So a fast filter behind a slow one is never reached during a burst, which is where Chain is
    better.

    >>> from penstock.policies.operators.model.routes import Stage
    >>> route = Route("p", (Stage("slow", 4.0, 0.2), Stage("fast", 1.0, 0.5)))
    >>> [(segment.operators, segment.reason) for segment in Greedy().prepare([route])]
    [(('slow',), 'frees 0.2 per second'), (('fast',), 'frees 1 per second')]

    The last operator frees what reaches it, whatever it lets out. Reference: section 4.2 of the
    chain paper.
    """

    preemptive = True

    def prepare(self, routes: Sequence[Route]) -> tuple[Segment, ...]:
        """One segment per operator, ranked by what it frees."""
        return tuple(_ranked(route, first, last) for route in routes for first, last in each(route))


def _ranked(route: Route, first: int, last: int) -> Segment:
    stage = route.stages[first]
    kept = stage.kept if last < len(route.stages) else 0.0
    freed = Chart((0.0, stage.cost), (1.0, kept)).derivative(0, 1) * route.priority
    return segment(route, first, last, rank=-freed, reason=f"frees {freed:.3g} per second")
