"""Answers on standard output: as a table, as CSV, as JSON or as an Arrow stream."""

from __future__ import annotations

import csv
import json
import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Protocol

from penstock.cli.shared import console

if TYPE_CHECKING:
    import pyarrow

FORMATS = ("table", "csv", "json", "arrow")


def add_format(parser: ArgumentParser) -> None:
    """Declare the arguments that say how answers are written."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--format", choices=FORMATS, default="table",
                      help="table (default), csv with a header, json with a row per line, or the "
                           "bytes of an Arrow stream")
    for name in ("json", "csv"):
        form.add_argument(f"--{name}", action="store_const", const=name, dest="format",
                          help=f"the same as --format {name}")


class AnswerWriter(Protocol):
    """Writes tables of the same columns, one after the other."""

    def write(self, table: pyarrow.Table) -> None:
        """Write more rows; they are seen at once."""

    def close(self) -> None:
        """No more rows come."""


def writer(
    arguments: Namespace, *, newest: bool = False, most: int | None = None
) -> AnswerWriter:
    """What writes answers as the arguments say.

    A table for people has at most so many rows: the first, or the ``newest``.
    """
    match arguments.format:
        case "csv":
            return _CsvWriter()
        case "json":
            return _JsonWriter()
        case "arrow":
            return _ArrowWriter()
    return _TableWriter(newest, most)


class _TableWriter:
    def __init__(self, newest: bool, most: int | None) -> None:
        self._newest, self._most, self._is_first = newest, most, True

    def write(self, table: pyarrow.Table) -> None:
        from penstock.view.answers import SHOWN, shown

        for part in shown(table, self._most or SHOWN, newest=self._newest,
                          heading=self._is_first):
            console().print(part)
        self._is_first = False

    def close(self) -> None:
        pass


class _CsvWriter:
    def __init__(self) -> None:
        self._writer = csv.writer(sys.stdout, lineterminator="\n")
        self._is_first = True

    def write(self, table: pyarrow.Table) -> None:
        from penstock.view.answers import cells, flat

        if self._is_first:
            self._writer.writerow(table.column_names)
            self._is_first = False
        for row in cells(table):
            self._writer.writerow("" if value is None else flat(value, json.dumps)
                                  for value in row)
        sys.stdout.flush()

    def close(self) -> None:
        pass


class _JsonWriter:
    def write(self, table: pyarrow.Table) -> None:
        from penstock.view.answers import cells, plain

        for row in cells(table):
            print(json.dumps(dict(zip(table.column_names, map(plain, row), strict=True))))
        sys.stdout.flush()

    def close(self) -> None:
        pass


class _ArrowWriter:
    def __init__(self) -> None:
        self._stream: pyarrow.RecordBatchStreamWriter | None = None
        self._schema: pyarrow.Schema | None = None

    def write(self, table: pyarrow.Table) -> None:
        import pyarrow as pa

        if self._stream is None:
            self._schema = table.schema
            self._stream = pa.ipc.new_stream(sys.stdout.buffer, table.schema)
        self._stream.write_table(table.cast(self._schema))
        sys.stdout.buffer.flush()

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
