"""The heart of scheduling: which queues are ready, in what order, and which of them runs next.

Both hosts decide here: the core for Spark, and the simulator. A queue has a *place*, its number in
plan order. While the policy's rank of a queue depends on nothing but the queue, the ready ones are
kept in a heap and a decision costs no look at the others; a policy with a `choose` of its own is
shown all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from math import inf

from penstock.policies.operators import Policy, Queue, Run, Segment, View

_Entry = tuple[float, float, float, int]


class Scheduler:
    """The ready queues of a policy.

    >>> from penstock.policies.operators import Route, Stage, policy
    >>> chain = policy("chain")
    >>> routes = [Route("a", (Stage("a", 4.0),)), Route("b", (Stage("b", 1.0),))]
    >>> scheduler = Scheduler(chain, chain.prepare(routes))
    >>> scheduler.wake(0, oldest=0.0)
    >>> scheduler.wake(1, oldest=2.0)
    >>> scheduler.decide(now=3.0), scheduler.run.reason
    (1, 'frees 1 per second')
    """

    __slots__ = ("_at", "_best", "_current", "_heap", "_look", "_order", "_places", "_sees_all",
                 "_turns", "dynamic", "last", "policy", "run", "segments")

    def __init__(
        self,
        policy: Policy,
        segments: Sequence[Segment],
        look: Callable[[int], Queue] | None = None,
    ) -> None:
        """``look`` shows a queue to a policy that chooses for itself."""
        self.policy = policy
        self.last = -1.0
        """The rank of what ran last."""
        self.run = Run("", "")
        """The latest decision."""
        self._look = look
        self._sees_all = policy.sees_all
        self.dynamic = type(policy).rank is not Policy.rank
        """Whether ranks change while the head of a queue is under way."""
        self.adopt(segments)

    def adopt(self, segments: Sequence[Segment]) -> None:
        """Work with these segments from now on; every queue is asleep until it is woken again."""
        self.segments = [replace(segment, place=i) for i, segment in enumerate(segments)]
        self._best = min((segment.rank for segment in segments), default=inf)
        self._turns = [self.policy.turn(segment) for segment in self.segments]
        self._places = {segment.id: segment.place for segment in self.segments}
        self._at = sorted(range(len(segments)), key=lambda i: -segments[i].first)
        """The places in the order that decides among equals: further on the path, plan order."""
        self._order = sorted(range(len(segments)), key=self._at.__getitem__)
        self._current: list[_Entry | None] = [None] * len(self.segments)
        self._heap: list[_Entry] = []

    def wake(self, place: int, oldest: float, done: float = 0.0) -> None:
        """A queue may be run; called again whenever its head changes or progresses."""
        segment = self.segments[place]
        rank = self.policy.rank(segment, done, self.last) if self.dynamic else segment.rank
        entry = (rank, oldest + segment.grace, oldest, self._order[place])
        if entry != self._current[place]:  # a host may say again what is known
            self._current[place] = entry
            heappush(self._heap, entry)

    def sleep(self, place: int) -> None:
        """A queue may not be run: it is empty, or blocked."""
        self._current[place] = None

    def decide(self, now: float) -> int:
        """The place of the queue that runs next, -1 for none; `run` is the decision."""
        if self._sees_all:
            return self._choose(now)
        heap, current = self._heap, self._current
        while heap:
            entry = heap[0]
            place = self._at[entry[3]]
            if current[place] is entry:
                self.last = entry[0]
                self.run = self._turns[place]
                return place
            heappop(heap)  # its queue has changed since
        return -1

    def outranked(self, segment: Segment, by: float) -> bool:
        """Whether some queue may ever be so many times better than this one."""
        return self._sees_all or self._best < by * segment.rank

    def carried(self, place: int) -> Segment:
        """What the run just decided does, beginning with this queue or another of its path.

        What is to be carried to the output at one go is taken up where the path's oldest blocks
        are, furthest on: they are due first.
        """
        segment = self.segments[place]
        if not self.run.whole:
            return segment
        onward = [other for other in self.segments[place:] if other.path == segment.path]
        furthest = max(other.place for other in onward if self._current[other.place])
        stages = tuple(other.operators[0] for other in onward if other.place >= furthest)
        return replace(self.segments[furthest], operators=stages)

    def onward(self, segment: Segment) -> Iterator[int]:
        """The stages of its path at which later runs take up what a run of this segment leaves."""
        place = segment.place + len(segment.operators)
        while place < len(self.segments) and self.segments[place].path == segment.path:
            yield self.segments[place].first
            place += len(self.segments[place].operators)

    def _choose(self, now: float) -> int:
        assert self._look is not None, "this policy needs to see the queues"
        queues = tuple(self._look(i) for i, entry in enumerate(self._current) if entry)
        self._heap.clear()  # nobody reads it
        run = self.policy.choose(View(now, queues, self.last))
        if run is None:
            return -1
        self.run = run
        place = self._places[run.segment]
        entry = self._current[place]
        assert entry is not None, f"{run.segment} is not ready"
        self.last = entry[0]
        return place
