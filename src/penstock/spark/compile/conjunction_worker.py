"""A conjunction of Python predicates in a worker: in the decided order, each on what is left.

This module is shipped to the workers by value, together with `python_worker` and `own_order`, and
imports nothing else of Penstock.

After every predicate only the rows are kept that it does not drop, and the next one gets just the
columns that it reads. A row for which a predicate raises goes on through the others. If one of them
is false, the row is dropped like any other. If none is, the row is a reject, with the error of the
predicate that is written first. So the order decides nothing but the time.

Beside this a worker profiles: on a small sample of the rows that were dropped it evaluates the
other predicates too, as the filters policy asks (`penstock.policies.filters`). The sample of a task
is evaluated at once, at the end, since a call costs as much as thousands of rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.spark.compile.own_order import own_order
from penstock.spark.compile.python_worker import (
    FunctionCall,
    TaskReport,
    TripMeter,
    answers,
    settle,
)

Rows: TypeAlias = npt.NDArray[np.int64]
"""Numbers of rows within a part."""
ProfileReport: TypeAlias = tuple[
    tuple[int, ...], tuple[tuple[int, int], ...], tuple[tuple[int, float], ...], tuple[int, ...]]
"""One task, in plain types. By predicate as they were ordered, the rows that it raised for; how
often each pattern was found, as bits of its number; the rows and seconds of the profiling; and the
order of its own in which it went on, if it did."""
Order: TypeAlias = tuple[int, ...]
"""The places of predicates, in the order in which they are evaluated."""
PART_ROWS = 1 << 16
"""Rows that are evaluated at once: a call then costs little beside its rows, and what it reads is
still in the cache."""
PART_BYTES = 16 << 20
"""Fewer rows are evaluated at once if they are wide."""
LEAST_AHEAD = 8
"""A task looks ahead if its first part has so many times as many rows."""
AHEAD_SAVES = 0.1
"""An order chosen by so few rows must save this part of the cost."""
_NOBODY = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class Predicate:
    """One predicate of the conjunction."""

    call: FunctionCall
    written: int
    """Its place among the conditions of the query, as written."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which rows are profiled, and how."""

    rate: float
    """The share of the rows to choose; those that are dropped are profiled."""
    predicates: tuple[Predicate, ...]
    """The predicates of the trip, and those of later trips, in order."""
    unasked: tuple[tuple[int, ...], ...]
    """By the place at which a row was dropped: the later places to evaluate as well."""
    places: int
    """How many of the predicates the trip evaluates; rows that pass these are not profiled."""
    seed: int = 0
    per_partition: float = 0.0
    """An order of its own must save the task this part of the cost; 0 if it is not to have one."""
    enough: int = 0
    """Dropped rows that the task must have profiled before."""
    lookahead: int = 0
    """Rows to profile before the task begins, which then chooses its order by them."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of the columns that a worker passes on, and of those that it fills."""

    kept: tuple[str, ...]
    error: str
    """The error of a row for which a predicate raised."""
    blamed: str
    """The place at which that predicate is written."""


