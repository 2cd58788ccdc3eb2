"""The simulator's queueing model in SimPy: one processor, blocks in order of a policy's rank.

A source lets blocks arrive, a `PriorityStore` holds those that are ready, and a server takes the
first and works on it. Where the policy is preemptive, an arriving block that comes before the one
under way interrupts the server. A process per block that asks for a `PriorityResource` would be
shorter by some lines and slower: that resource sorts all who wait at every request.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from itertools import count
from math import inf
from typing import Any

import simpy

from penstock.policies.operators import Ranked, Segment
from penstock.simulator.outcomes import Fate
from penstock.simulator.workload import Workload

Ready = tuple[float, float, float, int, "Block"]
"""Rank, when it is due, when it arrived, a number that no other has, and the block."""


@dataclass(slots=True)
class Block:
    arrived: float
    fate: Fate
    segments: list[Segment]
    """Of the operators on its route."""
    left: float
    stage: int = 0

    @property
    def done(self) -> float:
        """Seconds per row that its operator has spent on it."""
        return (self.fate.work[self.stage] - self.left) / self.fate.rows[self.stage]


class Processor:
    """Runs a workload under a policy whose choice is the lowest rank."""

    def __init__(self, workload: Workload, policy: Ranked) -> None:
        network = workload.network
        routes = network.told()
        known = {found.id: found for found in network.places(routes, policy.prepare(routes))}
        self.segments = [[known[stage.operator] for stage in route.stages] for route in routes]
        self.policy = policy
        self.script = workload.script()
        self.environment = simpy.Environment()
        self.ready = simpy.PriorityStore(self.environment)
        self.numbers = count()
        self.under_way: tuple[Block, float] | None = None
        """The block that is worked on, and since when."""
        self.latencies: list[float] = []
        self.invocations = 0

    def run(self) -> None:
        """Until nothing is left to do."""
        self.server = self.environment.process(self._serve())
        self.environment.process(self._arrive())
        self.environment.run()

    def _arrive(self) -> Generator[simpy.Event, Any, None]:
        environment = self.environment
        for at, route, fate in self.script:
            yield environment.timeout(at - environment.now)
            block = Block(environment.now, fate, self.segments[route], fate.work[0])
            entry = self._entry(block, 0.0)
            self.ready.put(entry)
            if self.policy.preemptive and self.under_way and entry < self._competing():
                self.server.interrupt()

    def _serve(self) -> Generator[simpy.Event, Any, None]:
        environment = self.environment
        while True:
            block = (yield self.ready.get())[4]
            self.invocations += 1
            began = environment.now
            self.under_way = block, began
            try:
                yield environment.timeout(block.left)
            except simpy.Interrupt:
                block.left -= environment.now - began
                self.ready.put(self._entry(block, block.done))
            else:
                self._pass_on(block)
            self.under_way = None

    def _pass_on(self, block: Block) -> None:
        block.stage += 1
        if not block.fate.rows[block.stage]:
            return
        if block.stage == len(block.segments):
            self.latencies.append(self.environment.now - block.arrived)
            return
        block.left = block.fate.work[block.stage]
        self.ready.put(self._entry(block, 0.0))

    def _entry(self, block: Block, done: float) -> Ready:
        segment = block.segments[block.stage]
        rank = self.policy.rank(segment, done, 0.0)
        return rank, block.arrived + segment.grace, block.arrived, next(self.numbers), block

    def _competing(self) -> tuple[float, float, float]:
        """What the block under way counts for by now."""
        assert self.under_way is not None
        block, began = self.under_way
        segment = block.segments[block.stage]
        spent = (self.environment.now - began) / block.fate.rows[block.stage]
        rank = self.policy.rank(segment, block.done + spent, 0.0)
        return rank, block.arrived + segment.grace, block.arrived


def response(latencies: list[float]) -> float:
    """The mean, or infinite where nothing came out."""
    return sum(latencies) / len(latencies) if latencies else inf
