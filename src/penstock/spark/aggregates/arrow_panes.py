"""Pane tables of Arrow rows: one pass over the rows for any number of groupings.

Spark has already computed what users wrote: the time, the keys, the arguments, the conditions. Only
numbers are left. Every column becomes codes from 0 on, the codes of a cell's columns become one
number, and a measure is an array indexed by that number.

The driver calls this for few rows, and Python workers for many. It is shipped to the workers by
value, with the Penstock modules that it imports, because they may not have Penstock installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.spark.aggregates.arrow_measures import (
    MEASURES,
    NUMBERS,
    Cells,
    Kept,
    Numbers,
    from_whole,
    kind_of,
    known,
    whole_numbers,
)
from penstock.spark.compile.python_worker import settle
from penstock.spark.compile.worker_batches import gathered

TIME = "@time"
"""The column of the rows' time, in microseconds since 1970."""
SPARSE = 4
"""A range of whole numbers is used as codes directly if it has at most this many values per row."""
NUMBER, TABLE = "number", "table"


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader of a grouping: which rows it wants, and what is kept of them."""

    where: str | None
    """The column that says whether it wants a row; None if it wants all."""
    kept: tuple[Kept, ...]


@dataclass(frozen=True, slots=True)
class ArrowGrouping:
    """The cells of some rows: their panes, the columns they are grouped by, and who reads them."""

    pane: int
    """The length of a pane in microseconds."""
    by: tuple[tuple[str, str], ...]
    """The columns that make a cell, besides the pane: the name in the pane table, and in the rows.
    """
    readers: tuple[Reader, ...]


def in_worker(
    groupings: Sequence[ArrowGrouping], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The work of a task in a Python worker: `pane_batches`."""
    settle()
    yield from pane_batches(groupings, batches)


