"""Expressions out of nothing, drawn by type, so that every one of them binds.

Constants come from the same small pools as the data: filters then match something, and queries have
predicates in common.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

INT, BIGINT, DOUBLE, DECIMAL = "INT", "BIGINT", "DOUBLE", "DECIMAL(10,2)"
STRING, BOOLEAN, DATE, TIMESTAMP = "STRING", "BOOLEAN", "DATE", "TIMESTAMP"
TYPES = (INT, BIGINT, DOUBLE, DECIMAL, STRING, BOOLEAN, DATE, TIMESTAMP)
NUMBERS = (INT, BIGINT, DOUBLE, DECIMAL)
NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)

POOLS: dict[str, list[Any]] = {
    INT: [1, 2, 3, 0, -1, 7, 80, 443, -(2**31), 2**31 - 1],
    BIGINT: [1, 2, 3, 0, -1, 5, 2**31, 2**53 + 1, -(2**63), 2**63 - 1],
    DOUBLE: [0.5, 1.0, 2.0, -0.25, 0.0, -0.0, 0.1, math.nan, math.inf, -math.inf, 1e308, 5e-324],
    DECIMAL: [Decimal(text) for text in
              ("1.50", "0.00", "0.01", "-1.50", "2.00", "2.25", "99999999.99", "-99999999.99")],
    STRING: ["a", "b", "ab", "", "A%", "a_b", 'say "hi"', "it's", "a,b", "a\nb", "x\r\ny", "é",
             "日本語", "😀", "e\u0301", " padded ", "\ttab", "back\\slash", "12", "-7", "null",
             "NULL", "a;b;c", "#", "{}", "2024-02-29"],
    BOOLEAN: [True, False],
    DATE: [date(2024, 2, 29), date(1970, 1, 1), date(1969, 12, 31), date(1900, 3, 1),
           date(2024, 12, 30)],
    TIMESTAMP: [NOON, NOON + timedelta(microseconds=1), NOON + timedelta(days=306, hours=11),
                datetime(1970, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 500_000, UTC),
                datetime(1950, 6, 1, 3, 4, 5, tzinfo=UTC)],
}  # fmt: skip
"""The values of each type, the most frequent ones of skewed data first."""

PATTERNS = ["a%", "%b", "%", "_", "", "a_b", "%a%b%", "%'%", "%\n%", "日%", "_%_", "A%"]


def literal(value: Any, type_: str) -> str:
    """A constant as it is written."""
    if value is None:
        return "NULL"
    if type_ == STRING:
        return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
    if type_ == BOOLEAN:
        return "TRUE" if value else "FALSE"
    if type_ == DATE:
        return f"DATE '{value}'"
    if type_ == TIMESTAMP:
        return f"TIMESTAMP '{value.replace(tzinfo=None)}'"
    if type_ == DOUBLE:
        return f"{value:e}" if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
    return str(value)


Columns = Sequence[tuple[str, str]]


@dataclass
class Expressions:
    """Draws expressions over some columns."""

    draw: Callable[..., Any]
    columns: Columns

    def pick(self, *items: Any) -> Any:
        return self.draw(st.sampled_from(items))

    def constant(self, type_: str) -> str:
        return literal(self.pick(*POOLS[type_]), type_)

    def column(self, type_: str) -> str | None:
        names = [name for name, t in self.columns if t == type_]
        return self.pick(*names) if names else None

    def leaf(self, type_: str) -> str:
        column = self.column(type_)
        return column if column and self.pick(*[True] * 4, False) else self.typed(type_)

    def typed(self, type_: str) -> str:
        """A constant of exactly this type: a small number is an INT wherever it stands."""
        if type_ in (INT, STRING, BOOLEAN, DATE, TIMESTAMP):
            return self.small() if type_ == INT else self.constant(type_)
        return f"CAST({self.small()} AS {type_})"

    def small(self) -> str:
        return str(self.pick(0, 1, 2, 3, 10, 255))

    def value(self, type_: str, depth: int = 2) -> str:
        """An expression of a type."""
        if depth == 0 or self.pick(False, True):
            return self.leaf(type_)
        return self.pick(*_PRODUCTIONS[type_], *_ANY)(self, type_, depth - 1)

    # --- conditions ------------------------------------------------------------------------------

    def condition(self, depth: int = 2) -> str:
        kind = self.pick("or", "and", "not", *["simple"] * 7) if depth else "simple"
        if kind == "not":
            return f"NOT ({self.condition(depth - 1)})"
        if kind in ("and", "or"):
            return f"({self.condition(depth - 1)} {kind.upper()} {self.condition(depth - 1)})"
        texts = _TEXT_CONDITIONS if self.column(STRING) else ()
        return self.pick(*_CONDITIONS, *texts)(self, max(depth - 1, 0))

    def known(self) -> str:
        """A type that some column has."""
        return self.pick(*sorted({type_ for _, type_ in self.columns}))


def _comparison(e: Expressions, depth: int) -> str:
    type_ = e.known()
    sign = e.pick("=", "=", "=", "<", "<=", ">", ">=", "<>")
    return f"{e.value(type_, depth)} {sign} {e.constant(type_)}"


def _between_columns(e: Expressions, depth: int) -> str:
    type_ = e.known()
    other = e.pick(*NUMBERS) if type_ in NUMBERS else type_
    sign = e.pick("=", "<", ">=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
    return f"{e.value(type_, depth)} {sign} {e.value(other, depth)}"


def _flipped(e: Expressions, depth: int) -> str:
    type_ = e.known()
    return f"{e.constant(type_)} {e.pick('<', '>=', '=')} {e.value(type_, depth)}"


def _range(e: Expressions, depth: int) -> str:
    type_ = e.known()
    column = e.value(type_, depth)
    if e.pick(True, False):
        word = e.pick("BETWEEN", "NOT BETWEEN")
        return f"{column} {word} {e.constant(type_)} AND {e.constant(type_)}"
    return f"({column} > {e.constant(type_)} AND {column} <= {e.constant(type_)})"


def _in(e: Expressions, depth: int) -> str:
    type_ = e.known()
    count = e.pick(1, 2, 3, 5)
    items = [e.constant(type_) for _ in range(count)]
    if e.pick(True, False, False, False):
        items.append("NULL")
    return f"{e.value(type_, depth)} {e.pick('IN', 'IN', 'NOT IN')} ({', '.join(items)})"


def _null(e: Expressions, depth: int) -> str:
    return f"{e.value(e.known(), depth)} {e.pick('IS NULL', 'IS NOT NULL')}"


def _like(e: Expressions, depth: int) -> str:
    text = e.value(STRING, depth)
    if e.pick(True, False, False):
        return f"{text} LIKE '{e.pick('a!_b', '!%%', '%!%', '%!%%', 'a!!%')}' ESCAPE '!'"
    return f"{text} {e.pick('LIKE', 'NOT LIKE', 'ILIKE')} {literal(e.pick(*PATTERNS), STRING)}"


def _text_test(e: Expressions, depth: int) -> str:
    function = e.pick("STARTSWITH", "ENDSWITH", "CONTAINS")
    return f"{function}({e.value(STRING, depth)}, {e.constant(STRING)})"


def _regex(e: Expressions, depth: int) -> str:
    pattern = e.pick("^[a-c]+", "[0-9]+", "b|日", "^a;", "[^a-z]")
    return f"REGEXP_LIKE({e.value(STRING, depth)}, '{pattern}')"


def _truth(e: Expressions, depth: int) -> str:
    tested = e.value(BOOLEAN, depth)
    return e.pick(tested, f"({tested}) IS TRUE", f"({tested}) IS NOT FALSE", f"NOT ({tested})")


_CONDITIONS = (_comparison, _comparison, _comparison, _between_columns, _flipped, _range, _range,
               _in, _in, _null, _truth)  # fmt: skip
_TEXT_CONDITIONS = (_like, _like, _text_test, _regex)


def _case(e: Expressions, type_: str, depth: int) -> str:
    otherwise = e.pick("", f" ELSE {e.value(type_, depth)}")
    if e.pick(True, False, False):
        subject = e.known()
        whens = [f"WHEN {e.constant(subject)} THEN {e.value(type_, depth)}" for _ in "12"]
        return f"CASE {e.value(subject, depth)} {' '.join(whens)}{otherwise} END"
    return f"CASE WHEN {e.condition(depth)} THEN {e.value(type_, depth)}{otherwise} END"


def _coalesce(e: Expressions, type_: str, depth: int) -> str:
    return f"COALESCE({e.value(type_, depth)}, {e.value(type_, depth)})"


def _nullif(e: Expressions, type_: str, depth: int) -> str:
    return f"NULLIF({e.value(type_, depth)}, {e.value(type_, depth)})"


def _extreme(e: Expressions, type_: str, depth: int) -> str:
    function = e.pick("GREATEST", "LEAST")
    return f"{function}({e.value(type_, depth)}, {e.value(type_, depth)})"


_ANY = (_case, _coalesce, _nullif, _extreme)

Production = Callable[[Expressions, str, int], str]


def _sum(*signs: str) -> Production:
    return lambda e, type_, depth: (
        f"/*try*/({e.value(type_, depth)} {e.pick(*signs)} {e.value(type_, depth)})"
    )


def _of(template: str, *types: str) -> Production:
    """A function of values of other types; ``{}`` stands for each of them."""
    return lambda e, type_, depth: template.format(*(e.value(other, depth) for other in types))


def _one_of(*templates: str, of: str) -> Production:
    return lambda e, type_, depth: _of(e.pick(*templates), of)(e, type_, depth)


_CALENDAR = ("YEAR({})", "QUARTER({})", "MONTH({})", "WEEK({})", "DAY({})", "DAYOFWEEK({})",
             "DAYOFYEAR({})")  # fmt: skip
_CLOCK = ("HOUR({})", "MINUTE({})", "SECOND({})", *_CALENDAR)
_TEXT = ("LOWER({})", "UPPER({})", "TRIM({})", "LTRIM({})", "RTRIM({})", "MD5({})",
         "SUBSTR({}, 2)", "SUBSTR({}, 1, 2)", "SUBSTR({}, 3, 0)", "SUBSTR({}, -2)",
         "REPLACE({}, 'a', '')", "REPLACE({}, 'b', 'bb')", "SPLIT_PART({}, ';', 2)",
         "SPLIT_PART({}, ',', -1)", "REGEXP_REPLACE({}, '[ab]', '<>')",
         "REGEXP_EXTRACT({}, '([a-z]+)[^a-z]*([a-z]*)', 2)")  # fmt: skip

_PRODUCTIONS: dict[str, tuple[Production, ...]] = {
    INT: (
        _sum("+", "-", "*", "%"),
        _of("/*try*/(ABS({}))", INT),
        _of("/*try*/(-({}))", INT),
        _of("LENGTH({})", STRING),
        _one_of(*_CALENDAR, of=DATE),
        _one_of(*_CLOCK, of=TIMESTAMP),
        _one_of("CAST({} AS INT)", of=BOOLEAN),
        _one_of("CAST({} AS INT)", of=BIGINT),
        _one_of("CAST({} AS INT)", of=STRING),
    ),
    BIGINT: (
        _sum("+", "-", "*", "%", "DIV"),
        _of("/*try*/({} + {})", INT, BIGINT),
        _one_of("FLOOR({})", "CEIL({})", of=DOUBLE),
        _of("UNIX_TIMESTAMP({})", TIMESTAMP),
        _of("CAST({} AS BIGINT)", INT),
    ),
    DOUBLE: (
        _sum("+", "-", "*", "/", "%"),
        _of("/*try*/({} / {})", INT, BIGINT),
        _of("SQRT(ABS({}))", DOUBLE),
        _of("ROUND({})", DOUBLE),
        _of("SIGN({})", INT),
        _of("CAST({} AS DOUBLE)", INT),
        _of("CAST({} AS DOUBLE)", DECIMAL),
    ),
    DECIMAL: (
        _sum("+", "-"),
        _of("/*try*/({} * 1.25)", DECIMAL),
        _of("/*try*/({} + {})", INT, DECIMAL),
        _one_of("ABS({})", "ROUND({}, 1)", "-({})", of=DECIMAL),
        _of("CAST({} AS DECIMAL(10,2))", INT),
    ),
    STRING: (
        _one_of(*_TEXT, of=STRING),
        _one_of(*_TEXT, of=STRING),
        _of("CONCAT({}, {})", STRING, STRING),
        _of("({} || '-' || {})", STRING, STRING),
        *(_of("CAST({} AS STRING)", other)
          for other in (INT, BIGINT, DECIMAL, BOOLEAN, DATE, TIMESTAMP)),
    ),
    BOOLEAN: (
        lambda e, type_, depth: f"({e.condition(depth)})",
        _of("CAST({} AS BOOLEAN)", INT),
    ),
    DATE: (
        _of("CAST({} AS DATE)", TIMESTAMP),
        lambda e, type_, depth: f"CAST({e.leaf(STRING)} AS DATE)",
    ),
    TIMESTAMP: (
        _one_of(*(f"DATE_TRUNC('{unit}', {{}})" for unit in
                  ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")),
                of=TIMESTAMP),
        _one_of("({} + INTERVAL '10' MINUTE)", "({} - INTERVAL '36' HOUR)", of=TIMESTAMP),
        _of("CAST({} AS TIMESTAMP)", DATE),
    ),
}
"""How a value of each type is made of others."""
