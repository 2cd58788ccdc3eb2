"""Two streams over the same stretch of event time, and three ways to join them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.native import native_session, streaming
from penstock import Engine

SCHEMA = "ts TIMESTAMP, k INT, v INT"
WINDOWS = (1, 5, 15, 300, 510, 570, 600)
"""Seconds: those of the distribution Small-Large in the joins paper."""
LARGEST = WINDOWS[-1:]
MANY = tuple(range(6, 601, 6))
BEGIN = 1_735_689_600_000_000
NAMES = ("a", "b")


@dataclass(frozen=True, slots=True)
class Size:
    """Rows of each stream, the seconds that they lie in, and their keys."""

    rows: int
    seconds: float
    keys: int = 500
    hot: float = 0.0
    """The part of the rows that have one and the same key."""
    files: int = 10


FULL, QUICK, WARM = Size(200_000, 2_000.0), Size(50_000, 2_000.0), Size(20_000, 1_000.0)


def write_streams(folder: Path, size: Size) -> Path:
    """Both streams, in files of equal length, in the order of time."""
    rng = np.random.default_rng(7)
    for name in NAMES:
        (folder / name).mkdir(parents=True)
        times = np.sort(rng.uniform(0, size.seconds * 1e6, size.rows)).astype("int64") + BEGIN
        for number, part in enumerate(np.array_split(times, size.files)):
            path = folder / name / f"part-{number:05d}.parquet"
            pq.write_table(table(rng, part, size.keys, size.hot), path)
    return folder


def table(
    rng: np.random.Generator, times: np.ndarray, keys: int, hot: float = 0.0, least: int = 0
) -> pa.Table:
    """Rows with these times, in microseconds, and keys from the least one on."""
    some = rng.integers(least, least + keys, len(times), dtype="int32")
    return pa.table({
        "ts": pa.array(times, pa.timestamp("us", "UTC")),
        "k": np.where(rng.random(len(times)) < hot, np.int32(0), some),
        "v": rng.integers(0, 1000, len(times), dtype="int32"),
    })


@dataclass(frozen=True, slots=True)
class Joined:
    """How long a join took, and what it found."""

    seconds: float
    pairs: int = 0
    """Of the largest window."""
    memory: int = 0
    """The most bytes that it held for its windows at a time."""


def application(data: Path, windows: Sequence[int], policy: str, sink: str) -> str:
    """A join of both streams for each window."""
    streams = "".join(f"CREATE STREAM {name} ({SCHEMA}) FROM parquet '{data}/{name}' TIME ts;"
                      for name in NAMES)
    queries = "".join(
        f"CREATE QUERY w{length} INTO {sink} AS SELECT A.ts, A.v, B.v AS w FROM a A, b B "
        f"WHERE A.k = B.k WINDOW {length} SECONDS;" for length in windows)
    return f"{streams}{queries}SET joins = '{policy}';"


def penstock(
    spark: Any, data: Path, work: Path, windows: Sequence[int], policy: str = "mqt",
    sink: str = "noop",
) -> Joined:
    """Our own joins, all data from beginning to end."""
    held = StorageUse(spark)
    with Engine(spark=spark, checkpoint=work) as engine:
        engine.execute(application(data, windows, policy, sink))
        began = time.perf_counter()
        with held.watched():
            summary = engine.run(until_drained=True)
        seconds = time.perf_counter() - began
    if faults := [*summary.accounting(), *map(str, summary.failures())]:
        raise AssertionError(f"it did not go well: {faults}")
    return Joined(seconds, summary.queries[f"w{max(windows)}"].rows_out, held.most)


@dataclass
class StorageUse:
    """What Spark's storage holds at most: broadcast rows and blocks kept in memory."""

    spark: Any
    most: int = 0
    _before: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look at it every 20 ms, less what it held before."""
        self._before = self._used()
        thread = threading.Thread(target=self._watch)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self.most = max(self.most, self._used() - self._before)

    def _used(self) -> int:
        # Not the block manager's status: it is not told of broadcast rows.
        return int(self._manager.storageMemoryUsed())

    @cached_property
    def _manager(self) -> Any:
        """The memory manager, through a method handle.

        Reflection, by which Python calls methods, looks at all methods of a class, and one of
        SparkEnv's has a type that is not there.
        """
        jvm = self.spark._jvm
        named, handles = jvm.java.lang.Class.forName, jvm.java.lang.invoke
        found = handles.MethodType.methodType(named("org.apache.spark.memory.MemoryManager"))
        method = handles.MethodHandles.publicLookup().findVirtual(
            named("org.apache.spark.SparkEnv"), "memoryManager", found)
        environment = jvm.java.util.ArrayList()
        environment.add(self.spark.sparkContext._jsc.sc().env())
        return method.invokeWithArguments(environment)


def native(spark: Any, data: Path, work: Path, windows: Sequence[int]) -> Joined:
    """As many stream-stream joins of Spark's own."""
    began, most = time.perf_counter(), 0
    with streaming(spark, work) as queries:
        for length in windows:
            sides = [queries.session.readStream.schema(SCHEMA).parquet(f"{data}/{name}")
                     .withWatermark("ts", "0 seconds").alias(name) for name in NAMES]
            joined = sides[0].join(sides[1], on=_on(length))
            queries.start(f"w{length}", joined.selectExpr("a.ts", "a.v", "b.v AS w").writeStream
                          .format("noop").trigger(availableNow=True))
        for query in queries.started:
            query.awaitTermination()
        seconds = time.perf_counter() - began
        for query in queries.started:
            held = [sum(state["memoryUsedBytes"] for state in progress["stateOperators"])
                    for progress in query.recentProgress]
            most += max(held, default=0)
    return Joined(seconds, memory=most)


def batch(spark: Any, data: Path, length: int) -> Joined:
    """One batch join over all files."""
    session = native_session(spark)
    began = time.perf_counter()
    sides = [session.read.schema(SCHEMA).parquet(f"{data}/{name}").alias(name) for name in NAMES]
    rows = sides[0].join(sides[1], on=_on(length)).selectExpr("a.ts", "a.v", "b.v AS w").count()
    return Joined(time.perf_counter() - began, rows)


def best(times: int, join: Callable[[int], Joined]) -> Joined:
    """The fastest of several: what else the machine did is no cost of the join."""
    return min((join(number) for number in range(times)), key=lambda joined: joined.seconds)


def _on(length: int) -> Any:
    from pyspark.sql import functions as sf

    return sf.expr(f"a.k = b.k AND b.ts > a.ts - INTERVAL {length} SECONDS "
                   f"AND b.ts < a.ts + INTERVAL {length} SECONDS")
