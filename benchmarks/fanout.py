"""Fan-out: N standing filters over one stream of packets, against N native streaming queries.

The data is the same for every N: packets in Parquet files. The ports come in tiers, so that there
are ports of the right weight for every N, and the other columns are uniform. Together the queries
keep half as many rows as come in, whatever N.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from harness.findings import Report
from harness.program import Progress
from penstock import Engine
from penstock.generators.packets import OnOff
from penstock.spark.session import local_session

SCHEMA = "ts TIMESTAMP, src INT, dst INT, port INT, flow INT, length INT"
TIERS = ((1, 0.55), (5, 0.125), (50, 0.125), (500, 0.125), (400, 0.075))
"""How many ports share which part of the packets."""


@dataclass(frozen=True)
class Size:
    rows: int
    files: int
    small: int
    """Files in a block, and in a micro-batch of native Spark: 100,000 packets."""
    large: int
    """The same for the rows with larger blocks, which suit native Spark better."""


FULL = Size(5_000_000, 50, 1, 10)
QUICK = Size(1_000_000, 10, 1, 5)
OURS, NATIVE, LARGE = (1, 10, 20, 100, 1000), (1, 10, 20), (1, 20)
"""How many queries: Penstock, native Spark, and both with larger blocks."""


def write_packets(folder: Path, size: Size) -> int:
    """The packets, in files of equal length; gives their bytes."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(7)
    traffic = OnOff(rate=50_000, rows=size.rows, seed=7)
    arrivals = traffic.arrivals(0, 100 * size.rows / traffic.rate)
    first = {count: sum(n for n, _ in TIERS[:i]) for i, (count, _) in enumerate(TIERS)}
    for number, times in enumerate(np.array_split(arrivals, size.files)):
        n = len(times)
        tier = rng.choice(len(TIERS), n, p=[weight for _, weight in TIERS])
        counts = np.array([count for count, _ in TIERS])[tier]
        starts = np.array([first[count] for count, _ in TIERS])[tier]
        table = pa.table({
            "ts": pa.array((times * 1e6).astype("int64") + 1_735_689_600_000_000,
                           pa.timestamp("us", "UTC")),
            "src": rng.integers(0, 10_000, n, dtype="int32"),
            "dst": rng.integers(0, 10_000, n, dtype="int32"),
            "port": (starts + rng.integers(0, counts)).astype("int32"),
            "flow": rng.integers(0, 100, n, dtype="int32"),
            "length": rng.integers(0, 1500, n, dtype="int32"),
        })
        pq.write_table(table, folder / f"part-{number:05d}.parquet")
    return sum(path.stat().st_size for path in folder.iterdir())


