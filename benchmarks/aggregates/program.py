"""Does the cost of window aggregates depend on their number? Sums over N random windows."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.aggregates import pipelines
from benchmarks.aggregates.answers import wrong
from benchmarks.aggregates.memory import Peak
from benchmarks.aggregates.pipelines import SUM, Ran
from benchmarks.aggregates.traffic import RATE, Window, windows, write_packets
from benchmarks.live import workplace
from harness.findings import Report
from harness.program import Progress


@dataclass(frozen=True)
class Size:
    """How much is run."""

    rows: int
    per_file: int
    """Packets in a file; a block has `FILES` of them."""
    ours: tuple[int, ...]
    """How many queries; those of the last but one also to a folder, and by hand."""
    native: tuple[int, ...]
    """How many streaming queries of Spark's own; sixteen take five minutes."""

    @property
    def seconds(self) -> int:
        """Event time."""
        return self.rows // RATE

    @property
    def many(self) -> int:
        """The number of queries that the targets speak of."""
        return self.ours[-2]


FULL = Size(20_000_000, 500_000, (1, 16, 64, 240, 1000), (1, 16))
QUICK = Size(2_000_000, 50_000, (1, 16, 64), (1, 16))
OTHERS = ("MEDIAN(length)", "COUNT(DISTINCT port)", "TOPK(port, 10)")
NATIVE, MEMORY = 150 / 240, 4 * 10**9
"""Times native Spark for each of the queries; bytes."""


