"""What happens inside a Python worker: call functions on Arrow batches, and survive what they do.

This module is shipped to the workers by value and imports nothing else of Penstock, because they
may not have it installed.

A worker also measures what it does: the rows and seconds of each function, and the cost of moving
rows to Python and back. An accumulator brings these figures to the driver when a task ends. A task
that is retried, or runs twice, is reported twice. So the figures serve for ratios, never for the
books.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import Accumulator, AccumulatorParam

TaskReport: TypeAlias = tuple[tuple[tuple[int, int, float], ...], int, float]
"""One task, in plain types: rows in, rows out and seconds of every step, and the seconds that
moving how many rows took."""
Reports: TypeAlias = dict[int, list[Any]]
"""By number, the reports of the tasks: `TaskReport` of a trip to Python, or the profile of one."""


@dataclass(frozen=True, slots=True)
class ConstantTest:
    """A comparison of values with a constant, as Spark makes it."""

    comparison: str
    constant: pa.Scalar

    def holds(self, values: pa.Array) -> pa.Array:
        """By row, whether it holds; null where there is no value.

        In SQL, NaN is larger than all numbers.
        """
        found = getattr(pc, _COMPARED[self.comparison])(values, self.constant)
        if self.comparison in ("gt", "ge") and pa.types.is_floating(values.type):
            return pc.or_(found, pc.is_nan(values))
        return found


_COMPARED = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
             "ge": "greater_equal"}


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """One call of a Python function."""

    result: str
    """The column that takes its values."""
    args: tuple[str, ...]
    """The columns that hold its arguments."""
    function: Callable[..., Any]
    form: str
    """The form in which it takes its columns: ``arrow`` or ``pandas``."""
    type: pa.DataType
    errors: tuple[str, ...] = ("@error",)
    """The columns that take its errors: one for each condition that needs it. A row that has one
    of these errors already is not passed to it."""
    test: ConstantTest | None = None
    """What is asked of its values, if they decide a condition."""

    @property
    def answers(self) -> pa.DataType:
        """The type of what is told of a row: a value, or whether the test holds."""
        return self.type if self.test is None else pa.bool_()


_SETTLED = "PENSTOCK_WORKER_SETTLED"


class BatchError(Exception):
    """The whole answer is unusable, so no single row can be blamed."""


class ReportsParam(AccumulatorParam[Reports]):
    """How the reports of tasks are combined in the driver."""

    def zero(self, value: Reports) -> Reports:
        """The value before a task has reported."""
        return {}

    def addInPlace(self, value1: Reports, value2: Reports) -> Reports:  # noqa: N802 (Spark's name)
        """Add the reports of a task."""
        for trip, told in value2.items():
            value1.setdefault(trip, []).extend(told)
        return value1


@dataclass(slots=True)
class TripMeter:
    """What one task measures.

    Moving rows is everything that happens between two batches: returning the answers of one, and
    waiting for the next while Spark makes it. The first batch also waits for files to be opened and
    for code to be compiled, so it does not count.
    """

    steps: list[tuple[int, int, float]]
    moved: int = 0
    moving: float = 0.0
    _left: float | None = field(default=None)

    def arrive(self, rows: int) -> None:
        """A batch has arrived."""
        if self._left is not None:
            self.moved += rows
            self.moving += perf_counter() - self._left

    def add(self, step: int, rows: int, left: int, seconds: float) -> None:
        """Count a step: its rows, the rows that it left, and its seconds."""
        before = self.steps[step]
        self.steps[step] = before[0] + rows, before[1] + left, before[2] + seconds

    def leave(self) -> None:
        """All steps of a batch are done."""
        self._left = perf_counter()

    @property
    def report(self) -> TaskReport:
        """The report of the task."""
        return tuple(self.steps), self.moved, self.moving


def send(reports: Accumulator[Reports], trip: int, report: Any) -> None:
    """Have a report sent to the driver when the task ends."""
    reports.add({trip: [report]})


def evaluate(
    steps: Sequence[FunctionCall], kept: Sequence[str], errors: Sequence[str],
    batches: Iterable[pa.RecordBatch], tell: Callable[[TaskReport], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Batches of the ``kept`` columns, the ``errors`` and the results.

    A row for which a function raised carries the text of the error. If there were any rows, the
    measurements are reported at the end.
    """
    settle()
    meter = TripMeter([(0, 0, 0.0)] * len(steps))
    for batch in batches:
        if batch.num_rows:
            meter.arrive(batch.num_rows)
            yield _evaluated(steps, kept, errors, batch, meter)
    if tell is not None and any(rows for rows, _, _ in meter.steps):
        tell(meter.report)


