"""Bursts: pipelines shaped like the chain paper's charts, on real Spark, under every policy.

A burst of blocks comes faster than whole paths can be run, but not faster than their selective
segments. What waits meanwhile is the core's own account (`Queued` events), beside native Structured
Streaming on the same files.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock import Engine
from penstock.events import kinds as ev
from penstock.policies.operators import POLICIES
from penstock.report.figures import Drawing, draw
from penstock.report.form import Progress, Report

ROWS = 20_000
"""Rows of a block."""
WARM_BLOCKS = 4
PACE = 0.6
"""Blocks of the burst come after so much of the time that FIFO takes for one: faster than whole
paths can be run, slower than their selective segments."""
COLUMNS = "(n BIGINT, a DOUBLE, b DOUBLE, c DOUBLE, text STRING)"
FUNCTIONS = '''
import numpy as np, pyarrow as pa, penstock

def work(x, rounds):
    values = x.to_numpy(zero_copy_only=False).astype(float)
    for _ in range(rounds):
        values = np.sqrt(values * values + 1.0)
    return values

def keeping(name, rounds, kept):
    def function(n, a):
        work(a, rounds)
        hashed = (n.to_numpy(zero_copy_only=False) * 2654435761) % 2**32
        return pa.array(hashed % SALT[name] < kept * SALT[name])
    function.__name__ = name
    return penstock.predicate(function)

SALT = {"op1": 1009, "op2": 2003, "op3": 4001, "op4": 8009}
'''


@dataclass(frozen=True)
class Pipeline:
    """Conditions in order, each with its rounds of work per row and the part of the rows kept."""

    name: str
    conditions: tuple[tuple[str, int, float], ...]
    blocks: int = 24

    def functions(self) -> str:
        return FUNCTIONS + "".join(
            f"{name} = keeping({name!r}, {rounds}, {kept})\n"
            for name, rounds, kept in self.conditions)

    def sql(self, policy: str) -> str:
        declared = "".join(f"CREATE FUNCTION {name} FROM 'burst_functions:{name}';\n"
                           for name, _, _ in self.conditions)
        where = " AND ".join(f"{name}(n, a)" for name, _, _ in self.conditions)
        return (f"CREATE STREAM blocks {COLUMNS} FROM parquet 'in' "
                f"OPTIONS (maxFilesPerTrigger = 1);\n{declared}"
                f"SET operators = '{policy}'; SET trigger = '100 ms'; SET quantum = '1 second';\n"
                f"CREATE QUERY q INTO parquet 'out' AS SELECT n, text FROM blocks WHERE {where};")


PIPELINES = (
    Pipeline("two operators", (("op1", 900, 0.3), ("op2", 20000, 1.0))),
    Pipeline("four operators", (("op1", 600, 0.9), ("op2", 3000, 0.98),
                                ("op3", 600, 0.11), ("op4", 40000, 1.0))),
)


@dataclass
class Watch:
    """What the report needs of the events."""

    events: list[ev.Event] = field(default_factory=list)

    def __call__(self, event: ev.Event) -> None:
        if not isinstance(event, ev.Tick | ev.Memory):
            self.events.append(event)

    def delivered(self) -> dict[int, float]:
        """By block: when its answers came out."""
        decided = {e.run: e for e in self.events if isinstance(e, ev.Decided)}
        return {block: e.at for e in self.events if isinstance(e, ev.RunFinished)
                for block in decided[e.run].blocks}


def feed(source: Path, target: Path, first: int, count: int, every: float) -> None:
    """Let prepared files appear, one every so many seconds."""
    began = time.time()
    for number in range(first, first + count):
        time.sleep(max(0.0, began + (number - first) * every - time.time()))
        hidden = target / f".{number}"
        shutil.copyfile(source / f"{number}.parquet", hidden)
        os.utime(hidden, (1_700_000_000 + number,) * 2)
        hidden.rename(target / f"{number:04d}.parquet")


def prepare(folder: Path, blocks: int) -> None:
    folder.mkdir(parents=True)
    random = np.random.default_rng(5)
    for number in range(blocks):
        n = np.arange(number * ROWS, (number + 1) * ROWS)
        pq.write_table(pa.table({
            "n": n, "a": random.random(ROWS), "b": random.random(ROWS), "c": random.random(ROWS),
            "text": [f"row {i:012d}" for i in n]}), folder / f"{number}.parquet")


@contextmanager
def running(
    pipeline: Pipeline, policy: str, spark: Any, work: Path
) -> Iterator[tuple[Engine, Watch]]:
    """An engine that answers the pipeline's query, and what it tells."""
    (work / "in").mkdir(parents=True)
    (work / "burst_functions.py").write_text(pipeline.functions())
    sys.modules.pop("burst_functions", None)
    watch = Watch()
    with Engine(spark=spark, checkpoint=work / "state", on_event=watch) as engine:
        engine.load(pipeline.sql(policy), folder=work)
        engine.start()
        yield engine, watch
        engine.stop()


