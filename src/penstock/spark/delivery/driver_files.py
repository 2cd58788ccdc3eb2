"""Files that the driver writes itself, with the same values as those that executors write.

Arrow converts whole columns to text at a time. `is_writable` says what is left to Spark: types that
only Spark can write, and times that its formats write in their own way.
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.spark.delivery.worker_files import write_parquet
from penstock.spark.storage.files import local_path
from penstock.spark.storage.local_store import write_new

_AT_ONCE = 8
"""Files that are written at the same time: they wait for the disk more than they compute."""
_TIME = "%Y-%m-%dT%H:%M:%SZ"
"""A time in UTC; Arrow writes the microseconds after the seconds."""
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""The first of January of year 1 and the end of year 9999, in days since 1970."""
_DAY = 86_400_000_000
_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""Special numbers, as Arrow writes them and as Spark does."""
_CSV_QUOTED = r'[",\r\n\x00-\x20]'
_JSON_ESCAPED = r'["\\\x00-\x1f]'


def write_files(
    folder: str, format_: str, tables: Mapping[str, pa.Table]
) -> dict[str, int]:
    """Write tables that have rows and are `is_writable`, durably; return their sizes by name.

    Several are written at a time, since Arrow and the disk leave time to others.
    """
    place = local_path(folder)
    assert place is not None
    place.mkdir(parents=True, exist_ok=True)
    names, threads = list(tables), min(len(tables), _AT_ONCE)

    def work(first: int) -> dict[str, int]:
        return {name: _write_file(f"{place}/{name}", format_, tables[name])
                for name in names[first::threads]}

    try:
        if threads == 1:
            return work(0)
        with ThreadPoolExecutor(threads) as pool:
            return {name: size for some in pool.map(work, range(threads))
                    for name, size in some.items()}
    except OSError as error:  # it names neither the folder nor, in plain words, the reason
        why = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(error.errno, why, folder) from error


def _write_file(path: str, format_: str, table: pa.Table) -> int:
    content = encoded(format_, table)
    write_new(path, content)
    return len(content)


def widened(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """A column in a wider type; None if only Spark can convert its values as Spark does."""
    if column.type == kind:
        return column
    # Not `safe`: Spark too rounds a large BIGINT to the nearest DOUBLE.
    return column.cast(kind, safe=False) if _widens(column.type, kind) else None


def _widens(one: pa.DataType, other: pa.DataType) -> bool:
    kinds = pa.types
    if kinds.is_decimal(one) and kinds.is_decimal(other):
        whole = other.precision - other.scale >= one.precision - one.scale
        return bool(whole and other.scale >= one.scale)
    if one.num_fields:  # the same, except for what may be NULL in it
        return _bare(one) == _bare(other)
    if kinds.is_integer(one):
        return bool(kinds.is_integer(other) or kinds.is_float64(other))
    return bool(kinds.is_null(one) or kinds.is_floating(one) and kinds.is_float64(other))


def _bare(kind: pa.DataType) -> tuple[Any, ...]:
    names = [field.name for field in kind] if pa.types.is_struct(kind) else []
    return (kind.id, *names, *(_bare(part) if part.num_fields else part for part in _parts(kind)))


def encoded(format_: str, table: pa.Table) -> pa.Buffer:
    """The file of a table that has rows and is `is_writable` in this format."""
    sink = pa.BufferOutputStream()
    if format_ == "parquet":
        write_parquet(sink, table)
    else:
        sink.write(_TEXTS[format_](table))
    return sink.getvalue()


def is_writable(format_: str, table: pa.Table) -> bool:
    """Whether the driver writes a table exactly as Spark would."""
    if any(_is_foreign(field.type) for field in table.schema):
        return False
    return format_ == "parquet" or all(
        _is_text(field.type, format_) and _is_usual(column)
        for field, column in zip(table.schema, table.columns, strict=True))


def _is_foreign(kind: pa.DataType) -> bool:
    """Whether Spark's files hold a type in a form of their own, or not at all."""
    return (pa.types.is_duration(kind) or pa.types.is_null(kind)
            or any(_is_foreign(part) for part in _parts(kind)))


def _is_text(kind: pa.DataType, format_: str) -> bool:
    """Whether a type has one obvious text form: nested values have one only in json."""
    if pa.types.is_map(kind) and not pa.types.is_string(kind.key_type):
        return False
    return not kind.num_fields or format_ == "json" and all(
        _is_text(part, format_) and not _is_time(part) for part in _parts(kind))


