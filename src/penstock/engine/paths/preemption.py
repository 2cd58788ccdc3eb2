"""When a run that is under way lets another one pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from penstock.engine.paths.active_job import ActiveJob
from penstock.engine.paths.scheduler import Scheduler, Turn
from penstock.engine.paths.stage_costs import StageCosts
from penstock.policies.operators import Segment

LONG = 1.5
"""Quanta that a run lasts at least that may be overtaken."""
BETTER = 2.0
"""A block overtakes if it ranks so many times better: two jobs at once cost more than one after
the other, and only one can overtake at a time."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """Compares what could be begun with what is under way."""

    scheduler: Scheduler
    figures: StageCosts

    def may_be(self, segment: Segment, expected: float, quantum: float) -> bool:
        """Whether a run may be overtaken: not one that is the best there is, nor a short one.

        A run of about a quantum is over before overtaking it would gain anything: it would have to
        be done in small pieces, each with a cost of its own, and whoever overtakes shares the cores
        with the pieces that have begun. Nothing is known of a run that takes 0 seconds.
        """
        return (self.scheduler.policy.preemptive and self.scheduler.is_outranked(segment, BETTER)
                and not 0 < expected <= LONG * quantum)

    def is_worth(self, turn: Turn, running: Iterable[ActiveJob]) -> bool:
        """Whether a turn is much better than all that is under way, or is due."""
        others = list(running)
        if not others or not all(other.yields for other in others):
            return False
        return turn.whole or turn.rank < BETTER * min(map(self._rank, others))

    def _rank(self, running: ActiveJob) -> float:
        """The rank of a run by the work that is left of it; on a path that is gone, the last."""
        if not self.figures.knows(running.path.id):
            return inf
        whole = self.figures.cost(running.path.id, running.first, running.last)
        return self.scheduler.rank(running.segment, running.done * whole)