def burst(
    pipeline: Pipeline, every: float, prepared: Path, work: Path, through: Callable[[], int]
) -> float:
    """Warm up, then let the burst come, and wait until all is through; when it began."""
    feed(prepared, work / "in", 0, WARM_BLOCKS, 0.3)
    until(lambda: through() >= WARM_BLOCKS)
    began = time.time()
    feeder = threading.Thread(target=feed, args=(
        prepared, work / "in", WARM_BLOCKS, pipeline.blocks, every))
    feeder.start()
    until(lambda: through() >= WARM_BLOCKS + pipeline.blocks)
    feeder.join()
    return began


def calibrate(pipeline: Pipeline, spark: Any, prepared: Path, work: Path) -> float:
    """Seconds between two blocks of the burst: `PACE` of what FIFO takes for one here."""
    with running(pipeline, "fifo", spark, work) as (_, watch):
        for number in range(WARM_BLOCKS + 3):  # one at a time
            feed(prepared, work / "in", number, 1, 0.0)
            until(lambda wanted=number + 1: len(watch.delivered()) >= wanted)  # type: ignore[misc]
    seconds = [e.seconds for e in watch.events if isinstance(e, ev.RunFinished)]
    return PACE * float(np.median(seconds[-3:]))


def measure(
    pipeline: Pipeline, every: float, policy: str, spark: Any, prepared: Path, work: Path
) -> dict[str, Any]:
    """One policy through the burst."""
    with running(pipeline, policy, spark, work) as (engine, watch):
        began = burst(pipeline, every, prepared, work, lambda: len(watch.delivered()))
    told = engine.status()
    return _figures(
        pipeline, policy, watch, began, told.queries["q"].rows_out, told.accounting())


def _figures(
    pipeline: Pipeline, policy: str, watch: Watch, began: float, rows_out: int, faults: list[str]
) -> dict[str, Any]:
    arrived = {e.block.number: e.block.arrived for e in watch.events
               if isinstance(e, ev.BlockArrived)}
    waits = [at - arrived[block] for block, at in watch.delivered().items()
             if block >= WARM_BLOCKS]
    ended = max(watch.delivered().values())
    queued = [e for e in watch.events if isinstance(e, ev.Queued) and e.at >= began]
    deciding = sum(e.seconds for e in watch.events if isinstance(e, ev.Decided) and e.at >= began)
    runs = [e for e in watch.events if isinstance(e, ev.RunFinished | ev.RunKept)
            and e.at >= began]
    return {
        "pipeline": pipeline.name, "policy": policy,
        "peak waiting MB": max(e.bytes for e in queued) / 1e6,
        "peak hot MB": max(e.hot for e in queued) / 1e6,
        "kept on disk": sum(isinstance(e, ev.RunKept) and e.on_disk for e in runs),
        "p50 s": float(np.median(waits)), "p99 s": float(np.quantile(waits, 0.99)),
        "max s": max(waits), "rows/s": pipeline.blocks * ROWS / (ended - began),
        "runs": len(runs), "deciding %": 100 * deciding / (ended - began), "rows out": rows_out,
        "faults": len(faults),
        "_series": ([e.at - began for e in queued], [e.bytes / 1e6 for e in queued]),
    }


def native(
    pipeline: Pipeline, every: float, spark: Any, prepared: Path, work: Path
) -> dict[str, Any]:
    """The same conditions in one Structured Streaming query with `mapInArrow`."""
    (work / "in").mkdir(parents=True)
    done: dict[int, float] = {}
    rows = [0]

    def each(batch: Any, number: int) -> None:
        batch.persist()
        rows[0] += batch.count()
        batch.write.mode("append").parquet(str(work / "out"))
        batch.unpersist()
        done[number] = time.time()

    source = (spark.readStream.schema("n BIGINT, a DOUBLE, b DOUBLE, c DOUBLE, text STRING")
              .option("maxFilesPerTrigger", 1).parquet(str(work / "in")))
    filtered = source.mapInArrow(_native(pipeline), source.schema)
    query = (filtered.select("n", "text").writeStream.foreachBatch(each)
             .trigger(processingTime="100 milliseconds")
             .option("checkpointLocation", str(work / "state")).start())
    try:
        began = burst(pipeline, every, prepared, work, lambda: len(done))
    finally:
        query.stop()
    arrived = [began + n * every for n in range(pipeline.blocks)]
    ended = [done[WARM_BLOCKS + n] for n in range(pipeline.blocks)]
    waits = [end - at for at, end in zip(arrived, ended, strict=True)]
    size = pq.read_table(prepared / "0.parquet").nbytes / 1e6
    times = sorted([*arrived, *ended])
    level = [size * (sum(a <= t for a in arrived) - sum(e <= t for e in ended)) for t in times]
    return {
        "pipeline": pipeline.name, "policy": "native", "peak waiting MB": max(level),
        "peak hot MB": None, "kept on disk": None, "p50 s": float(np.median(waits)),
        "p99 s": float(np.quantile(waits, 0.99)), "max s": max(waits),
        "rows/s": pipeline.blocks * ROWS / (max(ended) - began), "runs": len(done) - WARM_BLOCKS,
        "deciding %": None, "rows out": rows[0], "faults": 0,
        "_series": ([t - began for t in times], level),
    }


