"""Jobs that probe the window of a shared join: the spool is the window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from penstock.clock import Clock
from penstock.engine.instructions import ProbeJob, ProbeScan
from penstock.events import kinds as ev
from penstock.plan import Plan, SharedJoin
from penstock.spark.aggregates.synopsis_store import GroupSynopsis, SynopsisStore
from penstock.spark.compile.compiler import Compiler
from penstock.spark.compile.multiway import Survivors
from penstock.spark.compile.pairs import least_read
from penstock.spark.delivery.collected_answers import CollectedAnswers
from penstock.spark.delivery.commit import Delivered, Delivery
from penstock.spark.delivery.counted_answers import CountedAnswers
from penstock.spark.jobs.drop_probes import Dropped, DropProbes
from penstock.spark.jobs.rows_read import ProbeReading
from penstock.spark.storage.spool import Spool

COUNTS = "noop"
"""The kind of sink that only counts."""


@dataclass(frozen=True, slots=True)
class _Reduced:
    """What is left of a job's scans to be joined."""

    scans: Sequence[ProbeScan]
    survivors: Sequence[Survivors] = ()
    """By scan of a multiway join: the keys that no stream has dropped."""
    profiles: tuple[ev.ProbeProfile, ...] = ()
    jobs: int = 0
    """Spark jobs that it took to find out."""

    @staticmethod
    def of(found: Sequence[tuple[ProbeScan, Dropped]]) -> _Reduced:
        """What drop probing has found for each scan."""
        left = [(scan, dropped.survivors) for scan, dropped in found if dropped.survivors]
        return _Reduced([scan for scan, _ in left], [survivors for _, survivors in left],
                        tuple(profile for _, dropped in found for profile in dropped.profiles),
                        sum(dropped.jobs for _, dropped in found))


