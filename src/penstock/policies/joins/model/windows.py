"""Windows that share a join: the slices between them, the cost of a scan, and whom it serves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class JoinWindow:
    """A window length that queries join over."""

    length: float
    """Seconds, or rows."""
    queries: int = 1
    """How many queries have it."""


@dataclass(frozen=True, slots=True)
class ScanCost:
    """What a scan takes: a part per job, and a part per unit of the window's length."""

    fixed: float = 0.0
    per_length: float = 1.0

    def seconds(self, length: float) -> float:
        """The seconds of a scan over a slice of this length."""
        return self.fixed + self.per_length * length


@dataclass(frozen=True)  # no slots: the matrix is computed once and cached
class SharedScan:
    """Windows that one scan serves, from the smallest to the largest, cut into levels.

    A *level* is the slice of the window between two neighbouring window lengths. An outer that has
    scanned ``k`` levels has met all rows of the other side within the k-th of the lengths.
    """

    windows: tuple[JoinWindow, ...]
    cost: ScanCost = ScanCost()

    @property
    def levels(self) -> int:
        """How many slices there are."""
        return len(self.windows)

    def reach(self, level: int) -> float:
        """The length that an outer has scanned after this many levels."""
        return self.windows[level - 1].length if level else 0.0

    def served(self, first: int, last: int) -> int:
        """Queries whose windows end with the levels after ``first`` up to ``last``."""
        return sum(window.queries for window in self.windows[first:last])

    def throughput(self, first: int, last: int) -> float:
        """Queries served per second by a scan of these levels."""
        return self.served(first, last) / self.cost.seconds(self.reach(last) - self.reach(first))

    @cached_property
    def max_throughput(self) -> tuple[tuple[float, ...], ...]:
        """The matrix of maximum query throughput, by levels scanned and levels allowed.

        The entry [i][j] is the most that an outer can do per second if it has scanned i levels and
        may not go beyond level j, because the outer before it has not. Windows 2w, 3w and 6w, in
        units of w, give the matrix of Figure 4:

        >>> shared = SharedScan((JoinWindow(2), JoinWindow(3), JoinWindow(6)))
        >>> from fractions import Fraction
        >>> for i, row in enumerate(shared.max_throughput):
        ...     print(*(Fraction(most).limit_denominator(9) for most in row[i + 1:]))
        1/2 2/3 2/3
        1 1
        1/3
        <BLANKLINE>
        """
        served = [0, *accumulate(window.queries for window in self.windows)]
        reach = [self.reach(level) for level in range(self.levels + 1)]

        def most(i: int) -> Iterator[float]:
            yield from [0.0] * i
            yield from accumulate(
                ((served[k] - served[i]) / self.cost.seconds(reach[k] - reach[i])
                 for k in range(i + 1, self.levels + 1)), max, initial=0.0)

        return tuple(tuple(most(i)) for i in range(self.levels + 1))


def worthwhile(windows: Iterable[JoinWindow], cost: ScanCost) -> tuple[JoinWindow, ...]:
    """The windows, with neighbours merged where a job for each of them does not pay.

    If a scan pauses between two slices, the queries before it need not wait for the rest. But every
    job has a fixed cost, for which all queries wait, be it for this outer or for a later one. The
    slices are those for which the sum of all waits is smallest. The largest window ends the last.

    >>> four = [JoinWindow(1), JoinWindow(5), JoinWindow(300, queries=2), JoinWindow(310)]
    >>> [window.length for window in worthwhile(four, ScanCost())]
    [1, 5, 300, 310]
    >>> worthwhile(four, ScanCost(fixed=0.5, per_length=0.01))
    (JoinWindow(length=5, queries=2), JoinWindow(length=310, queries=3))
    >>> worthwhile(four, ScanCost(fixed=9.0, per_length=0.01))
    (JoinWindow(length=310, queries=5),)
    """
    ordered = combined(windows)
    served = [0, *accumulate(window.queries for window in ordered)]
    reach = [0.0, *(window.length for window in ordered)]
    # From the last window back: the least wait from a level on, and the level where its job ends.
    least: dict[int, tuple[float, int]] = {len(ordered): (0.0, 0)}
    for begin in reversed(range(len(ordered))):
        still = cost.per_length * (served[-1] - served[begin])
        least[begin] = min(
            (cost.fixed * served[-1] + still * (reach[end] - reach[begin]) + least[end][0], end)
            for end in range(begin + 1, len(ordered) + 1))
    merged: list[JoinWindow] = []
    begin = 0
    while begin < len(ordered):
        end = least[begin][1]
        merged.append(JoinWindow(reach[end], served[end] - served[begin]))
        begin = end
    return tuple(merged)


def combined(windows: Iterable[JoinWindow]) -> Sequence[JoinWindow]:
    """The windows by their lengths, each length once.

    >>> combined([JoinWindow(5), JoinWindow(1), JoinWindow(5, queries=2)])
    [JoinWindow(length=1, queries=1), JoinWindow(length=5, queries=3)]
    """
    queries: dict[float, int] = {}
    for window in windows:
        queries[window.length] = queries.get(window.length, 0) + window.queries
    return [JoinWindow(length, queries[length]) for length in sorted(queries)]
