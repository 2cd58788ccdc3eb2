"""Chain: run the operators on the steepest segment of the lower envelope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from penstock.policies.operators.base import Ranked
from penstock.policies.operators.model.charts import chart
from penstock.policies.operators.model.routes import Route, Segment, segment


@dataclass(frozen=True, slots=True)
class Chain(Ranked):
    """Follows the lower envelope of every progress chart, the steepest segment of all first.

    An operator that frees little is run early if it hides one that frees much. With selectivities
    of at most 1 the waiting memory is always within one unit per path of the least possible
    (Theorem 4.3). Only a scheduler that knows the future could reach that. The price is latency.

    >>> from penstock.policies.operators.model.charts import Chart
    >>> points = [(0, 1), (400, 0.9), (2000, 0.88), (2200, 0.1), (4000, 0)]
    >>> route = Route("p", Chart.of_points(points).stages("abcd"))
    >>> [(segment.operators, segment.reason) for segment in Chain().prepare([route])]
    [(('a', 'b', 'c'), 'frees 0.000409 per second'), (('d',), 'frees 5.56e-05 per second')]

    Reference: section 4.1 of the chain paper.
    """

    preemptive = True

    def prepare(self, routes: Sequence[Route]) -> tuple[Segment, ...]:
        """The segments of the envelopes, ranked by their slopes."""
        return tuple(cut for route in routes for cut in steepest(route))


def steepest(route: Route) -> list[Segment]:
    """The segments of a route's envelope, ranked by what their stages together free per second."""
    known = chart(route)
    return [_ranked(route, *ends, slope * route.priority)
            for ends, slope in zip(pairwise(known.envelope), known.slopes, strict=True)]


def _ranked(route: Route, first: int, last: int, freed: float) -> Segment:
    return segment(route, first, last, rank=-freed, reason=f"frees {freed:.3g} per second")
