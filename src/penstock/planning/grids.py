"""Grids: a look-up for ranges, by cutting the line into bins of equal width.

A range is filed under every bin that it touches, and a row looks into the one bin where its value
lies. Widths are powers of two, so that Spark and this file compute the same bin to the last bit.
The edges move in coarse steps, so that queries that come and go seldom change compiled code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_BINS = 1024
SMALLEST_TABLE = 4096
ROWS_PER_RANGE = 64
_STEP = 32
_OUTLIER = 64.0
_NARROWEST, _WIDEST = 2.0**-900, 2.0**1020  # 1 / width must be a double, too


@dataclass(frozen=True, slots=True)
class Grid:
    """Bins ``first`` to ``last`` of one width; values beyond are clamped into the edge bins."""

    width: float
    first: int
    last: int

    def bin(self, value: float) -> int:
        """The bin of a value; NaN, which Spark orders last, lies in the last one.

        >>> list(map(Grid(4.0, 0, 10).bin, (9.5, -math.inf, math.nan)))
        [2, 0, 10]
        """
        if math.isnan(value):
            return self.last
        return int(math.floor(min(max(value / self.width, self.first), self.last)))

    def bins(self, low: float, high: float) -> range:
        """The bins that a range touches; a bound of NaN lies above every number.

        >>> list(Grid(4.0, 0, 10).bins(9.5, 17.0))
        [2, 3, 4]
        """
        return range(self.bin(low), self.bin(high) + 1)


def grid(ranges: Sequence[tuple[float, float]], *, whole: bool = False) -> Grid:
    """A grid that keeps the table of these ranges small and its bins narrow.

    ``whole``: values are whole numbers, so that bins narrower than 1 would only repeat ranges.

    >>> grid([(0.0, 10.0), (990.0, 1000.0)], whole=True)
    Grid(width=1.0, first=-32, last=1024)
    """
    bounds = np.array(ranges, dtype=np.float64).reshape(-1, 2)
    finite = np.unique(bounds[np.isfinite(bounds)])
    if finite.size == 0:
        return Grid(1.0, 0, 0)
    low, high = _span(finite)
    width = _width(low, high, whole)
    limit = max(SMALLEST_TABLE, ROWS_PER_RANGE * len(bounds))
    found = _edges(low, high, width)
    while _rows(found, bounds) > limit and found.width < _WIDEST:
        found = _edges(low, high, found.width * 2)
    return found


def _span(finite: NDArray[np.float64]) -> tuple[float, float]:
    """Where most bounds lie: a few distant ones would put all others into one bin."""
    low, high = float(finite[0]), float(finite[-1])
    near, far = (float(q) for q in np.quantile(finite / 4, [0.05, 0.95]))
    if high / 4 - low / 4 > _OUTLIER * (far - near) > 0:
        reach = far - near
        return max(low, (near - reach) * 4), min(high, (far + reach) * 4)
    return low, high


def _width(low: float, high: float, whole: bool) -> float:
    wanted = max(high / MOST_BINS - low / MOST_BINS, math.ulp(max(abs(low), abs(high))), _NARROWEST)
    width = 2.0 ** math.ceil(math.log2(wanted))
    return max(width, 1.0) if whole else width


def _edges(low: float, high: float, width: float) -> Grid:
    """One more bin on both sides, for rows that no bounded range wants, then rounded."""
    first = math.floor(low / width) - 1
    last = math.floor(high / width) + 1
    return Grid(width, first // _STEP * _STEP, -(-last // _STEP) * _STEP)


def _rows(found: Grid, bounds: NDArray[np.float64]) -> int:
    with np.errstate(over="ignore"):
        scaled = bounds / found.width
    bins = np.floor(np.clip(scaled, found.first, found.last))
    return int(np.maximum(bins[:, 1] - bins[:, 0] + 1, 0).sum())
