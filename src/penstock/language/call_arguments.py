"""What an argument of a function must be: each check answers the argument, converted if need be."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from zoneinfo import available_timezones

from penstock.errors import TypeFault
from penstock.language import coercion, literals
from penstock.language.places import Misfit, suggestion
from penstock.model import (
    BINARY,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    VOID,
    Expression,
    Literal,
)


def anything(value: Expression) -> Expression:
    """Any value, NULL as a STRING."""
    return coercion.cast(value, STRING) if value.type == VOID else value


def untyped(value: Expression) -> Expression:
    """Any value, NULL as it is."""
    return value


def string(value: Expression) -> Expression:
    """A STRING; numbers, times and booleans are written out."""
    if value.type.name in ("ARRAY", "MAP", "STRUCT", "BINARY", "INTERVAL"):
        raise Misfit(TypeFault, f"expected a STRING, not {coercion.article(value.type)}")
    return coercion.cast(value, STRING)


def bytes_or_string(value: Expression) -> Expression:
    """A BINARY as it is, anything else as a STRING."""
    return value if value.type == BINARY else string(value)


def number(value: Expression) -> Expression:
    """A number of any type."""
    if value.type == VOID:
        return coercion.cast(value, DOUBLE)
    if not coercion.is_number(value.type):
        hint = "CAST it" if value.type == STRING else ""
        message = f"expected a number, not {coercion.article(value.type)}"
        raise Misfit(TypeFault, message, hint)
    return value


def double(value: Expression) -> Expression:
    """A number as a DOUBLE."""
    return coercion.cast(number(value), DOUBLE)


def whole(value: Expression) -> Expression:
    """A whole number as an INT."""
    if value.type == VOID:
        return Literal(None, INT)
    if value.type.name not in coercion.INTEGERS:
        message = f"expected a whole number, not {coercion.article(value.type)}"
        raise Misfit(TypeFault, message)
    return coercion.cast(value, INT)


def condition(value: Expression) -> Expression:
    """A BOOLEAN."""
    return coercion.boolean(value, "the condition")


def moment(value: Expression) -> Expression:
    """A TIMESTAMP; a DATE is its midnight, a STRING is read as one."""
    if value.type not in (TIMESTAMP, DATE, STRING, VOID):
        message = f"expected a TIMESTAMP, not {coercion.article(value.type)}"
        raise Misfit(TypeFault, message)
    if isinstance(value, Literal) and value.type == STRING:
        if literals.convert(value, TIMESTAMP) is None:
            raise Misfit(TypeFault, f"{value.value!r} is not a TIMESTAMP")
    return coercion.cast(value, TIMESTAMP)


def constant_string(value: Expression) -> Expression:
    """A quoted constant."""
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        raise Misfit(TypeFault, "expected a constant in quotes")
    return value


def constant_whole(value: Expression) -> Expression:
    """A whole number that is a constant."""
    value = whole(value)
    if not isinstance(value, Literal) or not isinstance(value.value, int):
        raise Misfit(TypeFault, "expected a constant whole number")
    return value


def words_of(value: Expression) -> str:
    """The text of a quoted constant."""
    assert isinstance(value, Literal) and isinstance(value.value, str)
    return value.value


def one_of(*known: str) -> Callable[[Expression], Expression]:
    """A quoted constant that is one of these words, in upper case."""

    def check(value: Expression) -> Expression:
        word = words_of(constant_string(value)).upper()
        if word.rstrip("S") in known:
            word = word.rstrip("S")
        if word not in known:
            hint = suggestion(word, known) or f"it knows {', '.join(known)}"
            raise Misfit(TypeFault, f"there is no {word!r} here", hint)
        return Literal(word, STRING)

    return check


def at_most(largest: int) -> Callable[[Expression], Expression]:
    """A constant whole number from 0 to this."""

    def check(value: Expression) -> Expression:
        constant = constant_whole(value)
        assert isinstance(constant, Literal) and isinstance(constant.value, int)
        if not 0 <= constant.value <= largest:
            raise Misfit(TypeFault, f"expected a number from 0 to {largest:,}")
        return constant

    return check


def bytes_(value: Expression) -> Expression:
    """A BINARY; a text is its bytes in UTF-8."""
    return value if value.type == BINARY else coercion.cast(string(value), BINARY)


def string_or_strings(value: Expression) -> Expression:
    """A STRING, or an array of them."""
    if value.type.name == "ARRAY" and value.type.element == STRING:
        return value
    return string(value)


def day(value: Expression) -> Expression:
    """A DATE; a TIMESTAMP is cut to its day, a STRING is read as one."""
    if value.type not in (TIMESTAMP, DATE, STRING, VOID):
        raise Misfit(TypeFault, f"expected a DATE, not {coercion.article(value.type)}")
    if isinstance(value, Literal) and value.type == STRING:
        if literals.convert(value, DATE) is None:
            raise Misfit(TypeFault, f"{value.value!r} is not a DATE")
    return coercion.cast(value, DATE)


def array(value: Expression) -> Expression:
    """An ARRAY."""
    if value.type.name != "ARRAY":
        hint = "SPLIT makes one of a STRING" if value.type == STRING else ""
        message = f"expected an ARRAY, not {coercion.article(value.type)}"
        raise Misfit(TypeFault, message, hint)
    return value


def map_(value: Expression) -> Expression:
    """A MAP."""
    if value.type.name != "MAP":
        raise Misfit(TypeFault, f"expected a MAP, not {coercion.article(value.type)}")
    return value


def constant_interval(value: Expression) -> Expression:
    """A constant length of time that is longer than nothing."""
    known = isinstance(value, Literal) and isinstance(value.value, timedelta)
    if not known or value.value <= timedelta(0):  # type: ignore[union-attr, operator]
        raise Misfit(TypeFault, "expected a length of time", "write INTERVAL '10' MINUTE")
    return value


_OFFSET = re.compile(r"(?:UTC|GMT)?[+-](?:0\d|1[0-7]):[0-5]\d|(?:UTC|GMT)[+-]18:00|[+-]18:00|Z")


def zone(value: Expression) -> Expression:
    """The name of a time zone, or an offset such as ``+02:00``, as a constant."""
    name = words_of(constant_string(value))
    region = name in ("UTC", "GMT") or ("/" in name and name in available_timezones())
    if not (region or _OFFSET.fullmatch(name)) or name.startswith(("posix/", "right/")):
        hint = suggestion(name, sorted(available_timezones()))
        hint = hint or "write 'Europe/Lisbon', 'UTC' or '+02:00'"
        raise Misfit(TypeFault, f"{name!r} is not a time zone", hint)
    return Literal(name, STRING)


_LETTERS = {
    "y": (1, 2, 4), "u": (1, 4), "M": (1, 2, 3, 4), "L": (1, 2, 3, 4), "d": (1, 2),
    "D": (1, 3), "E": (1, 2, 3, 4), "Q": (1, 2), "q": (1, 2), "H": (1, 2), "h": (1, 2),
    "K": (1, 2), "k": (1, 2), "m": (1, 2), "s": (1, 2), "S": tuple(range(1, 10)), "a": (1,),
    "X": (1, 2, 3), "x": (1, 2, 3), "Z": (1, 2, 3), "z": (1,),
}  # fmt: skip
_RUN = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z'#{}\[\]]")


def pattern(value: Expression) -> Expression:
    """A pattern of times such as ``yyyy-MM-dd HH:mm``, of letters that Spark will take."""
    text = words_of(constant_string(value))
    position = 0
    while position < len(text):
        run = _RUN.match(text, position)
        letter = run[1] if run else None
        if run is None or (letter and len(run[0]) not in _LETTERS.get(letter, ())):
            odd = run[0] if run else text[position]
            hint = "write letters such as 'yyyy-MM-dd HH:mm:ss', and other text in single quotes"
            if "%" in text or "YYYY" in text:
                hint = "write 'yyyy-MM-dd HH:mm:ss'"
            raise Misfit(TypeFault, f"{odd!r} means nothing in a pattern of times", hint)
        position = run.end()
    return Literal(text, STRING)


def reading_pattern(value: Expression) -> Expression:
    """A pattern by which a text can be read: days of the week and quarters say too little."""
    checked = pattern(value)
    odd = set(re.sub("'[^']*'", "", words_of(checked))) & set("EqQ")
    if odd:
        message = f"{sorted(odd)[0]!r} in a pattern can be written, not read"
        raise Misfit(TypeFault, message, "take that part away with REGEXP_REPLACE first")
    return checked
