"""Into how many tasks a run that calls Python is split.

Spark reads a small file as one task, however much work its rows are: one core would do all of it,
and whoever overtakes would wait until the task ends, since tasks are not interrupted. A shuffle
deals the rows out to more tasks.
"""

from __future__ import annotations

from math import ceil

from pyspark.sql import DataFrame

from penstock.engine.instructions import Run

WORTH = 0.3
"""Seconds of a run from which on dealing its rows out is worth a shuffle, of about 0.05 s."""
PIECES = 5
"""Tasks per quantum and core of a run that may be overtaken."""
SHORTEST = 0.1
"""Seconds below which a task is not worth the milliseconds that starting it costs."""


def tasks(run: Run, quantum: float, cores: int) -> int:
    """How many tasks a run should have; 1 leaves it as it is.

    A run has a task for every core. One that may be overtaken has shorter ones, of a fifth of the
    quantum: that is how long an overtaking run waits for a core.

    >>> from dataclasses import replace
    >>> from penstock.model import Block
    >>> run = Run(1, "p", "p", 1, (), (Block("s", 0, rows=1000, bytes=0, arrived=0.0),),
    ...           expected=3.0)
    >>> [tasks(one, quantum=1.0, cores=2)
    ...  for one in (run, replace(run, yields=True), replace(run, expected=0.1))]
    [2, 30, 1]
    """
    if run.expected < WORTH:
        return 1
    pieces = ceil(run.expected / max(quantum / PIECES, SHORTEST)) if run.yields else 1
    rows = sum(block.rows for block in run.blocks)
    return min(cores * max(pieces, 1), rows)


def dealt(frame: DataFrame, run: Run, quantum: float, cores: int) -> DataFrame:
    """The rows of a run in tasks that suit it.

    What a finely split run has kept is gathered again where little work is left: every task would
    write a file of its own.
    """
    wanted = tasks(run, quantum, cores)
    if wanted > 1 and frame.rdd.getNumPartitions() < wanted:
        return frame.repartition(wanted)
    return frame.coalesce(cores) if wanted == 1 and run.parts else frame
