"""Parquet files as a stream's own blocks: what their footers say.

A footer says whether the file is whole, whether it fits the declaration, how many rows it has and
which times they have. So a block is made durable without any job. Some files fit although Spark
cannot read them as declared (times in nanoseconds, unsigned integers). These are copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.arrow import arrow_schema, arrow_type
from penstock.model import EPOCH_UNITS, Field, Stream, name_key
from penstock.spark.ingest import partitions

MAGIC = b"PAR1"
_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
_LISTS = (pa.types.is_list, pa.types.is_large_list)

Fit = Literal["plain", "cast", "no"]
"""How a file's column becomes the declared one: read by Spark, copied, or not at all."""


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file says about itself."""

    rows: int | None = None
    """None if there is nothing to read."""
    fault: str = ""
    """Why it does not fit the stream, if it does not."""
    whole: bool = True
    """Whether its footer exists; otherwise ``fault`` says what is missing."""
    plain: bool = True
    """Whether Spark reads it as it is declared."""
    times: tuple[int, int] | None = None
    """The range of its times in microseconds; None if it does not say."""


def footer(path: Path, stream: Stream, inherited: Mapping[str, str | None]) -> Footer:
    """A local file's footer; ``inherited`` are the columns that its folders hold."""
    try:
        metadata = pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        return _broken(path, error)
    schema = metadata.schema.to_arrow_schema()
    fault = misfit(schema, stream, inherited)
    if fault:
        return Footer(metadata.num_rows, fault)
    return Footer(metadata.num_rows, plain=_is_plain(metadata, schema, stream, inherited),
                  times=_times(metadata, schema, stream))


def _broken(path: Path, error: Exception) -> Footer:
    """A file that begins as Parquet and has no end may still be written; any other is bad."""
    with open(path, "rb") as file:
        head = file.read(4)
        file.seek(max(0, path.stat().st_size - 4))
        tail = file.read(4)
    if head.strip(b"\0") and not MAGIC.startswith(head):
        return Footer(fault="it is not a Parquet file")
    if tail == MAGIC:
        return Footer(fault=f"it is damaged: {str(error).splitlines()[0]}")
    return Footer(fault="its end is missing: there is no Parquet footer", whole=False)


def misfit(found: pa.Schema, stream: Stream, inherited: Mapping[str, str | None]) -> str:
    """Why files with these columns do not fit the declaration; empty if they do."""
    has = {name_key(field.name): field.type for field in found}
    for column in stream.read:
        if column.name in inherited:
            fault = _unfit_partition(column, inherited[column.name])
            if fault:
                return fault
            continue
        kind = has.get(name_key(column.name))
        if kind is None:
            return (f"column '{column.name}' is declared but not in the data, which has "
                    + ", ".join(field.name for field in found))
        if fits(kind, arrow_type(column.type)) == "no":
            return f"column '{column.name}' is declared {column.type} but the data holds " + (
                _SQL.get(str(kind), str(kind)))
    return ""


_SQL = {"int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT",
        "float": "FLOAT", "double": "DOUBLE", "string": "STRING", "large_string": "STRING",
        "bool": "BOOLEAN", "date32[day]": "DATE", "binary": "BINARY"}


def _unfit_partition(column: Field, text: str | None) -> str:
    try:
        partitions.value(text, column)
    except (pa.ArrowException, ValueError):
        return f"column '{column.name}' is declared {column.type} but its folder says '{text}'"
    return ""


def fits(kind: pa.DataType, wanted: pa.DataType) -> Fit:
    """Whether a column of a file can be read as one of another type, and how."""
    if pa.types.is_dictionary(kind):  # only Arrow sees it so; the file has its values' type
        return fits(kind.value_type, wanted)
    if pa.types.is_null(kind):
        return "cast"
    for family in (_TEXT, _BYTES):
        if any(is_one(wanted) for is_one in family):
            return "plain" if any(is_one(kind) for is_one in family) else "no"
    if pa.types.is_timestamp(wanted):
        if not pa.types.is_timestamp(kind):
            return "no"
        return "cast" if kind.unit == "ns" else "plain"
    if pa.types.is_date(wanted):
        return "plain" if pa.types.is_date(kind) else "no"
    if pa.types.is_integer(wanted) and pa.types.is_integer(kind):
        if pa.types.is_unsigned_integer(kind):
            return "cast"
        return "plain" if kind.bit_width <= wanted.bit_width else "no"
    if pa.types.is_floating(wanted) and pa.types.is_floating(kind):
        if kind.bit_width > wanted.bit_width:
            return "no"
        return "cast" if pa.types.is_float16(kind) else "plain"
    if pa.types.is_decimal(wanted) and pa.types.is_decimal(kind):
        return _decimal_fits(kind, wanted)
    return _nested_fits(kind, wanted) if pa.types.is_nested(wanted) else (
        "plain" if kind == wanted else "no")


