"""When tuples arrive: a recorded hour played faster, the ON/OFF model, and even bursts.

How fast they are played is the matter of `calibration`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from penstock.generators.packets import OnOff
from penstock.simulator.arrivals import onoff, trace
from penstock.simulator.outcomes import Floats

DATA = Path(os.environ.get("PENSTOCK_DATA", Path(__file__).parents[3] / "shared" / "data"))
"""Where recorded arrivals are looked for; without them a generated hour stands in."""

_BURST = 0.565  # flows begin once per unit of time and last 1.77 units: 1.77 send at a time


@dataclass(frozen=True, slots=True)
class Recorded:
    """Part of a recorded trace, played faster."""

    name: str
    speed: float
    first: int = 0
    last: int | None = None
    """Packets first to last - 1 of the trace."""

    def times(self) -> Floats:
        """Arrivals, the first at 0."""
        packets = hour(self.name)[self.first : self.last]
        return (packets - packets[0]) / self.speed


@dataclass(frozen=True, slots=True)
class Synthetic:
    """The ON/OFF model in the paper's setting: Pareto flows, alpha 2.3, begun once per unit."""

    rate: float
    unit: float
    """Seconds of the unit of time: the gap between flows, and the shortest flow."""
    seconds: float
    seed: int = 5

    def times(self) -> Floats:
        """Arrivals from 0 on."""
        traffic = OnOff(rate=self.rate, burst=_BURST, length=self.unit, seed=self.seed)
        return onoff(traffic, self.seconds)


@dataclass(frozen=True, slots=True)
class Burst:
    """One burst at an even pace."""

    rate: float
    tuples: int

    def times(self) -> Floats:
        """Arrivals from 0 on."""
        return np.arange(self.tuples) / self.rate


Traffic = Recorded | Synthetic | Burst


def present(name: str) -> Path | None:
    """The file of a trace, if it is there."""
    file = DATA / f"{name}_arrivals.csv.gz"
    return file if file.exists() else None


@lru_cache(maxsize=2)
def hour(name: str) -> Floats:
    """A recorded hour, or a generated one of the same mean rate."""
    file = present(name)
    if file:
        return trace(file)
    return onoff(OnOff(rate=230, burst=_BURST, length=1.0, seed=95), 3600)
