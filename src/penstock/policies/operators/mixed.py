"""Mixed: Chain on the steep segments, FIFO on the gentle ones."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import inf

from penstock.errors import PolicyError
from penstock.policies.operators.base import Decision, Queue, Ranked, View
from penstock.policies.operators.chain import steepest
from penstock.policies.operators.model.routes import Route, Segment, segment

_CALM = 0.5
"""While the latency ahead stays below this part of the limit, Chain serves everything."""
_PLAY = 0.1
"""Gamma falls only as far as it would for a latency longer by this part of the limit."""
_BY_AGE = "its oldest block came first"


@dataclass(slots=True)
class Mixed(Ranked):
    """Segments whose slope lies below ``gamma`` become one, served in order of arrival.

    With gamma 0 this is Chain, with an infinite gamma FIFO; between them memory is traded for
    latency.

    >>> from penstock.policies.operators.model.charts import Chart
    >>> points = [(0, 1), (1, 0.1), (99, 0.001), (100, 0)]
    >>> route = Route("p", Chart.of_points(points).stages("abc"))
    >>> [segment.operators for segment in Mixed(gamma=0.01).prepare([route])]
    [('a',), ('b', 'c')]

    Given ``latency`` instead (the goal of queries that state none), it finds its gamma by itself,
    which the paper leaves open. At every decision it computes the *latency ahead*: the latency of
    every waiting block if all were served by age from now on. While the worst is below half of the
    limit, gamma is 0. From there on gamma climbs over the slopes, one by one, and at the limit it
    is infinite: FIFO takes over just in time. So no block takes longer than the limit that would
    not take as long under FIFO, unless paths meet or join. Gamma climbs at once and sinks with some
    play, so that it does not flutter. The more waits, the more a decision costs.

    >>> policy = Mixed(latency=1000.0)
    >>> first, second, third = policy.prepare([route])
    >>> queues = (Queue(first, 1, oldest=10.0, blocks=((10.0, 100.0),)),
    ...           Queue(second, 1, oldest=0.0, head=0.1, blocks=((0.0, 99.0),)))
    >>> for now in (20.0, 600.0, 900.0):
    ...     print(policy.choose(View(now, queues)).segment, round(policy.gamma, 5))
    p 0.0
    p 0.00101
    p@1 inf

    Reference: section 5.3 of the chain paper. All gentle segments share one rank, so that the
    blocks of several queries too are served in order of arrival.
    """

    gamma: float = 0.0
    """The slope below which FIFO serves; the value found last, if ``latency`` is given."""
    latency: float = inf
    _slopes: tuple[float, ...] = field(default=(), init=False)
    """The slopes of all segments, ascending."""

    preemptive = True

    def __post_init__(self) -> None:
        """Refuse limits that make no sense."""
        if not self.gamma >= 0:
            raise PolicyError("mixed: gamma must not be negative")
        if not self.latency > 0:
            raise PolicyError("mixed: latency must be positive")
        if self.gamma and self.latency < inf:
            raise PolicyError("mixed: give gamma or latency; with latency it finds its gamma")

    @property
    def sees_all(self) -> bool:
        """Only to find its gamma; a given gamma is part of the ranks."""
        return self.latency < inf

    @property
    def looks_at_blocks(self) -> bool:
        """Only to find its gamma."""
        return self.sees_all

    def prepare(self, routes: Sequence[Route]) -> tuple[Segment, ...]:
        """The segments of the envelopes; if gamma is given, a path's gentle ones are merged."""
        if not self.sees_all:
            return tuple(cut for route in routes for cut in self._cut(route))
        cuts = tuple(cut for route in routes for cut in steepest(route.promised(self.latency)))
        self._slopes = tuple(sorted({-cut.rank for cut in cuts}))
        self.gamma = 0.0  # it lay between slopes that no longer exist
        return cuts

    def _cut(self, route: Route) -> list[Segment]:
        cuts = steepest(route)
        steep = [cut for cut in cuts if not self._is_gentle(cut)]
        if len(steep) < len(cuts):  # slopes never increase: the gentle ones are the last
            first = cuts[len(steep)].first
            steep.append(segment(route, first, len(route.stages), reason=_BY_AGE))
        return steep

    def _is_gentle(self, cut: Segment) -> bool:
        return -cut.rank < self.gamma or self.gamma == inf

    # --- the adaptive form -------------------------------------------------------------------

    def choose(self, view: View) -> Decision | None:
        """By rank, after gamma has been found if it was not given."""
        if not (view.queues and self.sees_all):
            return Ranked.choose(self, view)
        ahead, slack = _ahead(view)
        self.gamma = self._found(ahead) if slack > view.instant else inf
        chosen = min(view.queues, key=self._order).segment
        by_age = f"{_BY_AGE}, and it frees less than {self.gamma:.3g} per second"
        reason = by_age if self._is_gentle(chosen) else chosen.reason
        return Decision(chosen.id, reason, quantum=slack if self.gamma < inf else inf,
                   whole=self.gamma == inf)

    def _order(self, queue: Queue) -> tuple[float, float, int]:
        rank = 0.0 if self._is_gentle(queue.segment) else queue.segment.rank
        return rank, queue.oldest, -queue.segment.first

    def _found(self, ahead: float) -> float:
        """The gamma for a latency ahead, which is a part of the limit."""
        given = bisect_left(self._slopes, self.gamma) if self.gamma < inf else len(self._slopes)
        steps = max(self._steps(ahead), min(given, self._steps(ahead + _PLAY)))
        return (0.0, *self._slopes[1:], inf)[steps] if self._slopes else 0.0

    def _steps(self, ahead: float) -> int:
        """The number of slopes that FIFO serves."""
        part = (ahead - _CALM) / (1 - _CALM)
        return int(len(self._slopes) * min(max(part, 0.0), 1.0))


def _ahead(view: View) -> tuple[float, float]:
    """If served by age: the worst latency, as a part of its limit, and the least time to spare.

    >>> cut = Segment("p", "p", ("a",), latency=10.0)
    >>> _ahead(View(6.0, (Queue(cut, 2, oldest=0.0, blocks=((0.0, 2.0), (5.0, 3.0))),)))
    (0.8, 2.0)
    """
    blocks = sorted((arrival, left, queue.segment.latency)
                    for queue in view.queues for arrival, left in queue.blocks)
    work = accumulate(left for _, left, _ in blocks)
    waits = [(view.now + done - arrival, limit)
             for (arrival, _, limit), done in zip(blocks, work, strict=True)]
    return max(wait / limit for wait, limit in waits), min(limit - wait for wait, limit in waits)
