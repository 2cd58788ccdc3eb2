"""Our expressions as Spark columns: one small entry per function, and no SQL text.

Spark's operators throw on overflow, division by zero and bad casts when its ANSI mode is on, and
answer nonsense when it is off. The entries use the ``try_`` functions and guards, so that either
way the answer is NULL and no row stops a query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql import types as T

from penstock.errors import PlanError
from penstock.language.patterns import like_parts, like_regex
from penstock.model import Call, Column, Expression, Literal, PythonCall, Type, quoted
from penstock.spark.compile.data_types import (
    SIMPLE,
    Args,
    Entry,
    data_type,
    in_calendar,
    literal,
    named,
    null,
    plain,
    schema,
    text_of,
    where,
)
from penstock.spark.compile.nested_expressions import NESTED
from penstock.spark.compile.text_expressions import TEXT
from penstock.spark.compile.time_expressions import TIME

__all__ = [
    "FUNCTIONS",
    "SIMPLE",
    "column",
    "data_type",
    "frame_name",
    "literal",
    "reference",
    "schema",
]

_INTEGERS = {"TINYINT": 1 << 7, "SMALLINT": 1 << 15, "INT": 1 << 31, "BIGINT": 1 << 63}
_WIDENING = ("TINYINT", "SMALLINT", "INT", "BIGINT")


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


# --- the entries -------------------------------------------------------------------------------

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
    return in_calendar(args[0].try_cast(to), call.type)


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
    pattern, escape = text_of(call.args[1]), call.detail or "\\"
    inside = pattern.strip("%")
    if pattern == f"%{inside}%" and not any(char in inside for char in ("%", "_", escape)):
        return F.contains(args[0], F.lit(inside))
    if len(like_parts(pattern, escape)) <= 2:
        return F.like(args[0], args[1], F.lit(escape))
    return F.rlike(args[0], F.lit(like_regex(pattern, escape)))


def _ilike(call: Call, args: Args) -> SparkColumn:
    """LIKE on the text and the pattern in lower case, as Spark defines it."""
    pattern = Literal(text_of(call.args[1]).lower(), call.args[1].type)
    lowered = replace(call, args=(call.args[0], pattern), detail=(call.detail or "\\").lower())
    return _like(lowered, [F.lower(args[0]), literal(pattern)])


def _nullif(call: Call, args: Args) -> SparkColumn:
    return F.when(args[0] == args[1], null(call.type)).otherwise(args[0])


def _isnan(call: Call, args: Args) -> SparkColumn:
    return where(args[0].isNotNull(), F.isnan(args[0]))


def _pmod(call: Call, args: Args) -> SparkColumn:
    return F.pmod(args[0], where(args[1] != F.lit(0), args[1]))


_NUMBERS: dict[str, Entry] = {
    "abs": _abs,
    "acos": plain(F.acos),
    "add": plain(F.try_add),
    "asin": plain(F.asin),
    "atan": plain(F.atan),
    "atan2": plain(F.atan2),
    "bit_and": lambda call, args: args[0].bitwiseAND(args[1]),
    "bit_count": plain(F.bit_count),
    "bit_not": plain(F.bitwise_not),
    "bit_or": lambda call, args: args[0].bitwiseOR(args[1]),
    "bit_xor": lambda call, args: args[0].bitwiseXOR(args[1]),
    "cbrt": plain(F.cbrt),
    "ceil": _to_whole(F.ceil),
    "cos": plain(F.cos),
    "cosh": plain(F.cosh),
    "degrees": plain(F.degrees),
    "div": _div,
    "divide": plain(F.try_divide),
    "e": plain(F.e),
    "exp": plain(F.exp),
    "expm1": plain(F.expm1),
    "floor": _to_whole(F.floor),
    "hash": plain(F.hash),
    "hypot": plain(F.hypot),
    "isnan": _isnan,
    "ln": plain(F.ln),
    "log10": plain(F.log10),
    "log1p": plain(F.log1p),
    "log2": plain(F.log2),
    "mod": plain(F.try_mod),
    "multiply": plain(F.try_multiply),
    "nanvl": plain(F.nanvl),
    "negate": _negate,
    "pi": plain(F.pi),
    "pmod": _pmod,
    "power": plain(F.power),
    "radians": plain(F.radians),
    "round": _round,
    "shiftleft": named("shiftleft"),
    "shiftright": named("shiftright"),
    "sign": plain(F.signum),
    "sin": plain(F.sin),
    "sinh": plain(F.sinh),
    "sqrt": plain(F.sqrt),
    "subtract": plain(F.try_subtract),
    "tan": plain(F.tan),
    "tanh": plain(F.tanh),
    "width_bucket": named("width_bucket"),
    "xxhash64": plain(F.xxhash64),
}
_CHOICES: dict[str, Entry] = {
    "and": _balanced(lambda a, b: a & b),
    "case": _case,
    "cast": _cast,
    "coalesce": plain(F.coalesce),
    "eq": lambda call, args: args[0] == args[1],
    "eq_null_safe": lambda call, args: args[0].eqNullSafe(args[1]),
    "ge": lambda call, args: args[0] >= args[1],
    "greatest": plain(F.greatest),
    "gt": lambda call, args: args[0] > args[1],
    "if": lambda call, args: F.when(args[0], args[1]).otherwise(args[2]),
    "ilike": _ilike,
    "in": _in,
    "is_not_null": lambda call, args: args[0].isNotNull(),
    "is_null": lambda call, args: args[0].isNull(),
    "le": lambda call, args: args[0] <= args[1],
    "least": plain(F.least),
    "like": _like,
    "lt": lambda call, args: args[0] < args[1],
    "ne": lambda call, args: args[0] != args[1],
    "not": lambda call, args: ~args[0],
    "nullif": _nullif,
    "or": _balanced(lambda a, b: a | b),
}

FUNCTIONS: dict[str, Entry] = dict(
    sorted({**_NUMBERS, **_CHOICES, **TEXT, **TIME, **NESTED}.items())
)
"""How Spark computes each function of the language."""