def settle() -> None:
    """Make a worker process fit for many short tasks beside others, once in its life.

    Spark's workers collect garbage after every task, and the next task waits for that. It takes 25
    ms for everything that pandas and Arrow bring, and next to nothing once those objects are
    frozen. Workers also give way to the driver and the JVM, which start preempting jobs. This
    module is loaded again with every task, so the process remembers.
    """
    if os.environ.get(_SETTLED) != str(os.getpid()):  # what a parent process has done is not enough
        os.environ[_SETTLED] = str(os.getpid())
        gc.collect()
        gc.freeze()
        os.nice(10)


def _evaluated(
    steps: Sequence[FunctionCall], kept: Sequence[str], errors: Sequence[str],
    batch: pa.RecordBatch, meter: TripMeter,
) -> pa.RecordBatch:
    known = set(batch.schema.names)
    told = {name: batch[name] if name in known else pa.nulls(batch.num_rows, pa.string())
            for name in errors}
    results: dict[str, pa.Array] = {}
    for number, step in enumerate(steps):
        began = perf_counter()
        live = pa.array([True] * batch.num_rows)
        for name in step.errors:
            live = pc.and_(live, pc.is_null(told[name]))
        args = [pc.filter(batch[name], live) for name in step.args]
        rows = pc.sum(live).as_py() or 0
        values, texts = answers(step, args, rows)
        results[step.result] = _spread(values, live)
        raised = _spread(texts, live)
        for name in step.errors:
            told[name] = pc.coalesce(told[name], raised)
        meter.add(number, rows, rows, perf_counter() - began)
    meter.leave()
    return pa.RecordBatch.from_pydict({**{name: batch[name] for name in kept}, **told, **results})


def _spread(values: pa.Array, live: pa.Array) -> pa.Array:
    """Values of the live rows at their places, null elsewhere."""
    if len(values) == len(live):
        return values
    position = pc.subtract(pc.cumulative_sum(live.cast(pa.int64())), 1)
    return values.take(pc.if_else(live, position, pa.scalar(None, pa.int64())))


def answers(step: FunctionCall, args: Sequence[pa.Array], rows: int) -> tuple[pa.Array, pa.Array]:
    """Values and errors of all rows; halves are retried until the culprits are known."""
    if rows == 0:
        return pa.nulls(0, step.answers), pa.nulls(0, pa.string())
    try:
        return _called(step, args, rows), pa.nulls(rows, pa.string())
    except BaseException as raised:  # whatever a user's function may do
        if rows == 1 or isinstance(raised, BatchError):
            text = pa.array([_text(raised)] * rows, pa.string())
            return pa.nulls(rows, step.answers), text
    half = rows // 2
    first = answers(step, [arg.slice(0, half) for arg in args], half)
    second = answers(step, [arg.slice(half) for arg in args], rows - half)
    return pa.concat_arrays([first[0], second[0]]), pa.concat_arrays([first[1], second[1]])


def _called(step: FunctionCall, args: Sequence[pa.Array], rows: int) -> pa.Array:
    given = [arg.to_pandas() for arg in args] if step.form == "pandas" else args
    values = _array(step.function(*given))
    if len(values) != rows:
        raise BatchError(f"the function returned {len(values)} values for {rows} rows")
    values = values.cast(step.type)
    return values if step.test is None else step.test.holds(values)


def _array(answer: Any) -> pa.Array:
    """What a function may return: Arrow, pandas, NumPy, or a list."""
    if isinstance(answer, pa.ChunkedArray):
        return answer.combine_chunks()
    if isinstance(answer, pa.Array):
        return answer
    if isinstance(answer, str | bytes) or not hasattr(answer, "__len__"):
        raise BatchError(f"the function returned {type(answer).__name__}, not one value per row")
    return pa.array(answer)


def _text(raised: BaseException) -> str:
    return str(raised) if isinstance(raised, BatchError) else described(raised)


def described(raised: BaseException) -> str:
    """The error in words that any file can hold; the text of an error may raise too."""
    try:
        text = str(raised)
    except BaseException as error:
        text = f"its text cannot be read: {type(error).__name__}"
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return f"{type(raised).__name__}: {text}" if text else type(raised).__name__
