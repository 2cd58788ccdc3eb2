"""Window joins: N windows over the same two streams, against N native stream-stream joins.

Two streams of rows with a key, over the same stretch of event time. Each query joins them on the
key, with a window of its own, and its pairs are counted. Beside it stands one batch join of the
largest window over the same files: what Spark needs for the pairs alone.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.live import workplace
from benchmarks.native import native_session, streaming
from harness.findings import Report
from harness.program import Progress
from penstock import Engine

SCHEMA = "ts TIMESTAMP, k INT, v INT"
WINDOWS = (1, 5, 15, 300, 510, 570, 600)
"""Seconds: those of the distribution Small-Large in the joins paper."""
MANY = tuple(range(6, 601, 6))
KEYS, FILES = 500, 10
BEGIN = 1_735_689_600_000_000


@dataclass(frozen=True, slots=True)
class Size:
    """Rows of each stream, and the seconds that they lie in."""

    rows: int
    seconds: float


FULL, QUICK, WARM = Size(200_000, 2_000.0), Size(50_000, 2_000.0), Size(20_000, 1_000.0)


def write_streams(folder: Path, size: Size) -> None:
    """Both streams, in files of equal length, in the order of time."""
    rng = np.random.default_rng(7)
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        times = np.sort(rng.uniform(0, size.seconds * 1e6, size.rows)).astype("int64") + BEGIN
        for number, part in enumerate(np.array_split(times, FILES)):
            pq.write_table(pa.table({
                "ts": pa.array(part, pa.timestamp("us", "UTC")),
                "k": rng.integers(0, KEYS, len(part), dtype="int32"),
                "v": rng.integers(0, 1000, len(part), dtype="int32"),
            }), folder / name / f"part-{number:05d}.parquet")


def penstock(
    spark: Any, data: Path, work: Path, windows: tuple[int, ...], policy: str = "mqt"
) -> tuple[float, int]:
    """Seconds, and pairs of the largest window."""
    queries = "".join(
        f"CREATE QUERY q{n} INTO noop AS SELECT A.ts, A.v, B.v AS w FROM a A, b B "
        f"WHERE A.k = B.k WINDOW {length} SECONDS;" for n, length in enumerate(windows))
    streams = "".join(f"CREATE STREAM {name} ({SCHEMA}) FROM parquet '{data}/{name}' TIME ts;"
                      for name in ("a", "b"))
    with Engine(spark=spark, checkpoint=work) as engine:
        engine.execute(f"{streams}{queries} SET joins = '{policy}';")
        began = time.perf_counter()
        summary = engine.run(until_drained=True)
        seconds = time.perf_counter() - began
        assert summary.accounting() == [], summary.accounting()
        return seconds, max(query.rows_out for query in summary.queries.values())


def native(spark: Any, data: Path, work: Path, windows: tuple[int, ...]) -> float:
    """Seconds of as many stream-stream joins of Spark's own."""
    began = time.perf_counter()
    with streaming(spark, work) as queries:
        for n, length in enumerate(windows):
            sides = [queries.session.readStream.schema(SCHEMA).parquet(f"{data}/{name}")
                     .withWatermark("ts", "0 seconds").alias(name) for name in ("a", "b")]
            joined = sides[0].join(sides[1], on=_on(length))
            queries.start(f"q{n}", joined.selectExpr("a.ts", "a.v", "b.v AS w").writeStream
                          .format("noop").trigger(availableNow=True))
        for query in queries.started:
            query.awaitTermination()
        return time.perf_counter() - began


def batch(spark: Any, data: Path, length: int) -> tuple[float, int]:
    """Seconds of one batch join over all files, and its pairs."""
    session = native_session(spark)
    began = time.perf_counter()
    sides = [session.read.schema(SCHEMA).parquet(f"{data}/{name}").alias(name)
             for name in ("a", "b")]
    rows = sides[0].join(sides[1], on=_on(length)).selectExpr("a.ts", "a.v", "b.v AS w").count()
    return time.perf_counter() - began, rows


def _on(length: int) -> Any:
    from pyspark.sql import functions as sf

    return sf.expr(f"a.k = b.k AND b.ts > a.ts - INTERVAL {length} SECONDS "
                   f"AND b.ts < a.ts + INTERVAL {length} SECONDS")


def run(quick: bool, out: Path, progress: Progress) -> Report:
    report = Report("joins", about=[__doc__ or ""])
    size = QUICK if quick else FULL
    with workplace("joins") as (spark, work):
        write_streams(work / "data", size)
        write_streams(work / "warm", WARM)
        seconds: dict[str, float] = {}
        pairs: dict[str, int] = {}
        ours = {"seven windows": WINDOWS, "the largest alone": WINDOWS[-1:],
                "a hundred windows": MANY}
        for name, windows in ours.items():
            progress(f"penstock, {name}")
            penstock(spark, work / "warm", work / f"warm {name}", windows)
            seconds[name], pairs[name] = penstock(
                spark, work / "data", work / f"ours {name}", windows)
        progress("batch")
        batch(spark, work / "warm", WINDOWS[-1])
        seconds["batch"], pairs["batch"] = batch(spark, work / "data", WINDOWS[-1])
        progress("native, seven windows")
        native(spark, work / "warm", work / "warm native", WINDOWS)
        seconds["native"] = native(spark, work / "data", work / "native", WINDOWS)
    report.rows += [{"what": name, "seconds": round(took, 2), "pairs": pairs.get(name)}
                    for name, took in seconds.items()]
    _checks(report, seconds, pairs)
    return report


def _checks(report: Report, seconds: dict[str, float], pairs: dict[str, int]) -> None:
    seven = seconds["seven windows"]
    for id, text, target, over in (
        ("alone", "seven windows over the largest alone", 1.2, seconds["the largest alone"]),
        ("batch", "seven windows over one batch join", 1.3, seconds["batch"]),
    ):
        report.check(id, text, f"<= {target}", f"{seven / over:.2f}", seven / over <= target)
    many = seconds["a hundred windows"] / seconds["the largest alone"]
    report.check("many", "a hundred windows over the largest alone", "<= 1.5", f"{many:.2f}",
                 many <= 1.5)
    times = seconds["native"] / seven
    report.check("native", "times as fast as native Spark", ">= 10", f"{times:.1f}", times >= 10)
    report.check("pairs", "as many pairs as the batch join", str(pairs["batch"]),
                 str(pairs["seven windows"]), pairs["batch"] == pairs["seven windows"])
