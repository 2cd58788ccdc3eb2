"""What happens inside a Python worker: call functions on Arrow batches, and survive what they do.

This module is shipped to the workers by value and imports nothing of ours, because they may not
have it installed.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """One call of a Python function."""

    result: str
    """The column that takes its values."""
    args: tuple[str, ...]
    """The columns that hold its arguments."""
    function: Callable[..., Any]
    form: str
    """``arrow`` or ``pandas``: how it takes its columns."""
    type: pa.DataType
    guard: bool = False
    """A condition that the row must meet: the rows it does not hold for go no further."""


_SETTLED = "PENSTOCK_WORKER_SETTLED"


class BatchError(Exception):
    """The whole answer is unusable, so that no single row can be blamed."""


def evaluate(
    steps: Sequence[FunctionCall], kept: Sequence[str], error: str,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Batches of the ``kept`` columns, the error and the results.

    A row for which a function raised carries the text of the error, and a row for which a guard
    does not hold is dropped. Neither is shown to the steps that follow.
    """
    settle()
    for batch in batches:
        if batch.num_rows:
            yield _evaluated(steps, kept, error, batch)


def settle() -> None:
    """Make a worker process fit for many short tasks beside others, once in its life.

    Spark's workers collect garbage after every task, and the next task waits for that: 25 ms for
    all that pandas and Arrow bring, and next to nothing once those are set aside. They also give
    way to the driver and the JVM, which start preempting jobs. This module is loaded again with
    every task, so the process remembers.
    """
    if os.environ.get(_SETTLED) != str(os.getpid()):  # nor is what a parent has done enough
        os.environ[_SETTLED] = str(os.getpid())
        gc.collect()
        gc.freeze()
        os.nice(10)


def _evaluated(
    steps: Sequence[FunctionCall], kept: Sequence[str], error: str, batch: pa.RecordBatch
) -> pa.RecordBatch:
    errors = batch[error]
    gone = pa.array([False] * batch.num_rows)
    results: dict[str, pa.Array] = {}
    for step in steps:
        live = pc.and_not(pc.is_null(errors), gone)
        args = [pc.filter(batch[name], live) for name in step.args]
        values, texts = _answers(step, args, pc.sum(live).as_py() or 0)
        values = _spread(values, live)
        results[step.result] = values
        errors = pc.coalesce(errors, _spread(texts, live))
        if step.guard:
            held = pc.fill_null(values, False)
            gone = pc.or_(gone, pc.and_(pc.is_null(errors), pc.invert(held)))
    columns = {**{name: batch[name] for name in kept}, error: errors, **results}
    answered = pa.RecordBatch.from_pydict(columns)
    return answered.filter(pc.invert(gone))


def _spread(values: pa.Array, live: pa.Array) -> pa.Array:
    """Values of the live rows at their places, null elsewhere."""
    if len(values) == len(live):
        return values
    position = pc.subtract(pc.cumulative_sum(live.cast(pa.int64())), 1)
    return values.take(pc.if_else(live, position, pa.scalar(None, pa.int64())))


def _answers(step: FunctionCall, args: Sequence[pa.Array], rows: int) -> tuple[pa.Array, pa.Array]:
    """Values and errors of all rows; halves are tried again until the culprits are known."""
    if rows == 0:
        return pa.nulls(0, step.type), pa.nulls(0, pa.string())
    try:
        return _called(step, args, rows), pa.nulls(rows, pa.string())
    except BaseException as raised:  # whatever a user's function may do to us
        if rows == 1 or isinstance(raised, BatchError):
            text = pa.array([_text(raised)] * rows, pa.string())
            return pa.nulls(rows, step.type), text
    half = rows // 2
    first = _answers(step, [arg.slice(0, half) for arg in args], half)
    second = _answers(step, [arg.slice(half) for arg in args], rows - half)
    return pa.concat_arrays([first[0], second[0]]), pa.concat_arrays([first[1], second[1]])


def _called(step: FunctionCall, args: Sequence[pa.Array], rows: int) -> pa.Array:
    given = [arg.to_pandas() for arg in args] if step.form == "pandas" else args
    values = _array(step.function(*given))
    if len(values) != rows:
        raise BatchError(f"the function returned {len(values)} values for {rows} rows")
    return values.cast(step.type)


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
    """What was raised, in words that any file can hold; an error's own text may raise, too."""
    try:
        text = str(raised)
    except BaseException as error:
        text = f"its text cannot be had: {type(error).__name__}"
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return f"{type(raised).__name__}: {text}" if text else type(raised).__name__
