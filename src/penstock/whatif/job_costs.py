"""What a run costs: seconds from the decision to the answers, fitted to the runs of a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.simulator.outcomes import Floats

COLD = 1.5
"""A first run that took so many times what the later ones suggest was a cold one."""
SPREAD = 1.5
"""The largest run must be so many times the smallest before a cost per row can be told from a
fixed one."""
OFF = 1.25
"""Samples are off by this factor at most."""


@dataclass(frozen=True, slots=True)
class Cost:
    """A fixed part per job, a part per row, and what the first runs took beyond that.

    >>> cost = Cost(fixed=0.25, per_row=0.001, cold=(2.0,))
    >>> cost.seconds(500, earlier=0), cost.seconds(500, earlier=1)
    (2.75, 0.75)
    """

    fixed: float
    per_row: float
    cold: tuple[float, ...] = ()
    """Seconds beyond the others that the first run took, the second, ..."""
    error: float = 0.0
    """How far the later runs lay from the fit: the mean deviation, as a part of their mean."""

    def seconds(self, rows: float, earlier: int) -> float:
        """A run on so many rows, after so many earlier ones."""
        extra = self.cold[earlier] if earlier < len(self.cold) else 0.0
        return self.fixed + self.per_row * rows + extra


def fit(
    runs: Sequence[tuple[float, float]], cheapest: float,
    sampled: tuple[float, float] | None = None,
) -> Cost:
    """The cost behind runs (rows, seconds) in the order in which they were made.

    Least squares, with neither part negative:

    >>> cost = fit([(100, 0.75), (500, 1.75), (900, 2.75)], cheapest=0.0)
    >>> cost.fixed, cost.per_row
    (0.5, 0.0025)

    The first runs of a path wait for code to be made and processes to be started. As long as a run
    took `COLD` times what all later ones suggest, it is kept out of the fit, and what it took
    beyond is paid by the run of the same rank whenever the path is replayed. At most half of the
    runs are cold.

    >>> cost = fit([(500, 9.75), (100, 0.75), (500, 1.75), (900, 2.75)], cheapest=0.0)
    >>> cost.fixed, cost.per_row, cost.cold
    (0.5, 0.0025, (8.0,))

    Runs of one size do not tell the parts from each other. A job is a job whichever path it is
    for, so the fixed part is then that of the ``cheapest`` run of all paths.

    >>> cost = fit([(100, 0.75), (100, 0.75)], cheapest=0.25)
    >>> cost.fixed, cost.per_row
    (0.25, 0.005)

    If both parts are known from samples, they are taken, longer or shorter by the same factor: the
    machine was busier, or less so. It is `OFF` at most; what runs took beyond is fixed.

    >>> cost = fit([(100, 1.125), (100, 1.125)], cheapest=0.25, sampled=(0.5, 0.005))
    >>> cost.fixed, cost.per_row
    (0.5625, 0.005625)
    >>> cost = fit([(100, 2.5), (100, 2.5)], cheapest=0.25, sampled=(0.5, 0.005))
    >>> cost.fixed, cost.per_row
    (1.875, 0.00625)
    """
    rows = np.array([rows for rows, _ in runs], float)
    seconds = np.array([seconds for _, seconds in runs], float)
    first = 0
    while first < len(runs) // 2:
        later = _line(rows[first + 1:], seconds[first + 1:], cheapest, sampled)
        if seconds[first] <= COLD * (later[0] + later[1] * rows[first]):
            break
        first += 1
    fixed, slope = _line(rows[first:], seconds[first:], cheapest, sampled)
    beyond = seconds - fixed - slope * rows
    error = float(np.abs(beyond[first:]).mean() / max(seconds[first:].mean(), 1e-9))
    return Cost(fixed, slope, tuple(map(float, beyond[:first])), error)


def _line(
    rows: Floats, seconds: Floats, cheapest: float, sampled: tuple[float, float] | None
) -> tuple[float, float]:
    x, y = float(rows.mean()), float(seconds.mean())
    if rows.max() < SPREAD * rows.min():
        fixed = min(cheapest, y)
        if sampled is not None:
            factor = y / (sampled[0] + sampled[1] * x or y)
            fixed = max(y - min(max(factor, 1 / OFF), OFF) * sampled[1] * x, 0.0)
        return fixed, (y - fixed) / x if x else 0.0
    per_row = float(((rows - x) * (seconds - y)).sum() / ((rows - x) ** 2).sum())
    if per_row <= 0:
        return y, 0.0
    if y - per_row * x < 0:
        return 0.0, float((rows * seconds).sum() / (rows**2).sum())
    return y - per_row * x, per_row
