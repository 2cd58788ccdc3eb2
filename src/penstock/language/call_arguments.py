"""What an argument of a function must be: each check answers the argument, converted if need be."""

from __future__ import annotations

from penstock.errors import TypeFault
from penstock.language import coercion, literals
from penstock.language.places import Misfit
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
