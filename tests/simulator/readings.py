"""What tests read off a simulation beside what the product shows."""

from __future__ import annotations

import numpy as np

from penstock.simulator.outcomes import Floats
from penstock.simulator.results import Result


def memory_at(result: Result, times: Floats) -> Floats:
    """The waiting rows at given times."""
    at, level = result.memory()
    found: Floats = np.append(0.0, level)[np.searchsorted(at, times, side="right")]
    return found
