"""The `onoff` source: every packet once, in any micro-batches, over crashes and restarts."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import IntegerType, LongType, StructField, StructType, TimestampType

from penstock.generators.packets import SCHEMA as COLUMNS
from penstock.generators.packets import OnOff
from penstock.spark.ingest.onoff import (
    SCHEMA,
    OnOffStream,
    OnOffTable,
    Options,
    TaskPackets,
    register,
)
from penstock.spark.session import know_onoff

PORTS = StructType([StructField("port", IntegerType()), StructField("ts", TimestampType())])
SECOND = 1_000_000


class Clock:
    """Microseconds, moved by hand."""

    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def stream(clock: Callable[[], int] | None = None, **options: str) -> OnOffStream:
    given = {"rate": "1000", "burst": "1", "length": "0.1"} | options
    return OnOffStream(Options.parse(given), PORTS, *([clock] if clock else []))


def rows_of(reader: OnOffStream, start: dict[str, Any], end: dict[str, Any]) -> pa.Table:
    batches = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    schema = pa.schema([COLUMNS.field("port"), COLUMNS.field("ts")])
    return pa.Table.from_batches(batches, schema)


# -- the reader alone: no JVM, and a clock moved by hand -----------------------------------------


def test_a_batch_has_at_most_the_rows_of_the_limit_and_the_last_offset_stays() -> None:
    reader = stream(rows="250", maxRowsPerTrigger="100")
    limit = reader.getDefaultReadLimit()
    offsets = [reader.initialOffset()]
    while len(offsets) < 6:
        offsets.append(reader.latestOffset(offsets[-1], limit))
    assert [offset["rows"] for offset in offsets] == [0, 100, 200, 250, 250, 250]
    assert offsets[3] == offsets[5]


def test_without_a_limit_a_bounded_stream_comes_at_once() -> None:
    reader = stream(rows="250", maxRowsPerTrigger="100")
    assert reader.latestOffset(reader.initialOffset(), ReadAllAvailable())["rows"] == 250


def test_a_paced_stream_gives_what_is_due_by_whole_ticks() -> None:
    clock = Clock(10 * SECOND)
    reader, everything = stream(clock, slice="100"), ReadAllAvailable()
    began = reader.latestOffset(reader.initialOffset(), everything)
    traffic = OnOff(rate=1000, burst=1, length=0.1)
    assert began["rows"] == traffic.count(0, 0.1) > 0  # the tick before now
    clock.now += 99_999
    assert reader.latestOffset(began, everything) == began
    clock.now += SECOND
    later = reader.latestOffset(began, everything)
    assert later["rows"] == traffic.count(0, 1.1)
    assert reader.reportLatestOffset() == later


def test_a_paced_stream_has_event_times_of_the_clock_or_from_start() -> None:
    clock = Clock(10 * SECOND)
    for options, began in (
        ({}, 10 * SECOND - 50_000),
        ({"start": "1970-01-01T01:00"}, 3600 * SECOND),
    ):
        reader = stream(clock, **options)
        initial = reader.initialOffset()
        end = reader.latestOffset(initial, ReadAllAvailable())
        assert rows_of(reader, initial, end)["ts"].cast(pa.int64())[0].as_py() == began


def test_a_restarted_paced_stream_gives_what_was_due_while_it_was_down() -> None:
    clock = Clock(10 * SECOND)
    reader = stream(clock)
    initial = reader.initialOffset()
    first = reader.latestOffset(initial, ReadAllAvailable())
    clock.now += 60 * SECOND
    again = stream(clock)
    second = again.latestOffset(first, ReadMaxRows(2000))
    third = again.latestOffset(second, ReadAllAvailable())
    assert second["rows"] - first["rows"] == 2000 < third["rows"] - second["rows"]
    pieces = [
        rows_of(again, *pair) for pair in ((initial, first), (first, second), (second, third))
    ]
    assert pa.concat_tables(pieces).equals(rows_of(reader, initial, third))


def test_a_replayed_first_batch_has_the_same_rows_though_the_clock_has_moved() -> None:
    clock = Clock(10 * SECOND)
    reader = stream(clock)
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    rows = rows_of(reader, reader.initialOffset(), end)
    clock.now += 5 * SECOND
    again = stream(clock)
    assert rows_of(again, again.initialOffset(), end).equals(rows)


def test_available_now_stops_the_clock() -> None:
    clock = Clock(10 * SECOND)
    reader = stream(clock)
    reader.prepareForTriggerAvailableNow()
    first = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    clock.now += 60 * SECOND
    assert reader.latestOffset(first, ReadAllAvailable()) == first


def test_tasks_share_a_large_batch_evenly_and_a_small_one_is_not_shared() -> None:
    reader = stream(rows="40001", partitions="3")
    first = reader.initialOffset()
    for rows, shares in (40_001, [13333, 13334, 13334]), (5000, [5000]), (0, []):
        end = reader.latestOffset(first, ReadMaxRows(rows))
        parts = reader.partitions(first, end)
        assert [p.last.rows - p.first.rows for p in parts if isinstance(p, TaskPackets)] == shares


def test_a_checkpoint_of_another_stream_is_refused() -> None:
    reader = stream(rows="10")
    with pytest.raises(ValueError, match=r"is of onoff with .* seed=0; it cannot .* seed=1"):
        stream(rows="10", seed="1").latestOffset(reader.initialOffset(), ReadAllAvailable())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": "fast"}, "option 'rate' of onoff must be a number, not 'fast'"),
        ({"rows": "1.5"}, "option 'rows' of onoff must be a whole number, not '1.5'"),
        ({"rate": "-1"}, "rate must lie between"),
        ({"maxrowspertrigger": "0"}, "option 'maxRowsPerTrigger' of onoff must be at least 1"),
        ({"maxRowsPerTriger": "5"}, "did you mean 'maxRowsPerTrigger'"),
        ({"zzz": "5"}, "it has rate, burst"),
        ({"start": "noon"}, "option 'start' of onoff must be a time such as"),
        ({"pace": "quick"}, "option 'pace' of onoff must be 'clock' or 'none', not 'quick'"),
        ({"pace": "none"}, "needs 'rows'"),
    ],
)
def test_a_bad_option_is_refused_by_name(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Options.parse(options)


def test_a_schema_that_does_not_fit_is_refused_by_column() -> None:
    bounded = Options.parse({"rows": "1"})
    with pytest.raises(ValueError, match="onoff has no column 'lenght'; it has ts, src"):
        OnOffStream(bounded, StructType([StructField("lenght", IntegerType())]))
    with pytest.raises(ValueError, match="column 'port' of onoff is INT, not BIGINT"):
        OnOffTable(bounded, StructType([StructField("port", LongType())]))


def test_an_endless_stream_is_not_a_table() -> None:
    with pytest.raises(ValueError, match="needs the option 'rows'"):
        OnOffTable(Options.parse({}), PORTS).partitions()


# -- under Spark ---------------------------------------------------------------------------------


class Collector:
    """A foreachBatch function that keeps what it gets, and may fail once after a batch."""

    def __init__(self, fail_after: int | None = None) -> None:
        self.fail_after = fail_after
        self.batches: dict[int, list[tuple[Any, ...]]] = {}

    def __call__(self, frame: DataFrame, batch: int) -> None:
        got = [tuple(row) for row in frame.collect()]
        if batch in self.batches:
            assert got == self.batches[batch], "a replayed batch differs"
        self.batches[batch] = got
        if batch == self.fail_after:
            self.fail_after = None
            raise RuntimeError("as if the driver had died here")

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return [row for batch in sorted(self.batches) for row in self.batches[batch]]


def start(
    spark: SparkSession,
    collect: Collector,
    checkpoint: Path,
    trigger: dict[str, Any] | None = None,
    **options: Any,
) -> StreamingQuery:
    register(spark)
    frame = spark.readStream.format("onoff").options(**options).load()
    writer = frame.writeStream.foreachBatch(collect).option("checkpointLocation", str(checkpoint))
    return (writer.trigger(**trigger) if trigger else writer).start()


def table(spark: SparkSession, **options: Any) -> list[tuple[Any, ...]]:
    register(spark)
    return [tuple(row) for row in spark.read.format("onoff").options(**options).load().collect()]


@pytest.mark.spark
def test_a_bounded_stream_gives_every_row_once_and_in_order(
    spark: SparkSession, tmp_path: Path
) -> None:
    options = {"rows": 45_000, "seed": 3, "maxRowsPerTrigger": 20_000}
    collect = Collector()
    query = start(spark, collect, tmp_path, **options)
    query.processAllAvailable()
    query.stop()
    assert [len(rows) for rows in collect.batches.values()] == [20_000, 20_000, 5000]
    assert collect.rows == table(spark, **options)
    packets = OnOff(seed=3, rows=45_000).packets(0, 3600)
    assert [row[1] for row in collect.rows] == packets["src"].to_pylist()


@pytest.mark.spark
def test_the_table_has_the_declared_schema(spark: SparkSession) -> None:
    register(spark)
    frame = spark.read.format("onoff").option("ROWS", 10).load()
    assert frame.count() == 10
    assert frame.schema == spark.createDataFrame([], SCHEMA).schema
    few = spark.read.format("onoff").schema("length INT, ts TIMESTAMP").option("rows", 10).load()
    assert few.collect() == frame.select("length", "ts").collect()


@pytest.mark.spark
def test_a_crashed_query_goes_on_with_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    options = {"rows": 5000, "maxRowsPerTrigger": 1000, "rate": 50}
    collect = Collector(fail_after=2)
    query = start(spark, collect, tmp_path, **options)
    with pytest.raises(PySparkException, match="as if the driver had died here"):
        query.processAllAvailable()
    assert sorted(collect.batches) == [0, 1, 2]
    again = start(spark, collect, tmp_path, **options)
    again.processAllAvailable()
    again.stop()
    assert sorted(collect.batches) == [0, 1, 2, 3, 4]
    assert collect.rows == table(spark, **options)


@pytest.mark.spark
def test_available_now_ends_by_itself_in_several_batches(
    spark: SparkSession, tmp_path: Path
) -> None:
    options = {"rows": 2500, "maxRowsPerTrigger": 1000}
    collect = Collector()
    query = start(spark, collect, tmp_path, {"availableNow": True}, **options)
    assert query.awaitTermination(60)
    assert [len(rows) for rows in collect.batches.values()] == [1000, 1000, 500]


@pytest.mark.spark
def test_an_endless_stream_follows_the_clock_over_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    options = {"rate": 2000, "burst": 0.1, "length": 0.1, "seed": 5}
    collect = Collector()
    before = time.time()
    for _ in range(2):
        query = start(spark, collect, tmp_path, {"availableNow": True}, **options)
        assert query.awaitTermination(60)
    after = time.time()
    assert len(collect.batches) >= 2
    times = [row[0].timestamp() for row in collect.rows]
    assert before - 1 < times[0] and times[-1] < after
    # Only the event times depend on when it began: the rows are those of the bounded stream.
    same = table(spark, rows=len(times), **options)
    assert [row[1:] for row in collect.rows] == [row[1:] for row in same]
    gaps = [row[0].timestamp() - time for row, time in zip(same, times, strict=True)]
    assert max(gaps) - min(gaps) < 1e-5


@pytest.mark.spark
def test_an_endless_stream_runs_until_it_is_stopped(spark: SparkSession, tmp_path: Path) -> None:
    collect = Collector()
    query = start(spark, collect, tmp_path, rate=2000, burst=0.1, length=0.1)
    deadline = time.monotonic() + 60
    while len(collect.batches) < 3 and time.monotonic() < deadline:
        query.awaitTermination(0.05)
    query.stop()
    assert len(collect.batches) >= 3
    times = [row[0] for row in collect.rows]
    assert times == sorted(times)


@pytest.mark.spark
def test_a_bad_option_fails_the_load_with_its_name(spark: SparkSession) -> None:
    register(spark)
    with pytest.raises(PySparkException, match="onoff has no option 'raet'; did you mean 'rate'"):
        spark.readStream.format("onoff").option("raet", 5).load()


def test_streams_that_begin_beside_each_other_make_the_source_known_once(spark, monkeypatch):
    session, calls = spark.newSession(), []

    def slowly(known: SparkSession) -> None:
        calls.append(known)
        time.sleep(0.2)  # long enough for the others to come by
        register(known)

    monkeypatch.setattr("penstock.spark.session.onoff.register", slowly)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(know_onoff, [session] * 4))
    assert calls == [session]
