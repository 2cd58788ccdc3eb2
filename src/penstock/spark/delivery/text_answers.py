"""Answers that were written as text, read back: csv and json as the sinks write them.

Text does not say everything. In a csv file with one column NULL and the empty text look alike.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from penstock.arrow import arrow_type
from penstock.errors import RunError
from penstock.model import Output, Query, Type, name_key
from penstock.spark.delivery.write_jobs import QUERY

_INTERVAL = re.compile(
    r"INTERVAL '(?P<sign>[+-]?)(?:(?P<days>\d+) )?(?P<hours>\d+):(?P<minutes>\d+):"
    r"(?P<seconds>\d+(?:\.\d+)?)' DAY TO SECOND", re.I)


def read_text(query: Query, path: str) -> pa.Table:
    """The rows of a query in one of its files."""
    outputs = query.branches[0].select
    read = _csv if query.sink.kind == "csv" else _json
    try:
        return read(path, query.name, outputs)
    except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise RunError(f"{path} does not hold what query '{query.name}' delivers: {error}"
                       ) from error


# --- csv -----------------------------------------------------------------------------------------


def _csv(path: str, query: str, outputs: Sequence[Output]) -> pa.Table:
    with open(path, encoding="utf-8", newline="") as file:
        names = arrow_csv.read_csv(
            pa.BufferReader(file.readline().encode()),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True)).column_names
    table = arrow_csv.read_csv(
        path, parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), null_values=[""],
            strings_can_be_null=True, quoted_strings_can_be_null=False))
    spelt = {name_key(name): name for name in names}
    if QUERY in spelt and QUERY not in {name_key(output.name) for output in outputs}:
        table = table.filter(pc.equal(table[spelt[QUERY]], query))
    columns = [_of_csv(table[spelt[name_key(output.name)]], output.expression.type)
               for output in outputs]
    return pa.table(columns, names=[output.name for output in outputs])


def _of_csv(column: pa.ChunkedArray, kind: Type) -> pa.ChunkedArray:
    if kind.name == "STRING":
        return column
    column = pc.if_else(pc.equal(column, ""), None, column)
    if kind.name in ("BINARY", "INTERVAL"):
        values = [None if value is None else _value(value, kind) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(values, arrow_type(kind))])
    return column.cast(arrow_type(kind))


# --- json ----------------------------------------------------------------------------------------


def _json(path: str, query: str, outputs: Sequence[Output]) -> pa.Table:
    kinds = {name_key(output.name): output.expression.type for output in outputs}
    columns: dict[str, list[Any]] = {name: [] for name in kinds}
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = {name_key(name): value
                   for name, value in json.loads(line, parse_float=Decimal).items()}
            if QUERY in kinds or row.get(QUERY, query) == query:
                for name, kind in kinds.items():
                    columns[name].append(_value(row.get(name), kind))
    arrays = [pa.array(columns[name_key(o.name)], arrow_type(o.expression.type)) for o in outputs]
    return pa.table(arrays, names=[output.name for output in outputs])


def _value(value: Any, kind: Type) -> Any:
    """A value as JSON holds it, as Arrow takes it."""
    if value is None:
        return None
    match kind.name:
        case "FLOAT" | "DOUBLE":
            return float(value)
        case "DECIMAL":
            return Decimal(value).quantize(Decimal(1).scaleb(-(kind.scale or 0)))
        case "TIMESTAMP":
            return datetime.fromisoformat(value)
        case "DATE":
            return date.fromisoformat(value)
        case "BINARY":
            return b64decode(value)
        case "INTERVAL":
            return _interval(value)
        case "ARRAY":
            assert kind.element is not None
            return [_value(one, kind.element) for one in value]
        case "MAP":
            assert kind.key is not None and kind.element is not None
            return [(_key(key, kind.key), _value(one, kind.element)) for key, one in value.items()]
        case "STRUCT":
            given = {name_key(name): one for name, one in value.items()}
            return {f.name: _value(given.get(name_key(f.name)), f.type) for f in kind.fields}
    return value


def _key(text: str, kind: Type) -> Any:
    """The key of a map, which JSON holds as text."""
    if kind.name in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        return int(text)
    return text == "true" if kind.name == "BOOLEAN" else _value(text, kind)


def _interval(text: str) -> timedelta:
    found = _INTERVAL.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not an interval")
    whole = timedelta(days=int(found["days"] or 0), hours=int(found["hours"]),
                      minutes=int(found["minutes"]),
                      microseconds=int(Decimal(found["seconds"]) * 1_000_000))
    return -whole if found["sign"] == "-" else whole
