"""Jobs over blocks: the stages of a segment as one Spark job, delivered or kept for a later one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from penstock.clock import Clock
from penstock.engine.instructions import SegmentJob
from penstock.engine.paths.stage_costs import names
from penstock.engine.settings import Settings
from penstock.events import kinds as ev
from penstock.model import Block
from penstock.plan import Path, Plan
from penstock.planning.conjunctions import conditions
from penstock.planning.efforts import cheapest_first
from penstock.rendering import render
from penstock.spark.aggregates.synopsis_store import GroupSynopsis
from penstock.spark.compile.compiler import Compiler
from penstock.spark.compile.file_scans import FileScan, scan_of, tasks_for
from penstock.spark.compile.partitioning import dealt, tasks
from penstock.spark.compile.pipeline import Progress
from penstock.spark.delivery.collected_answers import CollectedAnswers
from penstock.spark.delivery.commit import Delivery, added
from penstock.spark.jobs.condition_profiles import profiled
from penstock.spark.jobs.intermediate import IntermediateRows, IntermediateStore
from penstock.spark.jobs.rows_read import BlockReaders, Reading
from penstock.spark.storage.spool import Spool


@dataclass(frozen=True, slots=True)
class Order:
    """A job, and the plan and settings it was ordered under, whatever has changed since."""

    job: SegmentJob
    plan: Plan
    compiler: Compiler
    synopses: Mapping[str, GroupSynopsis] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The path of its stages."""
        return self.plan.path(self.job.path)

    @property
    def stages(self) -> list[str]:
        """The names of its stages, with its conjunction in the order of the job."""
        ordered = self.path.in_order(self.job.evaluation.order)
        if self.path.shared:  # what its predicates did is told beside the whole
            return [operator.id for operator in ordered.conjunction]
        return names(ordered)[self.job.first:self.job.last]


