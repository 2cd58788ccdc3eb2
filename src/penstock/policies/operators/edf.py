"""EDF: run what must be finished first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from penstock.errors import PolicyError
from penstock.policies.operators.base import Ranked
from penstock.policies.operators.model.routes import Route, Segment, whole


@dataclass(frozen=True, slots=True)
class Edf(Ranked):
    """Earliest deadline first: if any schedule keeps every deadline, this one does.

    A deadline is the arrival plus the latency goal of the query, or ``latency`` where it has none.
    With one goal for all this is FIFO.

    >>> from penstock.policies.operators.base import Queue, View
    >>> a, b = Edf().prepare([Route("a", (), latency=1.0), Route("b", (), latency=9.0)])
    >>> queues = Queue(a, length=9, oldest=3.0), Queue(b, length=1, oldest=1.0)
    >>> Edf().choose(View(now=3.5, queues=queues)).segment
    'a'

    Reference: section 5 of the chain paper.
    """

    latency: float = inf

    preemptive = True

    def __post_init__(self) -> None:
        """Refuse a latency goal that is not positive."""
        if not self.latency > 0:
            raise PolicyError("edf: latency must be positive")

    def prepare(self, routes: Sequence[Route]) -> tuple[Segment, ...]:
        """One segment per path; blocks are due at their deadlines."""
        promised = [route.promised(self.latency) for route in routes]
        return tuple(whole(route, grace=route.latency, reason="its deadline is the next")
                     for route in promised)
