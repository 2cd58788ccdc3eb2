"""Our types as Arrow types: for tables of constants, spooled blocks and answers."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from penstock.model import Field, Type

TYPES: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "INTERVAL": pa.duration("us"),
    "VOID": pa.null(),
}
"""The types without parameters."""


def arrow_type(type_: Type) -> pa.DataType:
    """The Arrow type that Spark uses for a type.

    >>> arrow_type(Type("ARRAY", element=Type("INT")))
    ListType(list<element: int32>)
    """
    if type_.name == "DECIMAL":
        return pa.decimal128(type_.precision or 10, type_.scale or 0)
    if type_.name == "ARRAY" and type_.element is not None:
        return pa.list_(pa.field("element", arrow_type(type_.element)))
    if type_.name == "MAP" and type_.key is not None and type_.element is not None:
        return pa.map_(arrow_type(type_.key), arrow_type(type_.element))
    if type_.name == "STRUCT":
        return pa.struct(list(arrow_schema(type_.fields)))
    return TYPES[type_.name]


def arrow_schema(fields: Iterable[Field]) -> pa.Schema:
    """The Arrow schema of columns; all of them may be null."""
    return pa.schema([pa.field(f.name, arrow_type(f.type)) for f in fields])
