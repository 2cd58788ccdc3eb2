"""Jobs that probe the window of a shared join: the spool is the window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from penstock.clock import Clock
from penstock.engine.instructions import ProbeJob
from penstock.events import kinds as ev
from penstock.plan import Plan
from penstock.spark.compile.compiler import Compiler
from penstock.spark.compile.pairs import least_read
from penstock.spark.delivery.collected_answers import CollectedAnswers
from penstock.spark.delivery.commit import Delivered, Delivery
from penstock.spark.delivery.counted_answers import CountedAnswers
from penstock.spark.jobs.rows_read import ProbeReading
from penstock.spark.storage.spool import Spool

COUNTS = "noop"
"""The kind of sink that only counts."""


@dataclass(frozen=True, slots=True)
class Probes:
    """Carries out probes: pairs of fresh rows and blocks of the spool, delivered to their sinks."""

    spark: SparkSession
    job_group: Callable[[int], str]
    """The group under which Spark knows the Spark jobs of a job."""
    clock: Clock
    spools: Mapping[str, Spool]
    delivery: Delivery

    def run(self, job: ProbeJob, plan: Plan, compiler: Compiler) -> ev.JobFinished:
        """Probe by the plan under which the job was ordered."""
        began = self.clock.now()
        for through in job.through:
            self.spools[through.stream].set_late_aside(through.blocks)
        done = self._delivered(job, plan, compiler)
        now = self.clock.now()
        return ev.JobFinished(
            at=now, job=job.number, kind="probe", seconds=now - began, rows_out=done.rows,
            bytes_out=done.bytes, spark_jobs=done.jobs, failed=done.failed,
            result=ev.ProbeResult(
                through=job.through, late=job.late, rejected=done.rejected, errors=done.errors,
                ends={query: end for query, end in job.ends.items() if query not in done.failed},
                added=job.added(done.rows, done.rejected), operators=done.operators))

    def _delivered(self, job: ProbeJob, plan: Plan, compiler: Compiler) -> Delivered:
        if not job.scans:  # the blocks alone show that there are no pairs
            self.delivery.deliver_nothing(job)
            return Delivered()
        join, reading = plan.join(job.join), self._reading(job, plan)
        if self._only_counts(job, plan):
            counted = compiler.counted(join, job.members, job.scans, self._rows)
            done = self.delivery.deliver(job, plan, CountedAnswers(counted, reading))
            return replace(done, jobs=1)
        answers = replace(compiler.paired(join, job.members, job.scans, self._rows),
                          reading=reading)
        done = self.delivery.deliver(
            job, plan, CollectedAnswers(answers) if job.in_driver else answers)
        return replace(done, jobs=done.jobs + job.in_driver)

    def _only_counts(self, job: ProbeJob, plan: Plan) -> bool:
        """Whether nobody looks at the pairs, and a pair is an answer."""
        path = plan.join(job.join).path
        return not path.lookups and not path.expensive and all(
            plan.query(member.query).sink.kind == COUNTS for member in job.members)

    def _reading(self, job: ProbeJob, plan: Plan) -> ProbeReading:
        join = plan.join(job.join)
        return ProbeReading.begun(self.spark, self.job_group(job.number), join.id,
                                  least_read(join, job.scans))

    def _rows(self, stream: str, numbers: Sequence[int]) -> DataFrame:
        """The rows of some blocks, without the late ones, which no window takes."""
        return self.spools[stream].timely_frame(numbers)
