"""How fast a burst comes: between the rates of whole paths and of their steep segments."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.bursts.measuring import Ground, seconds_per_block
from benchmarks.bursts.pipelines import Pipeline

NEAR = 0.75
"""The rate of the burst, as a part of that at which Chain's first segments can be run."""


@dataclass(frozen=True)
class Pace:
    """How often blocks come, and what they take."""

    every: float
    """Seconds between two blocks."""
    chain: float
    """Seconds that Chain's first segment takes for a block."""
    fifo: float
    """Seconds that a block takes from end to end."""

    @classmethod
    def of(cls, pipeline: Pipeline, ground: Ground) -> Pace:
        """Measured on this machine."""
        fifo, chain = (seconds_per_block(pipeline, name, ground) for name in ("fifo", "chain"))
        return cls(chain / NEAR, chain, fifo)
