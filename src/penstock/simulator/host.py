"""The simulator: the engine's scheduler in virtual time, with costs and outcomes from a workload.

One processor runs one operator at a time. An operator frees memory when it ends, not before; a
preempted block goes on where it was. Time advances from one decision to the next, so the memory is
known at every instant and nothing depends on a step width.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf

import numpy as np

from penstock.engine.paths.scheduler import Scheduler, Turn
from penstock.engine.statistics import Statistics
from penstock.policies.operators import Policy, Queue, Segment, Stage
from penstock.simulator.outcomes import Fate
from penstock.simulator.results import Output, Result
from penstock.simulator.workload import Workload


@dataclass(frozen=True, slots=True)
class Overhead:
    """Seconds lost at every transition."""

    invoke: float = 0.0
    """An operator begins or resumes."""
    preempt: float = 0.0
    """An operator is interrupted before it is finished."""
    schedule: float = 0.0
    """The scheduler is asked."""

    @classmethod
    def each(cls, seconds: float) -> Overhead:
        """The same for every kind of transition, as the prb paper has it."""
        return cls(seconds, seconds, seconds)


def simulate(
    workload: Workload,
    policy: Policy,
    *,
    overhead: Overhead | None = None,
    window: float | None = None,
) -> Result:
    """Run a workload under a policy to its end.

    With a ``window`` the policy sees what was measured in the last one instead of the true figures,
    and is prepared again after each.

    >>> import numpy as np
    >>> from penstock.policies.operators import policy
    >>> from penstock.simulator.network import Network, path
    >>> example = Workload(Network((path("q", [(1.0, 0.2), (5.0, 1.0)]),)), {"q": np.arange(7.0)})
    >>> simulate(example, policy("fifo")).peak, simulate(example, policy("greedy")).peak
    (4.0, 2.2)
    """
    with _uncollected():
        return _Simulation(workload, policy, overhead or Overhead(), window).play()


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without Python's search for cycles: there are none, and it would go over all that waits.

    In a burst of 100,000 blocks that search takes as long as the simulation itself.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class _Block:
    """A block on its way."""

    __slots__ = ("arrived", "fate", "left", "route", "rows", "stage")

    def __init__(self, arrived: float, route: int, fate: Fate) -> None:
        self.arrived = arrived
        self.route = route
        self.fate = fate
        self.stage = 0
        self.left = fate.work[0]
        """Seconds of work that its operator still has with it."""
        self.rows = fate.rows[0]
        """Rows it has now."""

    @property
    def done(self) -> float:
        """Seconds per row that its operator has spent on it."""
        return (self.fate.work[self.stage] - self.left) / self.rows


class _Simulation:
    """One processor in virtual time."""

    __slots__ = ("block", "closing", "decisions", "freed", "freed_at", "invocations",
                 "network", "next_arrival", "now", "outputs", "overhead", "partner",
                 "place", "policy", "preemptions", "queues", "scheduler", "statistics", "switches",
                 "ways", "workload")

    def __init__(
        self, workload: Workload, policy: Policy, overhead: Overhead, window: float | None
    ) -> None:
        self.workload, self.network = workload, workload.network
        self.policy, self.overhead = policy, overhead
        self.statistics = Statistics(window) if window else None
        operators = self.network.operators
        place = {name: i for i, name in enumerate(operators)}
        self.ways = [[place[s.operator] for s in route.stages] for route in self.network.routes]
        """For each route the places of its queues."""
        self.queues: list[deque[_Block]] = [deque() for _ in operators]
        self.partner: list[int] = [-1] * len(operators)
        """For one side of a join the other side."""
        for left, right in self.network.joins:
            self.partner[place[left]], self.partner[place[right]] = place[right], place[left]
        self.closing = False
        self.scheduler = Scheduler(policy, self._places(), self._look)
        self.now = 0.0
        self.place = -1
        """Where the processor was last."""
        self.block: _Block | None = None
        """The block that is being processed, unfinished."""
        self.invocations = self.preemptions = self.decisions = self.switches = 0
        self.freed_at: list[float] = []
        self.freed: list[float] = []
        self.outputs: list[Output] = []

    # --- what the policy is told -------------------------------------------------------------

    def _places(self) -> list[Segment]:
        routes = self.network.told(self._measured())
        return self.network.places(routes, self.policy.prepare(routes))

    def _measured(self) -> dict[str, Stage]:
        known = self.statistics
        if known is None:
            return {}
        return {name: known.stage(name) for name in self.network.operators if known.knows(name)}

    def _renew(self) -> None:
        """Figures have changed: rank everything again."""
        self.scheduler.adopt(self._places())
        for place in range(len(self.queues)):
            self._settle(place)

    def _look(self, place: int) -> Queue:
        """A queue as a policy sees it."""
        segment, queue = self.scheduler.segments[place], self.queues[place]
        head = queue[0]
        blocks: tuple[tuple[float, float], ...] = ()
        if self.policy.looks_at_blocks:  # the expected work: their fates are unknown
            blocks = tuple((block.arrived, max(0.0, segment.rest - block.done) * block.rows)
                           for block in queue)
        return Queue(segment, len(queue), head.arrived, head.done, head.rows, blocks)

    # --- queues ------------------------------------------------------------------------------

    def _settle(self, place: int) -> None:
        """Wake a queue or let it sleep, as its head says."""
        queue = self.queues[place]
        partner = self.partner[place]
        if partner >= 0:
            self._settle_join(place, partner)
        elif queue:
            head = queue[0]
            self.scheduler.wake(place, head.arrived, head.done, head.rows)
        else:
            self.scheduler.sleep(place)

    def _settle_join(self, place: int, partner: int) -> None:
        """Only the side that is next may run."""
        for side in (place, partner):
            self.scheduler.sleep(side)
        side = self._next_side(place, partner)
        if side >= 0:
            head = self.queues[side][0]
            self.scheduler.wake(side, head.arrived, head.done, head.rows)

    def _next_side(self, place: int, partner: int) -> int:
        """Of a join the side with the older head, if both are there or no more can come; or -1."""
        sides = [side for side in sorted((place, partner)) if self.queues[side]]
        if len(sides) == 2 or (sides and self.closing):
            return min(sides, key=lambda side: self.queues[side][0].arrived)
        return -1

    def _close(self) -> bool:
        """No block will arrive any more: joins need not wait for their empty sides."""
        if self.closing or not any(self.queues):
            return False
        self.closing = True
        for place, partner in enumerate(self.partner):
            if partner >= 0:
                self._settle(place)
        return True

    def _put(self, place: int, block: _Block) -> None:
        queue = self.queues[place]
        queue.append(block)
        if self.partner[place] >= 0:
            self._settle(place)
        elif len(queue) == 1:
            self.scheduler.wake(place, block.arrived, 0.0, block.rows)

    # --- time --------------------------------------------------------------------------------

    def play(self) -> Result:
        """Everything from the first arrival to the last answer."""
        agenda = iter(self.workload.script())
        coming = next(agenda, None)
        scheduler, overhead = self.scheduler, self.overhead
        while True:
            while coming is not None and coming[0] <= self.now:
                self._put(self.ways[coming[1]][0], _Block(*coming))
                coming = next(agenda, None)
            self.next_arrival = coming[0] if coming is not None else inf
            turn = scheduler.decide(self.now)
            if turn is not None:
                self.decisions += 1
                self.now += overhead.schedule
                self._take(turn)
            elif coming is not None:
                self.now = coming[0]
            elif not self._close():
                return self._result()

    def _take(self, turn: Turn) -> None:
        """Run a queue until the policy wants to be asked again."""
        place, left = turn.place, turn.limit
        queue = self.queues[place]
        self._switch(place, queue[0])
        until = self.now + turn.quantum
        stop = min(until, self.next_arrival) if self.policy.preemptive else until
        while True:
            block = queue[0]
            end = self.now + block.left
            if end > stop:
                self._interrupt(place, block, stop)
                return
            self.now = end
            self._pass_on(place, block)
            left -= 1
            if left <= 0 or self.now >= stop:
                return
            if self.partner[place] >= 0:  # the turn is the join's, whichever side is next
                place = self._next_side(place, self.partner[place])
                queue = self.queues[place] if place >= 0 else queue
            if place < 0 or not queue:
                return
            self.invocations += 1
            self.now += self.overhead.invoke

    def _switch(self, place: int, block: _Block) -> None:
        """Come to a block, from another or from none."""
        if self.block is block:
            return
        if self.block is not None:
            self.preemptions += 1
            self.now += self.overhead.preempt
        self.invocations += 1
        self.now += self.overhead.invoke
        operator = max(place, self.partner[place])  # the two sides of a join are one
        if operator != self.place:
            self.switches += 1
            self.place = operator

    def _interrupt(self, place: int, block: _Block, at: float) -> None:
        """Leave a block unfinished."""
        if at > self.now:
            block.left -= at - self.now
            self.now = at
        self.block = block
        if self.scheduler.follows_progress:
            self.scheduler.wake(place, block.arrived, block.done, block.rows)

    def _pass_on(self, place: int, block: _Block) -> None:
        """An operator has finished a block."""
        queue = self.queues[place]
        queue.popleft()
        self.block = None
        fate, stage = block.fate, block.stage + 1
        rows, kept = fate.rows[stage - 1], fate.rows[stage]
        way = self.ways[block.route]
        ended = stage == len(way)
        self.freed_at.append(self.now)
        self.freed.append(rows if ended else rows - kept)
        if self.partner[place] >= 0:
            self._settle(place)
        elif queue:
            head = queue[0]
            self.scheduler.wake(place, head.arrived, 0.0, head.rows)
        else:
            self.scheduler.sleep(place)
        if kept and not ended:
            block.stage, block.left, block.rows = stage, fate.work[stage], kept
            self._put(way[stage], block)
        elif kept:
            self.outputs.append((self.now, block.arrived, block.route, kept))
        if self.statistics is not None:
            name = self.network.operators[place]
            if self.statistics.record(name, self.now, rows, kept, fate.work[stage - 1]):
                self._renew()

    def _result(self) -> Result:
        return Result(
            self.workload, np.array(self.freed_at), np.array(self.freed), self.outputs, self.now,
            self.invocations, self.preemptions, self.decisions, self.switches)