@dataclass(frozen=True)
class Segments:
    """Carries out jobs of paths that end in a sink."""

    spark: SparkSession
    job_group: Callable[[int], str]
    """The group under which Spark knows the Spark jobs of a job."""
    clock: Clock
    spools: Mapping[str, Spool]
    parts: IntermediateStore
    delivery: Delivery
    report: Callable[[ev.Event], None]
    cores: int
    settings: Settings
    readers: BlockReaders

    def run(self, order: Order) -> ev.JobFinished:
        """Carry out a job; when this returns, everything that it owes is committed."""
        self.readers.begin(order.job)
        try:
            return self._run(order)
        finally:
            self.readers.end(order.job)

    def _run(self, order: Order) -> ev.JobFinished:
        began, job = self.clock.now(), order.job
        sampled, bare = self._sampled(order)
        scan = self._scan(order)
        files = self._read_from_files(job) if scan is None else []
        frame = self._dealt(order) if scan is None else scan.frame(self.spark)
        reading = Reading.begun(self.spark, self.job_group(job.number), job, files, self.readers)
        ready = self.clock.now() if job.sample else began
        finish = self._finish if job.final else self._keep
        done = finish(order, frame, reading, scan)
        now = self.clock.now()
        # Another job may have kept the same blocks, and they may have become cold since.
        for block in (each for each in job.blocks if each.number in job.keep
                      and self.spools[each.stream].became_hot(each.number)):
            self.report(ev.BlockHot(at=now, stream=block.stream, number=block.number,
                                    bytes=block.bytes))
        assert isinstance(done.result, ev.SegmentResult | ev.PanesResult)
        return replace(done, at=now, seconds=now - ready, result=replace(
            done.result, measured={**done.result.measured, **sampled}, sampling=ready - began,
            bare=bare))

    def give_up(self, job: SegmentJob) -> None:
        """A job failed: the core does not count its blocks as hot, so they must not be."""
        for number in job.keep:
            self.spools[job.blocks[0].stream].cool(number)

    def _sampled(self, order: Order) -> tuple[dict[str, ev.StageFigures], float]:
        """The cost of the stages on a sample, if one is wanted; no block is kept for it."""
        job = order.job
        if not job.sample:
            return {}, 0.0
        frame = self._frame(replace(job, keep=()))
        return self.parts.measure(order.compiler, order.path, job, frame)

    def _measured(self, order: Order, progress: Progress | None) -> dict[str, ev.StageFigures]:
        """What workers measured and Spark counted for the stages of a path that calls Python."""
        job = order.job
        if progress is None:
            return {}
        entering = self.parts.rows(job.parts) if job.parts else job.rows
        return progress.measured(order.stages, entering, self.cores)

    def _raising(self, order: Order, measured: Mapping[str, ev.StageFigures]) -> dict[str, int]:
        """The queries one of whose predicates raised for all rows that came to it."""
        stages = {operator.text: operator.id for operator in order.path.conjunction}
        found: dict[str, int] = {}
        if not measured:
            return found
        for member in order.job.members:
            for predicate in conditions(order.plan.branch(member).where).movable:
                told = measured.get(stages.get(render(predicate), ""))
                if told is not None and told.raised >= told.rows_in > 0:
                    found[member.query] = round(told.rows_in)
        return found

    def _profile(
        self, order: Order, progress: Progress | None
    ) -> ev.ConjunctionProfile | None:
        """What workers found out about the conjunction of the path."""
        job, path = order.job, order.path
        first = max(job.first - path.before_python, 0)
        if progress is None or not job.evaluation.rate or first >= path.movable:
            return None
        profile = progress.profile(job.evaluation, first)
        return profile and replace(profile, cores=self.cores)

    @contextmanager
    def _profiling(self, order: Order) -> Iterator[Future[ev.ConjunctionProfile | None] | None]:
        """Measure SQL conditions beside their job, if it is to do that."""
        if not order.path.conditions or not order.job.evaluation.rate:
            yield None
            return
        with ThreadPoolExecutor(1, "penstock-profile") as beside:
            yield beside.submit(self._profile_of_conditions, order)

    def _profile_of_conditions(self, order: Order) -> ev.ConjunctionProfile | None:
        """The profile; if that fails, the job itself says what is wrong with its blocks."""
        job = order.job
        with suppress(Exception):
            files = self.spools[job.blocks[0].stream].local_files(
                [block.number for block in job.blocks])
            planned = cheapest_first(order.plan.branch(job.members[0]).where)
            if files is not None:
                return profiled(self.spark, planned, files, job.rows, job.evaluation)
        return None

    def _read_from_files(self, job: SegmentJob) -> list[Block]:
        """The blocks that a job reads from files itself."""
        if job.parts:
            return []
        spool = self.spools[job.blocks[0].stream]
        return [block for block in job.blocks if not spool.is_hot(block.number)]

    def _scan(self, order: Order) -> FileScan | None:
        """How Python workers read the rows of a job by themselves; None if Spark has to."""
        job = order.job
        if job.parts or job.keep or not job.rows:
            return None
        columns = order.compiler.columns_in_python(order.path, job.members)
        if columns is None:
            return None
        files = self.spools[job.blocks[0].stream].local_files(
            [block.number for block in job.blocks])
        wanted = tasks(job, self.settings.quantum, self.cores)
        return None if files is None else scan_of(
            files, columns, job.rows, tasks_for(job.rows, wanted, self.cores))

    def _dealt(self, order: Order) -> DataFrame:
        """The rows that enter a job, in suitable tasks if it calls Python."""
        frame, job = self._frame(order.job), order.job
        if not order.path.expensive:
            return frame
        kept = self.parts.tasks(job.parts)
        return dealt(frame, job, self.settings.quantum, self.cores, kept)

    def _frame(self, job: SegmentJob) -> DataFrame:
        """The rows that enter a job."""
        if job.parts:
            return self.parts.frame(job.parts)
        return self._rows(job, self.spools[job.blocks[0].stream])

    def _rows(self, job: SegmentJob, spool: Spool) -> DataFrame:
        """One scan of all blocks; their times of arrival, which no sink sees, take a scan each."""
        return spool.frame([block.number for block in job.blocks], job.keep)

    def _keep(
        self, order: Order, frame: DataFrame, reading: Reading, scan: FileScan | None
    ) -> ev.JobFinished:
        """Keep the rows for a later job; if none is left, that is an answer too."""
        job = order.job
        part = self.parts.keep(order.compiler, order.path, job, frame, reading, scan)
        profile = self._profile(order, part.progress)
        measured = self._measured(order, part.progress)
        for number in job.parts:
            self.parts.forget(number)
        if not part.rows:
            self.delivery.deliver_nothing(job)
            self.parts.forget(job.number)
            emptied = self._emptied(job, part)
            assert isinstance(emptied.result, ev.SegmentResult | ev.PanesResult)
            return replace(emptied, result=replace(
                emptied.result, measured=measured, profile=profile))
        kept = ev.KeptRows(rows=part.rows, bytes=part.bytes, on_disk=job.on_disk)
        return finished(job, ev.SegmentResult(
            rows_in=job.rows, operators=part.counts, kept=kept, measured=measured,
            profile=profile), spark_jobs=1)

    def _emptied(self, job: SegmentJob, part: IntermediateRows) -> ev.JobFinished:
        return finished(job, ev.SegmentResult(rows_in=job.rows, operators=part.counts),
                        spark_jobs=1)

    def _finish(
        self, order: Order, frame: DataFrame, reading: Reading, scan: FileScan | None
    ) -> ev.JobFinished:
        """Deliver the answers."""
        job, path = order.job, order.path
        sink = None if job.in_driver else self.delivery.worker_sink(job, order.plan)
        answers = replace(order.compiler.answers(path, job.members, frame, job.first,
                                                 job.evaluation, scan, sink), reading=reading)
        with self._profiling(order) as profiled:
            done = self.delivery.deliver(
                job, order.plan, CollectedAnswers(answers) if job.in_driver else answers)
        profile = profiled.result() if profiled else self._profile(order, answers.progress)
        measured = self._measured(order, answers.progress)
        for number in job.parts:
            self.parts.forget(number)
        result = ev.SegmentResult(
            rows_in=job.rows, rejected=done.rejected, errors=done.errors, operators=done.operators,
            added=added(job, done.rows, done.rejected) if path.lookups else {}, measured=measured,
            profile=profile, raising=self._raising(order, measured))
        return finished(job, result, rows_out=done.rows, bytes_out=done.bytes,
                        spark_jobs=done.jobs + job.in_driver, failed=done.failed)


def finished(
    job: SegmentJob, result: ev.SegmentResult | ev.PanesResult, *,
    rows_out: Mapping[str, int] | None = None, bytes_out: int = 0, spark_jobs: int = 0,
    failed: Mapping[str, str] | None = None,
) -> ev.JobFinished:
    """The event of a finished job; whoever carried it out adds the time and the seconds."""
    return ev.JobFinished(
        at=0.0, job=job.number, seconds=0.0, result=result,
        kind="panes" if isinstance(result, ev.PanesResult) else "segment",
        rows_out=rows_out or {}, bytes_out=bytes_out, spark_jobs=spark_jobs, failed=failed or {})
