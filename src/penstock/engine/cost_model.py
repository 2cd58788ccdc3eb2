"""The cost model: a job takes a fixed part and a part per row.

It is fitted to jobs that have finished: the engine fits it to the recent jobs of every path,
what-if to all jobs of a record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

COLD = 1.5
"""A first job was cold if it took this many times what the later jobs suggest."""
SPREAD = 1.5
"""The largest job must be this many times the smallest before a cost per row can be told from a
fixed cost."""
OFF = 1.25
"""Measured stages are off by this factor at most."""
OUTLIER = 3.0
"""A job further from the fit than this many usual deviations pulls no harder than one at this
distance."""
CALM = 0.05
"""Jobs deviate by at least this part of their duration: a smaller deviation is chance."""
CLEAR = 2.0
"""The largest job must take longer than the smallest by this many mean deviations before the rise
counts; jobs far from the fit are weighted down in that mean, too."""
ROUNDS = 3
"""How often outliers are searched for again, after the fit has moved away from them."""
PAIRS = 64
"""At most this many jobs are compared in pairs for a first guess; of more, this many are picked
evenly."""
OF_A_SIZE, IN_ALL = 8, 64
"""Recent jobs that are remembered: of about one size, and of all sizes. Large jobs are rare while
little waits, and must not be forgotten meanwhile."""
HALF_LIFE, LEAST_WEIGHT = 16, 0.01
"""A job counts half after this many later ones, and never less than this weight: it may be the only
one of another size."""

Jobs: TypeAlias = Sequence[tuple[float, float]]
"""Rows and seconds of jobs, in the order in which they were done."""
_Line: TypeAlias = tuple[float, float, bool]
_Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cost:
    """A fixed part per job, a part per row, and the extra seconds of the first jobs.

    >>> cost = Cost(fixed=0.25, per_row=0.001, cold=(2.0,))
    >>> cost.seconds(500), cost.seconds(500, earlier=0), cost.seconds(500, earlier=1)
    (0.75, 2.75, 0.75)
    """

    fixed: float
    per_row: float
    cold: tuple[float, ...] = ()
    """Seconds that the first job took beyond the others, then the second, and so on."""
    error: float = 0.0
    """The mean deviation of the later jobs from the fit, as a part of their mean."""
    distinct: bool = True
    """Whether job sizes, or measured stages, could tell the two parts from each other."""

    def seconds(self, rows: float, earlier: float = inf) -> float:
        """The seconds of a job with this many rows, after this many earlier jobs."""
        extra = self.cold[int(earlier)] if earlier < len(self.cold) else 0.0
        return self.fixed + self.per_row * rows + extra

    def rows_in(self, seconds: float) -> float:
        """The rows of a job that takes this long; infinite if rows cost nothing.

        >>> Cost(fixed=0.25, per_row=0.5).rows_in(2.25), Cost(fixed=1.0, per_row=0.0).rows_in(3.0)
        (4.0, inf)
        """
        return max(seconds - self.fixed, 0.0) / self.per_row if self.per_row else inf


def fit(
    jobs: Jobs, cheapest: float, measured: tuple[float, float] | None = None,
    weights: Sequence[float] | None = None,
) -> Cost:
    """Fit a cost to jobs (rows, seconds), in the order in which they were done.

    Least squares, with neither part negative:

    >>> cost = fit([(100, 0.75), (500, 1.75), (900, 2.75)], cheapest=0.0)
    >>> cost.fixed, cost.per_row
    (0.5, 0.0025)

    A job that was disturbed does no harm. A first guess comes from the median of the slopes between
    all pairs of jobs (Theil and Sen). A job far from the fit pulls no harder than one at `OUTLIER`
    usual deviations (Huber).

    >>> jobs = [(100, 0.75), (300, 1.25), (500, 1.75), (700, 9.0), (900, 2.75), (1100, 3.25)]
    >>> cost = fit(jobs, cheapest=0.0)
    >>> round(cost.fixed, 1), round(cost.per_row, 3)
    (0.5, 0.003)

    The first jobs of a path wait for code to be compiled and processes to be started. A first job
    that took `COLD` times what all later ones suggest is kept out of the fit. Its extra seconds are
    charged to the job of the same rank whenever the path is replayed. At most half of the jobs are
    cold.

    >>> cost = fit([(500, 9.75), (100, 0.75), (500, 1.75), (900, 2.75)], cheapest=0.0)
    >>> cost.fixed, cost.per_row, cost.cold
    (0.5, 0.0025, (8.0,))

    Jobs of one size cannot tell the parts from each other. A job costs about the same whichever
    path it is for, so the fixed part is then that of the ``cheapest`` job of all paths.

    >>> cost = fit([(100, 0.75), (100, 0.75)], cheapest=0.25)
    >>> cost.fixed, cost.per_row, cost.distinct
    (0.25, 0.005, False)

    If measured stages give both parts, these are used, scaled by one common factor: the machine may
    have been busier, or less busy. The factor is `OFF` at most; the remaining seconds of the jobs
    count as fixed.

    >>> cost = fit([(100, 1.125), (100, 1.125)], cheapest=0.25, measured=(0.5, 0.005))
    >>> cost.fixed, cost.per_row
    (0.5625, 0.005625)
    >>> cost = fit([(100, 2.5), (100, 2.5)], cheapest=0.25, measured=(0.5, 0.005))
    >>> cost.fixed, cost.per_row
    (1.875, 0.00625)

    With ``weights`` some jobs count more than others.
    """
    rows = np.array([rows for rows, _ in jobs], float)
    seconds = np.array([seconds for _, seconds in jobs], float)
    weight = np.ones(len(jobs)) if weights is None else np.array(weights, float)
    first = 0
    line = _line(rows, seconds, weight, cheapest, measured)
    # A job below the line of all jobs is also below that of the later ones: most need no second
    # fit.
    while first < len(jobs) // 2 and seconds[first] > line[0] + line[1] * rows[first]:
        later = slice(first + 1, None)
        ahead = _line(rows[later], seconds[later], weight[later], cheapest, measured)
        if seconds[first] <= COLD * (ahead[0] + ahead[1] * rows[first]):
            break
        first, line = first + 1, ahead
    fixed, slope = (float(f"{part:.12g}") for part in line[:2])  # the last digits are chance
    told = line[2]
    beyond, warm = seconds - fixed - slope * rows, slice(first, None)
    away = _mean(np.abs(beyond[warm]), weight[warm])
    usual = max(_mean(seconds[warm], weight[warm]), 1e-9)
    # Disturbed jobs, which hardly moved the fit, say as little about whether it rises.
    calm = _calmed(seconds[warm], (seconds - beyond)[warm], weight[warm])
    noise = _mean(np.abs(beyond[warm]), calm)
    rises = slope * float(np.ptp(rows[warm])) >= CLEAR * noise or measured is not None
    return Cost(fixed, slope, tuple(map(float, beyond[:first])), away / usual, told and rises)


def _line(
    rows: _Floats, seconds: _Floats, weight: _Floats, cheapest: float,
    measured: tuple[float, float] | None,
) -> _Line:
    """The fixed part, the part per row, and whether they could be told apart."""
    if rows.max() <= SPREAD * rows.min():
        return _of_one_size(rows, seconds, weight, cheapest, measured)
    fixed, slope = _least_squares(rows, seconds, weight)
    if slope <= 0:
        return _mean(seconds, _around_level(seconds, weight)), 0.0, False
    if fixed < 0:
        return 0.0, _through_origin(rows, seconds, weight), True
    return fixed, slope, True


def _of_one_size(
    rows: _Floats, seconds: _Floats, weight: _Floats, cheapest: float,
    measured: tuple[float, float] | None,
) -> _Line:
    calmed = _around_level(seconds, weight)
    x, y = _mean(rows, calmed), _mean(seconds, calmed)  # a job that counts less does so in both
    fixed = min(cheapest, y)
    if measured is not None:
        factor = y / (measured[0] + measured[1] * x or y or 1.0)
        fixed = max(y - min(max(factor, 1 / OFF), OFF) * measured[1] * x, 0.0)
    return fixed, (y - fixed) / x if x else 0.0, measured is not None


def _least_squares(rows: _Floats, seconds: _Floats, weight: _Floats) -> tuple[float, float]:
    """The line through the jobs, with outliers weighted down."""
    slope = _median_slope(rows, seconds, weight)
    fixed = _median(seconds - slope * rows, weight)
    for _ in range(ROUNDS):
        calmed = _calmed(seconds, fixed + slope * rows, weight)
        x, y = _mean(rows, calmed), _mean(seconds, calmed)
        slope = float((calmed * (rows - x) * (seconds - y)).sum()
                      / (calmed * (rows - x) ** 2).sum())
        fixed = y - slope * x
    return fixed, slope


def _through_origin(rows: _Floats, seconds: _Floats, weight: _Floats) -> float:
    """The same for a line without a fixed part."""
    some = rows > 0
    slope = _median(seconds[some] / rows[some], weight[some])
    for _ in range(ROUNDS):
        calmed = _calmed(seconds, slope * rows, weight)
        slope = float((calmed * rows * seconds).sum() / (calmed * rows**2).sum())
    return slope


def _around_level(seconds: _Floats, weight: _Floats) -> _Floats:
    """The weights of jobs that take equally long, with outliers weighted down."""
    level, calmed = _median(seconds, weight), weight
    for _ in range(ROUNDS):
        calmed = _calmed(seconds, np.full_like(seconds, level), weight)
        level = _mean(seconds, calmed)
    return calmed


def _calmed(seconds: _Floats, fitted: _Floats, weight: _Floats) -> _Floats:
    """The weights of jobs, reduced for those that lie far from a fit."""
    away = np.abs(seconds - fitted)
    usual = max(1.4826 * _median(away, weight), CALM * _median(seconds, weight), 1e-12)
    return weight * np.minimum(1.0, OUTLIER * usual / np.maximum(away, 1e-12))


def _median_slope(rows: _Floats, seconds: _Floats, weight: _Floats) -> float:
    """The median of the slopes between pairs; pairs far apart in size count more."""
    if len(rows) > PAIRS:
        picked = np.linspace(0, len(rows) - 1, PAIRS).astype(int)
        rows, seconds, weight = rows[picked], seconds[picked], weight[picked]
    one, other = np.triu_indices(len(rows), 1)
    apart = rows[other] - rows[one]
    differ = apart != 0
    if not differ.any():  # the picked jobs are all of one size
        return 0.0
    one, other, apart = one[differ], other[differ], apart[differ]
    return _median((seconds[other] - seconds[one]) / apart,
                   weight[one] * weight[other] * np.abs(apart))


def _mean(values: _Floats, weight: _Floats) -> float:
    return float((values * weight).sum() / weight.sum())


def _median(values: _Floats, weight: _Floats) -> float:
    """The value with half of the weight below it, or the mean of the two in the middle."""
    order = np.argsort(values, kind="stable")
    values, through = values[order], np.cumsum(weight[order])
    half = through[-1] / 2
    low = int(np.searchsorted(through, half * (1 - 1e-12)))
    high = int(np.searchsorted(through, half * (1 + 1e-12), side="right"))
    return float((values[low] + values[min(high, len(values) - 1)]) / 2)


@dataclass(slots=True)
class RecentJobs:
    """The jobs that a live cost is fitted to: the latest of every size; later ones weigh more.

    >>> recent = RecentJobs()
    >>> for rows, seconds in ((2000, 4.0), (2000, 0.51), (8000, 0.54)):
    ...     recent.add(rows, seconds)
    >>> cost = recent.cost(cheapest=0.1)
    >>> round(cost.fixed, 3), round(cost.per_row * 1e6, 3), len(cost.cold)
    (0.5, 5.0, 1)
    >>> recent.largest
    (8000, 0.54)
    """

    _done: int = 0
    """Jobs so far."""
    _sizes: dict[int, deque[tuple[int, float, float]]] = field(default_factory=dict)
    """By the power of two above its rows: number, rows and seconds of a job."""
    _fitted: tuple[float, tuple[float, float] | None, Cost] | None = None
    """The last fit, with the arguments that it was computed for."""

    def add(self, rows: float, seconds: float) -> None:
        """Add a finished job; forget the oldest one of its size, or of all."""
        self._done += 1
        self._fitted = None
        alike = self._sizes.setdefault(int(rows).bit_length(), deque(maxlen=OF_A_SIZE))
        alike.append((self._done, rows, seconds))
        if sum(map(len, self._sizes.values())) > IN_ALL:
            oldest = min(self._sizes, key=lambda size: self._sizes[size][0][0])
            self._sizes[oldest].popleft()
            if not self._sizes[oldest]:
                del self._sizes[oldest]

    @property
    def jobs(self) -> list[tuple[int, float, float]]:
        """Number, rows and seconds of the remembered jobs, in order."""
        return sorted(job for alike in self._sizes.values() for job in alike)

    @property
    def weights(self) -> list[float]:
        """The weight of each remembered job."""
        return [max(0.5 ** ((self._done - number) / HALF_LIFE), LEAST_WEIGHT)
                for number, _, _ in self.jobs]

    @property
    def largest(self) -> tuple[float, float]:
        """Rows and seconds of the largest remembered job; of several, the fastest."""
        size = max(self._sizes)
        _, rows, seconds = max(self._sizes[size], key=lambda job: (job[1], -job[2]))
        return rows, seconds

    def cost(self, cheapest: float, measured: tuple[float, float] | None = None) -> Cost:
        """The cost of a job, fitted to the remembered jobs (see `fit`)."""
        if self._fitted is None or self._fitted[:2] != (cheapest, measured):
            jobs = [(rows, seconds) for _, rows, seconds in self.jobs]
            self._fitted = cheapest, measured, fit(jobs, cheapest, measured, self.weights)
        return self._fitted[2]


def unmeasured_cost(
    spent: float, entering: Iterable[tuple[float, float | None]]
) -> float:
    """Seconds per row of the stages of a job that nothing measured.

    They share, equally per row, what the rows of the job have cost (``spent``) beyond the measured
    stages. ``entering`` has, per stage, the rows that entered it, and its seconds per row if known.
    If less than one row entered them, their cost is unknown: 0.

    >>> unmeasured_cost(2.0, [(100.0, None), (80.0, 0.02), (20.0, None)])
    0.0033333333333333327
    >>> unmeasured_cost(1.0, [(100.0, 0.5), (10.0, None)])
    0.0
    """
    stages = list(entering)
    rows = sum(rows for rows, cost in stages if cost is None)
    known = sum(rows * cost for rows, cost in stages if cost is not None)
    return max(spent - known, 0.0) / rows if rows >= 1 else 0.0
