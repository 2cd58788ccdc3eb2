"""Columns that a worker reads from the files of a block by itself, as they lie in Arrow.

This module is shipped to the workers by value and imports nothing else of Penstock.

To move a row of nine numbers from Spark to Python takes over a microsecond of a core, since Spark
makes a row of the columns and then columns of the row. To read the same columns from Parquet into
Arrow takes a fiftieth of that. `penstock.spark.compile.file_scans` says when the two are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a row group of a Parquet file."""

    path: str
    group: int
    rows: int
    """The rows that the whole row group must have."""
    first: int
    last: int
    """The rows that are wanted: from ``first`` up to, but not including, ``last``."""
    batch: int
    """How many rows are read at once."""


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column of the files."""

    name: str
    """Its name in the batches."""
    stored: str
    """Its name in the files."""
    type: pa.DataType
    """Its type in the batches; the files may have a narrower one."""


def through(
    tasks: Sequence[Sequence[Piece]], columns: Sequence[FileColumn],
    work: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    numbers: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """What ``work`` makes of the rows of some tasks; Spark sends nothing but their numbers."""
    return work(_rows(tasks, columns, numbers))


def _rows(
    tasks: Sequence[Sequence[Piece]], columns: Sequence[FileColumn],
    numbers: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for piece in tasks[number]:
                yield from read(piece, columns)


def read(piece: Piece, columns: Sequence[FileColumn]) -> Iterator[pa.RecordBatch]:
    """The rows of a piece; RuntimeError if its row group has not the rows that it must have."""
    stored: Any = list(dict.fromkeys(column.stored for column in columns))
    with pq.ParquetFile(piece.path) as file:  # a mapped one that shrinks would kill the worker
        if file.metadata.row_group(piece.group).num_rows != piece.rows:
            raise RuntimeError(f"{piece.path} was changed while it was read")
        at = 0
        for batch in file.iter_batches(
                piece.batch, row_groups=[piece.group], columns=stored, use_threads=False):
            first, last = max(piece.first - at, 0), min(piece.last - at, batch.num_rows)
            at += batch.num_rows
            if first < last:
                yield _named(batch.slice(first, last - first), columns)
            if at >= piece.last:
                return
    raise RuntimeError(f"{piece.path} has {at} rows to read where {piece.last} are wanted")


def _named(batch: pa.RecordBatch, columns: Sequence[FileColumn]) -> pa.RecordBatch:
    found = {column.name: batch.column(column.stored) for column in columns}
    return pa.RecordBatch.from_pydict({
        column.name: found[column.name] if found[column.name].type == column.type
        else found[column.name].cast(column.type) for column in columns})
