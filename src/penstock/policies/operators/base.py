"""What an operator policy sees, what it answers, and the contract between them."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.plan import Path, Plan


@dataclass(frozen=True, slots=True)
class Queue:
    """The work waiting before one segment."""

    segment: str
    length: int
    """Blocks waiting."""
    oldest: float
    """When the block at the head arrived."""
    rows: int = 0
    bytes: int = 0
    cost: float = 0.0
    """Seconds per row, as measured in the last window; 0 while unknown."""
    selectivity: float = 1.0
    """Rows out per row in, as measured in the last window."""


@dataclass(frozen=True, slots=True)
class View:
    """The queues that may be run now, in plan order; none of them is empty."""

    now: float
    queues: tuple[Queue, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """The decision: run the head of this segment's queue, for this reason."""

    segment: str
    reason: str


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive operators of a path that always run together, as one job."""

    id: str
    path: str
    operators: tuple[str, ...]


class Policy:
    """Decides what runs next. Ties go to plan order."""

    def prepare(self, plan: Plan) -> tuple[Segment, ...]:
        """Cut the plan's paths into segments: here one per path."""
        return tuple(whole(path) for path in plan.paths)

    def choose(self, view: View) -> Run | None:
        """The queue to run next, or None to wait."""
        raise NotImplementedError


def whole(path: Path) -> Segment:
    """A path as a single segment."""
    return Segment(path.id, path.id, tuple(operator.id for operator in path.operators))
