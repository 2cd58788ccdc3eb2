"""Warming up: while no rows come, every path and join is run over empty blocks.

Spark generates code for a path when it first runs, and forks Python workers when they are first
needed. So the first job of each kind takes seconds. Here both happen in the background, before
there is anything to do. Jobs go through the executors that will do the real work, with the same
compiler, over an empty block of the stream's columns. Everything else is a double on a temporary
checkpoint: spools, sinks, delivery log and synopses. So nothing of it reaches a sink, the record's
books or the real checkpoint.

Rows that are there at once warm the paths themselves, and sooner: on two cores the first answer of
the demonstration came after 6.3 s, and after 10.0 s with a warm-up beside it. So the first real job
ends the warm-up after the path it is at. A generator that follows the clock begins only when the
warm-up has ended: nobody has missed its rows, and none of them waits for a compiler. A failure of
the warm-up is not a failure of the run: a path that could not be warmed up is compiled when it is
needed.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from penstock.arrow import arrow_schema
from penstock.engine.instructions import JoinSide, ProbeJob, ProbeScan, SegmentJob
from penstock.engine.joins.outers import LATEST
from penstock.model import Application, Block, Sink
from penstock.plan import EARLIEST, Path, Plan, SharedJoin
from penstock.spark.aggregates.large_groups import LargeGroups
from penstock.spark.aggregates.synopsis_store import SynopsisStore
from penstock.spark.compile.compiler import Compiler
from penstock.spark.delivery.commit import Delivery
from penstock.spark.delivery.delivery_log import Deliveries
from penstock.spark.jobs.intermediate import IntermediateStore
from penstock.spark.jobs.panes import Panes
from penstock.spark.jobs.probes import Probes
from penstock.spark.jobs.rows_read import BlockReaders
from penstock.spark.jobs.segments import Order, Segments
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.files import Files
from penstock.spark.storage.spool import Manifest, Spool

HEAD_START = 1.0
"""Seconds in which rows may come before it begins."""
LONGEST = 8.0
"""Seconds after which it begins with no other path: generators wait for it."""
POOL = "warm-up"
"""The pool of its Spark jobs: they are small, and share the cores with real ones."""
JOIN_WITHIN = 5.0
"""Seconds for which an ending run waits for its warm-up."""
MOST = 1 << 30
"""Bytes of synopses that the doubles may have; they hold none."""


@dataclass
class WarmUp:
    """Warms the paths of a plan, in a thread of its own."""

    spark: SparkSession
    application: Application
    plan: Plan
    compiler: Compiler
    segments: Segments
    panes: Panes
    probes: Probes
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @property
    def step(self) -> str:
        """Its present step, in words."""
        paths = len(self.plan.paths) + len(self.plan.joins)
        return f"compiling {paths} path{'s' if paths > 1 else ''}"

    def start(self, done: Callable[[], None], at_once: bool) -> None:
        """Begin, unless a real job comes first; call ``done`` at the end.

        ``at_once`` says that no row can come before the end.
        """
        head_start = 0.0 if at_once else HEAD_START
        self._thread = threading.Thread(target=self._run, args=(done, head_start),
                                        name="penstock-warm-up", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Begin with no other path."""
        self._ended.set()

    def close(self) -> None:
        """Stop, and wait until nothing of it uses Spark any more."""
        self.stop()
        if self._thread is not None and self._thread.is_alive():
            with suppress(Exception):  # Spark may be gone
                self.spark.sparkContext.cancelJobGroup(self._group)
            self._thread.join(JOIN_WITHIN)

    @property
    def _group(self) -> str:
        return f"{self.segments.job_group(0)}-warm-up"

    def _run(self, done: Callable[[], None], head_start: float) -> None:
        if not self._ended.wait(head_start):
            with suppress(Exception):
                self._warm()
                self._fork_workers()
        done()

    def _fork_workers(self) -> None:
        """Have a Python worker forked for each core, which imports what all of them need."""
        calling = any(path.expensive or path.end == "panes" for path in self.plan.paths)
        calling = calling or any(join.path.expensive for join in self.plan.joins)
        if self._ended.is_set() or not calling:
            return
        cores = self.segments.cores
        rows = self.spark.range(0, cores, 1, cores)
        rows.mapInArrow(_unchanged, rows.schema).write.format("noop").mode("overwrite").save()

    def _warm(self) -> None:
        checkpoint = Checkpoint.open(None)
        try:
            until = time.monotonic() + LONGEST
            doubles = _Doubles.on(checkpoint, self)
            self._describe()
            for number, job in enumerate(doubles.jobs()):
                if self._ended.is_set() or time.monotonic() > until:
                    return
                with suppress(Exception):  # the real job says what is wrong with it
                    job(number)
        finally:
            checkpoint.close()
            shutil.rmtree(checkpoint.root, ignore_errors=True)

    def _describe(self) -> None:
        context = self.spark.sparkContext
        context.setJobGroup(self._group, "penstock warms up")
        context.setLocalProperty("spark.scheduler.pool", POOL)


