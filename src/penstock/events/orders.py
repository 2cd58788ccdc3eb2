"""What a summary knows of conjunctions: their orders, and why they changed."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.events.jobs import ConjunctionProfile
from penstock.events.kinds import OrderChanged

CONJUNCTIONS_KEPT = 1000
"""This many conjunctions are remembered."""


@dataclass(slots=True)
class ConjunctionMeasures:
    """The conjunction of one path whose order has changed."""

    path: str
    order: tuple[str, ...] = ()
    """The predicates in the present order, as they are written in SQL."""
    changes: int = 0
    changed: float = 0.0
    """When the order changed last, and why, with seconds per row before and after."""
    reason: str = ""
    before: float = 0.0
    after: float = 0.0
    rows: int = 0
    """Profiled rows behind that decision."""
    matrix: tuple[tuple[int, ...], ...] = ()
    """Their matrix, by place in the order before it."""

    def take(self, event: OrderChanged) -> None:
        """Another order."""
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

    def take(self, profile: ConjunctionProfile | None) -> None:
        """The profile of a job."""
        if profile is not None:
            self.rows += sum(profile.patterns.values())
            self.seconds += profile.sampling