def evaluate(
    predicates: Sequence[Predicate], columns: Columns, batches: Iterable[pa.RecordBatch],
    sampling: Sampling | None = None, tell: Callable[[TaskReport], None] | None = None,
    profile: Callable[[ProfileReport], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows that no predicate drops, with their errors."""
    yield from part_by_part(
        len(predicates), partial(_passed, predicates, columns), batches, sampling, tell, profile)


def part_by_part(
    count: int, evaluated: Callable[[Part, TripMeter, list[int], Order], pa.RecordBatch],
    batches: Iterable[pa.RecordBatch], sampling: Sampling | None,
    tell: Callable[[TaskReport], None] | None, profile: Callable[[ProfileReport], None] | None,
) -> Iterator[pa.RecordBatch]:
    """What becomes of the rows of a task; at its end, its reports.

    ``evaluated`` shows a part to the predicates in some order, measures them, and counts by
    predicate the rows for which it raised.
    """
    settle()
    meter = TripMeter([(0, 0, 0.0)] * count)
    raised = [0] * count
    sample = Sample(sampling) if sampling is not None and sampling.rate > 0 else None
    order = present = tuple(range(count))
    for number, table in enumerate(parts(batches)):
        part = Part(table)
        if sample is not None and not number:
            order = sample.first_order(part, count) or present
        meter.arrive(part.rows)
        passed = evaluated(part, meter, raised, order)
        if sample is not None:
            sample.take(part)
            if order == present:
                order = sample.own_order(meter) or present
        yield passed
        meter.leave()
    if any(rows for rows, _, _ in meter.steps):
        if tell is not None:
            tell(meter.report)
        if profile is not None:
            told = sample.report if sample is not None else ((), ())
            profile((tuple(raised), *told, order if order != present else ()))


def parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows in parts of a suitable size."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= PART_ROWS or size >= PART_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


def _passed(
    predicates: Sequence[Predicate], columns: Columns, part: Part, meter: TripMeter,
    raised: list[int], order: Order,
) -> pa.RecordBatch:
    left: Rows | None = None  # all of them
    faults = _Faults(part.table, columns)
    for place in order:
        predicate = predicates[place]
        began, rows = perf_counter(), part.rows if left is None else len(left)
        holds, raising, texts = part.decided(predicate.call, left)
        if len(raising):
            numbers = raising if left is None else left[raising]
            faults.add(predicate.written, numbers, texts)
            raised[place] += len(raising)
        if not holds.all():
            found = np.flatnonzero(holds)  # a mask of the rows takes ten times as long
            left = found if left is None else left[found]
        after = part.rows if left is None else len(left)
        meter.add(place, rows, after, perf_counter() - began)
    passed = {name: part.column(name, left) for name in columns.kept}
    return pa.RecordBatch.from_pydict({**passed, **faults.columns(left)})


@dataclass(slots=True)
class Part:
    """Some rows, whose columns are taken only as predicates read them."""

    table: pa.Table
    _whole: dict[str, pa.Array] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many there are."""
        return int(self.table.num_rows)

    def column(self, name: str, rows: Rows | None) -> pa.Array:
        """A column, of all rows or of some."""
        if name not in self._whole:
            chunks = self.table[name]
            self._whole[name] = (chunks.chunk(0) if chunks.num_chunks == 1
                                 else chunks.combine_chunks())
        whole = self._whole[name]
        return whole if rows is None else whole.take(pa.array(rows))

    def decided(
        self, call: FunctionCall, rows: Rows | None
    ) -> tuple[npt.NDArray[np.bool_], Rows, list[str]]:
        """Which of the rows a predicate does not drop; those it raises for, and the errors.

        The rows it raises for are told by their places among these rows.
        """
        count = self.rows if rows is None else len(rows)
        args = [self.column(name, rows) for name in call.args]
        values, texts = answers(call, args, count)
        holds = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
        if texts.null_count == count:
            return holds, np.zeros(0, np.int64), []
        raising = np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False))
        holds = holds.copy()
        holds[raising] = True
        return holds, raising, texts.take(pa.array(raising)).to_pylist()


class _Faults:
    """The errors of the rows of a part; almost always there are none."""

    def __init__(self, table: pa.Table, names: Columns) -> None:
        self._names, self._rows = names, table.num_rows
        self._blamed: npt.NDArray[np.int32] | None = None
        self._texts: npt.NDArray[np.object_] | None = None
        if names.error in table.schema.names and table[names.error].null_count < self._rows:
            self._begin()
            assert self._blamed is not None and self._texts is not None
            self._texts[:] = table[names.error].to_pylist()
            self._blamed[:] = pc.fill_null(table[names.blamed], _NOBODY).to_numpy()

    def _begin(self) -> None:
        self._blamed = np.full(self._rows, _NOBODY, np.int32)
        self._texts = np.full(self._rows, None, object)

    def add(self, written: int, rows: Rows, texts: Sequence[str]) -> None:
        """A predicate raised for some rows: of several errors, that of the first one is told."""
        if self._blamed is None:
            self._begin()
        assert self._blamed is not None and self._texts is not None
        first = self._blamed[rows] > written
        self._blamed[rows[first]] = written
        self._texts[rows[first]] = np.array(texts, object)[first]

    def columns(self, rows: Rows | None) -> dict[str, pa.Array]:
        """The error of each of these rows, and the predicate that is to blame."""
        names = self._names
        if self._blamed is None or self._texts is None:
            count = self._rows if rows is None else len(rows)
            return {names.error: pa.nulls(count, pa.string()),
                    names.blamed: pa.nulls(count, pa.int32())}
        blamed = self._blamed if rows is None else self._blamed[rows]
        texts = self._texts if rows is None else self._texts[rows]
        return {names.error: pa.array(texts.tolist(), pa.string()),
                names.blamed: pa.array(blamed, pa.int32(), mask=blamed == _NOBODY)}


