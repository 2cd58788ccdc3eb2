"""A run under way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.engine.queues import Entry
from penstock.plan import Path
from penstock.policies.operators import Segment


@dataclass(slots=True)
class Running:
    """What was ordered, and how far it is."""

    path: Path
    segment: Segment
    entries: list[Entry]
    retried: bool
    began: float = 0.0
    urgent: bool = False
    """Whether it overtook others."""
    yields: bool = False
    """Whether others may overtake it."""
    held_up: float = 0.0
    """Seconds for which others overtook it."""
    done: float = 0.0
    """The part of its work that is behind it."""
    left: set[str] = field(default_factory=set)
    """Queries that left meanwhile: what becomes of the run no longer concerns them."""
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

        Were another run to begin there meanwhile, blocks could leave in another order than they
        came.
        """
        last = segment.first + len(segment.operators)
        return (segment.path == self.path.id
                and segment.first < self.last and self.first < last)

    def let_on(self, others: Iterable[Running], at: float) -> None:
        """It ends: those that it overtook go on."""
        for other in others if self.urgent else ():
            other.held_up += max(at - max(self.began, other.began), 0.0)

    def own(self, seconds: float) -> float:
        """What is its own of the seconds that it took.

        While others overtake, it goes on where they leave it a core: half of that time is its own.
        """
        return seconds - min(self.held_up, seconds) / 2

    @property
    def rows(self) -> int:
        """Rows that went in."""
        return sum(entry.rows for entry in self.entries)
