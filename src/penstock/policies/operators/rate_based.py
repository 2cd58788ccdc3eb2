"""Rate-Based: run the operator whose answers come out fastest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from penstock.policies.operators.base import Ranked
from penstock.policies.operators.model.routes import Route, Segment, each, segment


@dataclass(frozen=True, slots=True)
class RateBased(Ranked):
    """Priority is the global output rate: rows out per second of work from here to the output.

    It rises along a path, so a block once started is carried through unless a better one waits at
    the end of an operator. A block that arrives meanwhile waits, however cheap it would be.

    >>> from penstock.policies.operators.model.routes import Stage
    >>> route = Route("p", (Stage("a", 4.0, 0.5), Stage("b", 2.0)))
    >>> [(segment.operators, segment.reason) for segment in RateBased().prepare([route])]
    [(('a',), 'gives 0.1 rows per second'), (('b',), 'gives 0.5 rows per second')]

    Reference: M. Sharaf, P. Chrysanthis, A. Labrinidis, "Preemptive rate-based operator scheduling
    in a data stream management system" (2005), section 3.2, equation 1.
    """

    def prepare(self, routes: Sequence[Route]) -> tuple[Segment, ...]:
        """One segment per operator, ranked by its global output rate."""
        return tuple(_ranked(route, first, last) for route in routes for first, last in each(route))


def _ranked(route: Route, first: int, last: int) -> Segment:
    cut = segment(route, first, last)
    rate = output_rate(cut, done=0.0)
    return replace(cut, rank=-rate, reason=f"gives {rate:.3g} rows per second")


def output_rate(segment: Segment, done: float) -> float:
    """Rows out per second of the work that is left when ``done`` seconds were spent on the head."""
    left = segment.rest - done
    return segment.priority * segment.gain / left if left > 0 else inf
