"""What SQL conditions cost and drop, measured on a few rows of the blocks of a job.

Spark's generated code cannot be timed inside. So the driver takes a few rows from the files and has
Spark evaluate every condition on each of them, with the clock of its JVM read in between. On most
rows nothing disturbs a condition, so the median counts. Reading the clock costs as much as a
comparison does: conditions cheaper than `LEAST` are not told apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from penstock.engine.instructions import Evaluation
from penstock.events.kinds import ConjunctionProfile
from penstock.model import STREAM, Expression
from penstock.planning.shapes import columns
from penstock.spark.compile.columns import compiled, place
from penstock.spark.compile.file_scans import FileScan, LocalFile, scan_of
from penstock.spark.compile.file_worker import read

PLACES = 4
"""Places in the blocks from which neighbouring rows are taken: neighbours may be alike."""
LEAST = 5e-8
"""The least seconds that a condition is taken to cost on a row."""


def profiled(
    spark: SparkSession, conditions: Sequence[Expression], files: Sequence[LocalFile], rows: int,
    evaluation: Evaluation,
) -> ConjunctionProfile | None:
    """The profile of conditions, as they are planned, over files with so many rows.

    None if Arrow does not read these files as Spark does.
    """
    began = perf_counter()
    scan = scan_of(files, tuple(columns(conditions)), rows, tasks=1)
    if scan is None:
        return None
    sample = _sample(scan, max(PLACES, round(rows * evaluation.rate)), evaluation.seed)
    dropped, seconds = _measured(spark, conditions, sample)
    patterns = _patterns(dropped, evaluation)
    passed = patterns.pop("0" * len(conditions), 0)
    found = sum(patterns.values())
    return ConjunctionProfile(
        version=evaluation.version, patterns=dict(sorted(patterns.items())), seconds=seconds,
        passed=passed / found if found else 0.0, sampling=perf_counter() - began)


def _sample(scan: FileScan, rows: int, seed: int) -> pa.Table:
    """Some rows, with their columns at their places."""
    named = scan.named({column: place(STREAM, column.name) for column in scan.columns})
    pieces = [piece for task in scan.tasks for piece in task]
    sizes = np.array([piece.rows for piece in pieces])
    chance, found = np.random.default_rng(seed), list[pa.RecordBatch]()
    for number in chance.choice(len(pieces), PLACES, p=sizes / sizes.sum()):
        wanted = min(-(-rows // PLACES), pieces[number].rows)
        first = int(chance.integers(0, pieces[number].rows - wanted + 1))
        found += read(replace(pieces[number], first=first, last=first + wanted), named)
    return pa.Table.from_batches(found)


def _measured(
    spark: SparkSession, conditions: Sequence[Expression], sample: pa.Table
) -> tuple[npt.NDArray[np.bool_], tuple[float, ...]]:
    """By row and condition whether it drops the row; by condition its seconds on a row."""
    clock = sf.java_method(sf.lit("java.lang.System"), sf.lit("nanoTime"))
    asked = [clock.alias("begun"), clock.alias("time0")]
    for number, condition in enumerate(conditions, start=1):
        asked += [compiled(condition).alias(f"holds{number}"), clock.alias(f"time{number}")]
    told = spark.createDataFrame(sample.combine_chunks()).select(*asked).toArrow()
    times = np.column_stack([told[name].cast(pa.int64()).to_numpy() for name in (
        "begun", *(f"time{number}" for number in range(len(conditions) + 1)))])
    idle, *spent = np.median(np.diff(times, axis=1), axis=0)
    holds = np.column_stack([pc.fill_null(told[f"holds{number}"], False).to_numpy()
                             for number in range(1, len(conditions) + 1)])
    return ~holds, tuple(max(float(took - idle) * 1e-9, LEAST) for took in spent)


def _patterns(dropped: npt.NDArray[np.bool_], evaluation: Evaluation) -> Counter[str]:
    """How often each pattern of drops was found, without what the policy did not ask for.

    >>> found = np.array([[True, True, False], [False, True, True], [False, False, False]])
    >>> _patterns(found, Evaluation(order=(1, 0, 2), unasked=((1,), (2,), ())))
    Counter({'110': 1, '010': 1, '000': 1})
    """
    order = list(evaluation.order)
    placed = dropped[:, order]
    first = placed.argmax(axis=1)
    shown = np.zeros_like(placed)
    for place_, later in enumerate(evaluation.unasked):
        shown[np.ix_(first == place_, [place_, *later])] = True
    kept = np.zeros_like(dropped)
    kept[:, order] = placed & shown
    return Counter("".join("1" if bit else "0" for bit in row) for row in kept)
