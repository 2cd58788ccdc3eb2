"""Our types and constants as Spark's, and the bounds of its calendar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql import types as T

from penstock.model import Call, Expression, Field, Literal, Type

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Times go to Spark as counts from here: its own literals count days before 1582 differently."""

SIMPLE: dict[str, T.DataType] = {
    "BOOLEAN": T.BooleanType(),
    "TINYINT": T.ByteType(),
    "SMALLINT": T.ShortType(),
    "INT": T.IntegerType(),
    "BIGINT": T.LongType(),
    "FLOAT": T.FloatType(),
    "DOUBLE": T.DoubleType(),
    "STRING": T.StringType(),
    "BINARY": T.BinaryType(),
    "DATE": T.DateType(),
    "TIMESTAMP": T.TimestampType(),
    "INTERVAL": T.DayTimeIntervalType(),
    "VOID": T.NullType(),
}
"""The types without parameters."""


def data_type(type_: Type) -> T.DataType:
    """Spark's object for a type."""
    if type_.name == "DECIMAL":
        return T.DecimalType(type_.precision or 10, type_.scale or 0)
    if type_.name == "ARRAY" and type_.element is not None:
        return T.ArrayType(data_type(type_.element))
    if type_.name == "MAP" and type_.key is not None and type_.element is not None:
        return T.MapType(data_type(type_.key), data_type(type_.element))
    if type_.name == "STRUCT":
        return schema(type_.fields)
    return SIMPLE[type_.name]


def own_type(kind: T.DataType) -> Type:
    """Our type for one of Spark's; ValueError if there is none.

    >>> str(own_type(T.ArrayType(T.TimestampNTZType())))
    'ARRAY<TIMESTAMP>'
    """
    if isinstance(kind, T.DecimalType):
        return Type("DECIMAL", precision=kind.precision, scale=kind.scale)
    if isinstance(kind, T.ArrayType):
        return Type("ARRAY", element=own_type(kind.elementType))
    if isinstance(kind, T.MapType):
        return Type("MAP", key=own_type(kind.keyType), element=own_type(kind.valueType))
    if isinstance(kind, T.StructType):
        return Type("STRUCT", fields=own_fields(kind))
    if type(kind) in _OWN:
        return Type(_OWN[type(kind)])
    raise ValueError(f"there is no type for {kind.simpleString().upper()}")


def own_fields(columns: T.StructType) -> tuple[Field, ...]:
    """Our columns for those of Spark; ValueError names the one that has no type."""
    found = []
    for column in columns:
        try:
            found.append(Field(column.name, own_type(column.dataType)))
        except ValueError as error:
            raise ValueError(f"column '{column.name}': {error}") from None
    return tuple(found)


_OWN: dict[type[T.DataType], str] = {
    **{type(kind): name for name, kind in SIMPLE.items() if name not in ("INTERVAL", "VOID")},
    T.TimestampNTZType: "TIMESTAMP", T.CharType: "STRING", T.VarcharType: "STRING",
}
"""By Spark's type without parameters, ours; a time without a zone is UTC."""


def schema(fields: Iterable[Field]) -> T.StructType:
    """Spark's schema of columns; all of them may be null."""
    return T.StructType([T.StructField(f.name, data_type(f.type)) for f in fields])


def null(type_: Type) -> SparkColumn:
    """NULL of a type."""
    return F.lit(None).cast(data_type(type_))


def literal(constant: Literal) -> SparkColumn:
    """A constant with exactly its type."""
    value = constant.value
    if isinstance(value, bytes):
        value = bytearray(value)  # type: ignore[assignment]
    if value is None or constant.type.name in ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT"):
        return F.lit(value).cast(data_type(constant.type))
    if isinstance(value, Decimal):
        return F.lit(format(value, "f")).cast(data_type(constant.type))
    if isinstance(value, datetime):
        return F.timestamp_micros(F.lit((value - _EPOCH) // timedelta(microseconds=1)))
    if isinstance(value, date):
        return F.date_from_unix_date(F.lit((value - _EPOCH.date()).days))
    return F.lit(value)


def in_calendar(value: SparkColumn, type_: Type) -> SparkColumn:
    """A computed time; NULL if it is outside the years 1 to 9999.

    Spark's own range is thirty times as long, but parts of it overflow there, and neither Arrow's
    nor Python's users can read such times.
    """
    if type_.name not in ("TIMESTAMP", "DATE"):
        return value
    is_date = type_.name == "DATE"
    first = date.min if is_date else datetime.min.replace(tzinfo=UTC)
    last = date.max if is_date else datetime.max.replace(tzinfo=UTC)
    bounds = [literal(Literal(bound, type_)) for bound in (first, last)]
    return F.when((value >= bounds[0]) & (value <= bounds[1]), value)


# --- what computes a call ------------------------------------------------------------------------

Args: TypeAlias = Sequence[SparkColumn]
Entry: TypeAlias = Callable[[Call, Args], SparkColumn]


def plain(function: Callable[..., SparkColumn]) -> Entry:
    """A function of Spark over the arguments as they are."""
    return lambda call, args: function(*args)


def named(name: str) -> Entry:
    """A function of Spark that takes columns, by its name."""
    return lambda call, args: F.call_function(name, *args)


def text_of(expression: Expression) -> str:
    """A quoted constant."""
    assert isinstance(expression, Literal) and isinstance(expression.value, str)
    return expression.value


def number_of(expression: Expression) -> int:
    """A whole constant."""
    assert isinstance(expression, Literal) and isinstance(expression.value, int)
    return expression.value


def where(condition: SparkColumn, value: SparkColumn) -> SparkColumn:
    """The value where the condition holds, else NULL: what Spark must not be asked for."""
    return F.when(condition, value)
