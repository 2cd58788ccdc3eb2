"""What a simulation found: memory at every instant, the latency of every answer, what it cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.simulator.outcomes import Floats
from penstock.simulator.workload import Workload

Output = tuple[float, float, int, float]
"""Answers of one block: when they came out, when it arrived, on which route, how many rows."""


@dataclass(frozen=True, slots=True)
class Result:
    """One workload under one policy."""

    workload: Workload
    freed_at: Floats
    freed: Floats
    """When an operator ended, and the rows that no longer waited then."""
    outputs: list[Output]
    finished: float
    """When the last operator ended."""
    invocations: int
    """Operators begun or resumed."""
    preemptions: int
    """Blocks left unfinished for others."""
    decisions: int
    """Times the scheduler was asked."""
    switches: int
    """Invocations of another operator than the one before."""

    def memory(self) -> tuple[Floats, Floats]:
        """The waiting rows over time: from each time on, until the next."""
        routes = self.workload.network.routes
        times = [self.workload.times(route.id) for route in routes]
        entering = [self.workload.entering(route.id) for route in routes]
        at = np.concatenate([*times, self.freed_at])
        change = np.concatenate([*entering, -self.freed])
        order = np.argsort(at, kind="stable")
        at, level = at[order], np.cumsum(change[order])
        last = np.append(at[1:] != at[:-1], True)[: len(at)]  # of one instant the outcome counts
        return at[last], np.maximum(level[last], 0.0).round(12)

    @property
    def peak(self) -> float:
        """The most rows that ever waited."""
        return float(self.memory()[1].max(initial=0.0))

    @property
    def mean_memory(self) -> float:
        """The waiting rows, averaged over the time of the run."""
        at, level = self.memory()
        spans = np.diff(at)
        return float((level[:-1] * spans).sum() / spans.sum()) if spans.sum() else 0.0

    def latencies(self, route: str | None = None) -> Floats:
        """Seconds from arrival to output of every block that gave answers, in output order."""
        names = [known.id for known in self.workload.network.routes]
        wanted = None if route is None else names.index(route)
        return np.array([at - arrived for at, arrived, on, _ in self.outputs
                         if wanted is None or on == wanted])

    @property
    def mean_latency(self) -> float:
        """Averaged over the blocks that gave answers."""
        found = self.latencies()
        return float(found.mean()) if len(found) else 0.0

    @property
    def max_latency(self) -> float:
        """The worst latency of all."""
        return float(self.latencies().max(initial=0.0))
