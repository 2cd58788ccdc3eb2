"""Mixed: Chain on the steep segments, FIFO on the gentle ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from penstock.errors import PolicyError
from penstock.policies.operators.base import Policy
from penstock.policies.operators.chain import steep
from penstock.policies.operators.charts import chart
from penstock.policies.operators.routes import Route, Segment, segment

_EASE = 0.5
"""Chain gets more room again when the latency stays below this part of the limit."""
_WINDOW = 0.5
"""The worst latency is judged over windows of so many times the limit."""


@dataclass(slots=True)
class Mixed(Policy):
    """Segments whose slope lies below ``gamma`` become one, served in order of arrival.

    With gamma 0 this is Chain, with an infinite gamma FIFO; between them memory is traded for
    latency.

    >>> from penstock.policies.operators.charts import Chart
    >>> points = [(0, 1), (1, 0.1), (99, 0.001), (100, 0)]
    >>> route = Route("p", Chart.of_points(points).stages("abc"))
    >>> [segment.operators for segment in Mixed(gamma=0.01).prepare([route])]
    [('a',), ('b', 'c')]

    Given ``latency`` instead, it finds its gamma by itself: while the observed latency exceeds the
    limit the gentlest slope that is still served as Chain would is given to FIFO too, and when it
    stays below half of the limit the steepest of those goes back to Chain. The paper leaves this
    open.

    Reference: section 5.3 of the chain paper. All gentle segments share one rank, so that the
    blocks of several queries too are served in order of arrival.
    """

    gamma: float = 0.0
    latency: float = inf
    _slopes: tuple[float, ...] = ()
    _began: float | None = None
    _worst: float = 0.0

    preemptive = True

    def __post_init__(self) -> None:
        """Refuse limits that mean nothing."""
        if not self.gamma >= 0:
            raise PolicyError("mixed: gamma must not be negative")
        if not self.latency > 0:
            raise PolicyError("mixed: latency must be positive")

    def prepare(self, routes: Sequence[Route]) -> tuple[Segment, ...]:
        """The segments of the envelopes, the gentle ones of a path united."""
        slopes = {slope * route.priority for route in routes for slope in chart(route).slopes}
        self._slopes = tuple(sorted(slopes))
        return tuple(segment for route in routes for segment in self._cut(route))

    def _cut(self, route: Route) -> list[Segment]:
        ends, slopes = chart(route).envelope, chart(route).slopes
        steep_ones = sum(slope * route.priority >= self.gamma for slope in slopes)
        cuts = [steep(route, first, last) for first, last in pairwise(ends[: steep_ones + 1])]
        if steep_ones < len(slopes):  # slopes never increase: the gentle ones are the last
            gentle = ends[steep_ones], ends[-1]
            cuts.append(segment(route, *gentle, reason="its oldest block came first"))
        return cuts

    def observe(self, at: float, latency: float) -> bool:
        """Judge the worst latency of a while; move gamma over one slope."""
        if self.latency == inf:
            return False
        self._began = at if self._began is None else self._began
        self._worst = max(self._worst, latency)
        if at - self._began < _WINDOW * self.latency:
            return False
        worst, self._worst, self._began = self._worst, 0.0, at
        if worst > self.latency:
            return self._move([slope for slope in self._slopes if slope >= self.gamma])
        if worst < _EASE * self.latency:
            return self._ease()
        return False

    def _move(self, steep: Sequence[float]) -> bool:
        """Give the gentlest of the steep slopes to FIFO."""
        if not steep:
            return False
        self.gamma = steep[1] if len(steep) > 1 else inf
        return True

    def _ease(self) -> bool:
        """Give the steepest of the gentle slopes back to Chain."""
        gentle = [slope for slope in self._slopes if slope < self.gamma]
        if not gentle:
            return False
        self.gamma = gentle[-1]
        return True
