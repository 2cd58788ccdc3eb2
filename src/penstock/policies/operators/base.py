"""What an operator policy sees, what it answers, and the contract between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

from penstock.policies.operators.model.routes import Route, Segment, whole


@dataclass(frozen=True, slots=True)
class Queue:
    """The work waiting before one segment."""

    segment: Segment
    length: int
    """Blocks waiting."""
    oldest: float
    """When the block at the head arrived."""
    done: float = 0.0
    """Seconds per row already spent on the head, which was preempted or is in an active job."""
    head: float = 1.0
    """Rows of the block at the head."""
    blocks: tuple[tuple[float, float], ...] = ()
    """For policies that look at blocks: the arrival and remaining seconds of each."""

    @property
    def due(self) -> float:
        """Breaks ties among equal ranks: when the head arrived, plus its segment's grace."""
        return self.oldest + self.segment.grace

    @property
    def left(self) -> float:
        """Expected seconds until the head is finished, if nothing else ran."""
        return max(0.0, self.segment.rest - self.done) * self.head

    @property
    def deadline(self) -> float:
        """When the head should be finished, by the latency goal of its query."""
        return self.oldest + self.segment.latency

    @property
    def latest_start(self) -> float:
        """When the head must begin to finish by its deadline."""
        return self.deadline - self.left


@dataclass(frozen=True, slots=True)
class View:
    """The queues that may run now, in plan order; none of them is empty."""

    now: float
    queues: tuple[Queue, ...]
    last: float = -1.0
    """The rank of the queue that ran last."""

    @property
    def instant(self) -> float:
        """Shorter spans of time than this count as zero."""
        return instant(self.now)


def instant(now: float) -> float:
    """Shorter spans than this count as zero at such a time: sums of costs are rounded."""
    return 1e-9 * max(1.0, abs(now))


@dataclass(frozen=True, slots=True)
class Decision:
    """Run the head of this segment's queue, for this reason."""

    segment: str
    reason: str
    quantum: float = inf
    """Ask again after this many seconds, even if the work is not finished."""
    limit: float = 1
    """Ask again after this many blocks of the queue."""
    most_blocks: float = inf
    """The most blocks that may ride in one job, if the host lets several ride together."""
    lasting: float | None = None
    """Seconds that such a job should take; None leaves it to the host."""
    whole: bool = False
    """Carry the blocks to the output in one go if a cut costs time: there is none to lose."""


class Policy:
    """Decides what runs next: cuts paths into segments, then takes one of the queues it is shown.

    Few policies need to see all queues. A policy whose order can be expressed in numbers is
    `Ranked`.
    """

    preemptive: ClassVar[bool] = False
    """Whether an arriving block is a reason to decide again while another is being processed."""

    @property
    def sees_all(self) -> bool:
        """Whether `choose` has to be asked, with every queue in view."""
        return True

    @property
    def looks_at_blocks(self) -> bool:
        """Whether `choose` needs to see every waiting block; otherwise a view has none."""
        return False

    def prepare(self, routes: Sequence[Route]) -> tuple[Segment, ...]:
        """Cut routes into segments and rank them; called again whenever their figures change."""
        return tuple(whole(route) for route in routes)

    def choose(self, view: View) -> Decision | None:
        """The queue to run next, or None to wait."""
        raise NotImplementedError


class Ranked(Policy):
    """The queue of the lowest rank runs next, so the engine keeps its queues sorted.

    Among equals the queue that is due first runs, then the older, then the one further on its path,
    then plan order. So of blocks that arrived together, one is finished before the next begins. The
    segments of a route depend on that route alone: when its figures change, only it is prepared
    again. `choose` computes the same from a view, for tests to compare with.
    """

    dynamic: ClassVar[bool] = False
    """Whether `rank` depends on more than the segment."""

    @property
    def sees_all(self) -> bool:
        """Ranks suffice, unless a variant of the policy has a `choose` of its own."""
        return False

    def rank(self, segment: Segment, done: float, last: float) -> float:
        """The lower, the sooner, for a queue on whose head ``done`` seconds were already spent."""
        return segment.rank

    def turn(self, segment: Segment) -> Decision:
        """The decision for a segment when it is the first in rank."""
        return Decision(segment.id, segment.reason)

    def choose(self, view: View) -> Decision | None:
        """The queue that is first in rank."""
        if not view.queues:
            return None
        return self.turn(self.foremost(view.queues, view.last).segment)

    def foremost(self, queues: Sequence[Queue], last: float = -1.0) -> Queue:
        """The queue of the lowest rank, after breaking ties."""
        return min(queues, key=lambda q: (self.rank(q.segment, q.done, last), q.due, q.oldest,
                                          -q.segment.first))


class Flushing(Ranked):
    """A ranked policy that also asks for the order of deadlines.

    The engine also keeps the queues sorted by the *latest start* of their heads: the deadline less
    the work from there to the output. If the latest start of any head has come, `flush` decides on
    the one with the earliest deadline. Otherwise the first in rank has its `turn`. Either decision
    lasts until the next latest start at most.
    """

    def flush(self, segment: Segment, deadline: float, left: float) -> Decision:
        """The decision for a segment whose head has ``left`` seconds of work to its deadline."""
        raise NotImplementedError

    def choose(self, view: View) -> Decision | None:
        """The queue that is due, or else the first in rank."""
        if not view.queues:
            return None
        soon = view.now + view.instant
        due = [queue for queue in view.queues if queue.latest_start <= soon]
        later = (queue.latest_start for queue in view.queues)
        quantum = min((at for at in later if at > soon), default=inf) - view.now
        if due:
            urgent = min(due, key=lambda queue: (queue.deadline, -queue.segment.first))
            decision = self.flush(urgent.segment, urgent.deadline, urgent.left)
        else:
            decision = self.turn(self.foremost(view.queues, view.last).segment)
        return replace(decision, quantum=min(decision.quantum, quantum))