@dataclass
class Bench:
    """One run of the benchmark: the packets, and what was found so far."""

    spark: SparkSession
    work: Path
    size: Size
    report: Report
    progress: Progress
    rates: dict[tuple[str, int], float] = field(default_factory=dict)
    """Packets per second by engine and number of queries, sums to nowhere; of several runs the
    best counts."""
    faults: list[str] = field(default_factory=list)
    peak: int = 0
    """The most that Penstock and the JVM held."""
    _runs: int = 0

    @property
    def data(self) -> Path:
        """All packets."""
        return self.work / "packets"

    def write(self) -> None:
        """Make the packets."""
        write_packets(self.data, self.size.rows, self.size.per_file)

    def place(self) -> Path:
        """A folder of its own for every run."""
        self._runs += 1
        return self.work / f"run-{self._runs}"

    # --- the four ways -----------------------------------------------------------------------

    def warm_up(self) -> None:
        """Every way over all packets: it takes the JVM as long to compile the loops for good.

        A run after a short warm-up takes two to three times as long as the same run later.
        """
        self.progress("warming up")
        many = windows(self.size.many)
        pipelines.penstock(self.spark, self.data, self.place(), many)
        pipelines.by_hand(self.spark, self.data, self.place(), many, self.size.seconds)
        pipelines.limit(self.spark, self.data)

    def penstock(self, n: int, aggregate: str = SUM, by: str = "src", folder: bool = False) -> None:
        """Penstock with n queries; answers that go to a folder are looked at."""
        out = self.work / f"out-{self._runs}"
        into = f"parquet '{out}'" if folder else "noop"
        asked = windows(n)
        ran = self._measured("penstock", n, self.size.rows, lambda: pipelines.penstock(
            self.spark, self.data, self.place(), asked, aggregate, by, into), aggregate,
            "folder" if folder else "noop")
        expected = sum(len(one.ends(self.size.seconds)) for one in asked)
        if ran.answers != expected:
            self.faults.append(f"{aggregate}, {n} queries: {ran.answers} answers, not {expected}")
        if folder:
            self.faults += wrong(self.data, out, asked, self.size.seconds, aggregate, by)
            shutil.rmtree(out)

    def by_hand(self, n: int) -> None:
        """The pane table."""
        asked = windows(n)
        self._measured("by hand", n, self.size.rows, lambda: pipelines.by_hand(
            self.spark, self.data, self.place(), asked, self.size.seconds))

    def limit(self) -> None:
        """The batch job."""
        self._measured("limit", 0, self.size.rows, lambda: pipelines.limit(self.spark, self.data))

    def native(self, n: int) -> None:
        """Streaming queries of Spark's own, over all packets; the first run warms up."""
        asked: list[Window] = windows(n)
        if n == self.size.native[0]:
            pipelines.native(self.spark, self.data, self.place(), asked)
        self._measured("native", n, self.size.rows, lambda: pipelines.native(
            self.spark, self.data, self.place(), asked))

    def _measured(
        self, engine: str, n: int, rows: int, act: Callable[[], Ran], aggregate: str = SUM,
        to: str = "noop",
    ) -> Ran:
        self.progress(f"{engine}: {aggregate}, {n} queries to {to}")
        with Peak(self.spark) as peak:
            ran = act()
        rate = rows / ran.seconds
        if aggregate == SUM and to == "noop":
            self.rates[engine, n] = max(rate, self.rates.get((engine, n), 0.0))
        if engine == "penstock":
            self.peak = max(self.peak, peak.bytes)
        self.report.rows.append({
            "engine": engine, "queries": str(n or ""), "aggregate": aggregate, "to": to,
            "packets": rows, "seconds": round(ran.seconds, 2), "packets/s": round(rate),
            "answers": ran.answers or None, "rows out": ran.rows or None,
            "peak MB": round(peak.bytes / 1e6)})
        return ran

    # --- what it says ------------------------------------------------------------------------

    def beside_native(self) -> None:
        """How many times faster Penstock is, where native Spark was measured with as many."""
        for row in self.report.rows:
            native = self.rates.get(("native", int(row["queries"] or 0)))
            row["times native"] = (
                round(row["packets/s"] / native, 1)
                if native and row["engine"] == "penstock" and row["aggregate"] == SUM else None)

    def checks(self) -> None:
        """The targets."""
        check, many, most = self.report.check, self.size.many, self.size.ours[-1]
        rate = {n: self.rates["penstock", n] for n in self.size.ours}
        for n in self.size.native:
            times, target = rate[n] / self.rates["native", n], max(2, NATIVE * n)
            check(f"native-{n}", f"times faster than native at N = {n}", f">= {target:.0f}",
                  f"{times:.1f}", times >= target)
        times = rate[many] / self.rates["by hand", many]
        check("by-hand", f"rate over that of the pane table by hand at N = {many}", ">= 1",
              f"{times:.2f}", times >= 1)
        times = rate[many] / self.rates["limit", 0]
        check("limit", f"rate at N = {many} over that of the batch job of pane partials alone",
              ">= 0.5", f"{times:.2f}", times >= 0.5)
        times = rate[most] / rate[1]
        check("scale", f"rate at N = {most} over the rate at N = 1", ">= 0.7", f"{times:.2f}",
              times >= 0.7)
        check("memory", "most memory of driver and JVM in Penstock's runs", "< 4 GB",
              f"{self.peak / 1e9:.2f} GB", self.peak < MEMORY)
        check("answers", "every window is answered, and a sample equals DuckDB's answers",
              "no fault", "; ".join(self.faults[:3]) or "no fault", not self.faults)


def run(quick: bool, out: Path, progress: Progress) -> Report:
    size = QUICK if quick else FULL
    with workplace("aggregates") as (spark, work):
        bench = Bench(spark, work, size, Report("aggregates"), progress)
        bench.write()
        bench.warm_up()
        bench.limit()
        for n in size.ours:
            bench.penstock(n)
        for n in (1, size.many):
            bench.by_hand(n)
        bench.limit()  # twice, as are those who are held against it: the better run counts
        bench.penstock(size.many)
        bench.by_hand(size.many)
        bench.penstock(size.many, folder=True)
        for aggregate in OTHERS:
            bench.penstock(size.many, aggregate, by="link", folder=True)
        for n in size.native:  # last: the memory that it makes the JVM take is not given back
            bench.native(n)
        bench.beside_native()
        bench.checks()
    return bench.report
