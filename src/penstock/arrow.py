"""Our types as Arrow types, and back: for tables of constants, spooled blocks and answers."""

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


def type_of(kind: pa.DataType) -> Type:
    """The type that holds all values of an Arrow type; ValueError if there is none.

    >>> str(type_of(pa.list_(pa.uint32()))), str(type_of(pa.timestamp("ns")))
    ('ARRAY<BIGINT>', 'TIMESTAMP')
    >>> type_of(pa.time64("us"))
    Traceback (most recent call last):
    ValueError: there is no type for time64[us]
    """
    if pa.types.is_dictionary(kind):
        return type_of(kind.value_type)
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= 38:
        return Type("DECIMAL", precision=kind.precision, scale=kind.scale)
    if pa.types.is_map(kind):
        return Type("MAP", key=type_of(kind.key_type), element=type_of(kind.item_type))
    if pa.types.is_struct(kind):
        return Type("STRUCT", fields=fields_of(kind))
    if any(test(kind) for test in _LISTS):
        return Type("ARRAY", element=type_of(kind.value_type))
    for test, name in _TESTS:
        if test(kind):
            return Type(name)
    raise ValueError(f"there is no type for {kind}")


def fields_of(columns: Iterable[pa.Field]) -> tuple[Field, ...]:
    """The columns of an Arrow schema or struct; ValueError names the one that has no type."""
    found = []
    for column in columns:
        try:
            found.append(Field(column.name, type_of(column.type)))
        except ValueError as error:
            raise ValueError(f"column '{column.name}': {error}") from None
    return tuple(found)


_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list,
          pa.types.is_list_view, pa.types.is_large_list_view)
_TESTS = (
    (pa.types.is_boolean, "BOOLEAN"), (pa.types.is_int8, "TINYINT"),
    (pa.types.is_int16, "SMALLINT"), (pa.types.is_uint8, "SMALLINT"),
    (pa.types.is_int32, "INT"), (pa.types.is_uint16, "INT"),
    (pa.types.is_int64, "BIGINT"), (pa.types.is_uint32, "BIGINT"), (pa.types.is_float16, "FLOAT"),
    (pa.types.is_float32, "FLOAT"), (pa.types.is_float64, "DOUBLE"),
    (pa.types.is_string, "STRING"), (pa.types.is_large_string, "STRING"),
    (pa.types.is_string_view, "STRING"), (pa.types.is_binary, "BINARY"),
    (pa.types.is_large_binary, "BINARY"), (pa.types.is_fixed_size_binary, "BINARY"),
    (pa.types.is_binary_view, "BINARY"), (pa.types.is_date, "DATE"),
    (pa.types.is_timestamp, "TIMESTAMP"),
)
"""By Arrow type, the narrowest type without parameters that holds all of its values."""


def arrow_schema(fields: Iterable[Field]) -> pa.Schema:
    """The Arrow schema of columns; all of them may be null."""
    return pa.schema([pa.field(f.name, arrow_type(f.type)) for f in fields])
