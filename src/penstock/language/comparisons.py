"""Comparisons, and the conditions made of them, in the form in which the planner groups them.

A comparison with a constant has the constant on the right, in the type of the left side, whenever
that does not change what it means. So a thousand ``port = c`` have one shape.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import TypeFault
from penstock.language import coercion
from penstock.language.coercion import cast, common, converted, is_number
from penstock.language.places import Misfit
from penstock.model import BIGINT, BOOLEAN, DOUBLE, STRING, VOID, Call, Expression, Literal, Type

FLIPPED = {
    "eq": "eq",
    "ne": "ne",
    "lt": "gt",
    "le": "ge",
    "gt": "lt",
    "ge": "le",
    "eq_null_safe": "eq_null_safe",
}
"""What a comparison becomes when its sides change places."""


def compare(function: str, left: Expression, right: Expression) -> Expression:
    """A comparison whose sides have one type and whose constant, if any, is on the right."""
    if isinstance(left, Literal) and not isinstance(right, Literal):
        function, left, right = FLIPPED[function], right, left
    left, right = comparable(left, right)
    return Call(function, (left, right), BOOLEAN)


def comparable(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Both sides in one type."""
    (left, right), _ = _in_one_type(left, (right,))
    return left, right


def contained(value: Expression, items: Sequence[Expression]) -> Expression:
    """``value IN (items)``: one look-up for constants, else a chain of equalities."""
    if any(not isinstance(item, Literal) for item in items):
        return either([compare("eq", value, item) for item in items])
    _, sides = _in_one_type(value, tuple(items))
    return Call("in", sides, BOOLEAN)


def _in_one_type(
    left: Expression, others: tuple[Expression, ...]
) -> tuple[tuple[Expression, Expression], tuple[Expression, ...]]:
    """All sides in one type: the left one's when the others are constants that fit."""
    if left.type == VOID:
        left = Literal(None, next((o.type for o in others if o.type != VOID), BOOLEAN))
    fitted = [_fitting(left, other) for other in others]
    if all(side is not None for side in fitted):
        sides = (left, *(side for side in fitted if side is not None))
    else:
        type_ = left.type
        for other in others:
            type_ = _meeting_type(type_, other.type)
        written = next((s.type for s in (left, *others) if s.type not in (STRING, VOID)), type_)
        sides = tuple(_brought(side, type_, written) for side in (left, *others))
    _check_ordered(sides[0].type)
    return (sides[0], sides[1]), sides


def _fitting(left: Expression, other: Expression) -> Expression | None:
    """The other side in the type of the left without a change of meaning, else None."""
    if left.type == other.type:
        return other
    if other.type == VOID:
        return Literal(None, left.type)
    constant = converted(other, left.type)
    if constant is None or isinstance(left, Literal) or left.type == STRING:
        return None
    return constant


def _brought(side: Expression, type_: Type, written: Type) -> Expression:
    """A side in the common type; a quoted constant that cannot be read so is the user's slip.

    ``written`` is the type of the side that is no text, as its column was declared.
    """
    if isinstance(side, Literal) and side.type == STRING and converted(side, type_) is None:
        raise Misfit(TypeFault, f"{side.value!r} is not {coercion.article(written)}")
    return cast(side, type_)


def _meeting_type(a: Type, b: Type) -> Type:
    """The type in which two types are compared: a STRING is read as the other."""
    found = common(a, b)
    if found is None and STRING in (a, b):
        other = b if a == STRING else a
        found = _read_as(other)
    if found is None:
        sides = f"{coercion.article(a)} cannot be compared with {coercion.article(b)}"
        raise Misfit(TypeFault, sides)
    return found


def _read_as(other: Type) -> Type | None:
    if is_number(other):
        return BIGINT if other.name in coercion.INTEGERS else DOUBLE
    return other if other.name in ("DATE", "TIMESTAMP", "BOOLEAN") else None


def _check_ordered(type_: Type) -> None:
    if coercion.holds_map(type_) or type_.name == "INTERVAL":
        raise Misfit(TypeFault, f"{coercion.article(type_)} cannot be compared")


def both(conditions: Sequence[Expression]) -> Expression:
    """All of them hold; nested ANDs become one."""
    return _joined("and", conditions)


def either(conditions: Sequence[Expression]) -> Expression:
    """At least one of them holds; nested ORs become one."""
    return _joined("or", conditions)


def _joined(function: str, conditions: Sequence[Expression]) -> Expression:
    flat: list[Expression] = []
    for condition in conditions:
        nested = isinstance(condition, Call) and condition.function == function
        flat.extend(condition.args if nested and isinstance(condition, Call) else (condition,))
    return flat[0] if len(flat) == 1 else Call(function, tuple(flat), BOOLEAN)


def negation(condition: Expression) -> Expression:
    """NOT; two of them cancel."""
    if isinstance(condition, Call) and condition.function == "not":
        return condition.args[0]
    if isinstance(condition, Call) and condition.function == "is_null":
        return Call("is_not_null", condition.args, BOOLEAN)
    return Call("not", (condition,), BOOLEAN)


def conjuncts(condition: Expression) -> tuple[Expression, ...]:
    """The conditions that must all hold."""
    if isinstance(condition, Call) and condition.function == "and":
        return condition.args
    return (condition,)
