"""Sustained: queries over `onoff` packets in real time; does the engine keep up, and how far?

Fifty queries over 100,000 packets a second in bursts of five times that are what a busy link sends.
How far the rate can be raised is asked with even traffic, for 1, 50 and 500 queries: a trial at a
rate is short, and the rate is searched for at which the queue begins to grow.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.live import Watch, running, workplace
from harness.findings import Report
from harness.program import Progress
from penstock import Engine

RATE, BURST, LENGTH, QUERIES = 100_000, 5.0, 0.5, 50
EVEN = 0.1
"""The option `burst` of even traffic: ten flows send at a time, on average."""
PORTS = (80, 443, 53, 22, 25, 123, 8080, 3306, 5432, 6379)
MANY = (1, 50, 500)
TRIAL = 15
"""Seconds of packets in a trial."""
LATE = 2.0
"""The queue has grown if the last packet is answered later than this: at 1.15 times the rate that
can be kept up 15 s of packets take 2.25 s more."""
LOWEST, STEPS = 50_000, 3
"""The first rate that is tried, and how often the span between a rate that is kept up and twice
that is halved, on a scale of ratios: to a tenth of the rate."""
P50, P99 = 0.7, 1.5


@dataclass(frozen=True, slots=True)
class Traffic:
    """Packets by the clock."""

    rate: int
    burst: float
    seconds: int
    queries: int

    @property
    def rows(self) -> int:
        """All of them."""
        return self.rate * self.seconds

    def application(self, folder: Path, pace: str = "clock", block: int = 2_000_000) -> str:
        """Half the queries ask for a port and a length, half for ranges; all share a folder."""
        options = (f"rate = {self.rate}, burst = {self.burst}, length = {LENGTH}, "
                   f"rows = {self.rows}, pace = '{pace}', seed = 11, maxRowsPerTrigger = {block}")
        sql = ("CREATE STREAM packets (ts TIMESTAMP, src INT, dst INT, port INT, length INT) "
               f"FROM onoff OPTIONS ({options}) TIME ts LATENESS 5 SECONDS;"
               "SET retention = '10 seconds';")
        for i in range(self.queries):
            condition = (f"port = {PORTS[i // 2 % 10]} AND length > {600 + 15 * i % 900}"
                         if i % 2 == 0 else
                         f"src BETWEEN {i * 20 % 4000} AND {i * 20 % 4000 + 40}")
            sql += (f"CREATE QUERY q{i} INTO parquet '{folder}' AS "
                    f"SELECT ts, src, port, length FROM packets WHERE {condition};")
        return sql


def run(quick: bool, out: Path, progress: Progress) -> Report:
    report = Report("sustained", about=[__doc__ or ""])
    with workplace("sustained") as (spark, work):
        traffic = Traffic(RATE, BURST, 40 if quick else 120, QUERIES)
        _keep_up(traffic, spark, work, report, progress)
        for queries in MANY[1:2] if quick else MANY:
            _raise(queries, 1 if quick else STEPS, spark, work, report, progress)
    return report


# --- how far -----------------------------------------------------------------------------------


def _raise(
    queries: int, steps: int, spark: Any, work: Path, report: Report, progress: Progress
) -> None:
    """How far the rate can be raised with so many queries."""
    _warm_up(Traffic(LOWEST, EVEN, TRIAL, queries), spark, work / f"raise-warm-{queries}")

    def is_kept_up(rate: int) -> bool:
        late = trial(Traffic(rate, EVEN, TRIAL, queries), spark, work / f"{queries}-{rate}")
        progress(f"{queries} queries, {rate:,} rows/s: the last is {late:.1f} s late")
        return late <= LATE

    kept, grows = highest(is_kept_up, LOWEST, steps)
    report.rows.append({"engine": "how far the rate can be raised", "queries": queries,
                        "rows/s": kept, "queue grows at": grows})


def highest(is_kept_up: Callable[[int], bool], lowest: int, steps: int) -> tuple[int, int]:
    """The highest rate found that is kept up, 0 if none is, and the lowest found that is not.

    The rate is doubled until it is not kept up, and then the span is halved so many times.

    >>> highest(lambda rate: rate <= 1_100, lowest=100, steps=3)
    (1037, 1131)
    >>> highest(lambda rate: False, lowest=100, steps=3)
    (0, 100)
    """
    if not is_kept_up(lowest):
        return 0, lowest
    kept = lowest
    while is_kept_up(2 * kept):
        kept *= 2
    grows = 2 * kept
    for _ in range(steps):
        middle = round((kept * grows) ** 0.5)
        if is_kept_up(middle):
            kept = middle
        else:
            grows = middle
    return kept, grows


def trial(traffic: Traffic, spark: Any, work: Path) -> float:
    """Seconds from the time of the last packet to its answers; inf if they do not come."""
    with running(traffic.application(work / "out"), spark, work) as (engine, watch):
        left = _drain(engine, traffic.rows, patience=traffic.seconds + 30.0)
    if left:
        return inf
    newest = max(float(_times(path).max()) for path in (work / "out").glob("run-*.parquet"))
    return max(watch.finished.values()) - newest


# --- whether -----------------------------------------------------------------------------------


def _keep_up(
    traffic: Traffic, spark: Any, work: Path, report: Report, progress: Progress
) -> None:
    """The traffic in bursts."""
    progress("warming up")
    _warm_up(traffic, spark, work / "warm")
    with running(traffic.application(work / "out"), spark, work) as (engine, watch):
        began = time.time()
        waiting = _watch_until(engine, began + traffic.seconds / 4, progress)
        heap = [_live_heap(engine)]
        waiting = max(waiting, _watch_until(engine, began + traffic.seconds + 1, progress))
        left = _drain(engine, traffic.rows)
        ended = time.time()
        heap.append(_live_heap(engine))
    rows = row_latencies(watch, work / "out")
    _report(report, traffic, engine.status(), watch, rows, heap, ended - began, waiting, left)


def _warm_up(traffic: Traffic, spark: Any, work: Path) -> None:
    """The same queries over a short stream of its own, so that the JVM is warm."""
    short = Traffic(traffic.rate, traffic.burst, 6, traffic.queries)
    with Engine(spark=spark, checkpoint=work / "state") as warm:
        warm.execute(short.application(work / "out", pace="none", block=60_000))
        warm.run()


def row_latencies(watch: Watch, folder: Path) -> np.ndarray:
    """Seconds from a packet's own time to its delivery, of every row delivered."""
    return np.concatenate([watch.finished[int(path.name.split("-")[1])] - _times(path)
                           for path in folder.glob("run-*.parquet")])


