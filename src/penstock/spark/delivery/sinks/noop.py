"""noop: answers are counted and discarded, for measurement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from pyspark.sql.types import BinaryType, StructField, StructType

from penstock.plan import Member, Plan
from penstock.spark.compile.answer_worker import AnswerCounter
from penstock.spark.compile.worker_sinks import WorkerSink
from penstock.spark.delivery.answers import Answers
from penstock.spark.delivery.sinks.base import (
    AnswerSink,
    Staged,
    WriteTask,
    by_query,
    counting,
    sum_of,
)
from penstock.spark.delivery.write_jobs import WriteJob, all_together

COUNTED = StructType([StructField("rows", BinaryType())])


class NoopSink(AnswerSink):
    """Computes answers and keeps none."""

    stages_at_once = True

    def split(self, plan: Plan, members: Sequence[Member]) -> Iterable[WriteJob]:
        """One job computes the answers of all queries."""
        return all_together(plan, members)

    def worker_sink(self, plan: Plan, task: WriteTask) -> WorkerSink:
        """Workers count the rows."""
        return WorkerSink(partial(AnswerCounter, len(task.members)), COUNTED)

    def stage(self, task: WriteTask, answers: Answers) -> Staged:
        """Count the rows; Spark computes them unless the driver knows their number."""
        told = answers.told()
        if told is not None:
            rows = sum_of(told["rows"], len(task.members))
            return Staged(task.job, by_query(rows, task.members), jobs=1)
        known = answers.rows(task.write.members)
        if known is not None:
            return Staged(task.job, known)
        frame, counted = counting(task, answers)
        frame.write.format("noop").mode("overwrite").save()
        return Staged(task.job, counted(), jobs=1)
