"""Counting the pairs of a shared join: each is routed once, however many windows cover it.

::

    pairs ─▶ the slot of their times' difference ─▶ count by slot ─▶ prefix sums, in the driver

The bounds of all windows, in order, cut the differences of times into *slots*. A query's pairs are
those of consecutive slots. So a hundred queries that differ in their windows cost what one costs.
Queries with other selections are counted by selection and slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from penstock.model import (
    APART,
    INT,
    OURS,
    Branch,
    Column,
    Expression,
    Output,
    WindowJoin,
)
from penstock.plan import Member, SharedJoin
from penstock.planning.check import MEMBER
from penstock.spark.compile.columns import all_of, ours
from penstock.spark.compile.fanout import CompiledFanout, output_name
from penstock.spark.compile.pairs import long_array

CELLS = 1024
"""Cells of equal length at most, in which the slot of a difference is looked up."""
_SCAN, _CELL, _SLOT, _PAIRS = "@scan", "@cell", "@slot", "@pairs"


@dataclass(frozen=True)
class Slots:
    """The slots of windows: the n-th begins at the n-th bound.

    >>> slots = Slots.of([WindowJoin((), -4, 4), WindowJoin((), 0, 9)])
    >>> slots.bounds
    (-4, 0, 5, 10)
    >>> slots.of_window(WindowJoin((), 0, 9))
    slice(1, 3, None)
    """

    bounds: tuple[int, ...]

    @staticmethod
    def of(windows: Iterable[WindowJoin]) -> Slots:
        """For these windows."""
        return Slots(tuple(sorted({bound for window in windows
                                   for bound in (window.lower, window.upper + 1)})))

    def of_window(self, window: WindowJoin) -> slice:
        """The slots that a window covers."""
        return slice(self.bounds.index(window.lower), self.bounds.index(window.upper + 1))

    def place(self, apart: int) -> int:
        """The slot of a difference that some window covers, as Spark finds it.

        >>> slots = Slots((-4, 0, 5, 10))
        >>> [slots.place(apart) for apart in (-4, -1, 0, 4, 5, 9)]
        [0, 0, 1, 1, 2, 2]
        """
        slot, bounds = int(self.starts[(apart - self.bounds[0]) >> self.bits]), self._padded
        for half in self.steps:
            slot += half if apart >= bounds[slot + half] else 0
        return slot

    def column(self, frame: DataFrame, apart: SparkColumn) -> DataFrame:
        """The frame with the slot of each difference.

        Cells of equal length give the first slot, and a binary search goes on within the cell.
        """
        cell = sf.shiftright(apart - self.bounds[0], self.bits).cast("int")
        slot = sf.get(long_array(map(int, self.starts)).cast("array<int>"), cell)
        frame, bounds = frame.withColumn(_SLOT, slot), long_array(self._padded)
        for half in self.steps:
            slot = ours(_SLOT)
            beyond = apart >= sf.get(bounds, slot + half)
            frame = frame.withColumn(_SLOT, slot + sf.when(beyond, half).otherwise(0))
        return frame

    @cached_property
    def bits(self) -> int:
        """The length of a cell is two to this power."""
        return max(((self.bounds[-1] - 1 - self.bounds[0]) // CELLS).bit_length(), 0)

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """By cell, the slot of its least difference."""
        cells = ((self.bounds[-1] - 1 - self.bounds[0]) >> self.bits) + 1
        begins = self.bounds[0] + (np.arange(cells, dtype=np.int64) << self.bits)
        return np.searchsorted(self.bounds, begins, side="right") - 1

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """How far the steps of the search go."""
        ends = [*self.starts[1:], len(self.bounds) - 1]
        most = max(int(end - start) for start, end in zip(self.starts, ends, strict=True))
        return tuple(1 << power for power in reversed(range(most.bit_length())))

    @property
    def _padded(self) -> tuple[int, ...]:
        """The bounds, and enough that are never reached for the search to stay within them."""
        return (*self.bounds, *[self.bounds[-1]] * sum(self.steps))


class PairCounts:
    """Counts the pairs of some members of a shared join."""

    def __init__(
        self, spark: SparkSession, join: SharedJoin, branches: dict[Member, Branch]
    ) -> None:
        """Find out which of them differ in their windows only."""
        self._windows = {member: _window(branch) for member, branch in branches.items()}
        self._slots = Slots.of(self._windows.values())
        made = set(join.selections)
        self._selections: dict[tuple[Expression, ...], list[Member]] = {}
        for member, branch in branches.items():
            rest = tuple(condition for condition in branch.where if condition not in made)
            self._selections.setdefault(rest, []).append(member)
        several = len(self._selections) > 1
        self._fanout = CompiledFanout(spark, list(self._branches())) if several else None

    def frame(self, scans: Sequence[DataFrame]) -> DataFrame:
        """Pairs by scan, selection and slot; ``scans`` are the pairs of each scan."""
        bounds = self._slots.bounds
        frame = None
        for number, pairs in enumerate(scans):
            apart = ours(APART.name)
            within = pairs.where((apart >= bounds[0]) & (apart < bounds[-1]))
            one = self._slots.column(within.withColumn(_SCAN, sf.lit(number)), apart)
            frame = one if frame is None else frame.unionAll(one)
        assert frame is not None
        return self._selected(frame).groupBy(_SCAN, MEMBER, _SLOT).agg(
            sf.count(sf.lit(1)).alias(_PAIRS))

    def _selected(self, frame: DataFrame) -> DataFrame:
        """The slot of each pair, for each selection that it passes, and where it was found."""
        if self._fanout is None:
            (selection,) = self._selections
            wanted = all_of(selection)
            frame = frame if wanted is None else frame.where(wanted)
            return frame.select(_SCAN, sf.lit(0).alias(MEMBER), _SLOT)
        found = self._fanout.answers(frame)
        return found.select(
            ours(output_name(0)).alias(_SCAN), MEMBER, ours(output_name(1)).alias(_SLOT))

    def _branches(self) -> Iterable[Branch]:
        """A branch for each selection: it wants the pairs that some of its windows cover."""
        outputs = tuple(Output(name, Column(name, INT, OURS)) for name in (_SCAN, _SLOT))
        for selection, members in self._selections.items():
            windows = [self._windows[member] for member in members]
            around = replace(windows[0], lower=min(one.lower for one in windows),
                             upper=max(one.upper for one in windows))
            yield Branch(inputs=(), select=outputs, where=(*around.within, *selection))

    def counted(
        self, frame: DataFrame, wanted: Sequence[Sequence[Member]]
    ) -> dict[Member, int]:
        """Run the job: pairs by member, of the scans that each member wants."""
        found = frame.toArrow()
        shape = len(wanted), len(self._selections), len(self._slots.bounds)
        pairs = np.zeros(shape, np.int64)
        places = tuple(found[name].to_numpy() for name in (_SCAN, MEMBER, _SLOT))
        pairs[places] = found[_PAIRS].to_numpy()
        rank = {member: number for number, members in enumerate(self._selections.values())
                for member in members}
        slots = {member: self._slots.of_window(window) for member, window in self._windows.items()}
        counts = dict.fromkeys(rank, 0)
        for scan, members in enumerate(wanted):
            for member in members:
                counts[member] += int(pairs[scan, rank[member], slots[member]].sum())
        return counts


def _window(branch: Branch) -> WindowJoin:
    assert branch.join is not None
    return branch.join