def _times(path: Path) -> np.ndarray:
    return pq.read_table(path, columns=["ts"])["ts"].cast("int64").to_numpy() / 1e6


def _watch_until(engine: Engine, end: float, progress: Progress) -> int:
    """The largest number of rows that waited."""
    most, told = 0, time.time()
    while time.time() < end:
        time.sleep(0.2)
        stream = engine.status().streams.get("packets")
        if stream is None:
            continue
        most = max(most, stream.queue.rows)
        if time.time() - told > 10:
            told = time.time()
            progress(f"{end - told:.0f} s to go: {stream.read:,} packets read, "
                     f"{stream.queue.rows:,} waiting")
    return most


def _live_heap(engine: Engine) -> float:
    """MiB of the JVM's heap that a collection leaves.

    The first one tells Spark which broadcasts nobody holds any more; once it has dropped their
    blocks the second one frees them.
    """
    jvm = engine.session.sparkContext._jvm
    jvm.System.gc()
    time.sleep(2)
    jvm.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return (runtime.totalMemory() - runtime.freeMemory()) / 2**20


def _drain(engine: Engine, rows: int, patience: float = 60.0) -> int:
    """Wait until all is read and delivered; rows still waiting when patience ends."""
    end = time.time() + patience
    while time.time() < end:
        stream = engine.status().streams.get("packets")
        if stream is not None and stream.read >= rows and not stream.queue.rows:
            return 0
        time.sleep(0.05)
    stream = engine.status().streams["packets"]
    return stream.queue.rows + rows - stream.read


def _report(report, traffic, summary, watch, rows, heap, elapsed, waiting, left):
    latency = summary.latency()
    stream = summary.streams["packets"]
    quarter = max(1, len(watch.memory) // 4)
    first, last = watch.memory[:quarter], watch.memory[-quarter:]
    python = [statistics.mean(m.driver for m in part) / 2**20 for part in (first, last)]
    p50, p99, longest = (float(np.quantile(rows, part)) for part in (0.5, 0.99, 1.0))
    report.rows.append({
        "engine": "in bursts", "queries": traffic.queries, "rows/s": round(stream.read / elapsed),
        "seconds": round(elapsed, 1), "packets": stream.read, "blocks": stream.blocks,
        "block p50 s": round(latency.percentile(0.5) or 0, 3),
        "block p99 s": round(latency.percentile(0.99) or 0, 3),
        "block max s": round(latency.maximum, 3),
        "row p50 s": round(p50, 3), "row p99 s": round(p99, 3), "row max s": round(longest, 3),
        "most rows waiting": waiting, "peak hot bytes": stream.hot_peak,
        "driver MiB": round(max(m.driver for m in watch.memory) / 2**20),
        "JVM heap MiB": round(max(m.jvm for m in watch.memory) / 2**20),
    })
    report.check("queue", "rows still waiting at the end", "0", str(left), left == 0)
    for name, (a, b) in (("python", python), ("heap", heap)):
        what = ("mean memory of the Python driver" if name == "python"
                else "heap of the JVM that a collection leaves")
        report.check(f"memory-{name}", f"{what}, last quarter over first", "<= 1.15",
                     f"{a:.0f} -> {b:.0f} MiB ({b / a:.2f})", b <= 1.15 * a)
    for name, found, most in (("p50", p50, P50), ("p99", p99, P99)):
        report.check(f"latency-{name}", f"from a packet's own time to its delivery ({name}), in "
                     "bursts of 5 times the rate", f"<= {most:g} s", f"{found:.2f} s",
                     found <= most)
