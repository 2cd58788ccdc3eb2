"""Our expressions as Spark columns: one small entry per function, and no SQL text.

Spark's operators throw on overflow, division by zero and bad casts when its ANSI mode is on, and
answer nonsense when it is off. The entries use the ``try_`` functions and guards, so that either
way the answer is NULL and no row stops a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql import types as T

from penstock.errors import PlanError
from penstock.language.patterns import like_parts, like_regex
from penstock.model import Call, Column, Expression, Field, Literal, PythonCall, Type, quoted

_INTEGERS = {"TINYINT": 1 << 7, "SMALLINT": 1 << 15, "INT": 1 << 31, "BIGINT": 1 << 63}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Times go to Spark as counts from here: its own literals count days before 1582 differently."""

_WIDENING = ("TINYINT", "SMALLINT", "INT", "BIGINT")

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


def schema(fields: Iterable[Field]) -> T.StructType:
    """Spark's schema of columns; all of them may be null."""
    return T.StructType([T.StructField(f.name, data_type(f.type)) for f in fields])


def frame_name(column: Column) -> str:
    """What a column is called in a frame: a relation's columns carry the relation's number."""
    return f"{column.name}@{column.source}" if column.source else column.name


def reference(name: str) -> SparkColumn:
    """A column of a frame by its name, whatever characters that holds."""
    return F.col(quoted(name))


def column(expression: Expression, name: str | None = None) -> SparkColumn:
    """The expression over a frame whose columns are named as by `frame_name`."""
    compiled = _compiled(expression)
    return compiled if name is None else compiled.alias(name)


def _compiled(expression: Expression) -> SparkColumn:
    if isinstance(expression, Column):
        return reference(frame_name(expression))
    if isinstance(expression, Literal):
        return literal(expression)
    if isinstance(expression, PythonCall):
        raise PlanError(f"the Python function {expression.function} reached a Spark expression")
    entry = FUNCTIONS.get(expression.function)
    if entry is None:
        raise PlanError(f"no Spark expression for {expression.function}")
    return entry(expression, [_compiled(arg) for arg in expression.args])


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


# --- the entries -------------------------------------------------------------------------------

Args: TypeAlias = Sequence[SparkColumn]
Entry: TypeAlias = Callable[[Call, Args], SparkColumn]


def _plain(function: Callable[..., SparkColumn]) -> Entry:
    return lambda call, args: function(*args)


def _null(type_: Type) -> SparkColumn:
    return F.lit(None).cast(data_type(type_))


