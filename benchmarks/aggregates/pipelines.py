"""Four ways to the same sums: Penstock, native Spark, a pane table by hand, and the least work."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from benchmarks.aggregates.traffic import BEGIN, FILES, SCHEMA, SOURCES, Window
from benchmarks.native import native_session, streaming
from penstock import Engine

SUM = "SUM(length)"
LATENESS = "1 second"
_FIRST = BEGIN // 1_000_000


@dataclass(frozen=True)
class Ran:
    """One run over some packets."""

    seconds: float
    answers: int
    """Windows answered."""
    rows: int
    """Rows of these answers."""


def penstock(
    spark: SparkSession, data: Path, work: Path, asked: Sequence[Window], aggregate: str = SUM,
    by: str = "src", into: str = "noop",
) -> Ran:
    """One engine with all queries."""
    queries = "".join(
        f"CREATE QUERY q{n} INTO {into} AS SELECT {by}, {aggregate} AS answer, window_end "
        f"FROM packets [WINDOW {one.length} SECONDS SLIDE {one.slide} SECONDS] GROUP BY {by};"
        for n, one in enumerate(asked))
    with Engine(spark=spark, checkpoint=work) as engine:
        engine.execute(
            f"CREATE STREAM packets ({SCHEMA}) FROM parquet '{data}' "
            f"OPTIONS (maxFilesPerTrigger = {FILES}) TIME ts LATENESS {LATENESS};" + queries)
        began = time.perf_counter()
        summary = engine.run(until_drained=True)
        seconds = time.perf_counter() - began
        assert summary.accounting() == [], summary.accounting()
        told = summary.queries.values()
        return Ran(seconds, sum(q.answers for q in told), sum(q.rows_out for q in told))


def native(spark: SparkSession, data: Path, work: Path, asked: Sequence[Window]) -> Ran:
    """A streaming query of Spark's own for every window, all at once."""
    began = time.perf_counter()
    with streaming(spark, work) as queries:
        for n, one in enumerate(asked):
            window = sf.window("ts", f"{one.length} seconds", f"{one.slide} seconds")
            read = _read(queries.session, data).withWatermark("ts", LATENESS)
            summed = read.groupBy(window, "src").agg(sf.sum("length").alias("total"))
            queries.start(f"q{n}", summed.writeStream.format("noop").outputMode("append")
                          .trigger(availableNow=True))
        for query in queries.started:
            query.awaitTermination()
        return Ran(time.perf_counter() - began, 0, 0)


def _read(session: SparkSession, data: Path) -> DataFrame:
    source = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES)
    return source.parquet(str(data))


def panes(rows: DataFrame) -> DataFrame:
    """The sums of every second and source."""
    second = sf.unix_seconds("ts").alias("second")
    return rows.groupBy(second, "src").agg(sf.sum("length").alias("total"))


def limit(spark: SparkSession, data: Path) -> Ran:
    """The pane partials of the whole input, in one batch job, to nowhere."""
    began = time.perf_counter()
    made = panes(native_session(spark).read.schema(SCHEMA).parquet(str(data)))
    made.write.format("noop").mode("overwrite").save()
    return Ran(time.perf_counter() - began, 0, 0)


@dataclass
class PaneTable:
    """What users write by hand: sums by second and source, and every query adds its seconds up.

    It knows SUM of whole numbers only, sources below a bound only and no NULL, and after a restart
    it is empty.
    """

    asked: Sequence[Window]
    sums: np.ndarray
    closed: int = 0
    """The second since the first packet before which all are closed."""
    answers: int = 0
    rows: int = 0

    @classmethod
    def over(cls, asked: Sequence[Window], seconds: int) -> PaneTable:
        """For so many seconds of packets."""
        longest = max(one.length for one in asked)
        return cls(asked, np.zeros((seconds + 2 * longest, SOURCES), np.int64))

    def take(self, table: pa.Table, until: int) -> None:
        """Add a batch's panes, then answer for the windows that end up to a second."""
        at = np.asarray(table["second"]) - _FIRST, np.asarray(table["src"])
        np.add.at(self.sums, at, np.asarray(table["total"]))
        self.answer(until)

    def answer(self, until: int) -> None:
        """Every window that ends after the last one answered, up to a second."""
        for one in self.asked:
            first = (self.closed + _FIRST) // one.slide * one.slide + one.slide - _FIRST
            for end in range(first, until + 1, one.slide):
                total = self.sums[max(0, end - one.length):end].sum(axis=0)
                held = np.flatnonzero(total)
                self.answers += bool(len(held))
                self.rows += len(held)
        self.closed = until


def by_hand(
    spark: SparkSession, data: Path, work: Path, asked: Sequence[Window], seconds: int
) -> Ran:
    """One streaming query with a `foreachBatch` around one pane table."""
    session = native_session(spark)
    table = PaneTable.over(asked, seconds)

    def take(batch: DataFrame, number: int) -> None:
        made = panes(batch).toArrow()
        newest = max(made["second"].to_pylist(), default=_FIRST) - _FIRST
        table.take(made, newest - 1)  # a second of lateness: the last two may yet get rows

    began = time.perf_counter()
    _read(session, data).writeStream.foreachBatch(take).trigger(availableNow=True).option(
        "checkpointLocation", str(work)).start().awaitTermination()
    table.answer(seconds + max(one.length for one in asked))
    return Ran(time.perf_counter() - began, table.answers, table.rows)
