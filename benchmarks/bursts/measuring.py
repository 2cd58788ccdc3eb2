"""One way through a burst, for the engine under a policy and for native Structured Streaming."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.bursts.pipelines import ROWS, Pipeline
from benchmarks.live import Arrival, BlockId, Feeder, running, through
from benchmarks.native import StreamingQueries, streaming
from penstock.events import kinds as ev
from penstock.simulator.outcomes import Floats

WARM_ROUNDS = 4
"""Blocks of every stream before the burst, one after the other: code is made, processes are
started, and what the stages cost becomes known."""
PAUSE = 0.5
"""Seconds after each of them, and four times that before the burst: who replays the run under
another policy, whose blocks take longer, begins the burst with empty queues, too."""
TASKS = 4
"""Native Spark deals every block out to so many: the file that it is would be one task otherwise,
and one core would idle."""
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
    """A policy, or native Spark, once through a burst."""

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


# --- feeding ---------------------------------------------------------------------------------


def _block(pipeline: Pipeline, place: int) -> BlockId:
    """The stream that the n-th file comes to, and its number there."""
    return pipeline.stream(place), place // len(pipeline.questions)


def _burst(
    pipeline: Pipeline, ground: Ground, work: Path, times: Floats, done: dict[BlockId, float]
) -> float:
    """Warm up, then let the burst come, and wait until all is through; when it began."""
    names = [question.name for question in pipeline.questions]
    warm = WARM_ROUNDS * len(names)
    feeder = Feeder(
        file=lambda stream, number: ground.prepared
        / f"{number * len(names) + names.index(stream)}.parquet",
        folder=lambda stream: work / f"in-{stream}")
    arrivals = [Arrival(float(at), *_block(pipeline, warm + n)) for n, at in enumerate(times)]
    return through(feeder, [_block(pipeline, n) for n in range(warm)], arrivals,
                   lambda stream, number: (f"s_{stream}", number) in done, PAUSE)


# --- the engine ------------------------------------------------------------------------------


def seconds_per_block(pipeline: Pipeline, policy: str, ground: Ground) -> float:
    """What a block takes from its first stage to where its first job ends.

    Several blocks come at once, so jobs take as many of them as a quantum allows.
    """
    work = ground.home / f"calibration-{policy}"
    pipeline.write(work)
    with running(pipeline.sql(policy), ground.spark, work, "burst_functions") as (_, watch):
        began = _burst(pipeline, ground, work, np.zeros(pipeline.at_once), watch.done)
    return sum(ended.seconds for decided, ended in watch.jobs(began)
               if isinstance(decided.work, ev.PathWork) and decided.work.stages[0] == 0
               and ended.kind == "segment") / pipeline.at_once


def measure(
    pipeline: Pipeline, policy: str, times: Floats, ground: Ground
) -> Measured:
    """One policy through the burst, in a folder that no measurement had before."""
    work = Path(tempfile.mkdtemp(prefix=policy.partition("(")[0] + "-", dir=ground.home))
    pipeline.write(work)
    with running(pipeline.sql(policy), ground.spark, work, "burst_functions") as (_, watch):
        began = _burst(pipeline, ground, work, times, watch.done)
    done = _in_order(pipeline, times, watch.done)
    queued = [e for e in watch.events if isinstance(e, ev.Queued) and e.at >= began]
    jobs = [ended for _, ended in watch.jobs(began)]
    deciding = sum(e.seconds for e in watch.events
                   if isinstance(e, ev.JobDecided) and e.at >= began)
    figures = {
        "peak waiting MB": max(e.bytes for e in queued) / 1e6,
        "peak hot MB": max(e.hot for e in queued) / 1e6,
        "cold re-reads": _cold_reads(watch.events, began),
        **_latency(done, times, began),
        "jobs": len(jobs), "Spark jobs": sum(e.spark_jobs for e in jobs),
        "scheduling s": deciding, "scheduling %": 100 * deciding / (max(done) - began),
    }
    series = [e.at - began for e in queued], [e.bytes / 1e6 for e in queued]
    answers = _answers(pipeline, work)
    shutil.rmtree(work)
    return Measured(policy, figures, series, answers, began, watch.events)


def _in_order(pipeline: Pipeline, times: Floats, done: dict[BlockId, float]) -> list[float]:
    """When each block of the burst was through."""
    first = WARM_ROUNDS * len(pipeline.questions)
    blocks = (_block(pipeline, place) for place in range(first, first + len(times)))
    return [done[f"s_{stream}", number] for stream, number in blocks]


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
    work = Path(tempfile.mkdtemp(prefix="native-", dir=ground.home))
    pipeline.write(work)
    done: dict[BlockId, float] = {}
    with streaming(ground.spark, work / "state") as queries:
        for question in pipeline.questions:
            _start(pipeline, question.name, queries, work, done)
        began = _burst(pipeline, ground, work, times, done)
    ended = _in_order(pipeline, times, done)
    read = [column.split()[0] for column in pipeline.questions[0].columns.split(", ")]
    size = pq.read_table(ground.prepared / "0.parquet", columns=read).nbytes / 1e6
    changes = sorted([(at + began, size) for at in times] + [(at, -size) for at in ended])
    level = np.cumsum([change for _, change in changes])
    figures = {"peak waiting MB": float(level.max()), **_latency(ended, times, began),
               "jobs": len(times)}
    answers = _answers(pipeline, work)
    shutil.rmtree(work)
    series = [at - began for at, _ in changes], level.tolist()
    return Measured("native", figures, series, answers, began)


def _start(
    pipeline: Pipeline, name: str, queries: StreamingQueries, work: Path,
    done: dict[BlockId, float],
) -> None:
    question = next(each for each in pipeline.questions if each.name == name)

    def each(batch: Any, block: int) -> None:
        batch.write.mode("append").parquet(str(work / f"out-{name}"))
        done[f"s_{name}", block] = time.time()

    session = queries.session
    rows = (session.readStream.schema(question.columns).option("maxFilesPerTrigger", 1)
            .parquet(str(work / f"in-{name}")).repartition(TASKS))
    asked = question.native(rows, lambda: session.read.schema("k BIGINT, m BIGINT").csv(
        str(work / "r.csv")).hint("broadcast"))
    queries.start(name, asked.writeStream.foreachBatch(each).trigger(
        processingTime="100 milliseconds"))
