"""Parquet files as a stream's own blocks: which files a batch holds, and what their footers tell.

Spark's file source writes down the files of each batch before it runs it. Reading that log and the
footers makes a block durable without any job; where either cannot be had (another file system, a
file without statistics) ingest falls back to a job.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.arrow import arrow_type
from penstock.model import Stream, name_key
from penstock.spark.files import local_path

_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def files_of_batch(offsets: Path, batch: int) -> list[str] | None:
    """The files that Spark's log names for a batch; None when the log is not as expected."""
    try:
        last = _log_offset(offsets / "offsets" / str(batch))
        before = offsets / "offsets" / str(batch - 1)
        first = _log_offset(before) + 1 if before.exists() else 0
        entries = [entry for number in range(first, last + 1)
                   for entry in _entries(offsets / "sources" / "0", number)]
        return list(dict.fromkeys(entry["path"] for entry in entries))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _log_offset(path: Path) -> int:
    return int(json.loads(path.read_text().splitlines()[-1])["logOffset"])


def _entries(log: Path, number: int) -> list[dict[str, str]]:
    """The log's entries of one number, from its own file or from the compaction that holds it."""
    for path in (log / str(number), log / f"{number}.compact"):
        if path.exists():
            lines = path.read_text().splitlines()
            if lines[0] != "v1":
                raise ValueError(f"{path} is of version {lines[0]}")
            found = [json.loads(line) for line in lines[1:] if line]
            return [entry for entry in found if entry["batchId"] == number]
    raise FileNotFoundError(log / str(number))


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file says of itself."""

    file: str
    rows: int
    fault: str = ""
    """Why it does not fit the stream, if it does not."""
    oldest: int | None = None
    newest: int | None = None
    """The range of its times in microseconds; None when there is no time."""


def footer(file: str, stream: Stream) -> Footer | None:
    """A file's footer; None when it cannot tell what ingest has to know."""
    path = local_path(file)
    if path is None:
        return None
    try:
        metadata = pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        return Footer(file, 0, f"it is not a Parquet file: {error}")
    fault = _fault(metadata.schema.to_arrow_schema(), stream)
    if fault or stream.time is None or metadata.num_rows == 0:
        return Footer(file, metadata.num_rows, fault)
    times = _times(metadata, stream.time)
    return None if times is None else Footer(file, metadata.num_rows, "", *times)


def _fault(found: pa.Schema, stream: Stream) -> str:
    has = {name_key(field.name): field.type for field in found}
    for column in stream.columns:
        kind = has.get(name_key(column.name))
        if kind is None:
            return f"it has no column '{column.name}'"
        wanted = arrow_type(column.type)
        if not _fits(kind, wanted):
            return f"its column '{column.name}' is {kind}, not {column.type}"
    return ""


def _fits(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark reads the one as the other."""
    for same in (pa.types.is_timestamp, pa.types.is_nested, pa.types.is_decimal):
        if same(kind) or same(wanted):
            return bool(same(kind) and same(wanted))
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    if any(t(kind) for t in text) or any(t(wanted) for t in text):
        return any(t(kind) for t in text) and any(t(wanted) for t in text)
    if pa.types.is_integer(kind) and pa.types.is_integer(wanted):
        return bool(kind.bit_width <= wanted.bit_width)
    if pa.types.is_floating(kind) and pa.types.is_floating(wanted):
        return bool(kind.bit_width <= wanted.bit_width)
    return bool(kind == wanted)


def _times(metadata: pq.FileMetaData, time: str) -> tuple[int, int] | None:
    """The smallest and the largest time according to the statistics of the row groups."""
    names = [name_key(metadata.schema.column(i).path) for i in range(metadata.num_columns)]
    if name_key(time) not in names:
        return None
    place = names.index(name_key(time))
    kind = metadata.schema.to_arrow_schema().field(metadata.schema.column(place).path).type
    if not pa.types.is_timestamp(kind) or kind.unit not in _MICROS:
        return None
    low, high = [], []
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(place)
        if chunk.statistics is None or not chunk.statistics.has_min_max:
            return None
        if chunk.physical_type != "INT64":
            return None
        low.append(chunk.statistics.min_raw * _MICROS[kind.unit])
        high.append(chunk.statistics.max_raw * _MICROS[kind.unit])
    return (min(low), max(high)) if low else None
