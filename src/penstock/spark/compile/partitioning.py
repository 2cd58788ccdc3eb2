"""Into how many tasks a run that calls Python is split.

Spark reads a small file as one task, however much work its rows are: one core would do all of it,
and whoever overtakes would wait until the task ends, since tasks are not interrupted. It reads a
train of three as three tasks: two cores would take as long as for four. A shuffle deals the rows
out to tasks that are alike.
"""

from __future__ import annotations

from math import ceil

from pyspark.sql import DataFrame

from penstock.engine.instructions import SegmentJob

WORTH = 0.3
"""Seconds of a run from which on dealing its rows out is worth a shuffle, of about 0.05 s."""
PIECES = 3
"""Tasks per quantum and core of a run that may be overtaken; each costs about 0.05 s."""
SMALL = 4 << 20
"""Bytes of blocks below which Spark is not asked in how many tasks it would read them: its answer
takes 0.04 s, as long as dealing out so few rows."""
BUSY = 0.8
"""Part of the cores' time, until the last task ends, in which they must have one."""
MOST_PIECES = 10
"""Tasks per core at most. What a run took includes what its tasks cost to start, so without a limit
a busy machine would split the next run more finely, and make it longer still."""


def tasks(job: SegmentJob, quantum: float, cores: int) -> int:
    """How many tasks a run should have; 1 leaves it as it is.

    A run has a task for every core. One that may be overtaken has shorter ones, of a third of the
    quantum: that is how long an overtaking run waits for a core.

    >>> from dataclasses import replace
    >>> from penstock.model import Block
    >>> block = Block("s", 0, rows=1000, bytes=0, arrived=0.0)
    >>> run = SegmentJob(number=1, kind="segment", segment="p", path="p", riders=1, members=(),
    ...                  blocks=(block,), expected=1.2)
    >>> [tasks(one, quantum=1.0, cores=2)
    ...  for one in (run, replace(run, yields=True), replace(run, expected=0.1))]
    [2, 8, 1]
    """
    if job.expected < WORTH:
        return 1
    short = quantum / PIECES
    pieces = ceil(min(job.expected / short, MOST_PIECES)) if job.yields and short else 1
    return min(cores * max(pieces, 1), sum(block.rows for block in job.blocks))


def _enough(count: int, wanted: int, cores: int) -> bool:
    """Whether so many tasks of one length keep the cores busy.

    >>> [_enough(count, wanted=2, cores=2) for count in (1, 2, 3, 4, 5)]
    [False, True, False, True, True]
    """
    rounds = ceil(count / cores)
    return count >= max(wanted, BUSY * rounds * cores)


def dealt(frame: DataFrame, job: SegmentJob, quantum: float, cores: int, kept: int) -> DataFrame:
    """The rows of a run in tasks that suit it; what its parts have ``kept`` is in so many.

    What a finely split run has kept is gathered again where less work is left: every task would
    write a file of its own.
    """
    wanted = tasks(job, quantum, cores)
    small = not job.parts and sum(block.bytes for block in job.blocks) < SMALL
    if wanted > 1 and (
            small or not _enough(kept or frame.rdd.getNumPartitions(), wanted, cores)):
        return frame.repartition(wanted)
    return frame.coalesce(max(wanted, cores)) if job.parts else frame
