"""Predicates that several queries have in common, in a worker: each is evaluated once for all.

This module is shipped to the workers by value, together with `conjunction_worker` and
`python_worker`, and imports nothing else of Penstock.

Every member is a bit. A row carries the bits of the members that may still want it. A predicate is
evaluated on the rows that some member wants who asks for it. Where it is false, the bits of all
members who ask for it are cleared. So a row is given up as soon as nobody wants it, and no
predicate sees a row twice. What is left comes out once per row and member, with the error if the
member has to reject it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.spark.compile.conjunction_worker import (
    Order,
    Part,
    Predicate,
    ProfileReport,
    Rows,
    Sampling,
    part_by_part,
)
from penstock.spark.compile.python_worker import TaskReport, TripMeter

BITS = 62
"""Members in a column of bits; Spark's longs have a sign."""
Wanted = npt.NDArray[np.int64]
"""By row and column of bits, the members that may still want the row."""


@dataclass(frozen=True, slots=True)
class SharedColumns:
    """The names of the columns that a worker reads, passes on and fills."""

    kept: tuple[str, ...]
    shown: tuple[str, ...]
    """Columns that only rejects are shown with: they travel in one, which is null for answers."""
    wanted: tuple[str, ...]
    """The columns of bits that Spark has computed from SQL conditions; none if there are none."""
    members: int
    member: str
    error: str
    reject: str
    """The column that holds those that are shown."""


@dataclass(frozen=True, slots=True)
class SharedPredicate:
    """A predicate, and who asks for it."""

    predicate: Predicate
    asked_by: tuple[tuple[int, int], ...]
    """The members, each with the place at which it has written this condition."""

    def bits(self, words: int) -> Wanted:
        """The members who ask for it."""
        found = np.zeros(words, np.int64)
        for member, _ in self.asked_by:
            found[member // BITS] |= np.int64(1) << np.int64(member % BITS)
        return found


@dataclass(frozen=True, slots=True)
class _Raised:
    """A predicate raised for some rows."""

    by: SharedPredicate
    rows: Rows
    texts: list[str]


def evaluate_shared(
    predicates: Sequence[SharedPredicate], columns: SharedColumns,
    batches: Iterable[pa.RecordBatch], sampling: Sampling | None = None,
    tell: Callable[[TaskReport], None] | None = None,
    profile: Callable[[ProfileReport], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """One row per row and member that wants it, or has to reject it."""
    yield from part_by_part(
        len(predicates), partial(_delivered, predicates, columns), batches, sampling, tell, profile)


def _delivered(
    predicates: Sequence[SharedPredicate], columns: SharedColumns, part: Part, meter: TripMeter,
    raised: list[int], order: Order,
) -> pa.RecordBatch:
    wanted = _wanted(columns, part)
    active: Rows = np.flatnonzero(wanted.any(axis=1))
    faults: list[_Raised] = []
    for place in order:
        shared = predicates[place]
        began = perf_counter()
        bits = shared.bits(wanted.shape[1])
        rows = active[(wanted[active] & bits).any(axis=1)]
        if len(rows):
            holds, raising, texts = part.decided(
                shared.predicate.call, None if len(rows) == part.rows else rows)
            if len(raising):
                faults.append(_Raised(shared, rows[raising], texts))
                raised[place] += len(raising)
            dropped = rows[~holds]
            wanted[dropped] &= ~bits
            active = active[wanted[active].any(axis=1)]
            meter.add(place, len(rows), len(rows) - len(dropped), perf_counter() - began)
    return _pairs(columns, part, wanted, active, faults)


def _wanted(columns: SharedColumns, part: Part) -> Wanted:
    """Who may want each row before any predicate is evaluated."""
    if columns.wanted:
        told = [part.column(name, None).to_numpy() for name in columns.wanted]
        return np.array(np.column_stack(told), np.int64)
    words = -(-columns.members // BITS)
    everybody = np.array([(1 << min(BITS, columns.members - BITS * word)) - 1
                          for word in range(words)], np.int64)
    return np.tile(everybody, (part.rows, 1))


def _pairs(
    columns: SharedColumns, part: Part, wanted: Wanted, active: Rows, faults: Sequence[_Raised]
) -> pa.RecordBatch:
    """The rows that are left, once for each member, member by member."""
    rows: list[Rows] = []
    for member in range(columns.members):
        bit = np.int64(1) << np.int64(member % BITS)
        rows.append(active[(wanted[active, member // BITS] & bit) != 0])
    members = np.repeat(np.arange(columns.members, dtype=np.int32), [len(some) for some in rows])
    all_rows = np.concatenate(rows)
    kept = {name: part.column(name, all_rows) for name in columns.kept}
    errors = pa.nulls(len(all_rows), pa.string())
    if faults:
        errors = pa.array(_errors(columns.members, part.rows, all_rows, members, faults),
                          pa.string())
    told = {columns.reject: _shown(columns, part, all_rows, errors)} if columns.shown else {}
    return pa.RecordBatch.from_pydict(
        {**kept, columns.member: pa.array(members), columns.error: errors, **told})


def _shown(columns: SharedColumns, part: Part, rows: Rows, errors: pa.Array) -> pa.Array:
    """What rejects are shown with; null for all other rows."""
    fields = [pa.field(name, part.table.schema.field(name).type) for name in columns.shown]
    if errors.null_count == len(errors):
        return pa.nulls(len(rows), pa.struct(fields))
    values = [part.column(name, rows) for name in columns.shown]
    return pa.StructArray.from_arrays(values, fields=fields, mask=pc.is_null(errors))


def _errors(
    count: int, size: int, rows: Rows, members: npt.NDArray[np.int32], faults: Sequence[_Raised]
) -> list[str | None]:
    """By row and member, the error of the condition that this member has written first."""
    first: dict[tuple[int, int], tuple[int, str]] = {}
    for fault in faults:
        texts = dict(zip(fault.rows.tolist(), fault.texts, strict=True))
        for member, written in fault.by.asked_by:
            for row, text in texts.items():
                if written < first.get((member, row), (size + count, ""))[0] or (
                        (member, row) not in first):
                    first[member, row] = written, text
    return [first[pair][1] if pair in first else None
            for pair in zip(members.tolist(), rows.tolist(), strict=True)]
