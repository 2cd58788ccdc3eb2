"""`penstock ask`: a question answered once, as a table, as JSON or as CSV."""

from __future__ import annotations

import csv
import json
import sys
from argparse import Namespace
from collections.abc import Callable
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from penstock.rendering import brief, visible
from penstock.view.formats import counted

if TYPE_CHECKING:
    import pyarrow

SHOWN = 50
"""Rows of a table; JSON and CSV have all of them."""


def ask(arguments: Namespace, console: Console) -> int:
    """Bind the question, answer it, show the answer."""
    from penstock.api import Engine

    with Engine(checkpoint=arguments.checkpoint, master=arguments.master, reading=True) as engine:
        with Console(stderr=True).status("asking", spinner="dots"):
            answer = engine.ask(arguments.question)
    if arguments.json:
        for row in _rows(answer):
            print(json.dumps(plain(row)))
    elif arguments.csv:
        _write_csv(answer)
    else:
        _show(answer, console)
    return 0


def _rows(answer: pyarrow.Table) -> list[dict[str, Any]]:
    return answer.to_pylist()  # type: ignore[no-any-return]


def _write_csv(answer: pyarrow.Table) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.column_names)
    for row in _rows(answer):
        writer.writerow("" if value is None else _flat(value, json.dumps) for value in row.values())


def _show(answer: pyarrow.Table, console: Console) -> None:
    right = [_is_number(kind) for kind in answer.schema.types]
    columns = [Column(visible(name), justify="right" if is_number else "left", overflow="fold")
               for name, is_number in zip(answer.column_names, right, strict=True)]
    table = Table(*columns, box=None, padding=(0, 1), header_style="bright_black")
    for row in _rows(answer.slice(0, SHOWN)):
        table.add_row(*(_cell(value) for value in row.values()))
    console.print(table)
    more = answer.num_rows - SHOWN
    if more > 0:
        console.print(Text(f" … and {counted(more, 'more row')}; --json or --csv gives all",
                           "italic bright_black"))
    elif answer.num_rows == 0:
        console.print(Text(" no rows", "italic bright_black"))


def _is_number(kind: pyarrow.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind)
                or pa.types.is_decimal(kind))


def _cell(value: object) -> Text:
    if value is None:
        return Text("NULL", "bright_black")
    return Text(visible(str(_flat(value, brief))))


def _flat(value: object, nested: Callable[[Any], str]) -> object:
    known = plain(value)
    return nested(known) if isinstance(known, list | dict) else known


def plain(value: Any) -> Any:
    """A value of an answer as JSON has it: a time in ISO 8601 and UTC, NaN as null.

    >>> from datetime import UTC
    >>> plain({"at": datetime(2025, 1, 1, 0, 0, 7, tzinfo=UTC), "x": [1.5, float("nan")]})
    {'at': '2025-01-01T00:00:07Z', 'x': [1.5, None]}
    """
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else str(value)
