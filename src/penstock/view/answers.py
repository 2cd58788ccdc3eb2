"""The answer to a question as a table, and its values as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.table import Column, Table
from rich.text import Text

from penstock.rendering import brief, visible
from penstock.view.formats import counted

if TYPE_CHECKING:
    import pyarrow

SHOWN = 50
"""The most rows in a table; JSON and CSV have all of them."""


def shown(
    answer: pyarrow.Table, most: int = SHOWN, *, newest: bool = False, heading: bool = True
) -> Iterator[RenderableType]:
    """The first rows of an answer as a table, or the ``newest``, and whether there are more."""
    right = [_is_number(kind) for kind in answer.schema.types]
    columns = [Column(visible(name), justify="right" if is_number else "left", overflow="fold")
               for name, is_number in zip(answer.column_names, right, strict=True)]
    table = Table(*columns, box=None, padding=(0, 1), header_style="bright_black",
                  show_header=heading)
    more = answer.num_rows - most
    if newest and more > 0:
        yield Text(" … and earlier rows; --last N or --csv gives them", "italic bright_black")
    for row in cells(answer.slice(max(0, more) if newest else 0, most)):
        table.add_row(*map(_cell, row))
    yield table
    if more > 0 and not newest:
        yield Text(f" … and {counted(more, 'more row')}; --json or --csv gives all",
                   "italic bright_black")
    elif answer.num_rows == 0:
        yield Text(" no rows", "italic bright_black")


def cells(answer: pyarrow.Table) -> Iterator[tuple[Any, ...]]:
    """The rows of an answer, batch by batch; two columns may have the same name."""
    for batch in answer.to_batches(max_chunksize=10_000):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _is_number(kind: pyarrow.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind)
                or pa.types.is_decimal(kind))


def _cell(value: object) -> Text:
    if value is None:
        return Text("NULL", "bright_black")
    return Text(visible(str(flat(value, brief))))


def flat(value: object, nested: Callable[[Any], str]) -> object:
    """A value in one cell; ``nested`` writes lists and dictionaries."""
    known = plain(value)
    return nested(known) if isinstance(known, list | dict) else known


def plain(value: Any) -> Any:
    """A value of an answer as JSON: a time in ISO 8601 and UTC, NaN as null.

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