def predicates(n: int) -> list[str]:
    """N conditions, half on a port and a length, half ranges and IN, that keep half in all."""
    if n == 1:
        return ["port = 0 AND length > 136"]
    conditions = []
    each = 0.8 / n  # of the second half; the first half keeps a tenth in all
    values = round(each * 10_000)
    for i in range(n):
        if i % 2 == 0:
            conditions.append(_on_port(i // 2, n))
        elif i % 4 == 1:
            low = i * 7919 % (10_000 - values)
            conditions.append(f"src BETWEEN {low} AND {low + values - 1}")
        elif n <= 20:
            wanted = [(i + 13 * k) % 100 for k in range(round(each * 100))]
            conditions.append(f"flow IN ({', '.join(map(str, wanted))})")
        else:
            wanted = [(i * 7 + 101 * k) % 10_000 for k in range(values)]
            conditions.append(f"dst IN ({', '.join(map(str, wanted))})")
    return conditions


def _on_port(i: int, n: int) -> str:
    """A port of the tier whose ports are just heavy enough, thinned by the length."""
    count, weight, first = next(
        (count, weight / count, sum(c for c, _ in TIERS[:k]))
        for k, (count, weight) in reversed(list(enumerate(TIERS[:4])))
        if weight / count >= 0.2 / n)
    keep = 0.2 / n / weight
    return f"port = {first + i % count} AND length > {round(1500 * (1 - keep)) - 1 + i // count}"


def penstock_seconds(
    spark: SparkSession, data: Path, work: Path, n: int, per_block: int
) -> tuple[float, int, int]:
    """Seconds, rows delivered and bytes read of one run with n queries into one folder."""
    queries = "".join(
        f"CREATE QUERY q{i} INTO parquet '{work}/out' AS "
        f"SELECT ts, src, dst, port, length FROM packets WHERE {condition};"
        for i, condition in enumerate(predicates(n)))
    with Engine(spark=spark, checkpoint=work / "checkpoint") as engine:
        engine.execute(
            f"CREATE STREAM packets ({SCHEMA}) FROM parquet '{data}' "
            f"OPTIONS (maxFilesPerTrigger = {per_block}) TIME ts LATENESS 1 SECOND;" + queries)
        read = _bytes_read(spark)
        began = time.perf_counter()
        summary = engine.run(until_drained=True)
        seconds = time.perf_counter() - began
        assert summary.accounting() == [], summary.accounting()
        rows = sum(query.rows_out for query in summary.queries.values())
    return seconds, rows, _bytes_read(spark) - read


def native_seconds(
    spark: SparkSession, data: Path, work: Path, n: int, per_block: int
) -> tuple[float, int, int]:
    """The same with n streaming queries of Spark's own, each into a folder of its own."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "2")
    read = _bytes_read(spark)
    began = time.perf_counter()
    running = []
    for i, condition in enumerate(predicates(n)):
        source = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", per_block)
        kept = source.parquet(str(data)).where(condition)
        kept = kept.select("ts", "src", "dst", "port", "length")
        running.append(
            kept.writeStream.format("parquet").trigger(availableNow=True)
            .option("checkpointLocation", f"{work}/checkpoint/{i}").start(f"{work}/out/{i}"))
    for query in running:
        query.awaitTermination()
    seconds = time.perf_counter() - began
    bytes_read = _bytes_read(spark) - read
    rows = sum(pq.read_metadata(path).num_rows for path in work.glob("out/*/*.parquet"))
    return seconds, rows, bytes_read


def _bytes_read(spark: SparkSession) -> int:
    """What the JVM has read so far, as the kernel counts it: Spark's counters miss part."""
    pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    with open(f"/proc/{pid}/io") as file:
        return int(file.readline().split()[1])


def run(quick: bool, out: Path, progress: Progress) -> Report:
    size = QUICK if quick else FULL
    report = Report("fanout")
    work = Path(tempfile.mkdtemp(prefix="penstock-fanout-"))
    spark = local_session("local[2]")
    try:
        data = work / "packets"
        total = write_packets(data, size)
        progress(f"{size.rows:,} packets in {size.files} files, {total / 2**20:.0f} MiB")
        warm = work / "warm"
        write_packets(warm, Size(200_000, 4, 1, 1))
        for n in (1, 20, 100):
            progress(f"warming up both sides with {n} queries")
            penstock_seconds(spark, warm, work / f"warm-ours-{n}", n, 1)
            native_seconds(spark, warm, work / f"warm-native-{n}", min(n, 4), 1)
        small = _measure(spark, data, work, report, size, size.small, NATIVE, OURS, progress)
        large = _measure(spark, data, work, report, size, size.large, LARGE, LARGE, progress)
        _checks(report, size, small, large)
    finally:
        spark.stop()
        shutil.rmtree(work, ignore_errors=True)
    return report


Seconds = tuple[dict[int, float], dict[int, float]]
"""Native Spark's and Penstock's, by the number of queries."""


def _measure(
    spark: SparkSession, data: Path, work: Path, report: Report, size: Size, per_block: int,
    natives: tuple[int, ...], counts: tuple[int, ...], progress: Progress,
) -> Seconds:
    """Both sides, one after the other, with blocks of so many files."""
    native: dict[int, float] = {}
    rows = size.rows // size.files * per_block
    for n in natives:
        progress(f"native Spark, {n} queries, {rows:,} packets in a micro-batch")
        native[n] = _row(report, "native", n, rows, size, native_seconds(
            spark, data, work / f"native-{n}-{per_block}", n, per_block), None)
    ours: dict[int, float] = {}
    for n in counts:
        progress(f"Penstock, {n} queries, {rows:,} packets in a block")
        ours[n] = _row(report, "penstock", n, rows, size, penstock_seconds(
            spark, data, work / f"ours-{n}-{per_block}", n, per_block), _native_at(native, n))
    return native, ours


def _native_at(native: dict[int, float], n: int) -> tuple[float, bool]:
    """Native seconds for n queries; beyond what was measured on the line through the last two."""
    if n in native:
        return native[n], False
    (a, ta), (b, tb) = sorted(native.items())[-2:]
    return tb + (tb - ta) / (b - a) * (n - b), True


def _row(
    report: Report, engine: str, n: int, block: int, size: Size, measured: tuple[float, int, int],
    native: tuple[float, bool] | None,
) -> float:
    seconds, rows, bytes_read = measured
    report.rows.append({
        "engine": engine, "queries": n, "rows/block": block, "seconds": round(seconds, 2),
        "rows/s": round(size.rows / seconds), "rows out": rows,
        "MiB read": round(bytes_read / 2**20, 1),
        "ratio to native": round(native[0] / seconds, 2) if native else None,
        "native seconds": (f"{native[0]:.1f}" + (" (extrapolated)" if native[1] else "")
                           if native else ""),
    })
    return seconds


def _checks(report: Report, size: Size, small: Seconds, large: Seconds) -> None:
    native, ours = small
    read = {row["queries"]: row["MiB read"] for row in reversed(report.rows)
            if row["engine"] == "penstock"}
    growth = read[1000] / read[10]
    report.check("read-once", "the source is read once whatever N: bytes at N = 1000 over N = 10",
                 "<= 1.05", f"{growth:.3f}", growth <= 1.05)
    rate = ours[10] / ours[1000]
    report.check("scale", "rate at N = 1000 over the rate at N = 10", ">= 0.5", f"{rate:.2f}",
                 rate >= 0.5)
    ratio = native[20] / ours[20]
    report.check("native-20", "times faster than native at N = 20", ">= 10", f"{ratio:.1f}",
                 ratio >= 10)
    one = native[1] / ours[1]
    report.check("native-1", "times faster than native at N = 1", ">= 1", f"{one:.2f}", one >= 1)
    for n, (text, target) in {20: (">= 10", 10), 1: (">= 1", 1)}.items():
        times = large[0][n] / large[1][n]
        claim = f"times faster than native at N = {n}, with larger blocks"
        report.check(f"native-{n}-large", claim, text, f"{times:.2f}", times >= target)
    kept = [row["rows out"] / size.rows for row in report.rows]
    report.check("selectivity", "all queries together keep half as many rows as come in",
                 "0.45 to 0.55", f"{min(kept):.3f} to {max(kept):.3f}",
                 0.45 <= min(kept) and max(kept) <= 0.55)
