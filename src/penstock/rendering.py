"""Expressions as short SQL-like text: for `explain`, for tests, for messages.

The text is deterministic and shows what the binder made explicit: every cast, the side of every
constant, the input of every joined column (``id@1`` is the column of the first relation).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal

from penstock.model import (
    ANSWER,
    OURS,
    STREAM,
    Call,
    Column,
    Expression,
    Literal,
    PythonCall,
    quoted,
)

_INFIX = {
    "eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq_null_safe": "<=>",
    "and": "AND", "or": "OR", "add": "+", "subtract": "-", "multiply": "*", "divide": "/",
    "mod": "%", "div": "DIV", "rlike": "RLIKE", "add_interval": "+",
    "bit_and": "&", "bit_or": "|", "bit_xor": "^",
}  # fmt: skip


def render(expression: Expression) -> str:
    """The expression as text.

    >>> from penstock.model import BOOLEAN, INT
    >>> render(Call("gt", (Column("length", INT), Literal(5, INT)), BOOLEAN))
    'length > 5'
    """
    if isinstance(expression, Column):
        return _column(expression)
    if isinstance(expression, Literal):
        return _literal(expression)
    if isinstance(expression, PythonCall):
        return f"{expression.function}({_list(expression.args)})"
    if expression.function in _INFIX:
        return f" {_INFIX[expression.function]} ".join(_operand(arg) for arg in expression.args)
    special = _SPECIAL.get(expression.function)
    return special(expression) if special else f"{expression.function}({_list(expression.args)})"


def _name(name: str) -> str:
    return name if name.isidentifier() else quoted(name)


def _column(column: Column) -> str:
    if column.source == OURS:
        return column.name.lstrip("@")
    plain = column.source in (STREAM, ANSWER)
    return _name(column.name) + ("" if plain else f"@{column.source}")


def _list(args: tuple[Expression, ...]) -> str:
    return ", ".join(render(arg) for arg in args)


def _operand(expression: Expression) -> str:
    text = render(expression)
    compound = isinstance(expression, Call) and (
        expression.function in _INFIX or expression.function in _LOOSE
    )
    return f"({text})" if compound else text


def _literal(literal: Literal) -> str:
    value, type_ = literal.value, literal.type
    if value is None:
        return "NULL" if type_.name == "VOID" else f"NULL::{type_}"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + json.dumps(value, ensure_ascii=False)[1:-1].replace("'", "\\'") + "'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, timedelta):
        return f"INTERVAL {value.total_seconds():g} SECOND"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return repr(value) if type_.name in ("INT", "DOUBLE") else f"{value!r}::{type_}"


def _cast(call: Call) -> str:
    return f"CAST({render(call.args[0])} AS {call.type})"


def _case(call: Call) -> str:
    pairs = len(call.args) // 2
    parts = [
        f"WHEN {render(call.args[2 * k])} THEN {render(call.args[2 * k + 1])}" for k in range(pairs)
    ]
    default = [f"ELSE {render(call.args[-1])}"] if len(call.args) % 2 else []
    return " ".join(["CASE", *parts, *default, "END"])


def _in(call: Call) -> str:
    return f"{_operand(call.args[0])} IN ({_list(call.args[1:])})"


def _like(call: Call) -> str:
    word = call.function.upper()
    escape = f" ESCAPE '{call.detail}'" if call.detail not in ("", "\\") else ""
    return f"{_operand(call.args[0])} {word} {render(call.args[1])}{escape}"


def _index(call: Call) -> str:
    return f"{_operand(call.args[0])}[{render(call.args[1])}]"


_SPECIAL: dict[str, Callable[[Call], str]] = {
    "case": _case,
    "cast": _cast,
    "element": _index,
    "field": lambda call: f"{_operand(call.args[0])}.{_name(call.detail)}",
    "from_json": lambda call: f"from_json({render(call.args[0])}, '{call.type}')",
    "get": _index,
    "ilike": _like,
    "in": _in,
    "is_not_null": lambda call: f"{_operand(call.args[0])} IS NOT NULL",
    "is_null": lambda call: f"{_operand(call.args[0])} IS NULL",
    "like": _like,
    "negate": lambda call: f"-{_operand(call.args[0])}",
    "not": lambda call: f"NOT {_operand(call.args[0])}",
}
_LOOSE = ("in", "like", "ilike", "is_null", "is_not_null", "not", "negate")
"""Forms that need parentheses inside others."""


def span(micros: int) -> str:
    """A length of time in the largest unit that leaves no fraction.

    >>> span(600_000_000), span(2_500_000), span(7_200_000_000)
    ('10 min', '2500 ms', '2 h')
    """
    units = (("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1000))
    for unit, length in units:
        if micros % length == 0:
            return f"{micros // length} {unit}"
    return f"{micros} us"


def apart(lower: int, upper: int, rows: bool = False) -> str:
    """The window of a join: how far apart the rows of a pair may be.

    >>> apart(-59_999_999, 59_999_999), apart(0, 5_000_000), apart(0, 999, rows=True)
    ('1 min', '0 s to 5 s', '1000 rows')
    """
    if rows:
        return "1 row" if upper == 0 else f"{upper + 1} rows"
    length = window_length(lower, upper)
    return span(length) if length else f"{signed_span(lower)} to {signed_span(upper)}"


def window_length(lower: int, upper: int) -> int | None:
    """The window with these bounds, whose rows are less than its length apart; or None.

    >>> window_length(-59_999_999, 59_999_999), window_length(-60_000_000, 60_000_000)
    (60000000, None)
    """
    return upper + 1 if -lower == upper and upper % 10 else None


def signed_span(micros: int) -> str:
    """A length of time, or one back in time.

    >>> signed_span(-5_000_000), signed_span(0)
    ('-5 s', '0 s')
    """
    if micros == 0:
        return "0 s"
    return f"-{span(-micros)}" if micros < 0 else span(micros)


def brief(value: object) -> str:
    """A value of an answer in few words, without the names of a struct's fields.

    >>> brief([{"value": 80, "count": 12}, {"value": 443, "count": 7}])
    '80: 12, 443: 7'
    """
    if isinstance(value, list):
        return ", ".join(brief(one) for one in value)
    if isinstance(value, dict):
        return ": ".join(brief(one) for one in value.values())
    return "NULL" if value is None else str(value)


_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""A text for a terminal, with control characters made visible.

    >>> visible("a\x1b[31mb\n")
    'a\\x1b[31mb\\n'
    """
    return _HIDDEN.sub(lambda hit: hit[0].encode("unicode_escape").decode(), text)
