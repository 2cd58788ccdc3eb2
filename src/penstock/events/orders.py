"""What a summary knows of orders that adapt: how they are now, and why they changed."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.events.jobs import ConjunctionProfile
from penstock.events.kinds import OrderChanged, ProbesReordered

CONJUNCTIONS_KEPT = 1000
"""This many conjunctions are remembered."""


@dataclass(slots=True)
class OrderMeasures:
    """An order that has changed: of the conjunction of a path, or of the probes of a stream."""

    name: str
    """The path or the stream."""
    order: tuple[str, ...] = ()
    """The present order, of predicates as they are written in SQL or of streams."""
    previous: tuple[str, ...] = ()
    """The order before the last change; empty if it was as written."""
    changes: int = 0
    changed: float = 0.0
    """When the order changed last, and why, with seconds per row or key before and after."""
    reason: str = ""
    before: float = 0.0
    after: float = 0.0
    rows: int = 0
    """Profiled rows or keys behind that decision."""
    matrix: tuple[tuple[int, ...], ...] = ()
    """Their matrix, by place in the order before it."""

    def take(self, event: OrderChanged | ProbesReordered) -> None:
        """Another order."""
        self.previous = self.order
        self.order, self.changed, self.reason = event.order, event.at, event.reason
        self.before, self.after = event.before, event.after
        self.rows, self.matrix = event.rows, event.matrix
        self.changes += 1


@dataclass(slots=True)
class Profiling:
    """What profiling has taken, over all conjunctions."""

    rows: int = 0
    """Dropped rows that were profiled."""
    seconds: float = 0.0
    """Seconds of all cores together."""
    partitions: int = 0
    """Partitions that had an order of their own."""

    def take(self, profile: ConjunctionProfile | None) -> None:
        """The profile of a job."""
        if profile is not None:
            self.rows += sum(profile.patterns.values())
            self.seconds += profile.sampling
            self.partitions += len(profile.own)
