"""The simulator: the engine's scheduler in virtual time, with costs and outcomes from a workload.

One processor runs one operator at a time. An operator frees memory when it ends, not before; a
preempted block goes on where it was. Time advances from one decision to the next, so the memory is
known at every instant and nothing depends on a step width.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf

from penstock.engine.scheduler import Scheduler
from penstock.engine.statistics import Statistics
from penstock.policies.operators import Policy, Queue, Stage
from penstock.simulator.fates import Fate
from penstock.simulator.results import Result
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

    With a ``window`` the policy is told what was measured in the last one instead of the true
    figures, and is prepared anew after each.

    >>> import numpy as np
    >>> from penstock.policies.operators import policy
    >>> from penstock.simulator.network import Network, path
    >>> example = Workload(Network((path("q", [(1.0, 0.2), (5.0, 1.0)]),)), {"q": np.arange(7.0)})
    >>> simulate(example, policy("fifo")).peak, simulate(example, policy("greedy")).peak
    (4.0, 2.2)
    """
    return _Simulation(workload, policy, overhead or Overhead(), window).play()


class _Block:
    """A block on its way."""

    __slots__ = ("arrived", "fate", "left", "route", "stage")

    def __init__(self, arrived: float, route: int, fate: Fate) -> None:
        self.arrived = arrived
        self.route = route
        self.fate = fate
        self.stage = 0
        self.left = fate.work[0]


