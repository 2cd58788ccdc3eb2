"""The pairs of a join over windows of rows: each row beside the latest ones of the other stream.

The rows of both streams up to the end of an outer are put in the order of their times. Then every
row knows its number in its own stream, and how many rows of the other stream are not later than it.
The difference of the two numbers says whether rows meet, and how many rows lie between them.
Selections come after that: a window counts all rows.

Rows are numbered in one task, since a number depends on all rows before. They are those of an outer
and of the windows before it, and not those of the whole spool. From `SPREAD` rows on they are
distributed by their numbers after that, so that all tasks find pairs, whatever keys they have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as sf

from penstock.engine.instructions import ProbeScan
from penstock.model import APART, STREAM, Block, Branch, Column, Expression
from penstock.plan import EARLIEST, SharedJoin
from penstock.planning.shapes import columns
from penstock.spark.compile.columns import all_of, compiled, ours, place
from penstock.spark.storage.spool import PLACE

LEFT, RIGHT = STREAM, STREAM + 1
_SIDE, _TIME, _NUMBER = "@side", "@time", "@number"
_SEEN = ("@lefts", "@rights")
_BUCKET = "@bucket"
SPREAD = 100_000
"""Fewer rows are not worth a shuffle. With 800,000, of which a fifth have one key, and 3.3 million
pairs that are only counted, it takes as long as it saves (2.1 and 2.0 s)."""
NumberedRows = Callable[[str, Sequence[int]], DataFrame]
"""The timely rows of blocks of a stream, with their `PLACE`."""


@dataclass(frozen=True)
class RowPairCompiler:
    """Compiles the scans of one shared join over windows of rows."""

    join: SharedJoin
    needed: tuple[tuple[Column, ...], ...]
    """The columns of each side that somebody looks at."""
    time: Callable[[str, int], Expression]
    """The time of a row, by stream and side."""

    @staticmethod
    def of(
        join: SharedJoin, branches: Iterable[Branch], time: Callable[[str, int], Expression]
    ) -> RowPairCompiler:
        """For these branches of a join."""
        looked_at = list(columns([e for branch in branches for e in branch.expressions]))
        left, right = (tuple(column for column in looked_at if column.source == side)
                       for side in (LEFT, RIGHT))
        return RowPairCompiler(join, (left, right), time)

    def pairs(self, scan: ProbeScan, rows: NumberedRows) -> DataFrame:
        """The pairs of a scan."""
        numbered = self._numbered(scan, rows)
        lefts, rights = (self._of_side(numbered, side) for side in (LEFT, RIGHT))
        return self._met(scan, LEFT, lefts, rights).unionAll(
            self._met(scan, RIGHT, lefts, rights))

    def oldest(self, scan: ProbeScan, rows: NumberedRows) -> tuple[int, ...]:
        """By side, the time of the oldest row that rows after the scan can meet."""
        known = self._union(scan, rows).select(_SIDE, _TIME)
        latest = [known.where(ours(_SIDE) == side).orderBy(ours(_TIME).desc())
                  .limit(self.join.span) for side in (LEFT, RIGHT)]
        found = {row[0]: row[1] for row in latest[0].unionAll(latest[1]).groupBy(_SIDE).agg(
            sf.min(_TIME), sf.count("*").alias("n")).where(
                ours("n") >= self.join.span).collect()}
        return tuple(found.get(side, EARLIEST) for side in (LEFT, RIGHT))

    def _union(self, scan: ProbeScan, rows: NumberedRows) -> DataFrame:
        """The rows of both streams before the end of the scan, each with its own columns."""
        left, right = (self._rows(side, self.join.streams[side - LEFT],
                                  scan.sides[side - LEFT].window, rows) for side in (LEFT, RIGHT))
        both = left.unionByName(right, allowMissingColumns=True)
        return both.where(ours(_TIME) < sf.lit(scan.until))

    def _rows(
        self, side: int, stream: str, blocks: Sequence[Block], rows: NumberedRows
    ) -> DataFrame:
        read = rows(stream, [block.number for block in blocks])
        frame = read.toDF(
            *(name if name == PLACE else place(side, name) for name in read.columns))
        time = sf.unix_micros(compiled(self.time(stream, side))).alias(_TIME)
        kept = frame.select(sf.lit(side).alias(_SIDE), time, ours(PLACE), *self._columns(side))
        return kept.where(ours(_TIME).isNotNull())

    def _columns(self, side: int) -> list[SparkColumn]:
        return [ours(place(side, column.name)) for column in self.needed[side]]

    def _numbered(self, scan: ProbeScan, rows: NumberedRows) -> DataFrame:
        """The rows with their numbers, and how many of both streams are not later than each."""
        upto = SparkWindow.orderBy(_TIME).rangeBetween(
            SparkWindow.unboundedPreceding, SparkWindow.currentRow)
        own = SparkWindow.partitionBy(_SIDE).orderBy(_TIME, PLACE)
        seen = [sf.count(sf.when(ours(_SIDE) == side, 1)).over(upto).alias(_SEEN[side])
                for side in (LEFT, RIGHT)]
        return self._union(scan, rows).select(
            "*", *seen, sf.row_number().over(own).cast("bigint").alias(_NUMBER))

    def _of_side(self, numbered: DataFrame, side: int) -> DataFrame:
        """The rows of one stream that may be in pairs, by names of their own."""
        where = all_of(self.join.where[side - LEFT])
        mine = numbered.where(ours(_SIDE) == side)
        mine = mine if where is None else mine.where(where)
        named = [ours(name).alias(f"{name}{side}") for name in (_TIME, _NUMBER, *_SEEN)]
        return mine.select(*named, *self._columns(side))

    def _met(
        self, scan: ProbeScan, later: int, lefts: DataFrame, rights: DataFrame
    ) -> DataFrame:
        """The pairs whose later row is of one side; of equal times, where fewer rows lie between.

        A row meets those whose numbers end with the last that is not later than it. Rows are filed
        by their numbers, so that they meet those of two buckets.
        """
        earlier = LEFT + RIGHT - later
        fresh, others = (lefts, rights) if later == LEFT else (rights, lefts)
        length = sf.lit(scan.farthest)

        def bucket(number: SparkColumn) -> SparkColumn:
            return sf.floor(number / length)

        apart = {side: ours(f"{_SEEN[LEFT + RIGHT - side]}{side}")
                 - ours(f"{_NUMBER}{LEFT + RIGHT - side}") for side in (LEFT, RIGHT)}
        time = ours(f"{_TIME}{later}")
        last = bucket(ours(f"{_SEEN[earlier]}{later}"))
        fresh = fresh.where(time >= sf.lit(scan.since)).withColumn(
            _BUCKET, sf.explode(sf.array(last, last - 1)))
        number = ours(f"{_NUMBER}{earlier}")
        others = others.withColumn(f"{_BUCKET}s", bucket(number))
        if sum(block.rows for side in scan.sides for block in side.window) >= SPREAD:
            others = others.repartition(number)
        nearer = apart[later] <= apart[earlier] if later == LEFT else apart[later] < apart[earlier]
        met = (ours(_BUCKET) == ours(f"{_BUCKET}s")) & (apart[later] >= sf.lit(scan.nearest)) & (
            apart[later] < length) & ((time > ours(f"{_TIME}{earlier}")) | nearer)
        on = all_of(self.join.on)
        joined = others.join(sf.broadcast(fresh), met if on is None else met & on, "inner")
        return joined.select(*self._columns(LEFT), *self._columns(RIGHT),
                             apart[later].alias(APART.name))