@dataclass(frozen=True, slots=True)
class Probes:
    """Carries out probes: pairs of fresh rows and blocks of the spool, delivered to their sinks."""

    spark: SparkSession
    job_group: Callable[[int], str]
    """The group under which Spark knows the Spark jobs of a job."""
    clock: Clock
    spools: Mapping[str, Spool]
    delivery: Delivery
    windows: SynopsisStore

    def summarise(
        self, job: ProbeJob, plan: Plan, compiler: Compiler, kept: GroupSynopsis
    ) -> ev.JobFinished:
        """Put the pairs into the panes that window aggregates answer from.

        No line of the log commits that: after a crash all panes are made again. So pairs for which
        a Python function raises are counted and not set aside, where they would stand twice.
        """
        began = self.clock.now()
        for through in job.through:
            self.spools[through.stream].set_late_aside(through.blocks)
        panes: dict[int, int] = {}
        operators: dict[str, int] = {}
        jobs, refused, error, found = 0, 0, "", self._reduced(job, plan, compiler)
        if found.scans:
            with compiler.summarised_pairs(
                plan.join(job.join), found.scans, self._rows, found.survivors) as rows:
                panes, jobs = self.windows.take_pairs(job, rows, kept)
                if rows.python is not None and jobs:  # else an earlier attempt took the pairs
                    operators, refused = rows.python.counts(), rows.python.rejected()
                    error = rows.python.first_error() if refused else ""
                    jobs += bool(refused)
        queries = [member.query for member in job.members]
        pairs = dict.fromkeys(queries, sum(panes.values()))
        rejected = dict.fromkeys(queries, refused) if refused else {}
        now = self.clock.now()
        return ev.JobFinished(
            at=now, job=job.number, kind="probe", seconds=now - began,
            spark_jobs=jobs + found.jobs, result=ev.ProbeResult(
                through=job.through, late=job.late, added=job.added(pairs, rejected),
                summarised=pairs, rejected=rejected, errors=dict.fromkeys(rejected, error),
                operators=operators, panes={job.group: tuple(sorted(panes))},
                profiles=found.profiles))

    def run(self, job: ProbeJob, plan: Plan, compiler: Compiler) -> ev.JobFinished:
        """Probe by the plan under which the job was ordered."""
        began = self.clock.now()
        for through in job.through:
            self.spools[through.stream].set_late_aside(through.blocks)
        oldest = self._oldest(job, plan, compiler)  # first: after the commit nothing may fail
        reading = self._reading(job, plan)
        found = self._reduced(job, plan, compiler)
        done = self._delivered(job, plan, compiler, found, reading)
        now = self.clock.now()
        return ev.JobFinished(
            at=now, job=job.number, kind="probe", seconds=now - began, rows_out=done.rows,
            bytes_out=done.bytes, spark_jobs=done.jobs + found.jobs + bool(oldest),
            failed=done.failed,
            result=ev.ProbeResult(
                through=job.through, late=job.late, rejected=done.rejected, errors=done.errors,
                ends={query: end for query, end in job.ends.items() if query not in done.failed},
                added=job.added(done.rows, done.rejected), operators=done.operators,
                oldest=oldest, profiles=found.profiles))

    def _reduced(self, job: ProbeJob, plan: Plan, compiler: Compiler) -> _Reduced:
        """The scans that may find something; of a multiway join, with the keys that are left."""
        if not job.orders:
            return _Reduced(job.scans)
        probes = DropProbes(compiler.multiway(plan.join(job.join)), self._rows)
        found = [(scan, probes.run(scan, job.orders)) for scan in job.scans]
        return _Reduced.of(found)

    def _delivered(
        self, job: ProbeJob, plan: Plan, compiler: Compiler, found: _Reduced,
        reading: ProbeReading,
    ) -> Delivered:
        if not found.scans:  # the blocks alone show that there are no pairs, or drop probing has
            if found.jobs:
                reading.check()
            self.delivery.deliver_nothing(job)
            return Delivered()
        join = plan.join(job.join)
        if self._only_counts(job, plan):
            counted = compiler.counted(
                join, job.members, found.scans, self._rows, found.survivors)
            done = self.delivery.deliver(job, plan, CountedAnswers(counted, reading))
            return replace(done, jobs=1)
        answers = replace(
            compiler.paired(join, job.members, found.scans, self._rows_of(join), found.survivors),
            reading=reading)
        done = self.delivery.deliver(
            job, plan, CollectedAnswers(answers) if job.in_driver else answers)
        return replace(done, jobs=done.jobs + job.in_driver)

    def _only_counts(self, job: ProbeJob, plan: Plan) -> bool:
        """Whether nobody looks at the pairs, and a pair is an answer."""
        join = plan.join(job.join)
        is_plain = not join.rows and not join.path.lookups and not join.path.expensive
        return is_plain and all(
            sink.kind == COUNTS for member in job.members
            for sink in plan.query(member.query).sinks)

    def _reading(self, job: ProbeJob, plan: Plan) -> ProbeReading:
        join = plan.join(job.join)
        return ProbeReading.begun(self.spark, self.job_group(job.number), join.id,
                                  least_read(join, job.scans))

    def _oldest(self, job: ProbeJob, plan: Plan, compiler: Compiler) -> tuple[int, ...]:
        """By side of a join over rows, the time of the oldest row that later rows can meet."""
        join = plan.join(job.join)
        if not join.rows or not job.scans:
            return ()
        return compiler.oldest(join, job.scans[0], self._numbered_rows)

    def _rows_of(self, join: SharedJoin) -> Callable[[str, Sequence[int]], DataFrame]:
        return self._numbered_rows if join.rows else self._rows

    def _numbered_rows(self, stream: str, numbers: Sequence[int]) -> DataFrame:
        """The same with their places, by which windows of rows count them."""
        return self.spools[stream].numbered_frame(numbers)

    def _rows(self, stream: str, numbers: Sequence[int]) -> DataFrame:
        """The rows of some blocks, without the late ones, which no window takes."""
        return self.spools[stream].window_frame(numbers)