def pane_batches(
    groupings: Sequence[ArrowGrouping], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The pane tables of a task, each as the bytes of an Arrow stream with its number.

    As rows of a frame they would be taken apart and put together again twice.
    """
    for tables in pane_tables(groupings, batches):
        numbers = [n for n, table in enumerate(tables) if table.num_rows]
        yield pa.RecordBatch.from_pydict({
            NUMBER: pa.array(numbers, pa.int32()),
            TABLE: pa.array([_packed(tables[n]) for n in numbers], pa.binary())})


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def pane_tables(
    groupings: Sequence[ArrowGrouping], batches: Iterable[pa.RecordBatch]
) -> Iterator[list[pa.Table]]:
    """The pane tables of all readers, grouping by grouping, for each part of the rows."""
    for rows in gathered(batches):
        columns = _Columns(rows)
        with np.errstate(all="ignore"):  # infinities add up to NaN, as they do in Spark
            yield [table for grouping in groupings for table in _grouped(grouping, columns)]


# --- cells -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Codes:
    """Numbers from 0 to size - 1 in place of values, and the way back to the values' columns."""

    ids: np.ndarray
    size: int
    columns: Callable[[np.ndarray], list[pa.Array]]

    def of(self, rows: np.ndarray) -> _Codes:
        """The codes of some rows."""
        return _Codes(self.ids[rows], self.size, self.columns)

    def with_more(self, more: _Codes) -> _Codes:
        """Two codes as one."""
        if self.size * more.size > 1 << 62:
            return self.dense().with_more(more.dense())

        def columns(ids: np.ndarray) -> list[pa.Array]:
            first, second = np.divmod(ids, more.size)
            return [*self.columns(first), *more.columns(second)]

        return _Codes(self.ids * more.size + more.ids, self.size * more.size, columns)

    def dense(self) -> _Codes:
        """The same, with few unused numbers."""
        if self.size <= _room(len(self.ids)):
            return self
        found = pa.array(self.ids).dictionary_encode()
        known = np.asarray(found.dictionary)
        return _Codes(np.asarray(found.indices).astype(np.int64), len(known),
                      lambda ids: self.columns(known[ids]))


def _room(rows: int) -> int:
    """How many codes there may be for this many rows."""
    return SPARSE * rows + 1024


@dataclass(slots=True)
class _Columns:
    """The columns of some rows, each converted into numbers once for all groupings."""

    rows: pa.Table
    _arrays: dict[str, pa.Array] = field(default_factory=dict)
    _codes: dict[object, _Codes] = field(default_factory=dict)
    _numbers: dict[tuple[str, str], Numbers] = field(default_factory=dict)

    def array(self, name: str) -> pa.Array:
        """A column as one array."""
        if name not in self._arrays:
            found = self.rows[name].combine_chunks()
            if isinstance(found, pa.ChunkedArray):
                found = found.chunk(0) if found.num_chunks else pa.array([], found.type)
            self._arrays[name] = found
        return self._arrays[name]

    def wanted(self, name: str) -> np.ndarray:
        """Whether a condition is true; NULL counts as false."""
        return np.asarray(self.array(name).fill_null(False))

    def codes(self, name: str) -> _Codes:
        """A column's codes; NULL has a code too."""
        if name not in self._codes:
            self._codes[name] = _coded(self.array(name))
        return self._codes[name]

    def panes(self, length: int) -> _Codes:
        """The numbers of the panes: whole panes since 1970, rounded down before it."""
        if length not in self._codes:
            panes = np.asarray(self.array(TIME)) // length
            first, last = int(panes.min()), int(panes.max())
            self._codes[length] = _Codes(
                panes - first, last - first + 1, lambda ids: [pa.array(ids + first)])
        return self._codes[length]

    def numbers(self, name: str, kind: str) -> Numbers:
        """A column's values as a kind of measure takes them."""
        if (name, kind) not in self._numbers:
            self._numbers[name, kind] = NUMBERS[kind](self.array(name))
        return self._numbers[name, kind]


def _coded(array: pa.Array) -> _Codes:
    whole = whole_numbers(array)
    if whole is None:
        found = _comparable(array).dictionary_encode(null_encoding="encode")
        return _Codes(np.asarray(found.indices).astype(np.int64), len(found.dictionary),
                      lambda ids: [found.dictionary.take(pa.array(ids))])
    first, last = (int(end.as_py() or 0) for end in pc.min_max(whole).values())
    size = last - first + 1
    if size > _room(len(array)):
        found = whole.dictionary_encode(null_encoding="encode")
        return _Codes(np.asarray(found.indices).astype(np.int64), len(found.dictionary),
                      lambda ids: [from_whole(found.dictionary.take(pa.array(ids)), array.type)])
    ids = np.asarray(whole.fill_null(first) if whole.null_count else whole) - first
    valid = known(array)
    if valid is not None:
        ids[~valid] = size

    def columns(codes: np.ndarray) -> list[pa.Array]:
        return [from_whole(pa.array(codes + first, mask=codes == size), array.type)]

    return _Codes(ids, size + (valid is not None), columns)


def _comparable(array: pa.Array) -> pa.Array:
    """Without -0.0, since adding zero makes it 0.0, and with one NaN for all."""
    if not pa.types.is_floating(array.type):
        return array
    nan = pa.scalar(float("nan"), array.type)
    return pc.if_else(pc.is_nan(array), nan, pc.add(array, pa.scalar(0.0, array.type)))


# --- pane tables -------------------------------------------------------------------------------


def _grouped(grouping: ArrowGrouping, columns: _Columns) -> Iterator[pa.Table]:
    """The pane table of each reader."""
    wanted = [None if reader.where is None else columns.wanted(reader.where)
              for reader in grouping.readers]
    cells = columns.panes(grouping.pane)
    for _, name in grouping.by:
        cells = cells.with_more(columns.codes(name))
    anyone = _any(wanted)
    if anyone is not None:  # so that rows that no reader wants make no cell
        cells = cells.of(anyone)
    cells = cells.dense()
    for reader, mine in zip(grouping.readers, wanted, strict=True):
        part = mine if anyone is None or mine is None else mine[anyone]
        if part is not None and part.all():
            part = None
        yield _table(grouping, reader, cells, _Rows(columns, anyone, part))


def _any(wanted: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """The numbers of the rows that some reader wants; None if that is all of them."""
    known = [mine for mine in wanted if mine is not None]
    return np.flatnonzero(np.any(known, axis=0)) if len(known) == len(wanted) else None


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that a reader wants among those that are grouped."""

    columns: _Columns
    grouped: np.ndarray | None
    """The numbers of the grouped rows; None for all."""
    mine: np.ndarray | None
    """Whether the reader wants each of them; None for all."""

    def places(self, cells: _Codes) -> np.ndarray:
        """The cells of its rows."""
        return cells.ids if self.mine is None else cells.ids[self.mine]

    def of(self, name: str, kind: str, cells: _Codes) -> tuple[np.ndarray, Numbers]:
        """The cells of its rows with a value, and these values."""
        numbers = self.columns.numbers(name, kind)
        held = self.mine
        if numbers.valid is not None:
            valid = numbers.valid if self.grouped is None else numbers.valid[self.grouped]
            held = valid if held is None else held & valid
        if self.grouped is not None:
            numbers = numbers.of(self.grouped)
        return (cells.ids, numbers) if held is None else (cells.ids[held], numbers.of(held))


def _table(grouping: ArrowGrouping, reader: Reader, cells: _Codes, rows: _Rows) -> pa.Table:
    counts = np.bincount(rows.places(cells), minlength=cells.size)
    held = np.flatnonzero(counts)
    names = ["pane", *(name for name, _ in grouping.by)]
    made = dict(zip(names, cells.columns(held), strict=True))
    for number, kept in enumerate(reader.kept):
        if kept.kind == "rows":
            made[f"m{number}"] = pa.array(counts[held])
            continue
        kind = kind_of(kept)
        places, values = rows.of(kept.column, kind, cells)
        made[f"m{number}"] = MEASURES[kind](Cells(places, values, cells.size, held), kept.type)
    return pa.table(made)