class Sample:
    """The rows of a task that are profiled, gathered until its end."""

    def __init__(self, asked: Sampling) -> None:
        """Begin without any rows."""
        self._asked = asked
        self._chance = np.random.default_rng(asked.seed)
        self._args = list(dict.fromkeys(
            name for predicate in asked.predicates for name in predicate.call.args))
        self._gathered: list[pa.Table] = []
        self._dropped = np.zeros((0, len(asked.predicates)), np.bool_)
        self._passed = 0
        self._spent = [(0, 0.0)] * len(asked.predicates)
        self._is_whole = False

    def take(self, part: Part) -> None:
        """Choose some rows, at independent distances, unless the task has looked ahead."""
        if self._is_whole:
            return
        rate = self._asked.rate
        gaps = self._chance.geometric(rate, size=int(part.rows * rate * 1.2) + 12)
        rows = np.cumsum(gaps) - 1
        while rows[-1] < part.rows:
            gaps = self._chance.geometric(rate, size=len(gaps))
            rows = np.concatenate([rows, rows[-1] + np.cumsum(gaps)])
        rows = rows[rows < part.rows]
        if len(rows):
            self._gathered.append(pa.table({n: part.column(n, rows) for n in self._args}))

    @property
    def report(self) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, float], ...]]:
        """By pattern how many of the chosen rows were dropped so, 0 for those that passed all; what
        that took.
        """
        self._evaluate()
        if not any(rows for rows, _ in self._spent):
            return (), ()
        numbers = self._dropped @ (1 << np.arange(self._dropped.shape[1]))
        patterns = Counter(numbers.tolist())
        return tuple(sorted(patterns.items())), tuple(self._spent)

    def own_order(self, meter: TripMeter) -> Order:
        """An order of its own for the task, if it knows enough; predicates that stay come last."""
        asked, places = self._asked, self._asked.places
        if not asked.per_partition or sum(len(some) for some in self._gathered) < asked.enough:
            return ()
        self._evaluate()
        dropped = self._dropped[:, :places]
        dropped = dropped[dropped.any(axis=1)]
        if len(dropped) < asked.enough:
            return ()
        # The meter has more rows than the sample, unless other predicates left hardly any.
        costs = [max((rows, spent), (asked_rows, asked_spent)) for (rows, _, spent), (
            asked_rows, asked_spent) in zip(meter.steps, self._spent, strict=False)][:places]
        seconds = [spent / rows if rows else 0.0 for rows, spent in costs]
        order = own_order(dropped, self._passed, seconds, asked.per_partition)
        return (*order, *range(places, len(meter.steps)))

    def first_order(self, part: Part, count: int) -> Order:
        """An order for so many predicates of which nothing is known, by some rows of a first part.

        They are evaluated in two halves, of which the faster one counts: the first call of a
        function may import modules. They are the sample of the task.
        """
        asked, places = self._asked, self._asked.places
        if not asked.lookahead or part.rows < LEAST_AHEAD * asked.lookahead:
            return ()
        rows = np.sort(self._chance.choice(part.rows, asked.lookahead, replace=False))
        costs = np.full(places, np.inf)
        for half in np.array_split(rows, 2):
            self._gathered.append(pa.table({n: part.column(n, half) for n in self._args}))
            before = self._spent
            self._evaluate()
            shown, seconds = (np.subtract(self._spent, before)[:places]).T
            costs = np.minimum(costs, np.divide(
                seconds, shown, out=np.full(places, np.inf), where=shown > 0))
        self._is_whole = True
        dropped = self._dropped[:, :places]
        dropped = dropped[dropped.any(axis=1)]
        if len(dropped) < asked.enough or not np.isfinite(costs).all():
            return ()
        order = own_order(dropped, self._passed, costs.tolist(),
                          max(asked.per_partition, AHEAD_SAVES))
        return (*order, *range(places, count))

    def _evaluate(self) -> None:
        """Evaluate what was gathered since the last time."""
        if not self._gathered:
            return
        part, self._gathered = Part(pa.concat_tables(self._gathered)), []
        dropped, spent = profiled(part.rows, self._asked, part.decided)
        self._passed += part.rows - int(dropped[:, :self._asked.places].any(axis=1).sum())
        self._dropped = np.concatenate([self._dropped, dropped])
        self._spent = [(rows + more, seconds + longer) for (rows, seconds), (more, longer)
                       in zip(self._spent, spent, strict=True)]


def profiled(
    rows: int, asked: Sampling, decided: Callable[[FunctionCall, Rows], Any]
) -> tuple[npt.NDArray[np.bool_], list[tuple[int, float]]]:
    """By chosen row and predicate whether it drops the row, and the rows and seconds of each.

    A row that was dropped at one place is evaluated only at the later places that are asked for. A
    row that the predicates of this trip let through is left to the next one, if there is one.
    """
    count = len(asked.predicates)
    dropped = np.zeros((rows, count), np.bool_)
    at = np.full(rows, count)  # the place at which a row was dropped
    spent: list[tuple[int, float]] = []
    for place, predicate in enumerate(asked.predicates):
        wanted = [before for before in range(place) if place in asked.unasked[before]]
        is_shown = np.isin(at, wanted)
        if place < asked.places:
            is_shown |= at == count
        shown = np.flatnonzero(is_shown)
        began = perf_counter()
        holds, _, _ = decided(predicate.call, shown)
        spent.append((len(shown), perf_counter() - began))
        gone = shown[~holds]
        dropped[gone, place] = True
        at[gone] = np.minimum(at[gone], place)
    if asked.places < count:
        dropped = dropped[at < count]
    return dropped, spent
