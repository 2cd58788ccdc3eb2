"""A job under way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from penstock.engine.paths.queue_entries import AGAIN, QueueEntry
from penstock.model import Block
from penstock.plan import Member, Path
from penstock.policies.operators import Segment


@dataclass(slots=True)
class ActiveJob:
    """What was ordered, and how far it is."""

    path: Path
    segment: Segment
    entries: list[QueueEntry]
    retried: bool
    began: float = 0.0
    urgent: bool = False
    """Whether it preempts others."""
    yields: bool = False
    """Whether others may preempt it."""
    expected: float = 0.0
    """Seconds that it was expected to take; 0 if that was unknown."""
    planning: float = inf
    """Seconds in which it can make use of the time in which an earlier job has the cores. Without
    end if jobs that are under way together always share the cores."""
    waited: float = 0.0
    """Seconds in which it was planned, but an earlier job still had the cores."""
    shared: float = 0.0
    """Seconds for which it had to share the cores: others preempted it, or it preempted them."""
    done: float = 0.0
    """The part of its work that is behind it."""
    left: set[str] = field(default_factory=set)
    """Queries that left meanwhile: what becomes of the job no longer concerns them."""
    stale: dict[str, None] = field(default_factory=dict)
    """Groups of window aggregates whose synopsis began anew meanwhile: theirs it does not fill."""
    orphaned: dict[str, None] = field(default_factory=dict)
    """Groups that need its blocks though all for whom it was ordered have left."""

    @property
    def first(self) -> int:
        """The first of its stages."""
        return self.segment.first

    @property
    def last(self) -> int:
        """The stage before which it ends."""
        return self.segment.first + len(self.segment.operators)

    def meets(self, segment: Segment) -> bool:
        """Whether it is at work on stages of a segment.

        Were another job to begin there meanwhile, blocks could leave in another order than they
        came.
        """
        last = segment.first + len(segment.operators)
        return (segment.path == self.path.id
                and segment.first < self.last and self.first < last)

    def end_beside(self, others: Iterable[ActiveJob], at: float) -> None:
        """It ends, while these are under way."""
        for other in others:
            if self.urgent or other.urgent:
                both = max(at - max(self.began, other.began), 0.0)
                self.shared += both
                other.shared += both
            elif other.began >= self.began:
                other.waited = max(at - other.began - other.planning, 0.0)

    def own(self, seconds: float) -> float:
        """What is its own of the seconds that it took: half of those in which it shared the cores.

        Those for which it waited, because it began before an earlier one was through, are not.
        Who preempts gets the cores that tasks leave, one by one, and who is preempted goes on
        where it can.
        """
        return max(seconds - self.waited - min(self.shared, seconds) / 2, 0.0)

    @property
    def members(self) -> tuple[Member, ...]:
        """Those for whom it was ordered: all of its train have the same."""
        return self.entries[0].members

    @property
    def staying(self) -> tuple[Member, ...]:
        """Those of them who have not left meanwhile."""
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
        """Whether its members have had the blocks: only panes are made of them, once more."""
        return self.entries[0].lane == AGAIN

    @property
    def oldest(self) -> float:
        """When the first of its blocks came."""
        return min(block.arrived for block in self.blocks)

    @property
    def rows(self) -> int:
        """Rows that went in."""
        return sum(entry.rows for entry in self.entries)
