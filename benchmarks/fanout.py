"""Fan-out: N standing filters over one stream of packets, against N native streaming queries.

The data is the same for every N: packets in Parquet files. The ports come in tiers, so that there
are ports of the right weight for every N, and the other columns are uniform. Together the queries
keep half as many rows as come in, whatever N: so what is written is the same, and what differs is
what N queries cost. A block, and a micro-batch of native Spark, has a million rows, as when stored
data is read, or 10,000, as when data comes live. Each is several files, so both cores have work.
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
from benchmarks.native import streaming
from harness.findings import Report
from harness.program import Progress
from penstock import Engine
from penstock.generators.packets import OnOff

SCHEMA = "ts TIMESTAMP, src INT, dst INT, port INT, flow INT, length INT"
TIERS = ((1, 0.55), (5, 0.125), (50, 0.125), (500, 0.125), (400, 0.075))
"""How many ports share which part of the packets."""
OURS, NATIVE = (1, 20, 1000), (1, 20)
"""How many queries."""


@dataclass(frozen=True, slots=True)
class Size:
    """Packets, and how they are cut."""

    name: str
    rows: int
    per_file: int
    files: int
    """In a block, and in a micro-batch of native Spark."""

    @property
    def block(self) -> int:
        """Rows of a block."""
        return self.per_file * self.files


FULL = (Size("a million", 10_000_000, 100_000, 10), Size("10,000", 1_000_000, 5_000, 2))
QUICK = (Size("a million", 2_000_000, 100_000, 10), Size("10,000", 200_000, 5_000, 2))
WARM = 0.2
"""The part of the packets that each side is warmed up with, for every number of queries."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One run over some packets."""

    seconds: float
    rows_out: int
    bytes_read: int


def write_packets(folder: Path, size: Size, part: float = 1.0) -> int:
    """The packets, in files of equal length; gives their bytes."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(7)
    files = max(size.files, round(part * size.rows / size.per_file))
    traffic = OnOff(rate=50_000, rows=files * size.per_file, seed=7)
    arrivals = traffic.arrivals(0, 100 * size.rows / traffic.rate)
    first = {count: sum(n for n, _ in TIERS[:i]) for i, (count, _) in enumerate(TIERS)}
    for number, times in enumerate(np.array_split(arrivals, files)):
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


def penstock(spark: Any, data: Path, work: Path, n: int, files: int) -> Ran:
    """One run with n queries into one folder."""
    queries = "".join(
        f"CREATE QUERY q{i} INTO parquet '{work}/out' AS "
        f"SELECT ts, src, dst, port, length FROM packets WHERE {condition};"
        for i, condition in enumerate(predicates(n)))
    with Engine(spark=spark, checkpoint=work / "checkpoint") as engine:
        engine.execute(
            f"CREATE STREAM packets ({SCHEMA}) FROM parquet '{data}' "
            f"OPTIONS (maxFilesPerTrigger = {files}) TIME ts LATENESS 1 SECOND;" + queries)
        read = _bytes_read(spark)
        began = time.perf_counter()
        summary = engine.run(until_drained=True)
        seconds = time.perf_counter() - began
        assert summary.accounting() == [], summary.accounting()
        rows = sum(query.rows_out for query in summary.queries.values())
    return Ran(seconds, rows, _bytes_read(spark) - read)


def native(spark: Any, data: Path, work: Path, n: int, files: int) -> Ran:
    """The same with n streaming queries of Spark's own, each into a folder of its own."""
    read = _bytes_read(spark)
    began = time.perf_counter()
    with streaming(spark, work / "checkpoint") as queries:
        for i, condition in enumerate(predicates(n)):
            source = queries.session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files)
            kept = source.parquet(str(data)).where(condition)
            kept = kept.select("ts", "src", "dst", "port", "length")
            queries.start(f"q{i}", kept.writeStream.format("parquet").trigger(availableNow=True)
                          .option("path", f"{work}/out/{i}"))
        for query in queries.started:
            query.awaitTermination()
        seconds = time.perf_counter() - began
    bytes_read = _bytes_read(spark) - read
    rows = sum(pq.read_metadata(path).num_rows for path in work.glob("out/*/*.parquet"))
    return Ran(seconds, rows, bytes_read)


def _bytes_read(spark: Any) -> int:
    """What the JVM has read so far, as the kernel counts it: Spark's counters miss part."""
    pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    with open(f"/proc/{pid}/io") as file:
        return int(file.readline().split()[1])


def run(quick: bool, out: Path, progress: Progress) -> Report:
    report = Report("fanout", about=[__doc__ or ""])
    with workplace("fanout") as (spark, work):
        for size in QUICK if quick else FULL:
            _measure(size, spark, work / size.name.replace(" ", "-"), report, progress)
    return report


def _measure(
    size: Size, spark: Any, work: Path, report: Report, progress: Progress
) -> None:
    """Both sides with blocks of one size, each after a warm-up with as many queries."""
    total = write_packets(work / "packets", size)
    progress(f"{size.rows:,} packets in blocks of {size.name}, {total / 2**20:.0f} MiB")
    write_packets(work / "warm", size, WARM)
    ran: dict[tuple[str, int], Ran] = {}
    for n in OURS:
        for engine, act in (("native", native), ("penstock", penstock)):
            if engine == "native" and n not in NATIVE:
                continue
            progress(f"{engine}, {n} queries, blocks of {size.name}")
            act(spark, work / "warm", work / f"warm-{engine}-{n}", n, size.files)
            ran[engine, n] = act(spark, work / "packets", work / f"{engine}-{n}", n, size.files)
    rows = {key: _row(*key, size, one, ran.get(("native", key[1]))) for key, one in ran.items()}
    report.rows += rows.values()
    _checks(report, size, ran)


def _row(engine: str, n: int, size: Size, ran: Ran, native: Ran | None) -> dict[str, Any]:
    return {
        "engine": engine, "queries": n, "rows/block": size.block, "seconds": round(ran.seconds, 2),
        "rows/s": round(size.rows / ran.seconds), "rows out": ran.rows_out,
        "MiB read": round(ran.bytes_read / 2**20, 1),
        "times native": round(native.seconds / ran.seconds, 2)
        if native and engine == "penstock" else None}


def _checks(report: Report, size: Size, ran: dict[tuple[str, int], Ran]) -> None:
    blocks = f"blocks of {size.name} rows"
    seconds = {key: one.seconds for key, one in ran.items()}
    for n, target in {1: 1, 20: 10}.items():
        times = seconds["native", n] / seconds["penstock", n]
        report.check(f"native-{n}: {size.name}", f"{blocks}: times as fast as native at N = {n}",
                     f">= {target}", f"{times:.2f}", times >= target)
    rate = seconds["penstock", 1] / seconds["penstock", 1000]
    report.check(f"scale: {size.name}", f"{blocks}: rate at N = 1000 over the rate at N = 1",
                 ">= 0.8", f"{rate:.2f}", rate >= 0.8)
    growth = ran["penstock", 1000].bytes_read / ran["penstock", 20].bytes_read
    report.check(f"read-once: {size.name}",
                 f"{blocks}: the source is read once: bytes at N = 1000 over N = 20",
                 "<= 1.05", f"{growth:.3f}", growth <= 1.05)
    kept = [one.rows_out / size.rows for one in ran.values()]
    report.check(f"selectivity: {size.name}",
                 f"{blocks}: all queries together keep half as many rows as come in",
                 "0.45 to 0.55", f"{min(kept):.3f} to {max(kept):.3f}",
                 0.45 <= min(kept) and max(kept) <= 0.55)
