"""Constants: how they are typed when written, and when one type's constant is another's.

`convert` follows Spark's implicit casts, and answers None when the value would not survive: the
caller then converts the other side instead.
"""

from __future__ import annotations

import math
import re
import struct
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Context, Decimal

from penstock.errors import SyntaxFault, TypeFault
from penstock.language import durations
from penstock.language.places import Misfit
from penstock.model import BIGINT, DATE, DOUBLE, INT, TIMESTAMP, Literal, Type, Value

_EXACT = Context(prec=500)
"""Python's usual 28 digits are fewer than the 38 of a DECIMAL."""

RANGES = {"TINYINT": 1 << 7, "SMALLINT": 1 << 15, "INT": 1 << 31, "BIGINT": 1 << 63}
"""Integers of a type are at least minus this and less than this."""

_NUMBER = re.compile(r"(\d*)(?:\.(\d*))?(?:[eE][+-]?\d+)?", re.ASCII)
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?", re.ASCII)
_TIME = re.compile(
    r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9}))?)?\s*(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?)?",
    re.ASCII,
)
_WHOLE = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)
_REAL = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_BOOLEANS = {
    "t": True,
    "true": True,
    "y": True,
    "yes": True,
    "1": True,
    "f": False,
    "false": False,
    "n": False,
    "no": False,
    "0": False,
}


def number(text: str) -> Literal:
    """A number as Spark types it.

    >>> number("1"), number("3000000000").type.name, str(number("1.50").type)
    (Literal(value=1, type=Type(name='INT', ...)), 'BIGINT', 'DECIMAL(3,2)')
    """
    match = _NUMBER.fullmatch(text)
    if match is None or not (match[1] or match[2]) or len(text) > 400:
        raise Misfit(SyntaxFault, f"{text[:40]} is not a number")
    if "e" in text.lower():
        return _double(text)
    if match[2] is None:
        return integer(int(text))
    return _decimal(text)


def _double(text: str) -> Literal:
    value = float(text)
    if math.isinf(value):
        raise Misfit(TypeFault, f"{text[:40]} is too large for a DOUBLE")
    return Literal(value, DOUBLE)


def _decimal(text: str) -> Literal:
    value = Decimal(text)
    scale = max(0, -int(value.as_tuple().exponent))
    precision = max(len(value.as_tuple().digits), scale, 1)
    if precision > 38:
        raise Misfit(TypeFault, f"{text[:40]} has more than the 38 digits of a DECIMAL")
    return Literal(value, Type("DECIMAL", precision=precision, scale=scale))


def integer(value: int) -> Literal:
    """A whole number: INT when it fits, else BIGINT, else DECIMAL."""
    for type_ in (INT, BIGINT):
        if -RANGES[type_.name] <= value < RANGES[type_.name]:
            return Literal(value, type_)
    digits = len(str(abs(value)))
    if digits > 38:
        raise Misfit(TypeFault, f"{str(value)[:40]} has more than the 38 digits of a DECIMAL")
    return Literal(Decimal(value), Type("DECIMAL", precision=digits, scale=0))


def negated(literal: Literal) -> Literal | None:
    """Minus the constant, when that has the same type or is a smaller whole number."""
    value = literal.value
    if isinstance(value, bool) or value is None:
        return None
    if literal.type in (INT, BIGINT) and isinstance(value, int):
        return integer(-value) if value != -RANGES[literal.type.name] else None
    if isinstance(value, Decimal):
        whole = literal.type.scale == 0 and value == RANGES["BIGINT"]
        return integer(-int(value)) if whole else Literal(value.copy_negate(), literal.type)
    if isinstance(value, float | timedelta):
        return Literal(-value, literal.type)
    return None


def folded(function: str, left: Literal, right: Literal) -> Literal | None:
    """Sum, difference or product of whole numbers of one type, when it fits in that type."""
    a, b = left.value, right.value
    if left.type != right.type or left.type not in (INT, BIGINT):
        return None
    if not isinstance(a, int) or not isinstance(b, int):
        return None
    results = {"add": a + b, "subtract": a - b, "multiply": a * b}
    value = results.get(function)
    bound = RANGES[left.type.name]
    return Literal(value, left.type) if value is not None and -bound <= value < bound else None


def convert(literal: Literal, to: Type) -> Literal | None:
    """The same constant in another type, or None when it is not the same there.

    >>> convert(Literal(5, INT), BIGINT)
    Literal(value=5, type=Type(name='BIGINT', ...))
    >>> convert(Literal(300, INT), Type("TINYINT")) is None
    True
    """
    if literal.value is None or literal.type == to:
        return Literal(literal.value, to)
    value = _converted(literal.value, to)
    return None if value is None else Literal(value, to)


