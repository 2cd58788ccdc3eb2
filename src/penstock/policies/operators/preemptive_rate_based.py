"""Preemptive Rate-Based: an arriving block may preempt the one that is being processed."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.policies.operators.model.routes import Segment
from penstock.policies.operators.rate_based import RateBased, output_rate


@dataclass(frozen=True, slots=True)
class PreemptiveRateBased(RateBased):
    """Rate-Based that decides again at every arrival.

    The block that is being processed competes with the cost it has left, C - delta. So only a block
    that gives answers faster than its own remainder preempts it. Afterwards it goes on where it
    was.

    >>> expensive = Segment("a", "p", ("a",), rest=40.0, gain=1.0)
    >>> [PreemptiveRateBased().rank(expensive, done, last=0.0) for done in (0.0, 30.0)]
    [-0.025, -0.1]

    Reference: section 3.3 of the prb paper.
    """

    preemptive = True
    dynamic = True

    def rank(self, segment: Segment, done: float, last: float) -> float:
        """The output rate, given what was already spent on the head."""
        return -output_rate(segment, done)
