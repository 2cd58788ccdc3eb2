"""Sustained: fifty queries over `onoff` packets in real time, with bursts; does it keep up?"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from harness.findings import Report
from harness.program import Progress
from penstock import Engine
from penstock.events import Event
from penstock.events import kinds as ev

RATE, BURST, LENGTH, QUERIES = 100_000, 5, 0.5, 50
PORTS = (80, 443, 53, 22, 25, 123, 8080, 3306, 5432, 6379)


def application(seconds: int, folder: Path) -> str:
    """Half the queries ask for a port and a length, half for ranges; all share a folder."""
    options = (f"rate = {RATE}, burst = {BURST}, length = {LENGTH}, rows = {RATE * seconds}, "
               "pace = 'clock', seed = 11, maxRowsPerTrigger = 2000000")
    sql = ("CREATE STREAM packets (ts TIMESTAMP, src INT, dst INT, port INT, length INT) "
           f"FROM onoff OPTIONS ({options}) TIME ts LATENESS 5 SECONDS;"
           "SET retention = '10 seconds';")
    for i in range(QUERIES):
        condition = (f"port = {PORTS[i // 2 % 10]} AND length > {600 + 15 * i}" if i % 2 == 0
                     else f"src BETWEEN {i * 20} AND {i * 20 + 40}")
        sql += (f"CREATE QUERY q{i} INTO parquet '{folder}' AS "
                f"SELECT ts, src, port, length FROM packets WHERE {condition};")
    return sql


class Watch:
    """Keeps what the report needs of the events."""

    def __init__(self) -> None:
        self.memory: list[ev.Memory] = []
        self.delivered: dict[int, float] = {}

    def __call__(self, event: Event) -> None:
        match event:
            case ev.JobFinished(job=job, at=at):
                self.delivered[job] = at
            case ev.Memory():
                self.memory.append(event)

    def row_latencies(self, folder: Path) -> np.ndarray:
        """Seconds from a packet's own time to its delivery, of every row delivered."""
        delays = []
        for path in folder.glob("run-*.parquet"):
            times = pq.read_table(path, columns=["ts"])["ts"].cast("int64").to_numpy()
            delays.append(self.delivered[int(path.name.split("-")[1])] - times / 1e6)
        return np.concatenate(delays)


def run(quick: bool, out: Path, progress: Progress) -> Report:
    seconds = 40 if quick else 120
    work = Path(tempfile.mkdtemp(prefix="penstock-sustained-"))
    report, watch = Report("sustained"), Watch()
    try:
        with Engine(checkpoint=work / "checkpoint", master="local[2]", on_event=watch) as engine:
            progress("warming up")
            _warm_up(engine, work)
            engine.load(application(seconds, work / "out"))
            engine.start()
            began = time.time()
            waiting = _watch_until(engine, began + seconds / 4, progress)
            heap = [_live_heap(engine)]
            waiting = max(waiting, _watch_until(engine, began + seconds + 1, progress))
            left = _drain(engine, RATE * seconds)
            ended = time.time()
            heap.append(_live_heap(engine))
            engine.stop()
            summary = engine.status()
        rows = watch.row_latencies(work / "out")
        _report(report, summary, watch, rows, heap, ended - began, waiting, left)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return report


def _warm_up(engine: Engine, work: Path) -> None:
    """The same queries over a short stream of its own, so that the JVM is warm."""
    with Engine(spark=engine.session, checkpoint=work / "warm") as warm:
        warm.execute(application(6, work / "warm-out").replace("pace = 'clock'", "pace = 'none'")
                     .replace("2000000", "60000"))
        warm.run()


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
    stream = engine.status().streams["packets"]
    while time.time() < end and (stream.read < rows or stream.queue.rows):
        time.sleep(0.2)
    return stream.queue.rows + rows - stream.read


def _report(report, summary, watch, rows, heap, elapsed, waiting, left):
    latency = summary.latency()
    stream = summary.streams["packets"]
    quarter = max(1, len(watch.memory) // 4)
    first, last = watch.memory[:quarter], watch.memory[-quarter:]
    python = [statistics.mean(m.driver for m in part) / 2**20 for part in (first, last)]
    p50, p99, longest = (float(np.quantile(rows, part)) for part in (0.5, 0.99, 1.0))
    report.rows.append({
        "queries": QUERIES, "seconds": round(elapsed, 1), "packets": stream.read,
        "rows/s": round(stream.read / elapsed), "blocks": stream.blocks,
        "block p50 s": round(latency.percentile(0.5) or 0, 3),
        "block p99 s": round(latency.percentile(0.99) or 0, 3),
        "block max s": round(latency.maximum, 3),
        "row p50 s": round(p50, 3), "row p99 s": round(p99, 3), "row max s": round(longest, 3),
        "most rows waiting": waiting, "peak hot bytes": stream.hot_peak,
        "driver MiB": round(max(m.driver for m in watch.memory) / 2**20),
        "JVM heap MiB": round(max(m.jvm for m in watch.memory) / 2**20),
    })
    report.check("queue", "rows still waiting at the end", "0", str(left), left == 0)
    report.check("accounting", "rows in = rows out + filtered + late + rejected everywhere",
                 "no fault", "; ".join(summary.accounting()) or "no fault",
                 not summary.accounting())
    for name, (a, b) in (("python", python), ("heap", heap)):
        what = ("mean memory of the Python driver" if name == "python"
                else "heap of the JVM that a collection leaves")
        report.check(f"memory-{name}", f"{what}, last quarter over first", "<= 1.15",
                     f"{a:.0f} -> {b:.0f} MiB ({b / a:.2f})", b <= 1.15 * a)
    report.check("latency", "from a packet's own time to its delivery (p99), in bursts of 5 times",
                 "< 5 s", f"{p99:.2f} s", p99 < 5)