def _converted(value: Value, to: Type) -> Value:
    if isinstance(value, str):
        return _from_string(value, to)
    if isinstance(value, bool) or isinstance(value, bytes | timedelta):
        return None
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC) if to == TIMESTAMP else None
    if isinstance(value, int | float | Decimal):
        return _from_number(value, to)
    return None


def _from_number(value: int | float | Decimal, to: Type) -> Value:
    if to.name in RANGES:
        whole = not isinstance(value, float) and value == int(value)
        fits = whole and -RANGES[to.name] <= value < RANGES[to.name]
        return int(value) if fits else None
    if to.name == "DECIMAL":
        return None if isinstance(value, float) else _fitted(Decimal(value), to)
    if to.name == "DOUBLE":
        return float(value)
    if to.name == "FLOAT":
        return float(value) if _single(float(value)) == float(value) else None
    return None


def _single(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.inf


def _fitted(value: Decimal, to: Type) -> Decimal | None:
    """The number with the scale of the type, when no digit is lost."""
    precision, scale = to.precision or 10, to.scale or 0
    shifted = value.scaleb(scale, _EXACT)
    if shifted.copy_abs() >= 10**precision or shifted != shifted.to_integral_value():
        return None
    return Decimal(int(shifted)).scaleb(-scale, _EXACT)


def _from_string(text: str, to: Type) -> Value:
    if to == TIMESTAMP:
        return timestamp(text)
    if to == DATE:
        return day(text)
    if to.name == "BOOLEAN":
        return _BOOLEANS.get(text.strip().lower())
    if to.name in RANGES and _WHOLE.fullmatch(text) and len(text) < 60:
        return _from_number(int(text), to)
    if to.name in ("DOUBLE", "FLOAT", "DECIMAL") and _REAL.fullmatch(text) and len(text) < 60:
        return _from_number(float(text) if to.name != "DECIMAL" else Decimal(text.strip()), to)
    return None


def day(text: str) -> date | None:
    """The date that Spark reads in a string, or None."""
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    try:
        return date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    except ValueError:
        return None


def timestamp(text: str) -> datetime | None:
    """The moment that Spark reads in a string, in UTC unless it names an offset, or None.

    >>> timestamp("2024-01-01 10:30:00+02:00")
    datetime.datetime(2024, 1, 1, 8, 30, tzinfo=datetime.timezone.utc)
    """
    first, _, clock = text.strip().replace("T", " ", 1).partition(" ")
    when = day(first)
    match = _TIME.fullmatch(clock.strip()) if clock.strip() else None
    if when is None or (clock.strip() and match is None):
        return None
    try:
        start = datetime(when.year, when.month, when.day, tzinfo=UTC)
        return start if match is None else _at(start, match)
    except (ValueError, OverflowError):
        return None


def _at(start: datetime, match: re.Match[str]) -> datetime:
    micros = int(((match[4] or "") + "000000")[:6])
    zone = _offset(match[5])
    local = start.replace(
        hour=int(match[1]),
        minute=int(match[2]),
        second=int(match[3] or 0),
        microsecond=micros,
        tzinfo=zone,
    )
    return local.astimezone(UTC)


def _offset(text: str | None) -> timezone:
    if text is None or text[0] not in "+-":
        return UTC
    hours, minutes = re.fullmatch(r"(\d{1,2}):?(\d{2})?", text[1:]).groups()  # type: ignore[union-attr]
    if int(hours) > 18 or int(minutes or 0) > 59:
        raise ValueError("no such offset")
    size = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return timezone(-size if text[0] == "-" else size)


def interval(amount: str, unit: str) -> Literal:
    """An interval of fixed length, such as ``INTERVAL '10' MINUTE``."""
    if unit.lower().rstrip("s") in ("month", "year", "quarter", "mon"):
        raise Misfit(TypeFault, f"an interval of {unit} has no fixed length", "write it in DAYS")
    sign = -1 if amount.strip().startswith("-") else 1
    try:
        size = durations.seconds(f"{amount.strip().lstrip('+-')} {unit}")
        value = timedelta(microseconds=sign * round(size * 1e6))
    except ValueError as error:
        raise Misfit(TypeFault, str(error)) from None
    return Literal(value, Type("INTERVAL"))