def _native(pipeline: Pipeline) -> Callable[..., Any]:
    """The pipeline's own conditions, one after the other, on Arrow batches."""
    text = pipeline.functions().replace("penstock.predicate(function)", "function")
    names = [name for name, _, _ in pipeline.conditions]

    def through(batches: Any) -> Any:
        known: dict[str, Any] = {}
        exec(text, known)
        for batch in batches:
            for name in names:
                batch = batch.filter(known[name](batch["n"], batch["a"]))
            yield batch

    return through


def until(condition: Callable[[], bool], seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the burst is not through")
        time.sleep(0.05)


def run(quick: bool, out: Path, progress: Progress) -> Report:
    pipelines = PIPELINES[:1] if quick else PIPELINES
    policies = ("fifo", "round_robin", "chain") if quick else tuple(POLICIES)
    report = Report("bursts", title="Bursts on Spark")
    report.about = [__doc__ or ""]
    work = Path(tempfile.mkdtemp(prefix="penstock-bursts-"))
    try:
        prepare(work / "prepared", WARM_BLOCKS + max(p.blocks for p in pipelines))
        with Engine(checkpoint=work / "session", master="local[2]") as host:
            for pipeline in pipelines:
                _compare(pipeline, policies, host.session, work, out, report, progress)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return report


def _compare(
    pipeline: Pipeline, policies: tuple[str, ...], spark: Any, work: Path, out: Path,
    report: Report, progress: Progress,
) -> None:
    rows = []
    home = work / pipeline.name.replace(" ", "-")
    progress(f"{pipeline.name}: what a block takes")
    every = calibrate(pipeline, spark, work / "prepared", home / "calibration")
    for policy in ("native", *policies):
        progress(f"{pipeline.name}: {policy}")
        rows.append(native(pipeline, every, spark, work / "prepared", home / policy)
                    if policy == "native" else
                    measure(pipeline, every, policy, spark, work / "prepared", home / policy))
    file = draw(
        out / f"bursts-{pipeline.name.replace(' ', '-')}.png",
        Drawing(f"{pipeline.name}: bytes that wait", "seconds", "MB", steps=True),
        {row["policy"]: row.pop("_series") for row in rows})
    report.rows += rows
    _check(pipeline, {row["policy"]: row for row in rows}, report)
    report.figure(pipeline.name, f"What waits: {pipeline.name}", file,
                  checks=[check.id for check in report.checks if pipeline.name in check.id])


def _check(pipeline: Pipeline, rows: dict[str, dict[str, Any]], report: Report) -> None:
    peaks = {name: row["peak waiting MB"] for name, row in rows.items()}
    shown = ", ".join(f"{name} {peak:.2f}" for name, peak in peaks.items())
    if pipeline.name == "two operators":
        rivals = [peaks[name] for name in ("fifo", "round_robin")]
        report.check(f"half: {pipeline.name}", "Chain's peak is at most half of FIFO's and "
                     "Round-Robin's", "<= 0.5", shown, peaks["chain"] <= 0.5 * min(rivals))
    ours = {name: peak for name, peak in peaks.items() if name != "native"}
    report.check(f"lowest: {pipeline.name}", f"Chain's peak is the lowest: {pipeline.name}",
                 "no policy below it by more than 2 %", shown,
                 peaks["chain"] <= 1.02 * min(ours.values()))
    rates = {name: row["rows/s"] for name, row in rows.items() if name != "native"}
    report.check(f"rate: {pipeline.name}", f"Chain's throughput: {pipeline.name}",
                 ">= 0.9 of the best policy's",
                 f"{rates['chain'] / max(rates.values()):.2f}",
                 rates["chain"] >= 0.9 * max(rates.values()))
    report.check(f"native: {pipeline.name}", f"FIFO against native Spark: {pipeline.name}",
                 "rows a second, ratio >= 1",
                 f"{rates['fifo'] / rows['native']['rows/s']:.2f}",
                 rates["fifo"] >= rows["native"]["rows/s"])
    out = {row["rows out"] for row in rows.values()}
    report.check(f"answers: {pipeline.name}", f"all outputs are equal: {pipeline.name}",
                 "one number of rows, no fault in the books", f"{sorted(out)}",
                 len(out) == 1 and not any(row["faults"] for row in rows.values()))
    worst = max(row["deciding %"] for row in rows.values() if row["deciding %"] is not None)
    report.check(f"deciding: {pipeline.name}", f"deciding costs little: {pipeline.name}", "< 2 %",
                 f"{worst:.2f} %", worst < 2.0)
