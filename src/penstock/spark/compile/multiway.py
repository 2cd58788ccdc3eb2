"""The results of a multiway join: which keys of fresh rows every stream has, and then the rows.

::

    fresh rows ─▶ their keys ─▶ a stream's window ─▶ keys that it has ─▶ the next stream's ─▶ ...
                                                                                   │ those left
    windows of all streams ─▶ rows with such keys ─▶ one join ─▶ results ◀─────────┘

Keys travel as hashes of 64 bits, whatever their type and number. Different keys with one hash are
told apart by the join of the rows, which compares the keys themselves. The order of the probes is
data too: a job for a round of probes has one shape for each set of streams that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from penstock.engine.instructions import ProbeScan
from penstock.join_graph import JoinGraph
from penstock.model import APART, STREAM, Block, Branch, Column, Expression
from penstock.plan import SharedJoin
from penstock.planning.shapes import columns
from penstock.spark.compile.columns import all_of, compiled, ours, place, renamed
from penstock.spark.compile.pairs import as_data

Hashes = npt.NDArray[np.int64]
Rows = Callable[[str, Sequence[int]], DataFrame]
"""The timely rows of blocks of a stream."""
FEW = 1_000_000
"""If streams have no more rows than this for the keys that are left, they are broadcast."""
FRESH, KEY, HELD, TIME = "@fresh", "@key", "@rows", "@time"
_LOW, _HIGH, _GOES_ON, _LEFT = "@low", "@high", "@goes_on", "@survives"
_EARLIEST, _LATEST = "@left", "@right"
"""The times of the earliest and of the latest row of a result, as those of a pair are called."""
_AS_ROWS = "spark.sql.execution.arrow.localRelationThreshold"
"""Tables of fewer bytes than this become rows in the plan."""
_SALT = 0x9E3779B97F4A7C15
"""Keys of different streams are told apart by multiples of this odd number, modulo 2 to the 64."""


def link(number: int) -> str:
    """The column that has the hash of a stream's n-th link."""
    return f"@link{number}"


@dataclass(frozen=True)
class Survivors:
    """The keys that no stream has dropped."""

    keys: tuple[Mapping[int, Hashes], ...]
    """By stream: for some of its links, the hashes of the keys that its rows may have. A row with
    none of them is in no result."""
    rows: int
    """At most so many rows have them, in all streams."""


