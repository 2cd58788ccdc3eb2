"""The heart of scheduling: which queues are ready, in what order, and which of them runs next.

Both hosts decide here: the core for Spark, and the simulator. A queue has a *place*, its number in
plan order. A heap keeps the ready queues of a ranked policy, and a second order keeps those of a
policy that asks for deadlines. So a decision does not look at the other queues. Any other policy is
shown all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from penstock.engine.paths.latest_starts import LatestStarts, Start
from penstock.policies.operators import (
    Decision,
    Flushing,
    Policy,
    Queue,
    Ranked,
    Segment,
    View,
    instant,
)

_Entry = tuple[float, float, float, int]


class Turn(NamedTuple):
    """What runs next, and why: the policy's decision about a queue.

    It is a tuple because the simulator makes one for every operator that it runs.
    """

    place: int
    rank: float
    """The rank of its queue. A policy that sees all queues may have chosen it for another reason.
    """
    segment: Segment
    """What the job does. It begins with the queue of this place, or with a later one of its path.
    Rows that are carried to the output in one go begin where the path's oldest blocks are, furthest
    on: those are due first."""
    reason: str
    quantum: float
    limit: float
    most_blocks: float
    lasting: float | None
    whole: bool


class Scheduler:
    """The ready queues of a policy.

    >>> from penstock.policies.operators import Route, Stage, policy
    >>> chain = policy("chain")
    >>> routes = [Route("a", (Stage("a", 4.0),)), Route("b", (Stage("b", 1.0),))]
    >>> scheduler = Scheduler(chain, chain.prepare(routes))
    >>> scheduler.wake(0, oldest=0.0)
    >>> scheduler.wake(1, oldest=2.0)
    >>> turn = scheduler.decide(now=3.0)
    >>> turn.place, turn.reason
    (1, 'frees 1 per second')
    """

    __slots__ = ("_at", "_best", "_current", "_heap", "_last", "_look", "_order", "_places",
                 "_ranked", "_sees_all", "_starts", "_turns", "_wholes", "follows_progress",
                 "policy", "segments")

    def __init__(
        self,
        policy: Policy,
        segments: Sequence[Segment],
        look: Callable[[int], Queue] | None = None,
    ) -> None:
        """``look`` shows a queue to a policy that sees all of them."""
        self.policy = policy
        self._last = -1.0
        """The rank of the segment that ran last."""
        self._look = look
        self._sees_all = policy.sees_all
        self._ranked = policy if isinstance(policy, Ranked) else _BY_SEGMENT
        self.follows_progress = self._ranked.dynamic or self._flushing is not None
        """Whether a queue must be woken again when work on its head was interrupted."""
        self.adopt(segments)

    def adopt(self, segments: Sequence[Segment]) -> None:
        """Work with these segments from now on; every queue sleeps until it is woken again."""
        self.segments = [replace(segment, place=i) for i, segment in enumerate(segments)]
        self._best = [(segment.rank, segment.place) for segment in self.segments]
        heapify(self._best)
        self._wholes: dict[int, Segment] = {}
        self._places = {segment.id: segment.place for segment in self.segments}
        self._at = sorted(range(len(segments)), key=lambda i: -segments[i].first)
        """The places in the order that decides among equals: furthest on its path, then plan order.
        """
        self._order = sorted(range(len(segments)), key=self._at.__getitem__)
        self._current: list[_Entry | None] = [None] * len(self.segments)
        self._heap: list[_Entry] = []
        self._starts = LatestStarts(len(self.segments)) if self._flushing else None
        self._turns = [self._in_rank(segment) for segment in self.segments]
        """The turn of each place if it is the first in rank."""

    def replace(self, first: int, segments: Sequence[Segment]) -> None:
        """Put other segments at the places from ``first`` on; the queues there then sleep."""
        for place, segment in enumerate(segments, first):
            assert segment.first == self.segments[place].first, "the stages of a path stay"
            self.sleep(place)
            self.segments[place] = replace(segment, place=place)
            self._turns[place] = self._in_rank(self.segments[place])
            self._wholes.pop(place, None)
            heappush(self._best, (segment.rank, place))

    @property
    def _flushing(self) -> Flushing | None:
        """The policy, if it asks for the order of deadlines."""
        policy = self.policy
        return policy if isinstance(policy, Flushing) and not policy.sees_all else None

    @property
    def weighs_all(self) -> bool:
        """Whether the policy itself compares active jobs with what waits."""
        return self._sees_all or self._starts is not None

    def wake(
        self, place: int, oldest: float, done: float = 0.0, rows: float = 1.0, fixed: float = 0.0
    ) -> None:
        """A queue may run; called again whenever its head changes or progresses.

        Its head arrived at ``oldest`` and has ``rows`` rows, and ``done`` seconds were already
        spent on each. However few they are, they need ``fixed`` seconds to the output.
        """
        segment = self.segments[place]
        ranked = self._ranked
        rank = ranked.rank(segment, done, self._last) if ranked.dynamic else segment.rank
        entry = (rank, oldest + segment.grace, oldest, self._order[place])
        if entry != self._current[place]:  # a host may repeat what is known
            self._current[place] = entry
            heappush(self._heap, entry)
        if self._starts is not None:
            left = fixed + max(0.0, segment.rest - done) * rows
            self._starts.put(self._order[place], oldest + segment.latency, left)

    def sleep(self, place: int) -> None:
        """A queue may not run: it is empty, or blocked."""
        self._current[place] = None
        if self._starts is not None:
            self._starts.drop(self._order[place])

    def decide(self, now: float) -> Turn | None:
        """What runs next; None while no queue may run, or the policy waits."""
        if self._sees_all:
            return self._choose(now)
        if self._starts is not None:
            return self._decide_in_time(now, self._starts)
        return self._foremost()

    def _foremost(self) -> Turn | None:
        """The turn of the queue that is first in rank."""
        heap, current, at = self._heap, self._current, self._at
        while heap:
            entry = heap[0]
            place = at[entry[3]]
            if current[place] is entry:
                self._last = rank = entry[0]
                turn = self._turns[place]
                if turn.whole:
                    return turn._replace(rank=rank, segment=self._carried(place))
                return turn if turn.rank == rank else Turn._make((place, rank, *turn[2:]))
            heappop(heap)  # its queue has changed since
        return None

    def _decide_in_time(self, now: float, starts: LatestStarts) -> Turn | None:
        """The queue that is due, or else the first in rank, until the next one is due."""
        due, then = starts.due(now + instant(now))
        turn = self._foremost() if due is None else self._flush(due)
        if turn is None or then - now >= turn[4]:
            return turn
        return Turn._make((*turn[:4], then - now, *turn[5:]))

    def _flush(self, due: Start) -> Turn:
        policy = self._flushing
        assert policy is not None
        _, deadline, number, left = due
        place = self._at[number]
        decision = policy.flush(self.segments[place], deadline, left)
        return self._chosen(place, decision)

    def _in_rank(self, segment: Segment) -> Turn:
        decision = self._ranked.turn(segment)
        return _turn(segment.place, segment.rank, segment, decision)

    def _choose(self, now: float) -> Turn | None:
        assert self._look is not None, "this policy needs to see the queues"
        queues = tuple(self._look(i) for i, entry in enumerate(self._current) if entry)
        self._heap.clear()  # nobody reads it
        decision = self.policy.choose(View(now, queues, self._last))
        if decision is None:
            return None
        return self._chosen(self._places[decision.segment], decision)

    def _chosen(self, place: int, decision: Decision) -> Turn:
        """The turn of a queue that was chosen, whatever its rank."""
        entry = self._current[place]
        assert entry is not None, f"{self.segments[place].id} is not ready"
        self._last = entry[0]
        segment = self._carried(place) if decision.whole else self.segments[place]
        return _turn(place, entry[0], segment, decision)

    def _carried(self, place: int) -> Segment:
        """From the furthest ready queue of a path to the output."""
        segments, path = self.segments, self.segments[place].path
        end = furthest = place
        while end < len(segments) and segments[end].path == path:
            if self._current[end]:
                furthest = end
            end += 1
        whole = self._wholes.get(furthest)
        if whole is None:
            stages = tuple(other.operators[0] for other in segments[furthest:end])
            whole = self._wholes[furthest] = replace(segments[furthest], operators=stages)
        return whole

    def rank(self, segment: Segment, done: float) -> float:
        """The rank of an active job on whose rows ``done`` seconds were spent."""
        return self._ranked.rank(segment, done, self._last)

    def is_outranked(self, segment: Segment, by: float) -> bool:
        """Whether some queue may ever rank ``by`` times better than this one."""
        if self.weighs_all:
            return True
        best = self._best
        while best and self.segments[best[0][1]].rank != best[0][0]:
            heappop(best)  # its rank has changed since
        return bool(best) and best[0][0] < by * segment.rank

    def onward(self, segment: Segment) -> Iterator[int]:
        """The stages of its path at which later jobs take up what a job of this segment leaves."""
        place = segment.place + len(segment.operators)
        while place < len(self.segments) and self.segments[place].path == segment.path:
            yield self.segments[place].first
            place += len(self.segments[place].operators)


def _turn(place: int, rank: float, segment: Segment, decision: Decision) -> Turn:
    return Turn(place, rank, segment, decision.reason, decision.quantum, decision.limit,
                decision.most_blocks, decision.lasting, decision.whole)


_BY_SEGMENT = Ranked()
"""Ranks for a policy that has none: those of the segments."""
