"""A workload: a network, and when which blocks arrive at its routes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from penstock.errors import WorkloadError
from penstock.simulator.network import Network
from penstock.simulator.outcomes import MODELS, Fate, Floats, fates


@dataclass(frozen=True, slots=True)
class Workload:
    """Everything a simulation is a function of, but the policy."""

    network: Network
    arrivals: Mapping[str, Floats]
    """Per route the times at which its blocks arrive, ascending."""
    rows: float | Mapping[str, Floats] = 1.0
    """Rows (or units of memory) of every block, or per route of each."""
    model: str = "divisible"
    """``divisible``: rows shrink as expected. ``tuples``: each row has its chance."""
    bytes: float = 1.0
    """Bytes per row, for those who want to see bytes."""
    seed: int = 0
    name: str = "workload"

    def __post_init__(self) -> None:
        """Refuse what would be simulated wrongly without anybody noticing."""
        if self.model not in MODELS:
            raise WorkloadError(f"no model '{self.model}'; there is {' and '.join(MODELS)}")
        for route in self.network.routes:
            times, rows = self.times(route.id), self.entering(route.id)
            if len(times) != len(rows):
                raise WorkloadError(
                    f"{route.id}: {len(times)} blocks arrive, but {len(rows)} have rows")
            if (np.diff(times) < 0).any():
                raise WorkloadError(f"{route.id}: its blocks do not arrive in ascending order")
            if not (rows > 0).all():
                raise WorkloadError(f"{route.id}: a block without rows cannot be run")

    def times(self, route: str) -> Floats:
        """When the blocks of a route arrive; a route without arrivals has none."""
        return np.asarray(self.arrivals.get(route, ()), float)

    def entering(self, route: str) -> Floats:
        """Rows of the blocks of a route as they arrive."""
        if isinstance(self.rows, Mapping):
            return np.asarray(self.rows.get(route, ()), float)
        return np.full(len(self.times(route)), float(self.rows))

    def script(self) -> list[tuple[float, int, Fate]]:
        """Every arrival in order: when, on which route, with what fate."""
        seeds = np.random.SeedSequence(self.seed).spawn(len(self.network.routes))
        script: list[tuple[float, int, Fate]] = []
        for number, (route, seed) in enumerate(zip(self.network.routes, seeds, strict=True)):
            times = self.times(route.id)
            drawn = fates(route, self.entering(route.id), self.model, np.random.default_rng(seed))
            script.extend(zip(times.tolist(), [number] * len(times), drawn, strict=True))
        script.sort(key=lambda arrival: arrival[:2])  # at one time: in plan order
        return script