@dataclass(frozen=True)
class MultiwayCompiler:
    """Compiles the scans of one join of three or more streams."""

    spark: SparkSession
    join: SharedJoin
    needed: tuple[tuple[Column, ...], ...]
    """By stream, the columns that somebody looks at."""
    time: Callable[[str, int], Expression]
    """The time of a row, by stream and number."""
    more: tuple[SparkColumn, ...] = ()
    """Columns over the times of the earliest and the latest row, ``@left`` and ``@right``."""

    @staticmethod
    def of(
        spark: SparkSession, join: SharedJoin, branches: Iterable[Branch],
        time: Callable[[str, int], Expression],
    ) -> MultiwayCompiler:
        """For these branches of a join."""
        looked_at = list(columns([e for branch in branches for e in branch.expressions]))
        needed = tuple(tuple(column for column in looked_at if column.source == STREAM + stream)
                       for stream in range(len(join.streams)))
        return MultiwayCompiler(spark, join, needed, time)

    # --- keys --------------------------------------------------------------------------------

    @cached_property
    def graph(self) -> JoinGraph:
        """Which streams are joined to which."""
        return JoinGraph.of(len(self.join.streams), self.join.on)

    @cached_property
    def links(self) -> tuple[tuple[tuple[Expression, ...], ...], ...]:
        """By stream: what its rows are joined to other streams by, each once."""
        return tuple(
            tuple(dict.fromkeys(self.graph.keys(stream, other) for other in others))
            for stream, others in enumerate(self.graph.neighbours))

    def link_to(self, stream: int, other: int) -> int:
        """Which of a stream's links joins it to a neighbour."""
        return self.links[stream].index(self.graph.keys(stream, other))

    def salt(self, stream: int, number: int) -> int:
        """What the hashes of a stream's link are salted with where streams are mixed."""
        place = sum(len(some) for some in self.links[:stream]) + number + 1
        return int(np.uint64(place * _SALT % (1 << 64)).astype(np.int64))

    def leads_on(self, stream: int) -> bool:
        """Whether some stream is reached through this one."""
        roots = range(len(self.join.streams))
        return any(stream in self.graph.parents(root) for root in roots if root != stream)

    # --- drop probing ------------------------------------------------------------------------

    def fresh_keys(self, scan: ProbeScan, rows: Rows) -> DataFrame:
        """By fresh row: its stream, its keys and its time.

        Rows with the same keys are not put together here: an outer has not many rows, and Spark
        would shuffle them for it.
        """
        found = []
        for stream, side in enumerate(scan.sides):
            if side.fresh:
                frame = self._rows(stream, side.fresh, rows)
                since, last = as_data((scan.since, scan.until - 1), ours(TIME))
                fresh = frame.where((ours(TIME) >= since) & (ours(TIME) <= last))
                found.append(fresh.select(sf.lit(stream).alias(FRESH), *self._padded(stream),
                                          TIME))
        return reduce(DataFrame.unionAll, found)

    def _padded(self, stream: int) -> list[SparkColumn]:
        own = len(self.links[stream])
        missing = sf.lit(None).cast("bigint")
        return [ours(link(number)) if number < own else missing.alias(link(number))
                for number in range(self._most_links)]

    @property
    def _most_links(self) -> int:
        return max(map(len, self.links))

    def held(
        self, scan: ProbeScan, asked: Iterable[tuple[int, int]], table: pa.Table, rows: Rows
    ) -> DataFrame:
        """Which of the asked keys streams have within reach, and how many rows they have for each.

        ``asked`` are streams with the links by which they are asked. The table has a row for each
        key: whose `FRESH` rows ask, the salted `KEY`, between which times, and whether the keys by
        which the stream leads on to others are wanted, too.
        """
        keys = sf.broadcast(self._frame(table))
        found = [self._held_by(scan, stream, number, keys, rows) for stream, number in asked]
        onward = [link(number) for number in range(self._most_links)]
        onward = onward if any(map(self.leads_on, range(len(self.join.streams)))) else []
        return reduce(DataFrame.unionAll, found).groupBy(FRESH, KEY, *onward).agg(
            sf.count(sf.lit(1)).alias(HELD))

    def _frame(self, table: pa.Table) -> DataFrame:
        """A table of keys as a scan of Arrow batches, however small it is.

        As rows in the plan, half a million keys would be hashed and compared again and again while
        Spark plans: rounds took up to 8 s.
        """
        before = self.spark.conf.get(_AS_ROWS)
        self.spark.conf.set(_AS_ROWS, "0")
        try:
            return self.spark.createDataFrame(table)
        finally:
            self.spark.conf.set(_AS_ROWS, str(before))

    def _held_by(
        self, scan: ProbeScan, stream: int, number: int, keys: DataFrame, rows: Rows
    ) -> DataFrame:
        window = self._rows(stream, scan.sides[stream].window, rows)
        salted = ours(link(number)).bitwiseXOR(sf.lit(self.salt(stream, number)))
        window = window.select(*self._padded(stream), TIME, salted.alias("@salted"))
        met = (ours("@salted") == ours(KEY)) & (ours(TIME) >= ours(_LOW)) & (
            ours(TIME) <= ours(_HIGH))
        onward = [sf.when(ours(_GOES_ON), ours(link(n))).alias(link(n))
                  for n in range(self._most_links)]
        return window.join(keys, met, "inner").select(FRESH, KEY, *onward)

    def asking(
        self, whose: npt.NDArray[np.int32], keys: Hashes, low: Hashes, high: Hashes,
        goes_on: npt.NDArray[np.bool_],
    ) -> pa.Table:
        """The table of the keys that a round of probes asks for."""
        return pa.table({FRESH: pa.array(whose, pa.int32()), KEY: keys, _LOW: low, _HIGH: high,
                         _GOES_ON: goes_on})

    # --- results -----------------------------------------------------------------------------

    def results(
        self, scan: ProbeScan, rows: Rows, survivors: Survivors | None = None
    ) -> DataFrame:
        """The results of a scan; with ``survivors``, out of rows that have their keys."""
        order = self.graph.reachable(0)
        joined = self._side(order[0], scan, rows, survivors)
        joined = joined.withColumn(_EARLIEST, ours(f"{TIME}{order[0]}")).withColumn(
            _LATEST, ours(f"{TIME}{order[0]}"))
        for place_, stream in enumerate(order[1:], 1):
            side = self._side(stream, scan, rows, survivors)
            if survivors is not None and survivors.rows <= FEW:
                side = sf.broadcast(side)
            joined = self._joined(joined, stream, side, order[:place_])
        since, nearest = as_data((scan.since, scan.nearest), ours(_LATEST))
        apart = ours(_LATEST) - ours(_EARLIEST)
        found = joined.where((ours(_LATEST) >= since) & (apart >= nearest))
        return found.select(
            *(ours(place(column.source, column.name)) for some in self.needed for column in some),
            apart.alias(APART.name), *self.more)

    def _joined(
        self, joined: DataFrame, stream: int, side: DataFrame, others: Sequence[int]
    ) -> DataFrame:
        """Rows of some streams beside those of one more."""
        time = ours(f"{TIME}{stream}")
        (farthest,) = as_data((self.join.span,), time)
        on = all_of(self.graph.equalities(stream, others))
        assert on is not None, "a stream is joined after one that leads to it"
        near = (sf.greatest(ours(_LATEST), time) - sf.least(ours(_EARLIEST), time)) < farthest
        met = joined.join(side, on & near, "inner")
        return met.withColumns({_EARLIEST: sf.least(ours(_EARLIEST), time),
                                _LATEST: sf.greatest(ours(_LATEST), time)})

    def _side(
        self, stream: int, scan: ProbeScan, rows: Rows, survivors: Survivors | None
    ) -> DataFrame:
        """The rows of a stream that may be in results."""
        frame = self._rows(stream, scan.sides[stream].window, rows)
        low, high = as_data((scan.since - self.join.span, scan.until), ours(TIME))
        frame = frame.where((ours(TIME) > low) & (ours(TIME) < high))
        if survivors is not None:
            frame = self._surviving(frame, survivors.keys[stream])
        own = [ours(place(column.source, column.name)) for column in self.needed[stream]]
        return frame.select(*own, ours(TIME).alias(f"{TIME}{stream}"))

    def _surviving(self, frame: DataFrame, keys: Mapping[int, Hashes]) -> DataFrame:
        """The rows that have one of the keys by one of the links."""
        tables = {number: sf.broadcast(self._frame(pa.table({_LEFT: some})))
                  for number, some in keys.items()}
        if len(tables) == 1:
            ((number, table),) = tables.items()
            return frame.join(table, ours(link(number)) == ours(_LEFT), "left_semi")
        for number, table in tables.items():
            named = table.withColumnRenamed(_LEFT, f"{_LEFT}{number}")
            frame = frame.join(named, ours(link(number)) == ours(f"{_LEFT}{number}"), "left")
        some = (ours(f"{_LEFT}{number}").isNotNull() for number in tables)
        return frame.where(reduce(SparkColumn.__or__, some, sf.lit(False)))

    def _rows(self, stream: int, blocks: Iterable[Block], rows: Rows) -> DataFrame:
        """The rows of a stream that may be in results: columns, links and time.

        A row without one of its keys is equal to none.
        """
        source = STREAM + stream
        frame = renamed(rows(self.join.streams[stream], [block.number for block in blocks]), source)
        where = all_of(self.join.where[stream])
        frame = frame if where is None else frame.where(where)
        sides = dict.fromkeys(side for keys in self.links[stream] for side in keys)
        hashes = [sf.xxhash64(*map(compiled, keys)).alias(link(number))
                  for number, keys in enumerate(self.links[stream])]
        time = sf.unix_micros(compiled(self.time(self.join.streams[stream], source)))
        own = [ours(place(column.source, column.name)) for column in self.needed[stream]]
        for side in sides:
            frame = frame.where(compiled(side).isNotNull())
        kept = frame.select(*own, *hashes, time.alias(TIME))
        return kept.where(ours(TIME).isNotNull())
