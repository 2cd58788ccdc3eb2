"""Round-Robin: every operator that has work gets a quantum in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf

from penstock.errors import PolicyError
from penstock.policies.operators.base import Decision, Ranked
from penstock.policies.operators.model.routes import Route, Segment, each, segment

_LAP = 2**20
"""Places on the circle: more than any plan has operators."""


@dataclass(frozen=True, slots=True)
class RoundRobin(Ranked):
    """Walks in a circle over the operators and gives each that is ready ``quantum`` seconds.

    If several blocks ride in one job, a turn is one job that should take as long. If it is not
    given, a quantum is one second, or the usual time of the host's jobs.

    Nobody starves, and nobody is favoured: the more operators there are, the less often the one
    that would free memory gets its turn.

    >>> from penstock.policies.operators.base import Queue, View
    >>> policy = RoundRobin(quantum=2.0)
    >>> a, b = Segment("a", "p", ("a",), place=0), Segment("b", "p", ("b",), place=1)
    >>> queues = Queue(a, length=1, oldest=0.0), Queue(b, length=1, oldest=0.0)
    >>> [policy.choose(View(1.0, queues, last=last)).segment for last in (-1, 0, 1)]
    ['a', 'b', 'a']

    Reference: section 4.2 of the chain paper, section 3.1 of the prb paper.
    """

    quantum: float | None = None

    dynamic = True

    def __post_init__(self) -> None:
        """Refuse a quantum that is not positive."""
        if self.quantum is not None and not self.quantum > 0:
            raise PolicyError("round_robin: quantum must be positive")

    def prepare(self, routes: Sequence[Route]) -> tuple[Segment, ...]:
        """One segment per operator."""
        return tuple(segment(route, first, last, reason="it is its turn")
                     for route in routes for first, last in each(route))

    def rank(self, segment: Segment, done: float, last: float) -> float:
        """Its place on the circle: in this lap if it is still ahead, otherwise in the next."""
        lap = max(0, ceil((last + 1 - segment.place) / _LAP))
        return float(lap * _LAP + segment.place)

    def turn(self, segment: Segment) -> Decision:
        """As many blocks as the quantum holds."""
        quantum = 1.0 if self.quantum is None else self.quantum
        return Decision(segment.id, segment.reason, quantum, limit=inf, lasting=self.quantum)

