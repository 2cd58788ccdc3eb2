"""Percentiles in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, log2

_STEPS = 8
"""Buckets per doubling: each is 9 % wider than the one before."""
_SMALLEST = 2.0**-20
"""A microsecond: anything shorter falls into one bucket."""


class Histogram:
    """Weighted durations in buckets whose width grows with the duration.

    A percentile is off by at most 4.4 % (half a bucket of 2 ** (1/8)); the largest value is exact.
    From a microsecond to a day there are fewer than 300 buckets, and only those in use are held.

    >>> waits = Histogram()
    >>> for seconds in (0.1, 0.2, 0.2, 5.0):
    ...     waits.add(seconds, weight=10)
    >>> round(waits.percentile(0.5), 2), waits.maximum
    (0.2, 5.0)
    """

    __slots__ = ("buckets", "maximum", "weight")

    def __init__(self) -> None:
        """Empty."""
        self.buckets: dict[int, int] = {}
        self.weight = 0
        self.maximum = 0.0

    def add(self, seconds: float, weight: int = 1) -> None:
        """Count a duration ``weight`` times; a negative one, of a clock set back, counts as 0."""
        if weight > 0:
            self.add_bucket(bucket(seconds), seconds, weight)

    def add_bucket(self, index: int, seconds: float, weight: int) -> None:
        """Count a duration whose bucket is known: many queries wait for the same block."""
        self.buckets[index] = self.buckets.get(index, 0) + weight
        self.weight += weight
        if seconds > self.maximum:
            self.maximum = seconds

    def percentile(self, share: float) -> float | None:
        """The duration that ``share`` of the weight does not exceed; None when there is none."""
        # A list first: another thread may be adding while the live view reads.
        ordered = sorted(list(self.buckets.items()))
        goal, seen = share * sum(weight for _, weight in ordered), 0
        for index, weight in ordered:
            seen += weight
            if seen >= goal:
                return min(_middle(index), self.maximum)
        return None

    @staticmethod
    def merged(parts: Iterable[Histogram]) -> Histogram:
        """All of them in one."""
        whole = Histogram()
        for part in parts:
            for index, weight in list(part.buckets.items()):
                whole.add_bucket(index, 0.0, weight)
            whole.maximum = max(whole.maximum, part.maximum)
        return whole


def bucket(seconds: float) -> int:
    """Where a duration is counted.

    >>> bucket(1.0), bucket(1.05), bucket(2.0)
    (0, 0, 8)
    """
    return floor(_STEPS * log2(max(seconds, _SMALLEST)))


def _middle(index: int) -> float:
    return float(2.0 ** ((index + 0.5) / _STEPS))
