"""Jobs that answer window aggregates from their synopsis."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.clock import Clock
from penstock.engine.instructions import RefreshJob
from penstock.events import kinds as ev
from penstock.plan import Plan
from penstock.spark.aggregates.synopsis_store import GroupSynopsis, SynopsisStore
from penstock.spark.delivery.commit import Delivery


@dataclass(frozen=True, slots=True)
class Refreshes:
    """Carries out refreshes: answers from a synopsis, delivered to their sinks."""

    clock: Clock
    windows: SynopsisStore
    delivery: Delivery

    def run(self, job: RefreshJob, plan: Plan, kept: GroupSynopsis) -> ev.JobFinished:
        """Answer by the plan and from the synopsis under which the job was ordered."""
        began = self.clock.now()
        answers, scanning = self.windows.answers(job, plan, kept)
        done = self.delivery.deliver(job, plan, answers)
        now = self.clock.now()
        return ev.JobFinished(
            at=now, job=job.number, kind="refresh", seconds=now - began, rows_out=done.rows,
            bytes_out=done.bytes, spark_jobs=done.jobs + answers.jobs, failed=done.failed,
            result=ev.RefreshResult(
                answers=job.answers, arrived=job.arrived, ends=job.ends, scanning=scanning,
                answering=now - began - scanning))