@dataclass(frozen=True)
class _Doubles:
    """Executors with a checkpoint, spools, sinks and synopses that nothing else sees."""

    of: WarmUp
    plan: Plan
    segments: Segments
    panes: Panes
    probes: Probes

    @staticmethod
    def on(checkpoint: Checkpoint, of: WarmUp) -> _Doubles:
        """Empty blocks of all streams, and sinks that keep every answer in memory."""
        files = Files(of.spark)
        plan = replace(of.plan, queries=tuple(
            replace(query, sink=Sink(), also=()) for query in of.plan.queries))
        deliveries = Deliveries(checkpoint.log(checkpoint.deliveries))
        delivery = Delivery(checkpoint, files, deliveries, _no_callback)
        delivery.adopt(plan, replace(of.application, queries={q.name: q for q in plan.queries}))
        windows = SynopsisStore(of.spark, MOST, LargeGroups(checkpoint))
        windows.adopt(plan, lambda group: None)
        spools = {}
        joined = (stream for join in plan.joins for stream in join.streams)
        for name in dict.fromkeys([*(path.reads for path in plan.paths), *joined]):
            if name in of.application.streams:
                spools[name] = _with_an_empty_block(
                    Spool(of.spark, checkpoint, files, of.application.streams[name]))
        means: dict[str, Any] = {
            "spools": spools, "delivery": delivery, "parts": IntermediateStore(of.spark),
            "job_group": lambda number: of._group, "report": lambda event: None,
            "readers": BlockReaders()}
        return _Doubles(of, plan, replace(of.segments, **means),
                        replace(of.panes, **means, windows=windows, outgrow=lambda group: None),
                        replace(of.probes, spools=spools, delivery=delivery, windows=windows,
                                job_group=means["job_group"]))

    def jobs(self) -> Iterator[Callable[[int], None]]:
        """What is run, given a number each.

        At first nobody knows how many pairs a join finds, so executors write them. If they are few,
        the driver does from the second probe on.
        """
        for path in self.plan.paths:
            yield partial(self.run, path=path)
        for join in self.plan.joins:
            if join.path.end == "panes":
                yield partial(self.pair, join=join)
                continue
            yield partial(self.probe, join=join, in_driver=False)
            yield partial(self.probe, join=join, in_driver=True)

    def probe(self, number: int, join: SharedJoin, in_driver: bool) -> None:
        """Carry out a probe of empty blocks of both streams."""
        job = replace(_probe(number, join), in_driver=in_driver)
        self.probes.run(job, self.plan, self.of.compiler)

    def pair(self, number: int, join: SharedJoin) -> None:
        """The same for pairs that window aggregates summarise."""
        (group,) = self.plan.groups_on(join.path.id)
        job = replace(_probe(number, join), group=group.id)
        self.probes.summarise(job, self.plan, self.of.compiler, self.panes.windows.of(group.id))

    def run(self, number: int, path: Path) -> None:
        """Carry out a job over the empty block of the path's stream."""
        is_panes = path.end == "panes"
        job = SegmentJob(
            number=number, segment=path.id, path=path.id, kind="panes" if is_panes else "segment",
            riders=number, members=path.members, blocks=(Block(path.reads, 0, 0, 0, 0.0),),
            last=len(path.stages), in_driver=not is_panes)
        executor = self.panes if is_panes else self.segments
        executor.run(Order(job, self.plan, self.of.compiler, self.panes.windows.now))


def _probe(number: int, join: SharedJoin) -> ProbeJob:
    empty = [(Block(stream, 0, 0, 0, 0.0),) for stream in join.streams]
    scan = ProbeScan(
        since=EARLIEST, until=LATEST, nearest=0, farthest=join.span, members=join.members,
        sides=tuple(JoinSide(fresh=one, window=one) for one in empty))
    return ProbeJob(number=number, join=join.id, riders=number, members=join.members,
                    scans=(scan,), outer=0)


def _with_an_empty_block(spool: Spool) -> Spool:
    folder = spool.folder(0)
    folder.mkdir(parents=True)
    empty = arrow_schema(spool.stream.columns).empty_table()
    pq.write_table(empty, folder / "part-0.parquet")
    spool.add(Manifest(number=0, rows=0, bytes=0, arrived=0.0, read=0))
    return spool


def _no_callback(target: str, query: str) -> Callable[..., None]:
    raise LookupError(f"{query} has no callback while it is warmed up: {target}")


def _unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
