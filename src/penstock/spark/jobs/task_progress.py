"""The progress of a job, in tasks: a preempted job keeps its finished tasks."""

from __future__ import annotations

from pyspark.sql import SparkSession


def tasks_done(spark: SparkSession, group: str) -> float:
    """The part of the tasks of a job group that is finished, as far as Spark has planned them."""
    tracker = spark.sparkContext.statusTracker()
    total = finished = 0
    for job in tracker.getJobIdsForGroup(group):
        known = tracker.getJobInfo(job)
        for stage in known.stageIds if known else ():
            told = tracker.getStageInfo(stage)
            if told:
                total += told.numTasks
                finished += told.numCompletedTasks
    return finished / total if total else 0.0
