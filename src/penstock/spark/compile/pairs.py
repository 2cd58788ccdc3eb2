"""The pairs of a window join: the fresh rows of one stream beside the window of the other.

::

    fresh rows ─▶ two buckets of time each ─▶ broadcast ┐
                                                        ├─▶ pairs ─▶ fan-out, selections, columns
    window of the other stream ─▶ one bucket of time ───┘

A bucket is at least as long as the scan reaches, so that a row of the window meets a fresh row in
the bucket of its own or in the next one, and in one of them only. Without the buckets every row of
the window would meet all fresh rows with its key. A join without an equality has them as its key.

The bounds of a scan come as a table of one row and not as constants, so that Spark compiles a join
once. The length of a bucket is a power of two, of which few occur.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from penstock.engine.instructions import ProbeScan
from penstock.model import APART, STREAM, Branch, Column, Expression
from penstock.plan import SharedJoin
from penstock.planning.shapes import columns
from penstock.spark.compile.columns import all_of, compiled, ours, place, renamed

LEFT, RIGHT = STREAM, STREAM + 1
_TIMES = ("@left", "@right")
_BUCKETS = ("@bucket", "@met")
_SINCE, _UNTIL, _NEAREST, _FARTHEST = "@since", "@until", "@nearest", "@farthest"


@dataclass(frozen=True)
class PairCompiler:
    """Compiles the scans of one shared join."""

    spark: SparkSession
    join: SharedJoin
    needed: tuple[tuple[Column, ...], tuple[Column, ...]]
    """The columns of each side that somebody looks at."""
    time: Callable[[str, int], Expression]
    """The time of a row, by stream and side."""
    more: tuple[SparkColumn, ...] = ()
    """Columns over the times of both rows, ``@left`` and ``@right`` in microseconds."""

    @staticmethod
    def of(
        spark: SparkSession, join: SharedJoin, branches: Iterable[Branch],
        time: Callable[[str, int], Expression],
    ) -> PairCompiler:
        """For these branches of a join."""
        looked_at = list(columns([e for branch in branches for e in branch.expressions]))
        left, right = (tuple(column for column in looked_at if column.source == side)
                       for side in (LEFT, RIGHT))
        return PairCompiler(spark, join, (left, right), time)

    def pairs(
        self, scan: ProbeScan, rows: Callable[[str, Sequence[int]], DataFrame]
    ) -> DataFrame:
        """The pairs of a scan; ``rows`` gives the timely rows of blocks of a stream."""
        left, right = self.join.left, self.join.right
        found = []
        for fresh, other in ((LEFT, RIGHT), (RIGHT, LEFT)):
            sides = {LEFT: (left, scan.left), RIGHT: (right, scan.right)}
            stream, side = sides[fresh]
            opposite, window = sides[other]
            if side.fresh and window.window:
                found.append(self._met(
                    scan, fresh, rows(stream, [block.number for block in side.fresh]),
                    rows(opposite, [block.number for block in window.window])))
        return reduce(DataFrame.unionAll, found)

    def _met(
        self, scan: ProbeScan, fresh: int, rows: DataFrame, window: DataFrame
    ) -> DataFrame:
        """The pairs whose later row is of one side."""
        other = LEFT + RIGHT - fresh
        bits = max(scan.farthest - 1, 1).bit_length()
        later = self._bounded(scan, self._side(rows, fresh), fresh)
        bucket = sf.shiftright(ours(_TIMES[fresh]), bits)
        later = later.withColumn(_BUCKETS[fresh], sf.explode(sf.array(bucket, bucket - 1)))
        earlier = self._side(window, other)
        earlier = earlier.withColumn(_BUCKETS[other], sf.shiftright(ours(_TIMES[other]), bits))
        away = ours(_TIMES[fresh]) - ours(_TIMES[other])
        # Of two rows with the same time the left one is the later, so that each pair is found once.
        nearest = ours(_NEAREST) if fresh == LEFT else sf.greatest(ours(_NEAREST), sf.lit(1))
        met = (ours(_BUCKETS[fresh]) == ours(_BUCKETS[other])) & (
            away >= nearest) & (away < ours(_FARTHEST))
        on = all_of(self.join.on)
        joined = earlier.join(sf.broadcast(later), met if on is None else met & on, "inner")
        apart = (ours(_TIMES[RIGHT]) - ours(_TIMES[LEFT])).alias(APART.name)
        return joined.select(*self._columns(LEFT), *self._columns(RIGHT), apart, *self.more)

    def _columns(self, side: int) -> list[SparkColumn]:
        return [ours(place(side, column.name)) for column in self.needed[side]]

    def _side(self, rows: DataFrame, side: int) -> DataFrame:
        """The rows of a stream that may be in pairs: what is looked at, and the time."""
        frame = renamed(rows, side)
        where = all_of(self.join.left_where if side == LEFT else self.join.right_where)
        frame = frame if where is None else frame.where(where)
        stream = self.join.left if side == LEFT else self.join.right
        time = sf.unix_micros(compiled(self.time(stream, side)))
        kept = frame.select(*self._columns(side), time.alias(_TIMES[side]))
        return kept.where(ours(_TIMES[side]).isNotNull())

    def _bounded(self, scan: ProbeScan, rows: DataFrame, side: int) -> DataFrame:
        """The rows that may be the later ones of pairs, each with the bounds of the scan."""
        bounds = pa.table({_SINCE: [scan.since], _UNTIL: [scan.until],
                           _NEAREST: [scan.nearest], _FARTHEST: [scan.farthest]})
        time = ours(_TIMES[side])
        within = (time >= ours(_SINCE)) & (time < ours(_UNTIL))
        return rows.join(sf.broadcast(self.spark.createDataFrame(bounds)), within, "inner")