def _parts(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_map(kind):
        return [kind.key_type, kind.item_type]
    return [kind.field(number).type for number in range(kind.num_fields)]


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _is_usual(column: pa.ChunkedArray) -> bool:
    """Whether times have a year of four digits: Spark writes others with a sign, or without one."""
    if not _is_time(column.type):
        return True
    whole = pa.int64() if pa.types.is_timestamp(column.type) else pa.int32()
    unit = _DAY if pa.types.is_timestamp(column.type) else 1
    found = pc.min_max(column.cast(whole)).as_py()
    return found["min"] is None or (
        found["min"] >= _FIRST_DAY * unit and found["max"] < (_LAST_DAY + 1) * unit)


# --- csv -----------------------------------------------------------------------------------------


def _csv(table: pa.Table) -> bytes:
    """A header, and a line for each row; NULL is empty, and an empty text a pair of quotes.

    Most readers take an empty line for no row, so the only column of a file is always quoted.
    """
    alone = table.num_columns == 1
    names = pa.array(table.column_names)
    header = ",".join(_quoted(names, always=alone).to_pylist()).encode()
    columns = [_csv_column(column.combine_chunks(), alone) for column in table.columns]
    rows = pc.binary_join_element_wise(*columns, ",", null_handling="replace")
    return header + b"\n" + _lines(rows)


def _csv_column(column: pa.Array, alone: bool) -> pa.Array:
    if pa.types.is_string(column.type):
        text = _quoted(_valid(column), always=alone)
    elif pa.types.is_binary(column.type):
        text = _quoted(_plain(column), always=alone)
    else:
        text = _plain(column)
        text = pc.binary_join_element_wise('"', text, '"', "") if alone else text
    return pc.fill_null(text, '""') if alone else text


def _quoted(text: pa.Array, always: bool = False) -> pa.Array:
    """Quote texts: only those that need quotes, unless ``always``."""
    doubled = pc.replace_substring(text, '"', '""')
    quoted = pc.binary_join_element_wise('"', doubled, '"', "")
    if always:
        return quoted
    needed = pc.or_(pc.match_substring_regex(text, _CSV_QUOTED), pc.equal(text, ""))
    return pc.if_else(needed, quoted, text)


# --- json ----------------------------------------------------------------------------------------


def _json(table: pa.Table) -> bytes:
    """An object for each row, without the fields that are NULL."""
    fields = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        key = f",{json.dumps(name, ensure_ascii=False)}:"
        value = _json_column(column.combine_chunks())
        fields.append(pc.fill_null(pc.binary_join_element_wise(key, value, ""), ""))
    inside = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*fields, ""), start=1)
    return _lines(pc.binary_join_element_wise("{", inside, "}", ""))


def _json_column(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_string(kind):
        return _json_text(_valid(column))
    if kind.num_fields:
        whole = [_json_value(value, kind) for value in column.to_pylist(maps_as_pydicts=None)]
        return pa.array(whole, pa.string())
    text = _plain(column)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return text
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_finite(column), text, pc.binary_join_element_wise(
            '"', text, '"', ""))
    return pc.binary_join_element_wise('"', text, '"', "")


def _json_text(text: pa.Array) -> pa.Array:
    quoted = pc.binary_join_element_wise('"', text, '"', "")
    special = pc.fill_null(pc.match_substring_regex(text, _JSON_ESCAPED), False)
    if not pc.any(special).as_py():
        return quoted
    escaped = [_dumps(value) for value in text.filter(special).to_pylist()]
    return pc.replace_with_mask(quoted, special, pa.array(escaped, pa.string()))


def _json_value(value: Any, kind: pa.DataType) -> str | None:
    """A nested value. NULL is left out of a STRUCT, and kept in an ARRAY and a MAP."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        found = {field.name: _json_value(value[field.name], field.type) for field in kind}
        return _object({name: text for name, text in found.items() if text is not None})
    if pa.types.is_map(kind):
        return _object({key: _json_value(one, kind.item_type) or "null" for key, one in value})
    if pa.types.is_list(kind):
        return f"[{','.join(_json_value(one, kind.value_type) or 'null' for one in value)}]"
    (text,) = _json_column(pa.array([value], kind)).to_pylist()
    return str(text)


def _object(texts: dict[str, str]) -> str:
    return f"{{{','.join(f'{_dumps(key)}:{text}' for key, text in texts.items())}}}"


_dumps = partial(json.dumps, ensure_ascii=False)


# --- values --------------------------------------------------------------------------------------


def _plain(column: pa.Array) -> pa.Array:
    """The values of a column other than texts, as text without quotes."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return pc.strftime(column, format=_TIME)
    if pa.types.is_floating(kind):
        return _floating(column)
    if pa.types.is_binary(kind):
        return pa.array([None if value is None else b64encode(value).decode()
                         for value in column.to_pylist()], pa.string())
    return column.cast(pa.string())


def _floating(column: pa.Array) -> pa.Array:
    """Numbers with a point always, so that no reader takes them for whole numbers."""
    text = column.cast(pa.string())
    text = pc.if_else(pc.match_substring_regex(text, "[.en]"), text,
                      pc.binary_join_element_wise(text, ".0", ""))
    text = pc.replace_substring_regex(text, r"^(-?\d+)e", r"\1.0e")
    text = pc.replace_substring_regex(text, r"e\+?", "E")
    if pc.all(pc.is_finite(column)).as_py() is not False:
        return text
    for arrow, spark in _NAMES.items():
        text = pc.if_else(pc.equal(text, arrow), spark, text)
    return text


def _valid(text: pa.Array) -> pa.Array:
    """Texts in UTF-8: Spark's may hold any bytes, and its files mark invalid ones."""
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array([None if value is None else value.decode("utf-8", "replace")
                         for value in text.cast(pa.binary()).to_pylist()], pa.string())
    return text


def _lines(rows: pa.Array) -> bytes:
    """Rows of text, each with a line break."""
    text = pc.binary_join_element_wise(rows, "", "\n")
    offsets, data = text.buffers()[1:]
    bounds = memoryview(offsets).cast("i")
    return bytes(memoryview(data)[bounds[text.offset]:bounds[text.offset + len(text)]])


_TEXTS: dict[str, Callable[[pa.Table], bytes]] = {"csv": _csv, "json": _json}
