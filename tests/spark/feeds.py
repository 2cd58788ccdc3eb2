"""Rows into files: Parquet, CSV and JSON that hold exactly the values of a table.

CSV has no way to tell NULL from an empty text unless one of them is quoted. Here every value is
quoted and NULL is nothing at all between two commas; the reader is told that NULL is written as a
word that no value equals, because Spark takes an unquoted nothing for that word and leaves a
quoted nothing alone. Quotes inside are doubled, and `multiLine` lets a value hold line ends. What
CSV cannot hold even so: a row of one column that is NULL (an empty line, which is skipped).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.spark.oracle import Table

FORMATS = ("parquet", "csv", "json")
OPTIONS = {
    "parquet": "",
    "csv": "header = true, multiLine = true, escape = '\"', nullValue = '~no value~'",
    "json": "",
}
_FIRST = 1_700_000_000


def write(table: Table, folder: Path, format_: str, cuts: Sequence[int] = ()) -> None:
    """The rows of a table in one file more than there are cuts; some may be empty.

    Spark takes the oldest files first, so each file is made a second older than the next.
    """
    folder.mkdir(parents=True)
    bounds = [0, *cuts, len(table.rows)]
    for number, (start, end) in enumerate(zip(bounds, bounds[1:], strict=False)):
        path = folder / f"part-{number}.{format_}"
        _WRITERS[format_](table, table.rows[start:end], path)
        os.utime(path, (_FIRST + number, _FIRST + number))


def options(format_: str, *more: str) -> str:
    """The OPTIONS clause for a folder written by `write`."""
    given = [text for text in (OPTIONS[format_], *more) if text]
    return f"OPTIONS ({', '.join(given)})" if given else ""


def _parquet(table: Table, rows: Sequence[tuple[Any, ...]], path: Path) -> None:
    # Small row groups, which Spark skips when their statistics promise that no row can match.
    pq.write_table(table.arrow(rows), path, row_group_size=max(len(rows) // 8, 1))


def _csv(table: Table, rows: Sequence[tuple[Any, ...]], path: Path) -> None:
    assert len(table.columns) > 1
    lines = [[name for name, _ in table.columns], *rows]
    text = "".join(",".join(map(_quoted, line)) + "\n" for line in lines)
    path.write_bytes(text.encode())


def _quoted(value: Any) -> str:
    return "" if value is None else '"' + _written(value).replace('"', '""') + '"'


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return value.isoformat() if isinstance(value, date) else str(value)


def _json(table: Table, rows: Sequence[tuple[Any, ...]], path: Path) -> None:
    lines = [
        "{" + ", ".join(
            f"{json.dumps(name)}: {_jsoned(value)}"
            for (name, _), value in zip(table.columns, row, strict=True)
            if value is not None or number % 2  # NULL is written, or not there
        ) + "}\n"
        for number, row in enumerate(rows)
    ]  # fmt: skip
    path.write_bytes("".join(lines).encode())


def _jsoned(value: Any) -> str:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime | date):
        return json.dumps(value.isoformat())
    return json.dumps(value, ensure_ascii=isinstance(value, str) and len(value) % 2 == 0)


_WRITERS = {"parquet": _parquet, "csv": _csv, "json": _json}
