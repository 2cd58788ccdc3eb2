"""The pairs of a window join: the fresh rows of one stream beside the window of the other.

::

    fresh rows ─▶ the bucket of their time ─▶ broadcast ─────┐
                                                             ├─▶ pairs ─▶ who wants them
    window of the other stream ─▶ the buckets within reach ──┘

Fresh rows of the left stream meet the rows of the right one before and after them. Fresh rows of
the right stream then meet only what was there before any fresh row, so that each pair is found
once. Of rows with the same time the left one counts as the later.

A row of the window looks up only those buckets in which a row within reach can be. A fresh row is
in one bucket, so the two meet once. Without buckets, every row of the window would meet all fresh
rows with its key. A join without an equality has the bucket as its key.

The bounds of a scan are data and not constants (`_ScanBounds`), so that Spark compiles a join once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from penstock.engine.instructions import ProbeScan
from penstock.model import APART, STREAM, Block, Branch, Column, Expression
from penstock.plan import EARLIEST, SharedJoin
from penstock.planning.shapes import columns
from penstock.spark.compile.columns import all_of, compiled, ours, place, renamed

LEFT, RIGHT = STREAM, STREAM + 1
SLICES = 8
"""A scan is as long as this many buckets, or up to twice as many. Measured with 41 million pairs:
one bucket as long as the scan took 2.4 s, four 1.0 to 1.7 s and eight the same."""
_TIMES = ("@left", "@right")
_BUCKET, _MET = "@bucket", "@met"
_NEAREST, _FARTHEST = "@nearest", "@farthest"
_FIRST, _UNTIL, _BEGIN, _END = "@first", "@until", "@begin", "@end"
_SHORT = (1 << 31) - 1
"""The bits of a bucket that are compared: with an INT, Spark packs both keys into one number. Times
further apart than all of them are told apart by the exact condition."""


@dataclass(frozen=True, slots=True)
class ScanPart:
    """Fresh rows of one side beside rows of the other."""

    side: int
    """The side of the fresh rows."""
    fresh: Sequence[Block]
    window: Sequence[Block]
    """Blocks of the other side."""
    before: int
    """Of these, only rows with a time before this one, in microseconds."""


def parts(scan: ProbeScan) -> list[ScanPart]:
    """Both parts of a scan; one whose blocks show that it has no pairs is left out."""
    left, right = scan.sides
    around = {block.number: block for block in (*right.window, *right.fresh)}
    before = [block for block in left.window if scan.since > EARLIEST
              and (block.cutoff is None or block.cutoff < scan.since)]
    found = (ScanPart(LEFT, left.fresh, [around[n] for n in sorted(around)], scan.until),
             ScanPart(RIGHT, right.fresh, before, scan.since))
    return [part for part in found if part.fresh and part.window]


def least_read(join: SharedJoin, scans: Iterable[ProbeScan]) -> int:
    """The rows that Spark reads to find the pairs of scans, at least.

    Fresh rows may be broadcast once for several parts. Over windows of rows, fresh rows are among
    those of the window, and both sides are numbered together. A multiway join reads the fresh rows
    for their keys; what else it reads depends on those that are left.
    """
    if len(join.streams) > 2:
        return sum(block.rows for scan in scans for side in scan.sides for block in side.fresh)
    if join.rows:
        return sum(block.rows for scan in scans for side in scan.sides
                   for block in side.window)
    streams = dict(zip((LEFT, RIGHT), join.streams, strict=True))
    found = [part for scan in scans for part in parts(scan)]
    fresh = {(streams[part.side], block.number): block.rows
             for part in found for block in part.fresh}
    return sum(fresh.values()) + sum(block.rows for part in found for block in part.window)


@dataclass(frozen=True)
class PairCompiler:
    """Compiles the scans of one shared join."""

    join: SharedJoin
    needed: tuple[tuple[Column, ...], ...]
    """The columns of each side that somebody looks at."""
    time: Callable[[str, int], Expression]
    """The time of a row, by stream and side."""
    more: tuple[SparkColumn, ...] = ()
    """Columns over the times of both rows, ``@left`` and ``@right`` in microseconds."""

    @staticmethod
    def of(
        join: SharedJoin, branches: Iterable[Branch], time: Callable[[str, int], Expression]
    ) -> PairCompiler:
        """For these branches of a join."""
        looked_at = list(columns([e for branch in branches for e in branch.expressions]))
        left, right = (tuple(column for column in looked_at if column.source == side)
                       for side in (LEFT, RIGHT))
        return PairCompiler(join, (left, right), time)

    def pairs(
        self, scan: ProbeScan, rows: Callable[[str, Sequence[int]], DataFrame]
    ) -> DataFrame:
        """The pairs of a scan; ``rows`` gives the timely rows of blocks of a stream."""
        found = [self._met(scan, part, self._rows(rows, part.side, part.fresh),
                           self._rows(rows, LEFT + RIGHT - part.side, part.window))
                 for part in parts(scan)]
        return reduce(DataFrame.unionAll, found)

    def _rows(
        self, rows: Callable[[str, Sequence[int]], DataFrame], side: int, blocks: Iterable[Block]
    ) -> DataFrame:
        stream = self.join.streams[side - LEFT]
        return self._side(rows(stream, [block.number for block in blocks]), side)

    def _met(
        self, scan: ProbeScan, part: ScanPart, rows: DataFrame, window: DataFrame
    ) -> DataFrame:
        """The pairs that one part of a scan finds."""
        fresh, other = part.side, LEFT + RIGHT - part.side
        bits = max((scan.farthest - scan.nearest) // SLICES - 1, 1).bit_length()
        given = (scan.since, scan.until - 1, scan.nearest, scan.farthest - 1, bits, part.before)
        time, bounds = ours(_TIMES[fresh]), _ScanBounds.of(given, ours(_TIMES[fresh]))
        rows = rows.where((time >= bounds.since) & (time <= bounds.last)).withColumn(
            _BUCKET, _short(bounds.bucket(time)))
        theirs, bounds = ours(_TIMES[other]), _ScanBounds.of(given, ours(_TIMES[other]))
        window = bounds.reached(
            window.where(theirs < bounds.before), theirs, scan.nearest > 0,
            around=scan.until - scan.since > scan.nearest)
        away = sf.abs(time - theirs)
        met = (ours(_BUCKET) == _short(ours(_MET))) & (away <= ours(_FARTHEST))
        if scan.nearest:
            met &= away >= ours(_NEAREST)
        on = all_of(self.join.on)
        joined = window.join(sf.broadcast(rows), met if on is None else met & on, "inner")
        apart = (ours(_TIMES[RIGHT]) - ours(_TIMES[LEFT])).alias(APART.name)
        return joined.select(*self._columns(LEFT), *self._columns(RIGHT), apart, *self.more)

    def _columns(self, side: int) -> list[SparkColumn]:
        return [ours(place(side, column.name)) for column in self.needed[side]]

    def _side(self, rows: DataFrame, side: int) -> DataFrame:
        """The rows of a stream that may be in pairs: what is looked at, and the time."""
        frame = renamed(rows, side)
        where = all_of(self.join.where[side - LEFT])
        frame = frame if where is None else frame.where(where)
        stream = self.join.streams[side - LEFT]
        time = sf.unix_micros(compiled(self.time(stream, side)))
        kept = frame.select(*self._columns(side), time.alias(_TIMES[side]))
        return kept.where(ours(_TIMES[side]).isNotNull())


@dataclass(frozen=True, slots=True)
class _ScanBounds:
    """The bounds of a scan as data (`as_data`)."""

    since: SparkColumn
    last: SparkColumn
    nearest: SparkColumn
    farthest: SparkColumn
    bits: SparkColumn
    """The length of a bucket is two to this power."""
    before: SparkColumn

    @staticmethod
    def of(numbers: Sequence[int], row: SparkColumn) -> _ScanBounds:
        """For the rows of a side, of which ``row`` is a column of type BIGINT."""
        return _ScanBounds(*as_data(numbers, row))

    def bucket(self, time: SparkColumn) -> SparkColumn:
        """The bucket of a time."""
        return sf.call_function("shiftright", time, self.bits.cast("int"))

    def reached(
        self, window: DataFrame, time: SparkColumn, slice_: bool, around: bool
    ) -> DataFrame:
        """A row for each row of the window and bucket that may have a fresh row within its reach.

        A ``slice_`` of the window leaves out what is nearest. If fresh rows lie ``around`` some row
        of the window, it has two stretches of buckets.

        What is used more than once gets a column: else the code of a join would be so long that
        Java does not compile it, and take three times as long.
        """
        window = window.select("*", self.nearest.alias(_NEAREST), self.farthest.alias(_FARTHEST))
        nearest, farthest = ours(_NEAREST), ours(_FARTHEST)
        begin = self.bucket(sf.greatest(
            time + nearest if slice_ else time - farthest, self.since))
        end = self.bucket(sf.least(time + farthest, self.last))
        window = window.select("*", begin.alias(_BEGIN), end.alias(_END))
        begin, end = ours(_BEGIN), ours(_END)
        if not (slice_ and around):
            return window.select(
                "*", sf.explode(sf.when(begin <= end, sf.sequence(begin, end))).alias(_MET))
        first = self.bucket(sf.greatest(time - farthest, self.since))
        until = self.bucket(sf.least(time - nearest, self.last))
        window = window.select("*", first.alias(_FIRST), until.alias(_UNTIL))
        first, until = ours(_FIRST), ours(_UNTIL)
        window = window.withColumn(_BEGIN, sf.when(
            first <= until, sf.greatest(begin, until + 1)).otherwise(begin))
        none = sf.array().cast("array<bigint>")
        return window.select("*", sf.explode(sf.concat(
            sf.when(first <= until, sf.sequence(first, until)).otherwise(none),
            sf.when(begin <= end, sf.sequence(begin, end)).otherwise(none))).alias(_MET))


def as_data(numbers: Sequence[int], row: SparkColumn) -> list[SparkColumn]:
    """Numbers as columns: literals would be compiled into the code, for every block.

    An array is handed to the code as an object. Its elements are not folded into constants, since
    the optimizer takes the index for one that depends on the ``row``, a column of type BIGINT.
    """
    array, first = long_array(numbers), row.bitwiseAND(sf.lit(0)).cast("int")
    return [sf.get(array, first + number) for number in range(len(numbers))]


def long_array(numbers: Iterable[int]) -> SparkColumn:
    """An array of numbers that takes few calls into the JVM, however long it is."""
    return sf.split(sf.lit(" ".join(map(str, numbers))), " ").cast("array<bigint>")


def _short(bucket: SparkColumn) -> SparkColumn:
    return bucket.bitwiseAND(sf.lit(_SHORT)).cast("int")
