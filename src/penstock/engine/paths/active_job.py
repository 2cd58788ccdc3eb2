"""An active job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from penstock.engine.instructions import AS_WRITTEN, Evaluation
from penstock.engine.paths.queue_entries import AGAIN, QueueEntry
from penstock.model import Block
from penstock.plan import Member, Path
from penstock.policies.operators import Segment


@dataclass(slots=True)
class ActiveJob:
    """What was ordered, and how far it has come."""

    path: Path
    segment: Segment
    entries: list[QueueEntry]
    retried: bool
    evaluation: Evaluation = AS_WRITTEN
    """What it does with the conjunction of its path."""
    began: float = 0.0
    urgent: bool = False
    """Whether it preempts others."""
    yields: bool = False
    """Whether others may preempt it."""
    expected: float = 0.0
    """Seconds that it was expected to take; 0 if that was unknown."""
    planning: float = inf
    """Seconds of its own that can pass while an earlier job still has the cores. Infinite if jobs
    that are active together always share the cores."""
    waited: float = 0.0
    """Seconds for which it was planned while an earlier job still had the cores."""
    shared: float = 0.0
    """Seconds for which it shared the cores, because it preempted others or they preempted it."""
    done: float = 0.0
    """The part of its work that is done."""
    left: set[str] = field(default_factory=set)
    """Queries that have left meanwhile: they are no longer concerned by the job's outcome."""
    stale: dict[str, None] = field(default_factory=dict)
    """Groups of window aggregates whose synopsis was rebuilt meanwhile: the job does not fill
    these."""
    orphaned: dict[str, None] = field(default_factory=dict)
    """Groups that need its blocks although all its members have left."""

    @property
    def first(self) -> int:
        """The first of its stages."""
        return self.segment.first

    @property
    def last(self) -> int:
        """The stage before which it ends."""
        return self.segment.first + len(self.segment.operators)

    @property
    def met(self) -> tuple[int, ...]:
        """The predicates of the conjunction that the rows have met when it ends, by number."""
        reached = max(self.last - self.path.before_python, 0)
        return tuple(sorted(self.evaluation.order[:reached]))

    def meets(self, segment: Segment) -> bool:
        """Whether it works on stages of a segment.

        If another job began there meanwhile, blocks could leave in another order than they came.
        """
        last = segment.first + len(segment.operators)
        return (segment.path == self.path.id
                and segment.first < self.last and self.first < last)

    def end_beside(self, others: Iterable[ActiveJob], at: float) -> None:
        """It ends while these other jobs are active."""
        for other in others:
            if self.urgent or other.urgent:
                both = max(at - max(self.began, other.began), 0.0)
                self.shared += both
                other.shared += both
            elif other.began >= self.began:
                other.waited = max(at - other.began - other.planning, 0.0)

    def own(self, seconds: float) -> float:
        """The part of its seconds that is its own: half of those in which it shared the cores.

        Seconds for which it waited, because it began before an earlier job had ended, do not count.
        A preempting job gets the cores one by one as tasks leave them. A preempted job goes on with
        the cores that are left.
        """
        return max(seconds - self.waited - min(self.shared, seconds) / 2, 0.0)

    @property
    def members(self) -> tuple[Member, ...]:
        """The members it was ordered for: all entries of its train have the same ones."""
        return self.entries[0].members

    @property
    def staying(self) -> tuple[Member, ...]:
        """The members that have not left meanwhile."""
        return tuple(member for member in self.members if member.query not in self.left)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks of its train."""
        return tuple(block for entry in self.entries for block in entry.blocks)

    @property
    def is_final(self) -> bool:
        """Whether its last stage is the path's last."""
        return self.last == len(self.path.stages)

    @property
    def is_backfill(self) -> bool:
        """Whether its members have already had the blocks: only panes are made from them."""
        return self.entries[0].lane == AGAIN

    @property
    def oldest(self) -> float:
        """When the first of its blocks arrived."""
        return min(block.arrived for block in self.blocks)

    @property
    def rows(self) -> int:
        """The rows that entered it."""
        return sum(entry.rows for entry in self.entries)
