"""One way through a burst, for the engine under a policy and for native Structured Streaming."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.bursts.pipelines import ROWS, Pipeline
from penstock import Engine
from penstock.events import kinds as ev
from penstock.simulator.outcomes import Floats

WARM_ROUNDS = 4
"""Blocks of every stream before the burst, one after the other: code is made, processes are
started, and what the stages cost becomes known."""
PAUSE = 0.5
"""Seconds after each of them, and four times that before the burst: who replays the run under
another policy, whose blocks take longer, begins the burst with empty queues, too."""
Series = tuple[list[float], list[float]]


@dataclass(frozen=True)
class Ground:
    """Where measurements take place."""

    spark: Any
    prepared: Path
    """The files of all blocks."""
    home: Path
    """A folder for each measurement is made here."""


@dataclass(frozen=True)
class Measured:
    """A policy, or native Spark, through a burst."""

    policy: str
    figures: dict[str, Any]
    """A row of the report."""
    waiting: Series
    """Seconds since the burst began, and the megabytes that waited."""
    answers: str
    """The same for all who gave the same answers."""
    began: float
    """When the burst did."""
    events: list[ev.Event] = field(default_factory=list)
    limit: float = inf
    """The latency that it was to keep, if it keeps any."""

    @property
    def peak(self) -> float:
        """The most megabytes that waited in the burst."""
        return float(self.figures["peak waiting MB"])

    @property
    def block(self) -> float:
        """The megabytes of a block: what waits changes by no less when one comes."""
        return max((e.block.bytes for e in self.events if isinstance(e, ev.BlockArrived)),
                   default=0) / 1e6


def middle(several: Sequence[Measured]) -> Measured:
    """Of measurements of the same, the one whose peak is in the middle; it answers for them all."""
    found = sorted(several, key=lambda each: each.peak)[len(several) // 2]
    return replace(found, answers=" ".join(sorted({each.answers for each in several})))


# --- feeding ---------------------------------------------------------------------------------


def feed(pipeline: Pipeline, ground: Ground, work: Path, first: int, times: Floats) -> float:
    """Let prepared files appear at these times from now on, one per time; when it began."""
    began = time.time()
    for number, at in enumerate(times, first):
        time.sleep(max(0.0, began + at - time.time()))
        folder = work / f"in-{pipeline.stream(number)}"
        hidden = folder / f".{number}"
        shutil.copyfile(ground.prepared / f"{number}.parquet", hidden)
        os.utime(hidden, (1_700_000_000 + number,) * 2)
        hidden.rename(folder / f"{number:04d}.parquet")
    return began


def burst(
    pipeline: Pipeline, ground: Ground, work: Path, times: Floats, through: Callable[[], int]
) -> float:
    """Warm up, then let the burst come, and wait until all is through; when it began."""
    warm = WARM_ROUNDS * len(pipeline.questions)
    for number in range(warm):
        feed(pipeline, ground, work, number, np.zeros(1))
        until(lambda wanted=number + 1: through() >= wanted)  # type: ignore[misc]
        time.sleep(PAUSE)
    time.sleep(4 * PAUSE)
    began = time.time()
    feeder = threading.Thread(target=feed, args=(pipeline, ground, work, warm, times))
    feeder.start()
    until(lambda: through() >= warm + len(times))
    feeder.join()
    return began


def until(condition: Callable[[], bool], seconds: float = 300.0) -> None:
    """Wait."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the burst is not through")
        time.sleep(0.02)


# --- the engine ------------------------------------------------------------------------------


@dataclass
class Watch:
    """The events of a run, and which files are through."""

    events: list[ev.Event] = field(default_factory=list)
    done: dict[tuple[str, int], float] = field(default_factory=dict)
    """By stream and block: when its answers came out."""
    _decided: dict[int, ev.JobDecided] = field(default_factory=dict)

    def __call__(self, event: ev.Event) -> None:
        """Take an event in."""
        if isinstance(event, ev.Memory):
            return
        self.events.append(event)
        if isinstance(event, ev.JobDecided):
            self._decided[event.job] = event
        elif isinstance(event, ev.JobFinished) and not event.kept:
            of = self._decided[event.job].work
            self.done.update(((of.stream, number), event.at) for number in of.blocks)

    def spans(self, since: float) -> list[tuple[ev.JobDecided, ev.JobFinished]]:
        """The runs that ended since a time."""
        return [(self._decided[e.job], e) for e in self.events
                if isinstance(e, ev.JobFinished) and e.at >= since]


@contextmanager
def running(pipeline: Pipeline, policy: str, ground: Ground, work: Path) -> Iterator[Watch]:
    """An engine that answers the pipeline's queries, and what it tells."""
    pipeline.write(work)
    sys.modules.pop("burst_functions", None)
    watch = Watch()
    with Engine(spark=ground.spark, checkpoint=work / "state", on_event=watch) as engine:
        engine.load(pipeline.sql(policy), folder=work)
        engine.start()
        yield watch
        engine.stop()
    if faults := engine.status().accounting():
        raise AssertionError(f"{policy}: the books do not balance: {faults}")


def seconds_per_block(pipeline: Pipeline, policy: str, ground: Ground) -> float:
    """What a block takes from its first stage to where its first run ends.

    Several blocks come at once, so runs take as many of them as a quantum allows.
    """
    work = ground.home / f"calibration-{policy}"
    with running(pipeline, policy, ground, work) as watch:
        began = burst(pipeline, ground, work, np.zeros(pipeline.at_once), lambda: len(watch.done))
    return sum(ended.seconds for decided, ended in watch.spans(began)
               if decided.work.stages[0] == 0) / pipeline.at_once


