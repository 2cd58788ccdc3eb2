"""Packets that pass through routers, and three ways to find those that pass through all four.

That is Example 1 of the filters paper. A packet that passes through a router gives a row of the
router's stream: its number, its size and when. Most packets of a router are seen by some of the
others, few by the second router, and a hundredth by all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.joins.streams import BEGIN, StorageUse
from benchmarks.native import native_session, streaming
from penstock import Engine
from penstock.events import kinds as ev

SCHEMA = "ts TIMESTAMP, pid BIGINT, size INT"
ROUTERS = ("r1", "r2", "r3", "r4")
WINDOW = 600
"""Seconds: the 10 minutes of the example."""
SHARES = (0.7, 0.05, 0.5, 0.6)
"""The part of the packets that passes through each router."""
DELAY = 20.0
"""Seconds between two routers, at most."""


@dataclass(frozen=True, slots=True)
class Size:
    """Packets in all, and the seconds that they lie in."""

    packets: int
    seconds: float = 3_600.0
    files: int = 12


FULL, QUICK, WARM = Size(3_000_000), Size(200_000), Size(30_000)


@dataclass(frozen=True, slots=True)
class Found:
    """How long a join took, and what it found."""

    seconds: float
    results: int = 0
    memory: int = 0
    """The most bytes that it held at a time."""
    probed: float = 0.0
    """Streams that were asked for a fresh key, on average."""
    orders: tuple[str, ...] = ()
    """The orders of probes that were learnt."""


def write_routers(folder: Path, size: Size) -> Path:
    """The four streams, in files of equal length, in the order of time."""
    rng = np.random.default_rng(11)
    sent = np.sort(rng.uniform(0, size.seconds, size.packets))
    length = rng.integers(40, 1500, size.packets, dtype="int32")
    for number, (name, share) in enumerate(zip(ROUTERS, SHARES, strict=True)):
        (folder / name).mkdir(parents=True)
        passing = np.flatnonzero(rng.random(size.packets) < share)
        seen = sent[passing] + number * rng.uniform(0, DELAY, len(passing))
        order = np.argsort(seen, kind="stable")
        for part, some in enumerate(np.array_split(order, size.files)):
            table = pa.table({
                "ts": pa.array((seen[some] * 1e6).astype("int64") + BEGIN,
                               pa.timestamp("us", "UTC")),
                "pid": passing[some], "size": length[passing[some]]})
            pq.write_table(table, folder / name / f"part-{part:05d}.parquet")
    return folder


def rows(folder: Path) -> int:
    """The rows of all streams."""
    return sum(pq.read_metadata(file).num_rows for file in folder.glob("*/*.parquet"))


def application(data: Path) -> str:
    """The common traffic of all routers; its rows are counted."""
    streams = "".join(f"CREATE STREAM {name} ({SCHEMA}) FROM parquet '{data}/{name}' "
                      "OPTIONS (maxFilesPerTrigger = 1) TIME ts;\n" for name in ROUTERS)
    return streams + ("CREATE QUERY common INTO noop AS SELECT r1.ts, r1.pid, r1.size "
                      "FROM r1, r2, r3, r4 WHERE r1.pid = r2.pid AND r2.pid = r3.pid "
                      f"AND r3.pid = r4.pid WINDOW {WINDOW} SECONDS;")


def penstock(spark: Any, data: Path, work: Path) -> Found:
    """Our own join, all data from beginning to end."""
    held, events = StorageUse(spark), list[ev.Event]()
    with Engine(spark=spark, checkpoint=work, on_event=events.append) as engine:
        engine.execute(application(data))
        began = time.perf_counter()
        with held.watched():
            summary = engine.run(until_drained=True)
        seconds = time.perf_counter() - began
    if faults := [*summary.accounting(), *map(str, summary.failures())]:
        raise AssertionError(f"it did not go well: {faults}")
    profiles = list(_profiles(events))
    orders = {stream: one.order for known in summary.probes.values()
              for stream, one in known.items()}
    return Found(
        seconds, summary.queries["common"].rows_out, held.most,
        sum(sum(one.probed) for one in profiles) / max(sum(one.probed[0] for one in profiles), 1),
        tuple(f"{stream}: {' '.join(order)}" for stream, order in sorted(orders.items())))


def _profiles(events: list[ev.Event]) -> Iterator[ev.ProbeProfile]:
    for event in events:
        if isinstance(event, ev.JobFinished) and isinstance(event.result, ev.ProbeResult):
            yield from (one for one in event.result.profiles if one.probed)


def native(spark: Any, data: Path, work: Path) -> Found:
    """A tree of stream-stream joins of Spark's own, in the order in which they are written."""
    began, most = time.perf_counter(), 0
    with streaming(spark, work) as queries:
        joined = None
        for number, name in enumerate(ROUTERS):
            reader = queries.session.readStream.option("maxFilesPerTrigger", 1)
            side = _side(reader, data, name).withWatermark(f"{name}_ts", "0 seconds")
            joined = side if joined is None else _with_one_event_time(
                joined.join(side, on=_on(ROUTERS[:number], name)), name)
        assert joined is not None
        chosen = joined.select("r1_ts", "r1_pid", "r1_size")
        queries.start("common", chosen.writeStream.format("noop").trigger(availableNow=True))
        (query,) = queries.started
        query.awaitTermination()
        seconds = time.perf_counter() - began
        for progress in query.recentProgress:
            most = max(most, sum(one["memoryUsedBytes"] for one in progress["stateOperators"]))
    return Found(seconds, memory=most)


def _with_one_event_time(joined: Any, name: str) -> Any:
    """Rows of a join with the time of the first router as their event time: Spark allows one."""
    plain = f"timestamp_micros(unix_micros({name}_ts)) AS {name}_ts"
    return joined.selectExpr(*(plain if column == f"{name}_ts" else column
                               for column in joined.columns))


def batch(spark: Any, data: Path) -> Found:
    """One batch join over all files."""
    session = native_session(spark)
    began = time.perf_counter()
    joined = _side(session.read, data, ROUTERS[0])
    for number, name in enumerate(ROUTERS[1:], 1):
        joined = joined.join(_side(session.read, data, name), on=_on(ROUTERS[:number], name))
    found = joined.select("r1_ts", "r1_pid", "r1_size").count()
    return Found(time.perf_counter() - began, found)


def _side(reader: Any, data: Path, name: str) -> Any:
    rows = reader.schema(SCHEMA).parquet(f"{data}/{name}")
    return rows.select(*(rows[column].alias(f"{name}_{column}") for column in rows.columns))


def _on(before: tuple[str, ...], name: str) -> Any:
    """On one key; all times are less than the window apart."""
    from pyspark.sql import functions as sf

    near = [f"{one}_ts > {other}_ts - INTERVAL {WINDOW} SECONDS"
            for pair in combinations((*before, name), 2) if name in pair
            for one, other in (pair, pair[::-1])]
    return sf.expr(" AND ".join([f"{before[0]}_pid = {name}_pid", *near]))