class _Simulation:
    def __init__(
        self, workload: Workload, policy: Policy, overhead: Overhead, window: float | None
    ) -> None:
        self.workload = workload
        self.network = workload.network
        self.policy = policy
        self.overhead = overhead
        self.statistics = Statistics(window) if window else None
        operators = self.network.operators
        place = {name: i for i, name in enumerate(operators)}
        self.ways = [[place[s.operator] for s in route.stages] for route in self.network.routes]
        self.queues: list[deque[_Block]] = [deque() for _ in operators]
        self.partner: list[int] = [-1] * len(operators)
        for left, right in self.network.joins:
            self.partner[place[left]], self.partner[place[right]] = place[right], place[left]
        self.closing = False
        self.result = Result(workload)
        self.scheduler = Scheduler(policy, self._places(), self._look)

    # --- what the policy is told -------------------------------------------------------------

    def _places(self) -> list:  # type: ignore[type-arg]
        routes = self.network.told(self._measured())
        return self.network.places(routes, self.policy.prepare(routes))

    def _measured(self) -> dict[str, Stage]:
        known = self.statistics
        if known is None:
            return {}
        return {name: Stage(name, known.cost(name), known.selectivity(name))
                for name in self.network.operators if known.knows(name)}

    def _renew(self) -> None:
        self.scheduler.adopt(self._places())
        for place in range(len(self.queues)):
            self._settle(place)

    def _look(self, place: int) -> Queue:
        segment = self.scheduler.segments[place]
        queue = self.queues[place]
        head = queue[0]
        rows = head.fate.rows[head.stage]
        done = (head.fate.work[head.stage] - head.left) / rows
        blocks: tuple[tuple[float, float], ...] = ()
        if self.policy.looks_at_blocks:
            blocks = tuple((b.arrived, b.left + sum(b.fate.work[b.stage + 1:])) for b in queue)
        return Queue(segment, len(queue), head.arrived, done, rows, blocks)

    # --- queues ------------------------------------------------------------------------------

    def _settle(self, place: int) -> None:
        """Wake a queue or let it sleep, as its head says."""
        queue = self.queues[place]
        partner = self.partner[place]
        if partner >= 0:
            self._settle_join(place, partner)
        elif queue:
            head = queue[0]
            done = head.fate.work[head.stage] - head.left
            self.scheduler.wake(place, head.arrived,
                                done / head.fate.rows[head.stage] if done else 0.0)
        else:
            self.scheduler.sleep(place)

    def _settle_join(self, place: int, partner: int) -> None:
        """Of the two sides the older head may run, once both are there or no more can come."""
        sides = [side for side in sorted((place, partner)) if self.queues[side]]
        for side in (place, partner):
            self.scheduler.sleep(side)
        if len(sides) == 2 or (sides and self.closing):
            older = min(sides, key=lambda side: self.queues[side][0].arrived)
            self.scheduler.wake(older, self.queues[older][0].arrived)

    def _close(self) -> bool:
        """No block will arrive any more: joins need not wait for their empty sides."""
        if self.closing or not any(self.queues):
            return False
        self.closing = True
        for place, partner in enumerate(self.partner):
            if partner >= 0:
                self._settle(place)
        return True

    # --- time --------------------------------------------------------------------------------

    def play(self) -> Result:
        """Everything from the first arrival to the last answer."""
        script = self.workload.script()
        script.append((inf, 0, script[0][2])) if script else None
        times = [at for at, _, _ in script]
        ways, queues, partner = self.ways, self.queues, self.partner
        scheduler, settle = self.scheduler, self._settle
        wake, sleep, decide = scheduler.wake, scheduler.sleep, scheduler.decide
        preemptive = self.policy.preemptive
        observing = type(self.policy).observe is not Policy.observe
        result = self.result
        freed_at, freed = result.freed_at, result.freed
        outputs = result.outputs
        invoke, preempt, schedule = (
            self.overhead.invoke, self.overhead.preempt, self.overhead.schedule)
        invocations = preemptions = decisions = switches = 0
        now, number, came, at = 0.0, 0, len(script) - 1, times[0] if times else inf
        before = -1
        under_way: _Block | None = None
        while True:
            while at <= now:
                _, route, fate = script[number]
                place = ways[route][0]
                queue = queues[place]
                queue.append(_Block(at, route, fate))
                if len(queue) == 1 or partner[place] >= 0:
                    settle(place)
                number += 1
                at = times[number]
            place = decide(now)
            if place < 0:
                if number < came:
                    now = at
                    continue
                if self._close():
                    continue
                break
            decisions += 1
            now += schedule
            run = scheduler.run
            queue = queues[place]
            block = queue[0]
            if under_way is not block:
                if under_way is not None:
                    preemptions += 1
                    now += preempt
                invocations += 1
                now += invoke
                if place != before:
                    switches += 1
                    before = place
            until = now + run.quantum
            limit = run.limit
            while True:
                fate = block.fate
                stage = block.stage
                end = now + block.left
                stop = until if not preemptive or until < at else at
                if end > stop:
                    if stop > now:
                        block.left = end - stop
                        now = stop
                    under_way = block if now < until else None
                    if under_way is None:
                        preemptions += 1
                        now += preempt
                    settle(place)
                    break
                now = end
                under_way = None
                queue.popleft()
                rows = fate.rows
                stage += 1
                way = ways[block.route]
                kept = rows[stage]
                ended = stage == len(way)
                freed_at.append(now)
                freed.append(rows[stage - 1] - (0.0 if ended else kept))
                if self.statistics is not None:
                    self._record(place, now, rows[stage - 1], kept, fate.work[stage - 1])
                if ended:
                    if kept:
                        outputs.append((now, block.arrived, block.route, kept))
                        if observing and self.policy.observe(now, now - block.arrived):
                            self._renew()
                elif kept:
                    block.stage = stage
                    block.left = fate.work[stage]
                    onward = way[stage]
                    waiting = queues[onward]
                    waiting.append(block)
                    if partner[onward] >= 0:
                        settle(onward)
                    elif len(waiting) == 1:
                        wake(onward, block.arrived)
                if partner[place] >= 0:
                    settle(place)
                    break
                if not queue:
                    sleep(place)
                    break
                block = queue[0]
                wake(place, block.arrived)
                limit -= 1
                if limit <= 0 or now >= until or (preemptive and now >= at):
                    break
                invocations += 1
                now += invoke
        result.end(now, invocations, preemptions, decisions, switches)
        return result

    def _record(self, place: int, at: float, rows: float, kept: float, seconds: float) -> None:
        assert self.statistics is not None
        name = self.network.operators[place]
        if self.statistics.record(name, at, rows, kept, seconds):
            self._renew()
