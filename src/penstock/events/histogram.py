"""Percentiles in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, log2

_STEPS = 8
"""Buckets per doubling: each is 9 % wider than the one before."""
_SMALLEST = 2.0**-20
"""A microsecond: anything shorter falls into one bucket."""
SLOT = 10
"""Seconds per slot: the last minute forgets one slot at a time."""
_SLOTS = 6
"""Slots of the last minute, besides the one that is being filled."""


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
        """Count a duration ``weight`` times; a negative one, from a clock set back, counts as 0."""
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
        # Copied into a list first: another thread may add durations while the live view reads.
        ordered = sorted(list(self.buckets.items()))
        goal, seen = share * sum(weight for _, weight in ordered), 0
        for index, weight in ordered:
            seen += weight
            if seen >= goal:
                return min(_middle(index), self.maximum)
        return None

    @staticmethod
    def merged(parts: Iterable[Histogram]) -> Histogram:
        """One histogram of all the parts."""
        whole = Histogram()
        for part in parts:
            for index, weight in list(part.buckets.items()):
                whole.add_bucket(index, 0.0, weight)
            whole.maximum = max(whole.maximum, part.maximum)
        return whole


class RollingHistogram:
    """Weighted durations of a run, of which it can show those of the last minute separately.

    A duration is counted once, in the slot in which it ended. Readers get the slots merged. The
    last minute covers sixty to seventy seconds.

    >>> waits = RollingHistogram()
    >>> for at, seconds in ((0.0, 8.0), (50.0, 0.1), (100.0, 0.1)):
    ...     waits.add_bucket(int(at) // SLOT, bucket(seconds), seconds, weight=10)
    >>> waits.maximum, waits.last_minute(105.0).maximum, waits.last_minute(300.0).weight
    (8.0, 0.1, 0)
    """

    __slots__ = ("_earlier", "_latest", "_number", "_slots")

    def __init__(self) -> None:
        """Empty."""
        self._earlier = Histogram()
        self._slots: dict[int, Histogram] = {}
        self._number, self._latest = -1, self._earlier

    def add_bucket(self, slot: int, index: int, seconds: float, weight: int) -> None:
        """Count a duration whose bucket is known, in a slot; slots never go back."""
        if slot != self._number:
            self._turn(slot)
        self._latest.add_bucket(index, seconds, weight)

    def _turn(self, slot: int) -> None:
        for old in [number for number in self._slots if number < slot - _SLOTS]:
            # Merged first, then removed: a concurrent reader may see a slot twice, but never misses
            # it.
            self._earlier = Histogram.merged((self._earlier, self._slots[old]))
            del self._slots[old]
        self._number, self._latest = slot, self._slots.setdefault(slot, Histogram())

    def whole(self) -> Histogram:
        """The durations of the whole run."""
        return Histogram.merged((self._earlier, *list(self._slots.values())))

    def last_minute(self, now: float) -> Histogram:
        """The durations of the last minute."""
        first = int(now) // SLOT - _SLOTS
        return Histogram.merged(slot for number, slot in list(self._slots.items())
                                if number >= first)

    def percentile(self, share: float) -> float | None:
        """The percentile over the whole run."""
        return self.whole().percentile(share)

    @property
    def maximum(self) -> float:
        """The maximum of the whole run."""
        return self.whole().maximum

    @property
    def weight(self) -> int:
        """The weight of the whole run."""
        return self.whole().weight


def bucket(seconds: float) -> int:
    """The bucket in which a duration is counted.

    >>> bucket(1.0), bucket(1.05), bucket(2.0)
    (0, 0, 8)
    """
    return floor(_STEPS * log2(max(seconds, _SMALLEST)))


def _middle(index: int) -> float:
    return float(2.0 ** ((index + 0.5) / _STEPS))
