"""Columns in the names of folders, as Hive writes them: ``day=2025-01-01/a.parquet``."""

from __future__ import annotations

from urllib.parse import unquote

import pyarrow as pa

from penstock.arrow import arrow_type
from penstock.model import Field, Stream, name_key
from penstock.spark.storage.files import GLOB, local_path

_NULL = "__HIVE_DEFAULT_PARTITION__"


def root(path: str) -> str:
    """The folder below which names of folders may hold columns.

    >>> root("/data/in"), root("/data/*/in")
    ('/data/in', '/data')
    """
    local = local_path(path)
    if local is not None and local.exists():
        return str(local)
    parts = path.split("/")
    fixed = next((n for n, part in enumerate(parts) if any(c in part for c in GLOB)), len(parts))
    return "/".join(parts[:fixed])


def values(file: str, base: str) -> dict[str, str | None]:
    """The columns in the folders between a base and a file, by their names as written.

    >>> values("/in/Day=2025-01-01/site=a%20b/x.parquet", "/in")
    {'Day': '2025-01-01', 'site': 'a b'}
    """
    folders = file.removeprefix(base).split("/")[:-1]
    pairs = [folder.split("=", 1) for folder in folders if "=" in folder]
    return {unquote(k): None if v == _NULL else unquote(v) for k, v in pairs if k}


def of_stream(file: str, stream: Stream, base: str) -> dict[str, str | None]:
    """The declared columns that a file's folders hold, by their declared names."""
    held = {name_key(name): value for name, value in values(file, base).items()}
    return {c.name: held[name_key(c.name)] for c in stream.read if name_key(c.name) in held}


def value(text: str | None, column: Field) -> pa.Scalar:
    """The value of a partition column; ArrowInvalid if it does not fit the declaration."""
    wanted = arrow_type(column.type)
    if pa.types.is_timestamp(wanted):
        return pa.scalar(text, pa.string()).cast(pa.timestamp("us")).cast(wanted)
    return pa.scalar(text, pa.string()).cast(wanted)
