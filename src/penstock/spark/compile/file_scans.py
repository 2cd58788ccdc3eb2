"""Which files of blocks Python workers read by themselves, and which rows each task takes.

A path that begins with predicates in Python needs Spark only to start its tasks: their workers read
the columns (`file_worker`). That is so if nothing comes before the predicates, their arguments are
columns, and Arrow reads these columns of these files exactly as Spark does. In every other case
Spark reads the rows and sends them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import ceil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from penstock.arrow import arrow_type
from penstock.model import Column, Type, name_key
from penstock.spark.compile.conjunction_worker import PART_BYTES, PART_ROWS
from penstock.spark.compile.file_worker import FileColumn, Piece, through
from penstock.spark.ingest.footers import fits

ALIKE = frozenset(("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING",
                   "BINARY"))
"""Types that Arrow and Spark read alike from any file."""
OURS_ALIKE = frozenset(("DATE", "TIMESTAMP"))
"""Types that they read alike from files that Penstock has written. In others, old dates may be
those of another calendar, which only Spark notices."""
TASK_ROWS = 20_000
"""A task of fewer rows costs more than another core saves."""


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A Parquet file on this machine with rows of a block."""

    path: Path
    is_ours: bool
    """Whether Penstock has written it."""


@dataclass(frozen=True, slots=True)
class FileScan:
    """Columns of files, divided among tasks."""

    columns: tuple[Column, ...]
    tasks: tuple[tuple[Piece, ...], ...]

    def frame(self, spark: SparkSession) -> DataFrame:
        """A row for each task, with its number."""
        return spark.range(0, len(self.tasks), 1, len(self.tasks))

    def shown_to(
        self, work: Callable[..., Any], names: Mapping[Column, str]
    ) -> Callable[..., Any]:
        """What a worker does with such a row: show its rows to ``work`` under some names."""
        return partial(through, self.tasks, self.named(names), work)

    def named(self, names: Mapping[Column, str]) -> list[FileColumn]:
        """The columns under some names."""
        return [FileColumn(names[column], column.name, arrow_type(column.type))
                for column in self.columns]


@dataclass(frozen=True, slots=True)
class _Footer:
    groups: tuple[tuple[int, int], ...]
    """The rows and bytes of each row group."""
    types: dict[str, pa.DataType]


def scan_of(
    files: Sequence[LocalFile], columns: Sequence[Column], rows: int, tasks: int
) -> FileScan | None:
    """How workers read these columns of files with so many rows; None if they had better not."""
    footers = [_footer(str(file.path), *_version(file.path)) for file in files]
    if not columns or sum(count for one in footers for count, _ in one.groups) != rows or not all(
            _is_alike(column, one.types, file.is_ours)
            for file, one in zip(files, footers, strict=True) for column in columns):
        return None
    groups = [(str(file.path), number, count, size)
              for file, one in zip(files, footers, strict=True)
              for number, (count, size) in enumerate(one.groups) if count]
    return FileScan(tuple(columns), tuple(divided(groups, tasks)))


def tasks_for(rows: int, wanted: int, cores: int) -> int:
    """How many tasks read so many rows, of which ``wanted`` tasks should be made at least.

    >>> [tasks_for(rows, 1, cores=2) for rows in (10, 30_000, 1_000_000)], tasks_for(10**6, 8, 2)
    ([1, 2, 2], 8)
    """
    return max(wanted, min(cores, ceil(rows / TASK_ROWS)))


def divided(
    groups: Sequence[tuple[str, int, int, int]], tasks: int
) -> Iterator[tuple[Piece, ...]]:
    """Row groups, each with its file, number, rows and bytes, divided into tasks of equal rows.

    >>> for task in divided([("a", 0, 5, 50), ("a", 1, 2, 20), ("b", 0, 3, 30)], 2):
    ...     print([(piece.path, piece.group, piece.first, piece.last) for piece in task])
    [('a', 0, 0, 5)]
    [('a', 1, 0, 2), ('b', 0, 0, 3)]
    """
    total = sum(rows for _, _, rows, _ in groups)
    for task in range(tasks):
        first, last = total * task // tasks, total * (task + 1) // tasks
        found, at = [], 0
        for path, number, rows, size in groups:
            start, end = max(first - at, 0), min(last - at, rows)
            if start < end:
                batch = min(PART_ROWS, max(1, PART_BYTES * rows // max(size, 1)))
                found.append(Piece(path, number, rows, start, end, batch))
            at += rows
        yield tuple(found)


def _is_alike(column: Column, types: Mapping[str, pa.DataType], is_ours: bool) -> bool:
    stored = types.get(column.name)
    return (stored is not None and "." not in column.name
            and _is_read_alike(column.type, is_ours)
            and fits(stored, arrow_type(column.type)) == "plain")


def _is_read_alike(type_: Type, is_ours: bool) -> bool:
    return type_.name in ALIKE or (is_ours and type_.name in OURS_ALIKE)


def _version(path: Path) -> tuple[int, int]:
    told = os.stat(path)
    return told.st_size, told.st_mtime_ns


@lru_cache(maxsize=4096)  # several paths read a file
def _footer(path: str, size: int, modified: int) -> _Footer:
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    schema = metadata.schema.to_arrow_schema()
    names = [name_key(field.name) for field in schema]
    return _Footer(
        tuple((group.num_rows, group.total_byte_size) for group in groups),
        {field.name: field.type for field in schema if names.count(name_key(field.name)) == 1})
