"""When an active job lets another one pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from penstock.engine.paths.active_job import ActiveJob
from penstock.engine.paths.scheduler import Scheduler, Turn
from penstock.engine.paths.stage_costs import StageCosts
from penstock.policies.operators import Segment

LONG = 1.5
"""Only jobs expected to take at least this many quanta may be preempted."""
BETTER = 2.0
"""A block preempts only if it ranks this many times better: two jobs at once cost more than one
after the other, and only one can preempt at a time."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """Compares what could begin with the active jobs."""

    scheduler: Scheduler
    costs: StageCosts

    def may_be(self, segment: Segment, expected: float, quantum: float) -> bool:
        """Whether a job may be preempted: not one that is the best there is, nor a short one.

        A job of about a quantum ends before preempting it would gain anything. It would have to be
        done in small pieces, each with a fixed cost. The preempting job would share the cores with
        the pieces that have begun. A job expected to take 0 seconds is one of unknown cost.
        """
        return (self.scheduler.policy.preemptive and self.scheduler.is_outranked(segment, BETTER)
                and not 0 < expected <= LONG * quantum)

    def is_worth(self, turn: Turn, active: Iterable[ActiveJob]) -> bool:
        """Whether a turn ranks much better than all active jobs, or is due.

        It is not worth it if the active jobs end within the fixed part of its own job.
        """
        others = list(active)
        if not others or not all(other.yields for other in others):
            return False
        return turn.whole or (turn.rank < BETTER * min(map(self._rank, others))
                              and not self._is_soon_over(turn, others))

    def _is_soon_over(self, turn: Turn, others: Iterable[ActiveJob]) -> bool:
        fixed = self.costs.model(turn.segment.path, turn.segment.first).fixed
        return all(0 < (1 - other.done) * other.expected < fixed for other in others)

    def _rank(self, job: ActiveJob) -> float:
        """The rank of a job by the work that is left; on a path that no longer exists, the last."""
        if not self.costs.knows(job.path.id):
            return inf
        whole = self.costs.cost(job.path.id, job.first, job.last)
        return self.scheduler.rank(job.segment, job.done * whole)
