"""FIFO: run what arrived first, through its whole path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.policies.operators.base import Ranked
from penstock.policies.operators.model.routes import Route, Segment, whole


@dataclass(frozen=True, slots=True)
class Fifo(Ranked):
    """Serves blocks in the order of their arrival, whatever they cost and however much they keep.

    The largest latency is the smallest that one processor can give. But a burst fills the queues,
    because a slow path holds up the cheap and selective ones behind it.

    >>> from penstock.policies.operators.base import Queue, View
    >>> a, b = Fifo().prepare([Route("a", ()), Route("b", ())])
    >>> queues = Queue(a, length=9, oldest=3.0), Queue(b, length=1, oldest=1.0)
    >>> decision = Fifo().choose(View(now=5.0, queues=queues))
    >>> decision.segment, decision.reason, decision.limit
    ('b', 'its oldest block came first', 1)

    Reference: section 4.2 of the chain paper.
    """

    def prepare(self, routes: Sequence[Route]) -> tuple[Segment, ...]:
        """One segment per path, all with the same rank: age alone decides."""
        return tuple(whole(route, reason="its oldest block came first") for route in routes)