def measure(
    pipeline: Pipeline, policy: str, times: Floats, ground: Ground
) -> Measured:
    """One policy through the burst, in a folder that no measurement had before."""
    work = Path(tempfile.mkdtemp(prefix=policy.partition("(")[0] + "-", dir=ground.home))
    with running(pipeline, policy, ground, work) as watch:
        began = burst(pipeline, ground, work, times, lambda: len(watch.done))
    queries = len(pipeline.questions)
    done = [watch.done[f"s_{pipeline.stream(number)}", number // queries]
            for number in range(WARM_ROUNDS * queries, WARM_ROUNDS * queries + len(times))]
    queued = [e for e in watch.events if isinstance(e, ev.Queued) and e.at >= began]
    runs = [ended for _, ended in watch.spans(began)]
    deciding = sum(e.seconds for e in watch.events
                   if isinstance(e, ev.JobDecided) and e.at >= began)
    figures = {
        "peak waiting MB": max(e.bytes for e in queued) / 1e6,
        "peak hot MB": max(e.hot for e in queued) / 1e6,
        "cold re-reads": _cold_reads(watch.events, began),
        **_latency(done, times, began),
        "runs": len(runs), "jobs": sum(e.spark_jobs for e in runs),
        "scheduling s": deciding, "scheduling %": 100 * deciding / (max(done) - began),
    }
    series = [e.at - began for e in queued], [e.bytes / 1e6 for e in queued]
    answers = _answers(pipeline, work)
    shutil.rmtree(work)
    return Measured(policy, figures, series, answers, began, watch.events)


def _latency(done: list[float], times: Floats, began: float) -> dict[str, float]:
    waits = np.array(done) - began - times
    return {"p50 s": float(np.median(waits)), "p99 s": float(np.quantile(waits, 0.99)),
            "max s": float(waits.max()), "rows/s": len(times) * ROWS / (max(done) - began)}


def _cold_reads(events: list[ev.Event], since: float) -> int:
    """How often rows that were read or kept before were read again from where they are cold."""
    read: set[tuple[str, int]] = set()
    hot: set[tuple[str, int]] = set()
    count = 0
    for event in events:
        match event:
            case ev.BlockHot(stream=stream, number=number):
                hot.add((stream, number))
            case ev.BlockCold(stream=stream, number=number):
                hot.discard((stream, number))
            case ev.JobFinished(at=at, kept=ev.KeptRows(on_disk=True)) if at >= since:
                count += 1
            case ev.JobDecided(at=at, work=ev.PathWork(
                    stages=(0, _), stream=stream, blocks=blocks)):
                taken = {(stream, number) for number in blocks}
                count += len((taken & read) - hot) if at >= since else 0
                read |= taken
    return count


def _answers(pipeline: Pipeline, work: Path) -> str:
    """A digest of all rows that were answered, whatever their order."""
    digest = hashlib.sha256()
    for question in pipeline.questions:
        table = pq.read_table(work / f"out-{question.name}", columns=["n", "text"])
        rows = sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))
        digest.update(str(rows).encode())
    return digest.hexdigest()


# --- native Structured Streaming -------------------------------------------------------------


def native(pipeline: Pipeline, times: Floats, ground: Ground) -> Measured:
    """The same questions, each a streaming query of its own with one `mapInArrow`."""
    work = ground.home / "native"
    pipeline.write(work)
    done: dict[tuple[str, int], float] = {}
    queries = [_start(pipeline, number, ground, work, done)
               for number in range(len(pipeline.questions))]
    try:
        began = burst(pipeline, ground, work, times, lambda: len(done))
    finally:
        for query in queries:
            query.stop()
    first = WARM_ROUNDS * len(queries)
    ended = [done[pipeline.stream(n), n // len(queries)] for n in range(first, first + len(times))]
    read = [column.split()[0] for column in pipeline.questions[0].columns.split(", ")]
    size = pq.read_table(ground.prepared / "0.parquet", columns=read).nbytes / 1e6
    changes = sorted([(at + began, size) for at in times] + [(at, -size) for at in ended])
    level = np.cumsum([change for _, change in changes])
    figures = {"peak waiting MB": float(level.max()), "peak hot MB": None, "cold re-reads": None,
               **_latency(ended, times, began), "runs": len(times), "jobs": 2 * len(times),
               "scheduling s": None, "scheduling %": None}
    answers = _answers(pipeline, work)
    shutil.rmtree(work)
    series = [at - began for at, _ in changes], level.tolist()
    return Measured("native", figures, series, answers, began)


def _start(
    pipeline: Pipeline, number: int, ground: Ground, work: Path,
    done: dict[tuple[str, int], float],
) -> Any:
    question = pipeline.questions[number]

    def each(batch: Any, block: int) -> None:
        batch.persist()
        batch.count()  # the engine counts its answers, too
        batch.write.mode("append").parquet(str(work / f"out-{question.name}"))
        batch.unpersist()
        done[question.name, block] = time.time()

    rows = (ground.spark.readStream.schema(question.columns).option("maxFilesPerTrigger", 1)
            .parquet(str(work / f"in-{question.name}")))
    asked = question.native(rows, lambda: ground.spark.read.schema("k BIGINT, m BIGINT").csv(
        str(work / "r.csv")).hint("broadcast"))
    return (asked.writeStream.foreachBatch(each).trigger(processingTime="100 milliseconds")
            .option("checkpointLocation", str(work / f"state-{question.name}")).start())