def _decimal_fits(kind: pa.DataType, wanted: pa.DataType) -> Fit:
    if (kind.precision, kind.scale) == (wanted.precision, wanted.scale):
        return "plain"
    room = kind.scale <= wanted.scale and (
        kind.precision - kind.scale <= wanted.precision - wanted.scale)
    return "cast" if room else "no"


def _nested_fits(kind: pa.DataType, wanted: pa.DataType) -> Fit:
    if pa.types.is_list(wanted) and any(is_one(kind) for is_one in _LISTS):
        return fits(kind.value_type, wanted.value_type)
    if pa.types.is_map(wanted) and pa.types.is_map(kind):
        return _worst(fits(kind.key_type, wanted.key_type),
                      fits(kind.item_type, wanted.item_type))
    if pa.types.is_struct(wanted) and pa.types.is_struct(kind):
        has = {name_key(field.name): field.type for field in kind}
        return _worst(*(fits(has[name_key(f.name)], f.type) for f in wanted
                        if name_key(f.name) in has))
    return "no"


def _worst(*found: Fit) -> Fit:
    if "no" in found:
        return "no"
    return "cast" if "cast" in found else "plain"


def _is_plain(
    metadata: pq.FileMetaData, schema: pa.Schema, stream: Stream,
    inherited: Mapping[str, str | None],
) -> bool:
    has = {name_key(field.name): field.type for field in schema}
    old = {name_key(metadata.schema.column(n).path) for n in range(metadata.num_columns)
           if metadata.schema.column(n).physical_type == "INT96"}
    return all(
        fits(has[name_key(c.name)], arrow_type(c.type)) == "plain" or name_key(c.name) in old
        for c in stream.read if c.name not in inherited)


def _times(metadata: pq.FileMetaData, schema: pa.Schema, stream: Stream) -> tuple[int, int] | None:
    """The smallest and the largest time according to the statistics of the row groups."""
    names = [name_key(metadata.schema.column(i).path) for i in range(metadata.num_columns)]
    if stream.time is None or name_key(stream.time) not in names:
        return None
    place = names.index(name_key(stream.time))
    nanos = _nanos(schema.field(metadata.schema.column(place).path).type, stream)
    if nanos is None:
        return None
    low, high = [], []
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(place)
        if chunk.physical_type not in ("INT32", "INT64"):
            return None
        if chunk.statistics is None or not chunk.statistics.has_min_max:
            return None
        low.append(chunk.statistics.min_raw * nanos // 1000)
        high.append(chunk.statistics.max_raw * nanos // 1000)
    return (min(low), max(high)) if low else None


def _nanos(kind: pa.DataType, stream: Stream) -> int | None:
    """How many nanoseconds a unit of a time column has."""
    if stream.unit:
        return EPOCH_UNITS[stream.unit] if pa.types.is_signed_integer(kind) else None
    if pa.types.is_timestamp(kind) and kind.unit in _MICROS:
        return _MICROS[kind.unit] * 1000
    return None


def copy(
    path: Path, target: Path, stream: Stream, inherited: Mapping[str, str | None]
) -> None:
    """Copy a file with the declared types; ArrowInvalid if a value does not fit."""
    wanted = arrow_schema(stream.read)
    with pq.ParquetFile(path) as file, pq.ParquetWriter(target, wanted) as writer:
        for batch in file.iter_batches():
            has = {name_key(name): batch.column(n) for n, name in enumerate(batch.schema.names)}
            columns = [_cast(has.get(name_key(c.name)), c, inherited, batch.num_rows)
                       for c in stream.read]
            writer.write_batch(pa.record_batch(columns, schema=wanted))


def _cast(
    found: pa.Array | None, column: Field, inherited: Mapping[str, str | None], rows: int
) -> pa.Array:
    wanted = arrow_type(column.type)
    if column.name in inherited or found is None:
        return pa.repeat(partitions.value(inherited[column.name], column), rows)
    finer = "timestamp[ns" in str(found.type)
    return found.cast(wanted, safe=not finer)  # digits beyond a microsecond are cut off
