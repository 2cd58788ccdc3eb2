"""Progress charts: how a block shrinks on its way, and the lower envelope that Chain follows.

A block of size 1 enters at time 0; after ``times[i]`` seconds of work it has passed ``i`` operators
and its size is ``sizes[i]``. At the last operator it leaves, so the last size is 0.

    1 |*---.                      the chart: steps, since an operator frees memory when it ends
      | `. |
      |   `*-.                    the envelope (dots): the steepest way down from point to point
      |     `. ......
    0 |_______`-------*
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from math import inf

from penstock.policies.operators.model.routes import Route, Stage


@dataclass(frozen=True, slots=True)
class Chart:
    """The operator points of a path.

    >>> chart = Chart.of_points([(0, 1), (400, 0.9), (2000, 0.88), (2200, 0.1), (4000, 0)])
    >>> chart.envelope
    (0, 3, 4)
    >>> print(chart)
    operator       time  size   release  segment
           1        400   0.9  0.000409  1
           2       2000  0.88  0.000409  1
           3       2200   0.1  0.000409  1
           4       4000     0  5.56e-05  2

    Reference: B. Babcock et al., "Operator scheduling in data stream systems", VLDB Journal 13
    (2004), section 3.
    """

    times: tuple[float, ...]
    sizes: tuple[float, ...]

    @classmethod
    def of_points(cls, points: Sequence[tuple[float, float]]) -> Chart:
        """A chart from its operator points (t, s)."""
        return cls(tuple(float(t) for t, _ in points), tuple(float(s) for _, s in points))

    @classmethod
    def of(cls, stages: Sequence[Stage]) -> Chart:
        """A chart from costs and selectivities; what leaves the last stage is no longer kept.

        >>> Chart.of([Stage("a", 1.0, 0.2), Stage("b", 5.0)])
        Chart(times=(0.0, 1.0, 2.0), sizes=(1.0, 0.2, 0.0))
        """
        times, sizes, rows = [0.0], [1.0], 1.0
        for stage in stages:
            times.append(times[-1] + stage.cost * rows)
            sizes.append(sizes[-1] * stage.kept)
            rows *= stage.selectivity
        return cls(tuple(times), (*sizes[:-1], 0.0))

    def stages(self, names: Sequence[str] = ()) -> tuple[Stage, ...]:
        """The operators that give this chart; the last one lets everything out.

        >>> made = Chart.of_points([(0, 1), (1, 0.2), (2, 0)]).stages()
        >>> [(stage.cost, stage.selectivity) for stage in made]
        [(1.0, 0.2), (5.0, 1.0)]
        """
        made = []
        last = len(self.times) - 2
        for i, (t, s) in enumerate(zip(self.times, self.sizes, strict=True)):
            if i <= last:
                cost = (self.times[i + 1] - t) / s
                kept = 1.0 if i == last else self.sizes[i + 1] / s
                made.append(Stage(names[i] if names else str(i + 1), cost, kept))
        return tuple(made)

    def derivative(self, point: int, ahead: int) -> float:
        """Memory freed per second on the straight line from one operator point to a later one."""
        return _steepness(self.times[ahead] - self.times[point],
                          self.sizes[point] - self.sizes[ahead])

    def steepest(self, point: int) -> int:
        """The steepest-descent point ahead of an operator point; the nearest of equals."""
        ahead = range(point + 1, len(self.times))
        return max(ahead, key=lambda j: self.derivative(point, j))  # max keeps the first

    @property
    def envelope(self) -> tuple[int, ...]:
        """The operator points on the lower envelope, from the first to the last."""
        return _envelope(self)

    @property
    def slopes(self) -> tuple[float, ...]:
        """Memory freed per second on each segment of the envelope; they never increase."""
        steepness = (self.derivative(a, b) for a, b in pairwise(self.envelope))
        return tuple(accumulate(steepness, min))  # rounding makes some points on one line rise

    def size(self, progress: float) -> float:
        """The size of a block after this much work: it steps down at the end of each operator."""
        return self.sizes[bisect_right(self.times, progress) - 1]

    @property
    def deltas(self) -> tuple[float, ...]:
        """For each segment, the most by which the chart rises above the envelope."""
        return tuple(self._delta(a, b) for a, b in pairwise(self.envelope))

    def _delta(self, first: int, last: int) -> float:
        """The gap is widest just before an operator ends."""
        slope = self.derivative(first, last)
        gaps = [self.sizes[i] - self.sizes[first] + slope * (self.times[i + 1] - self.times[first])
                for i in range(first, last) if self.times[i + 1] > self.times[i]]
        return max(gaps, default=0.0)

    def __str__(self) -> str:
        """The points as a table, with the segment each operator is part of."""
        lines = ["operator       time  size   release  segment"]
        ends = self.envelope
        for i in range(1, len(self.times)):
            number = next(n for n, end in enumerate(ends[1:]) if i <= end)
            lines.append(f"{i:>8} {self.times[i]:>10.6g} {self.sizes[i]:>5.3g} "
                         f"{self.slopes[number]:>9.3g}  {number + 1}")
        return "\n".join(lines)


def chart(route: Route) -> Chart:
    """The chart of a route."""
    return Chart.of(route.stages)


@lru_cache(maxsize=4096)
def _envelope(chart: Chart) -> tuple[int, ...]:
    points = [0]
    while points[-1] < len(chart.times) - 1:
        points.append(chart.steepest(points[-1]))
    return tuple(points)


def _steepness(seconds: float, freed: float) -> float:
    """Freed per second; an operator of no cost is infinitely steep, up or down.

    >>> _steepness(2.0, 1.0), _steepness(0.0, 0.5), _steepness(0.0, -0.5), _steepness(0.0, 0.0)
    (0.5, inf, -inf, 0.0)
    """
    if seconds > 0:
        return freed / seconds
    return inf if freed > 0 else -inf if freed < 0 else 0.0


def window_join(
    rates: tuple[float, float], matches: tuple[float, float], costs: tuple[float, float]
) -> tuple[float, float]:
    """Cost and selectivity of a sliding-window join, per row of either side.

    For the two streams: rows per second, rows of its window that a row of the *other* stream meets
    on average, and seconds for one of its rows.

    >>> window_join(rates=(3.0, 1.0), matches=(2.0, 4.0), costs=(1.0, 5.0))
    (2.0, 3.5)

    Reference: section 4.3.1 of the chain paper.
    """
    total = sum(rates)
    cost = sum(rate * seconds for rate, seconds in zip(rates, costs, strict=True)) / total
    selectivity = (rates[0] * matches[1] + rates[1] * matches[0]) / total
    return cost, selectivity
