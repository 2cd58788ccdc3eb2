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
from functools import partial, reduce
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

CROWDED = 0.8
"""If a smaller part of the rows is wanted still, the others are removed. That takes as long as to
look at them a few times."""
BITS = 62
"""Members in a column of bits; Spark's longs have a sign."""
Bits = npt.NDArray[np.int64]
"""By row, the members of one column of bits that may still want it."""


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

    def bits(self, words: int) -> list[np.int64]:
        """The members who ask for it, by column of bits."""
        found = [0] * words
        for member, _ in self.asked_by:
            found[member // BITS] |= 1 << member % BITS
        return list(map(np.int64, found))


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
    faults: list[_Raised] = []
    for place in order:
        shared = predicates[place]
        began = perf_counter()
        asking = wanted.asking(shared.bits(len(wanted.bits)))
        if len(asking):
            is_whole = len(asking) == part.rows
            rows = wanted.rows if is_whole else wanted.rows[asking]
            holds, raising, texts = part.decided(shared.predicate.call, None if is_whole else rows)
            if len(raising):
                faults.append(_Raised(shared, rows[raising], texts))
                raised[place] += len(raising)
            dropped = asking[np.flatnonzero(~holds)]  # a mask takes ten times as long
            wanted.drop(dropped, shared.bits(len(wanted.bits)))
            meter.add(place, len(rows), len(rows) - len(dropped), perf_counter() - began)
    return _pairs(columns, part, wanted, faults)


@dataclass(slots=True)
class _Wanted:
    """The rows that somebody wants, and who; few others are among them."""

    rows: Rows
    bits: list[Bits]
    """By word, and by row of `rows`: the members that want it."""

    def asking(self, asked: Sequence[np.int64]) -> Rows:
        """The places in `rows` of those that one of some members wants."""
        return np.flatnonzero(_any(one & mine for one, mine in zip(self.bits, asked, strict=True)))

    def drop(self, places: Rows, asked: Sequence[np.int64]) -> None:
        """These members do not want the rows at some places."""
        for one, mine in zip(self.bits, asked, strict=True):
            one[places] &= ~mine
        left = np.flatnonzero(_any(self.bits))
        if len(left) < CROWDED * len(self.rows):
            self.rows, self.bits = self.rows[left], [one[left] for one in self.bits]

    def pairs(self, members: int) -> tuple[Rows, npt.NDArray[np.int32]]:
        """Each row once for each member that wants it, and the members."""
        flags = np.hstack([
            np.unpackbits(one.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :-(-BITS // 8)],
                          axis=1, count=min(BITS, members - BITS * word), bitorder="little")
            for word, one in enumerate(self.bits)])
        found = np.flatnonzero(flags.view(np.bool_))
        places = found // members
        return self.rows[places], (found - places * members).astype(np.int32)


def _any(words: Iterable[Bits]) -> npt.NDArray[np.bool_]:
    """By row, whether there is any bit."""
    found: npt.NDArray[np.bool_] = reduce(np.bitwise_or, words) != 0
    return found


def _wanted(columns: SharedColumns, part: Part) -> _Wanted:
    """Who may want each row before any predicate is evaluated."""
    words = range(-(-columns.members // BITS))
    if columns.wanted:
        bits = [np.array(part.column(name, None).to_numpy()) for name in columns.wanted]
    else:
        bits = [np.full(part.rows, (1 << min(BITS, columns.members - BITS * word)) - 1, np.int64)
                for word in words]
    found = _Wanted(np.arange(part.rows), bits)
    if columns.wanted:
        found.drop(found.rows[:0], [np.int64(0) for _ in words])
    return found


def _pairs(
    columns: SharedColumns, part: Part, wanted: _Wanted, faults: Sequence[_Raised]
) -> pa.RecordBatch:
    """The rows that are left, once for each member."""
    all_rows, members = wanted.pairs(columns.members)
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