def _balanced(join: Callable[[SparkColumn, SparkColumn], SparkColumn]) -> Entry:
    """A tree of even depth: Spark recurses over it, and a chain of thousands overflows."""

    def build(call: Call, args: Args) -> SparkColumn:
        level = list(args)
        while len(level) > 1:
            paired = [join(a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
            level = paired + level[len(paired) * 2 :]
        return level[0]

    return build


def _cast(call: Call, args: Args) -> SparkColumn:
    source, to = call.args[0].type, data_type(call.type)
    if source.name == "BINARY" and call.type.name == "STRING":
        return F.try_validate_utf8(args[0].cast(to))
    if call.type.name == "STRING" or _widens(source, call.type):
        return args[0].cast(to)
    if source.name in ("TIMESTAMP", "DATE"):
        return args[0].try_cast(to)
    return _in_calendar(args[0].try_cast(to), call.type)


def _in_calendar(value: SparkColumn, type_: Type) -> SparkColumn:
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


def _add_interval(call: Call, args: Args) -> SparkColumn:
    return _in_calendar(F.try_add(args[0], args[1]), call.type)


def _widens(source: Type, to: Type) -> bool:
    """Whether the cast cannot fail: Spark pushes a plain cast down more easily."""
    if source.name in _WIDENING and to.name in _WIDENING:
        return _WIDENING.index(source.name) <= _WIDENING.index(to.name)
    return to.name == "DOUBLE" and source.name in (*_WIDENING, "FLOAT", "DECIMAL")


def _negate(call: Call, args: Args) -> SparkColumn:
    if call.type.name in _INTEGERS:
        return F.try_subtract(F.lit(0).cast(data_type(call.type)), args[0])
    if call.type.name == "DECIMAL":  # Spark's own negation rounds to 34 digits
        zero = F.lit(0).cast(data_type(call.type))
        return F.try_subtract(zero, args[0]).try_cast(data_type(call.type))
    return F.negate(args[0])


def _abs(call: Call, args: Args) -> SparkColumn:
    if call.type.name in _INTEGERS or call.type.name == "DECIMAL":
        return F.when(args[0] >= 0, args[0]).otherwise(_negate(call, args))
    return F.abs(args[0])


def _round(call: Call, args: Args) -> SparkColumn:
    digits = call.args[1]
    places = digits.value if isinstance(digits, Literal) else 0
    assert isinstance(places, int)
    source = call.args[0].type
    if source.name in _INTEGERS:
        if places >= 0:
            return args[0]
        return F.round(args[0].cast(T.DecimalType(20, 0)), places).try_cast(data_type(call.type))
    if source.name != "DECIMAL":
        return F.round(args[0], places)
    if places >= 0:
        return args[0].try_cast(data_type(call.type))  # a cast rounds half up, as ROUND does
    narrow = args[0].try_cast(T.DecimalType(min(source.precision or 10, 37), source.scale or 0))
    return F.round(narrow, places).try_cast(data_type(call.type))


def _to_whole(function: Callable[[SparkColumn], SparkColumn]) -> Entry:
    """FLOOR and CEIL; NULL if a BIGINT cannot hold the answer."""

    def build(call: Call, args: Args) -> SparkColumn:
        if call.type.name == "DECIMAL":
            return function(args[0]).try_cast(data_type(call.type))
        bound = float(_INTEGERS["BIGINT"])
        inside = (args[0] >= F.lit(-bound)) & (args[0] < F.lit(bound))
        return F.when(inside, function(args[0]))

    return build


def _div(call: Call, args: Args) -> SparkColumn:
    dividend, divisor = args
    lowest = F.lit(-_INTEGERS["BIGINT"])
    overflows = (divisor == F.lit(-1)) & (dividend == lowest)
    safe = F.when((divisor != F.lit(0)) & ~overflows, divisor)
    return F.call_function("div", dividend, safe)


def _in(call: Call, args: Args) -> SparkColumn:
    return args[0].isin(*args[1:])


def _case(call: Call, args: Args) -> SparkColumn:
    pairs = len(args) // 2
    whens = F.when(args[0], args[1])
    for k in range(1, pairs):
        whens = whens.when(args[2 * k], args[2 * k + 1])
    return whens.otherwise(args[-1]) if len(args) % 2 else whens


def _like(call: Call, args: Args) -> SparkColumn:
    """LIKE in time that does not grow with a power of the text's length.

    With one ``%`` at most Spark's own form is as good, and ``%text%`` is cheaper without a pattern.
    """
    pattern, escape = _text(call.args[1]), call.detail or "\\"
    inside = pattern.strip("%")
    if pattern == f"%{inside}%" and not any(char in inside for char in ("%", "_", escape)):
        return F.contains(args[0], F.lit(inside))
    if len(like_parts(pattern, escape)) <= 2:
        return F.like(args[0], args[1], F.lit(escape))
    return F.rlike(args[0], F.lit(like_regex(pattern, escape)))


def _ilike(call: Call, args: Args) -> SparkColumn:
    """LIKE on the text and the pattern in lower case, as Spark defines it."""
    pattern = Literal(_text(call.args[1]).lower(), call.args[1].type)
    lowered = replace(call, args=(call.args[0], pattern), detail=(call.detail or "\\").lower())
    return _like(lowered, [F.lower(args[0]), literal(pattern)])


def _trim(function: Callable[..., SparkColumn]) -> Entry:
    return lambda call, args: function(args[0], *args[1:])


def _substr(call: Call, args: Args) -> SparkColumn:
    return F.substr(*args)


def _split_part(call: Call, args: Args) -> SparkColumn:
    part = F.when(args[2] != F.lit(0), args[2])
    return F.split_part(args[0], args[1], part)


def _text(expression: Expression) -> str:
    assert isinstance(expression, Literal) and isinstance(expression.value, str)
    return expression.value


def _number(expression: Expression) -> int:
    assert isinstance(expression, Literal) and isinstance(expression.value, int)
    return expression.value


def _regexp_extract(call: Call, args: Args) -> SparkColumn:
    return F.regexp_extract(args[0], _text(call.args[1]), _number(call.args[2]))


def _array_item(call: Call, args: Args) -> SparkColumn:
    return F.get(args[0], args[1])


def _date_trunc(call: Call, args: Args) -> SparkColumn:
    return F.date_trunc(_text(call.args[0]), _in_calendar(args[1], call.type))


def _from_json(call: Call, args: Args) -> SparkColumn:
    return F.from_json(args[0], data_type(call.type))  # type: ignore[arg-type]


def _md5(call: Call, args: Args) -> SparkColumn:
    return F.md5(args[0].cast(T.BinaryType()))


def _extract_second(call: Call, args: Args) -> SparkColumn:
    return F.extract(F.lit("SECOND"), args[0])


def _nullif(call: Call, args: Args) -> SparkColumn:
    return F.when(args[0] == args[1], _null(call.type)).otherwise(args[0])


FUNCTIONS: dict[str, Entry] = {
    "abs": _abs,
    "add": _plain(F.try_add),
    "add_interval": _add_interval,
    "and": _balanced(lambda a, b: a & b),
    "array": _plain(F.array),
    "case": _case,
    "cast": _cast,
    "ceil": _to_whole(F.ceil),
    "coalesce": _plain(F.coalesce),
    "concat": _plain(F.concat),
    "contains": _plain(F.contains),
    "date_trunc": _date_trunc,
    "day": _plain(F.dayofmonth),
    "dayofweek": _plain(F.dayofweek),
    "dayofyear": _plain(F.dayofyear),
    "div": _div,
    "divide": _plain(F.try_divide),
    "element": _plain(F.try_element_at),
    "endswith": _plain(F.endswith),
    "eq": lambda call, args: args[0] == args[1],
    "eq_null_safe": lambda call, args: args[0].eqNullSafe(args[1]),
    "exp": _plain(F.exp),
    "extract_second": _extract_second,
    "field": lambda call, args: args[0].getField(call.detail),
    "floor": _to_whole(F.floor),
    "from_json": _from_json,
    "ge": lambda call, args: args[0] >= args[1],
    "get": _array_item,
    "greatest": _plain(F.greatest),
    "gt": lambda call, args: args[0] > args[1],
    "hour": _plain(F.hour),
    "if": lambda call, args: F.when(args[0], args[1]).otherwise(args[2]),
    "ilike": _ilike,
    "in": _in,
    "is_not_null": lambda call, args: args[0].isNotNull(),
    "is_null": lambda call, args: args[0].isNull(),
    "le": lambda call, args: args[0] <= args[1],
    "least": _plain(F.least),
    "length": _plain(F.length),
    "like": _like,
    "ln": _plain(F.ln),
    "lower": _plain(F.lower),
    "lt": lambda call, args: args[0] < args[1],
    "ltrim": _trim(F.ltrim),
    "md5": _md5,
    "minute": _plain(F.minute),
    "mod": _plain(F.try_mod),
    "month": _plain(F.month),
    "multiply": _plain(F.try_multiply),
    "ne": lambda call, args: args[0] != args[1],
    "negate": _negate,
    "not": lambda call, args: ~args[0],
    "nullif": _nullif,
    "or": _balanced(lambda a, b: a | b),
    "power": _plain(F.power),
    "quarter": _plain(F.quarter),
    "regexp_extract": _regexp_extract,
    "regexp_replace": _plain(F.regexp_replace),
    "replace": _plain(F.replace),
    "rlike": _plain(F.rlike),
    "round": _round,
    "rtrim": _trim(F.rtrim),
    "second": _plain(F.second),
    "sign": _plain(F.signum),
    "split_part": _split_part,
    "sqrt": _plain(F.sqrt),
    "startswith": _plain(F.startswith),
    "substr": _substr,
    "subtract": _plain(F.try_subtract),
    "trim": _trim(F.trim),
    "unix_timestamp": _plain(F.unix_timestamp),
    "upper": _plain(F.upper),
    "week": _plain(F.weekofyear),
    "xxhash64": _plain(F.xxhash64),
    "year": _plain(F.year),
}
"""How Spark computes each function of the language."""
