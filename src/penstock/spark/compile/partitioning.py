"""Into how many tasks a job that calls Python is split.

Spark reads a small file as one task, however much work its rows are. One core would do all of it. A
preempting job would wait until the task ends, since tasks are not interrupted. Spark reads a train
of three blocks as three tasks, for which two cores take as long as for four. A shuffle distributes
the rows to tasks of equal size.
"""

from __future__ import annotations

from math import ceil

from pyspark.sql import DataFrame

from penstock.engine.instructions import SegmentJob

WORTH = 0.3
"""A job whose rows take at least this many seconds is worth shuffling them, which takes 0.05 s."""
PIECES = 6
"""Tasks per quantum and core of a job that may be preempted; each costs 0.02 to 0.05 s."""
SMALL = 4 << 20
"""For blocks of fewer bytes, Spark is not asked how many tasks it would read them in: its answer
takes 0.04 s, as long as distributing so few rows."""
BUSY = 0.8
"""The part of the cores' time, until the last task ends, in which they must have a task."""
MOST_PIECES = 30
"""The most tasks per core. The time of a job includes starting its tasks. So without a limit a busy
machine would split the next job more finely, and make it longer still."""


def tasks(job: SegmentJob, quantum: float, cores: int) -> int:
    """How many tasks a job should have; 1 leaves it as it is.

    A job has a task for every core. A job that may be preempted has shorter tasks, of a sixth of
    the quantum: a preempting job waits that long for a core.

    >>> from dataclasses import replace
    >>> from penstock.model import Block
    >>> block = Block("s", 0, rows=1000, bytes=0, arrived=0.0)
    >>> run = SegmentJob(number=1, kind="segment", segment="p", path="p", riders=1, members=(),
    ...                  blocks=(block,), expected=1.4, fixed=0.2)
    >>> [tasks(one, quantum=1.0, cores=2)
    ...  for one in (run, replace(run, yields=True), replace(run, fixed=1.2))]
    [2, 16, 1]
    """
    seconds = job.expected - job.fixed
    if seconds < WORTH:
        return 1
    short = quantum / PIECES
    pieces = ceil(min(seconds / short, MOST_PIECES)) if job.yields and short else 1
    return min(cores * max(pieces, 1), sum(block.rows for block in job.blocks))


def _enough(count: int, wanted: int, cores: int) -> bool:
    """Whether this many tasks of one length keep the cores busy.

    >>> [_enough(count, wanted=2, cores=2) for count in (1, 2, 3, 4, 5)]
    [False, True, False, True, True]
    """
    rounds = ceil(count / cores)
    return count >= max(wanted, BUSY * rounds * cores)


def dealt(frame: DataFrame, job: SegmentJob, quantum: float, cores: int, kept: int) -> DataFrame:
    """The rows of a job, distributed to suitable tasks; so far they are in ``kept`` tasks.

    Rows of a finely split job are put into fewer tasks if less work is left: every task would write
    a file of its own.
    """
    wanted = tasks(job, quantum, cores)
    small = not job.parts and sum(block.bytes for block in job.blocks) < SMALL
    if wanted > 1 and (
            small or not _enough(kept or frame.rdd.getNumPartitions(), wanted, cores)):
        return frame.repartition(wanted)
    return frame.coalesce(max(wanted, cores)) if job.parts else frame
