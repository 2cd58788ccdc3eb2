"""What an operator policy sees, what it answers, and the contract between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar

from penstock.policies.operators.routes import Route, Segment, whole


@dataclass(frozen=True, slots=True)
class Queue:
    """The work waiting before one segment."""

    segment: Segment
    length: int
    """Blocks waiting."""
    oldest: float
    """When the block at the head arrived."""
    done: float = 0.0
    """Seconds per row already spent on the head, which was preempted or is under way."""
    head: float = 1.0
    """Rows of the block at the head."""
    blocks: tuple[tuple[float, float], ...] = ()
    """For policies that look at blocks: arrival and remaining seconds of every one."""

    @property
    def due(self) -> float:
        """When the head is to be through, or simply when it came if nothing is promised."""
        return self.oldest + self.segment.grace

    @property
    def left(self) -> float:
        """Expected seconds until the head is through, if nothing else ran."""
        return max(0.0, self.segment.rest - self.done) * self.head


@dataclass(frozen=True, slots=True)
class View:
    """The queues that may be run now, in plan order; none of them is empty."""

    now: float
    queues: tuple[Queue, ...]
    last: float = -1.0
    """The rank of the queue that was run last."""

    @property
    def instant(self) -> float:
        """Less time than this is none: sums of costs are rounded."""
        return 1e-9 * max(1.0, abs(self.now))


@dataclass(frozen=True, slots=True)
class Run:
    """The decision: run the head of this segment's queue, for this reason."""

    segment: str
    reason: str
    quantum: float = inf
    """Ask again after so many seconds, although the work may not be finished."""
    limit: float = 1
    """Ask again after so many blocks of the queue."""
    whole: bool = False
    """Carry it to the output at one go, where a cut costs time: there is none to lose."""


class Policy:
    """Decides what runs next.

    A policy cuts paths into segments and gives each a *rank* (`prepare`). The queue of the lowest
    rank runs next; among equals the one that is due first, then the older, then the one further on
    its path (of blocks that came together one is finished before the next is begun), then plan
    order. That order is all of most policies, and lets the engine keep its queues sorted instead of
    asking about all of them. A policy that needs to see more says so by a `choose` of its own.
    """

    preemptive: ClassVar[bool] = False
    """Whether an arriving block is a reason to decide again while another is under way."""

    @property
    def sees_all(self) -> bool:
        """Whether `choose` is to be shown every queue; otherwise ranks say all."""
        return type(self).choose is not Policy.choose

    @property
    def looks_at_blocks(self) -> bool:
        """Whether `choose` needs to know every waiting block."""
        return False

    def prepare(self, routes: Sequence[Route]) -> tuple[Segment, ...]:
        """Cut the routes into segments and rank them; again whenever their figures change."""
        return tuple(whole(route) for route in routes)

    def rank(self, segment: Segment, done: float, last: float) -> float:
        """The lower the sooner, for a queue on whose head ``done`` seconds were spent already."""
        return segment.rank

    def turn(self, segment: Segment) -> Run:
        """The decision for a segment when it is the first in rank."""
        return Run(segment.id, segment.reason)

    def choose(self, view: View) -> Run | None:
        """The queue to run next, or None to wait."""
        if not view.queues:
            return None
        return self.turn(self.foremost(view.queues, view.last).segment)

    def foremost(self, queues: Sequence[Queue], last: float = -1.0) -> Queue:
        """The queue of the lowest rank, and what decides among equals."""
        return min(queues, key=lambda q: (self.rank(q.segment, q.done, last), q.due, q.oldest,
                                          -q.segment.first))
