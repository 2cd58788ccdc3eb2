"""One case, live, from the start of its queries through a steady part; either engine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import functions as sf

from benchmarks import live
from benchmarks.latency import answers, feeder, packet_source, watcher
from benchmarks.latency.answers import Called, Filed, Latencies, of_rows, of_windows
from benchmarks.latency.workloads import COLUMNS, Case, Window, application, options
from benchmarks.native import StreamingQueries, streaming

PATIENCE = 60.0
"""Seconds for which what is late may still come after the steady part of a measurement."""
SLACK = 1.0
"""A query may have no row in the last second; of a window aggregate a slide is added."""


@dataclass(frozen=True, slots=True)
class Span:
    """How long a case runs, in seconds."""

    warm: float
    """After the first answer."""
    steady: float
    patience: float = PATIENCE
    """For what is late after that."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of a case."""

    first: float
    """Seconds from the start of the queries to the first answer."""
    rows: Latencies | None
    windows: Latencies | None
    behind: float
    """How far the last query was from the end of the steady part when patience ended, at most the
    whole of it: 0 unless it was overloaded, and then latencies of what never came are missing."""


def penstock(case: Case, span: Span, spark: Any, work: Path) -> Measured:
    """One engine with all queries, with its defaults."""
    sql = application(case, str(work), f"{answers.__name__}:take")
    with _watched(case, work) as came:
        began = time.time()
        with live.running(sql, spark, work):
            return _observe(case, span, came, began)


def native(
    case: Case, span: Span, spark: Any, work: Path, mode: str = "append", tasks: int = 0
) -> Measured:
    """As many streaming queries, each with a trigger that fires as soon as it can.

    ``mode`` is the output mode of window aggregates. ``append`` gives an answer once, when the
    watermark has passed the window's end, as Penstock does. ``update`` gives it whenever it has
    changed, and nobody can tell which is the last; what counts here is the last, known afterwards.
    With ``tasks`` every micro-batch is dealt out to so many.
    """
    with _watched(case, work, native=True) as came, streaming(spark, work / "state") as queries:
        began = time.time()
        start_native(case, queries, work, mode, tasks)
        return _observe(case, span, came, began)


# --- native queries ------------------------------------------------------------------------------


def start_native(
    case: Case, queries: StreamingQueries, work: Path, mode: str = "append", tasks: int = 0
) -> None:
    """All queries of a case, one after the other."""
    if case.source == "generated":
        packet_source.register(queries.session)
    for name in case.workload.queries:
        queries.start(name, _writer(case, name, queries, work, mode, tasks),
                      settle=case.source == "generated")


def _writer(
    case: Case, name: str, queries: StreamingQueries, work: Path, mode: str, tasks: int
) -> Any:
    rows = _rows(case, queries.session, work)
    if tasks:
        rows = rows.repartition(tasks)
    window = case.workload.aggregates.get(name)
    if window is None:
        kept = rows.where(case.workload.conditions[name])
        writer = kept.select("ts", "src", "dst", "port", "length").writeStream
    else:
        writer = _aggregate(rows, window).writeStream.outputMode(mode)
    if case.sink == "callback":
        return writer.foreachBatch(lambda batch, _: answers.take(name, batch.toArrow()))
    return writer.format("parquet").option("path", str(_native_home(case, work, name)))


def _rows(case: Case, session: Any, work: Path) -> Any:
    if case.source == "files":
        return session.readStream.schema(COLUMNS).parquet(str(work / "in"))
    given = options(case.workload)
    return session.readStream.format(packet_source.FORMAT).options(**given).load()


def _aggregate(rows: Any, window: Window) -> Any:
    span = sf.window("ts", f"{window.length} seconds", f"{window.slide} seconds")
    made = rows.withWatermark("ts", "0 seconds").groupBy(span, window.by).agg(
        sf.count("*").alias("packets"), sf.sum("length").alias("bytes"))
    return made.select(window.by, "packets", "bytes", sf.col("window.end").alias("window_end"))


def _native_home(case: Case, work: Path, name: str) -> Path:
    """Sinks of Spark cannot share a folder: in a shared one each has a partition of its own."""
    return work / "out" / (f"query={name}" if case.sink == "shared" else name)


# --- observing -----------------------------------------------------------------------------------


@dataclass
class _NativeFiled(Filed):
    """The files of native queries: one folder for each, whatever the sink."""

    @property
    def homes(self) -> list[Path]:
        return [_native_home(self.case, self.root.parent, name)
                for name in self.case.workload.queries]


@contextmanager
def _watched(case: Case, work: Path, native: bool = False) -> Iterator[Called | Filed]:
    """Let files appear where the case has them, and see what comes out."""
    work.mkdir(parents=True)
    children = []
    try:
        if case.source == "files":
            children.append(feeder.start(work / "in", case.workload.rate))
        if case.sink == "callback":
            answers.CALLED.answers = []
            yield answers.CALLED
            return
        came = (_NativeFiled if native else Filed)(case, work / "out", work / "seen.log")
        for home in came.homes:
            home.mkdir(parents=True)
        children.append(watcher.start(came.log, came.homes))
        yield came
    finally:
        for child in children:
            child.terminate()
            child.wait()


def _observe(case: Case, span: Span, came: Called | Filed, began: float) -> Measured:
    live.until(lambda: came.count > 0, look=0.005)
    first = min(answer.at for answer in came.all()) - began
    time.sleep(span.warm)
    begin = time.time()
    time.sleep(span.steady)
    end = time.time()
    behind = _caught_up(case, came, begin, end, span.patience)
    found = came.all(begin)
    upto = end - SLACK  # the answers of the last second may yet be under way
    return Measured(first, of_rows(found, case.workload.conditions, begin, upto),
                    of_windows(found, case.workload.aggregates, begin, upto), behind)


def _caught_up(
    case: Case, came: Called | Filed, begin: float, end: float, patience: float
) -> float:
    """Wait until every query is answered for the steady part; how far the last one is from that."""
    slack = {name: SLACK + (case.workload.aggregates[name].slide
                            if name in case.workload.aggregates else 0)
             for name in case.workload.queries}
    since = end - 2 * max(slack.values())  # every query has an answer since then, if it keeps up
    while True:
        reached = came.reached(since)
        behind = max(end - slack[name] - max(begin, reached.get(name, begin)) for name in slack)
        if behind <= 0 or time.time() > end + patience:
            return max(0.0, behind)
        time.sleep(0.5)
