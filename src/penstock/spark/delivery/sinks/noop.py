"""noop: answers are counted and discarded, for measurement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.plan import Member, Plan
from penstock.spark.delivery.answers import Answers
from penstock.spark.delivery.sinks.base import AnswerSink, Staged, WriteTask, counting
from penstock.spark.delivery.write_jobs import WriteJob, all_together


class NoopSink(AnswerSink):
    """Computes answers and keeps none."""

    stages_at_once = True

    def split(self, plan: Plan, members: Sequence[Member]) -> Iterable[WriteJob]:
        """One job computes the answers of all queries."""
        return all_together(plan, members)

    def stage(self, task: WriteTask, answers: Answers) -> Staged:
        """Count the rows; Spark computes them unless the driver knows their number."""
        known = answers.rows(task.write.members)
        if known is not None:
            return Staged(task.job, known)
        frame, counted = counting(task, answers)
        frame.write.format("noop").mode("overwrite").save()
        return Staged(task.job, counted(), jobs=1)
