"""Pane jobs: rows of a block into the panes of a mix of window aggregates, against Spark's groupBy.

A mix is some queries of packets. Penstock makes all their panes in one job and merges them into the
synopses. Native Spark runs one job for each grouping that the panes need, of the same rows, and
brings the result to the driver. The rows beside Penstock's own choice show what the ways it chose
from would have taken.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from harness.findings import Report
from harness.program import Progress
from penstock.engine.aggregates.coverage import families_of
from penstock.generators.packets import OnOff
from penstock.language import bind
from penstock.model import TIMESTAMP, Column
from penstock.planning import plan
from penstock.spark.aggregates.arrow_groupings import ArrowGroupings
from penstock.spark.aggregates.pane_groupings import PaneGroup
from penstock.spark.aggregates.pane_job import PaneJob
from penstock.spark.aggregates.spark_groupings import SparkGroupings
from penstock.spark.compile.columns import compiled
from penstock.spark.session import local_session, tuned
from penstock.synopses import Synopsis

TIME = Column("ts", TIMESTAMP)
STREAM = """CREATE STREAM packets
  (ts TIMESTAMP, src INT, dst INT, port INT, length INT, protocol STRING)
  FROM parquet 'packets' TIME ts;"""
SMALL, LARGE = 90_000, 2_000_000


@dataclass(frozen=True)
class Mix:
    """Queries as FROM and GROUP BY, and the groupings that their panes need, in Spark's SQL."""

    queries: tuple[tuple[str, str, str], ...]
    """What is selected, the window, the keys."""
    native: tuple[tuple[int, str, str], ...]
    """Seconds of a pane, by what it is grouped, what is measured."""

    @property
    def text(self) -> str:
        """The application."""
        return STREAM + "".join(
            f"CREATE QUERY q{n} AS SELECT {', '.join(filter(None, (keys, what)))} "
            f"FROM packets [WINDOW {window}]{' GROUP BY ' + keys if keys else ''};"
            for n, (what, window, keys) in enumerate(self.queries))


COUNTED = "count(*) AS n"
SUMMED = "count(*) AS n, count(length) AS c, sum(length) AS s"
MIXES = {
    "demo": Mix(
        (("SUM(length) AS bytes, COUNT(*) AS n", "5 SECONDS SLIDE 1 SECOND", "src"),
         ("SUM(length) AS bytes, COUNT(*) AS n", "10 SECONDS SLIDE 2 SECONDS", "src"),
         ("SUM(length) AS bytes, COUNT(*) AS n", "20 SECONDS SLIDE 5 SECONDS", "src"),
         ("MEDIAN(length) AS m, PERCENTILE(length, 0.99) AS p", "10 SECONDS SLIDE 2 SECONDS",
          "protocol"),
         ("TOPK(src, 3, length) AS t, COUNT(DISTINCT dst) AS d", "10 SECONDS SLIDE 2 SECONDS", ""),
         ("COUNT(*) AS n", "10 SECONDS", "port")),
        ((1, "src", SUMMED), (2, "protocol, length", COUNTED), (2, "src", SUMMED),
         (2, "dst", COUNTED), (10, "port", COUNTED))),
    "four groupings": Mix(
        tuple(("SUM(length) AS bytes, COUNT(*) AS n", "10 SECONDS SLIDE 1 SECOND", key)
              for key in ("src", "dst", "port", "protocol")),
        tuple((1, key, SUMMED) for key in ("src", "dst", "port", "protocol"))),
    "single family": Mix(
        (("SUM(length) AS bytes, COUNT(*) AS n", "10 SECONDS SLIDE 1 SECOND", "src"),),
        ((1, "src", SUMMED),)),
}


def write_packets(folder: Path, rows: int, files: int) -> None:
    """Packets as the demo's, 20,000 a second, in files of equal length."""
    folder.mkdir(parents=True)
    traffic = OnOff(rate=20_000, burst=5, length=0.2, seed=7, rows=rows)
    whole = pa.Table.from_batches([traffic.packets(0, 100 * rows / traffic.rate)])
    each = -(-rows // files)
    for number in range(files):
        pq.write_table(whole.slice(number * each, each), folder / f"part-{number}.parquet")


def ways(
    spark: SparkSession, mix: Mix, frame: DataFrame, rows: int
) -> dict[str, Callable[[], object]]:
    """What to time, by name."""
    groups = plan(bind(mix.text)).groups
    asked = [PaneGroup(g.keys, families_of(g), g.pane, g.where) for g in groups]
    job, at = PaneJob(asked, TIME), compiled(TIME)
    units = dict(enumerate(job.units))
    arrow = ArrowGroupings(units, asked, at)
    grouped = SparkGroupings(units, asked, at, job.layout)

    def ours() -> None:
        for group, tables in zip(groups, job.tables(frame, rows), strict=True):
            Synopsis([key.type for key in group.keys], families_of(group), group.span).add(tables)

    def native() -> None:
        for seconds, by, measured in mix.native:
            spark.sql(f"SELECT unix_micros(ts) div {seconds * 10**6} AS pane, {by}, {measured} "
                      f"FROM {{rows}} GROUP BY ALL", rows=frame).toArrow()

    return {"penstock": ours, "in the driver": partial(arrow.tables, frame, True),
            "in workers": partial(arrow.tables, frame, False),
            "in Spark": partial(grouped.tables, frame), "native": native}


def run(quick: bool, out: Path, progress: Progress) -> Report:
    """Blocks of both sizes, all mixes, all ways."""
    report = Report("panes")
    work = Path(tempfile.mkdtemp(prefix="penstock-panes-"))
    session = local_session("local[2]")
    found: dict[tuple[str, str, int], float] = {}
    try:
        spark = tuned(session)
        for rows in (SMALL, LARGE):
            write_packets(work / str(rows), rows, 1 if rows == SMALL else 2)
            frame = spark.read.parquet(str(work / str(rows)))
            for name, mix in MIXES.items():
                progress(f"{name}: blocks of {rows:,} rows")
                made = ways(spark, mix, frame, rows)
                for way, seconds in _timed(made, 4 if quick else 12).items():
                    found[name, way, rows] = seconds
                    report.rows.append({
                        "mix": name, "rows/block": rows, "way": way, "seconds": round(seconds, 3),
                        "rows/s": round(rows / seconds)})
    finally:
        session.stop()
        shutil.rmtree(work, ignore_errors=True)
    _checks(report, found)
    return report


def _timed(made: dict[str, Callable[[], object]], times: int) -> dict[str, float]:
    """The median seconds of each after as many rounds to warm up, one after the other in turns."""
    seconds: dict[str, list[float]] = {way: [] for way in made}
    for number in range(2 * times):
        for way, carry_out in made.items():
            began = time.perf_counter()
            carry_out()
            if number >= times:
                seconds[way].append(time.perf_counter() - began)
    return {way: median(some) for way, some in seconds.items()}


def _checks(report: Report, found: dict[tuple[str, str, int], float]) -> None:
    live = found["demo", "penstock", SMALL]
    report.check("live", "seconds for 90,000 rows of the demo's aggregates", "<= 0.3",
                 f"{live:.2f}", live <= 0.3)
    for name, target in (("demo", 1.2), ("four groupings", 3.0)):
        rate = LARGE / found[name, "penstock", LARGE] / 1e6
        report.check(f"bulk-{name.split()[0]}", f"million rows a second in bulk: {name}",
                     f">= {target}", f"{rate:.2f}", rate >= target)
