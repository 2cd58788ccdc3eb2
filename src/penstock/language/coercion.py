"""How types meet: the common type of two, the type of a sum, and casts made explicit.

Spark converts silently, and differently with its ANSI mode on and off; some of its conversions
throw. Here every conversion becomes a ``cast`` in the tree, which gives NULL where it fails.
The rules are those of Spark's ANSI mode, without its conversions between STRING and other types
except in comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from penstock.errors import TypeFault
from penstock.language import literals
from penstock.language.places import Misfit
from penstock.model import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    STRING,
    TIMESTAMP,
    VOID,
    Call,
    Expression,
    Field,
    Literal,
    Type,
)

INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
_FRACTIONS = ("FLOAT", "DOUBLE")
_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "mod": "%"}
_NUMBER_HINTS = {"STRING": "CAST it to a number", "TIMESTAMP": "take UNIX_TIMESTAMP of it"}
_NESTED = ("ARRAY", "MAP", "STRUCT")


def is_number(type_: Type) -> bool:
    """Whether it can be added and multiplied."""
    return type_.name in INTEGERS or type_.name in _FRACTIONS or type_.name == "DECIMAL"


def common(a: Type, b: Type) -> Type | None:
    """The smallest type that holds the values of both; None when there is none."""
    if a == b or b == VOID:
        return a
    if a == VOID:
        return b
    if is_number(a) and is_number(b):
        return _common_number(a, b)
    if {a.name, b.name} == {"DATE", "TIMESTAMP"}:
        return TIMESTAMP
    if a.name == b.name and a.name in _NESTED:
        return _common_nested(a, b)
    return None


def _common_number(a: Type, b: Type) -> Type:
    if a.name in INTEGERS and b.name in INTEGERS:
        return max(a, b, key=lambda t: INTEGERS.index(t.name))
    if a.name in _FRACTIONS or b.name in _FRACTIONS:
        return a if a == b else DOUBLE
    a, b = as_decimal(a), as_decimal(b)
    scale = max(_scale(a), _scale(b))
    return _decimal(max(_whole(a), _whole(b)) + scale, scale)


def _common_nested(a: Type, b: Type) -> Type | None:
    if a.name == "STRUCT":
        if [f.name for f in a.fields] != [f.name for f in b.fields]:
            return None
        types = [common(x.type, y.type) for x, y in zip(a.fields, b.fields, strict=True)]
        fields = [Field(f.name, t) for f, t in zip(a.fields, types, strict=True) if t is not None]
        return Type("STRUCT", fields=tuple(fields)) if len(fields) == len(types) else None
    element = common(a.element or VOID, b.element or VOID)
    if element is None or a.key != b.key:
        return None
    return Type(a.name, key=a.key, element=element)


def as_decimal(type_: Type) -> Type:
    """The DECIMAL that holds every value of an integer type."""
    if type_.name == "DECIMAL":
        return type_
    return Type("DECIMAL", precision=_DIGITS[type_.name], scale=0)


def _scale(type_: Type) -> int:
    return type_.scale or 0


def _whole(type_: Type) -> int:
    return (type_.precision or 0) - (type_.scale or 0)


def _decimal(precision: int, scale: int) -> Type:
    """The DECIMAL with these digits; past 38 the digits before the point are kept first."""
    if precision > 38:
        scale = max(38 - (precision - scale), min(scale, 6))
        precision = 38
    return Type("DECIMAL", precision=precision, scale=scale)


def arithmetic_type(function: str, a: Type, b: Type) -> Type:
    """The type of a sum, product and so on of two types that are equal or both DECIMAL."""
    if a.name != "DECIMAL" or b.name != "DECIMAL":
        return a
    (p1, s1), (p2, s2) = (a.precision or 0, _scale(a)), (b.precision or 0, _scale(b))
    if function == "multiply":
        return _decimal(p1 + p2 + 1, s1 + s2)
    if function == "divide":
        scale = max(6, s1 + p2 + 1)
        return _decimal(p1 - s1 + s2 + scale, scale)
    scale = max(s1, s2)
    if function == "mod":
        return _decimal(min(p1 - s1, p2 - s2) + scale, scale)
    return _decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)


def castable(a: Type, b: Type) -> bool:
    """Whether Spark knows a cast from one type to the other."""
    if a == b or a == VOID:
        return True
    if b == STRING:
        return True
    if a == STRING:
        return b.name not in _NESTED and b.name != "INTERVAL"
    if is_number(a):
        return is_number(b) or b in (BOOLEAN, TIMESTAMP)
    if a == BOOLEAN:
        return is_number(b)
    if a == TIMESTAMP:
        return is_number(b) or b.name == "DATE"
    if a.name == "DATE":
        return b == TIMESTAMP
    return a.name == b.name and a.name in _NESTED and _castable_nested(a, b)


def _castable_nested(a: Type, b: Type) -> bool:
    if a.name == "STRUCT":
        pairs = zip(a.fields, b.fields, strict=False)
        return len(a.fields) == len(b.fields) and all(castable(x.type, y.type) for x, y in pairs)
    keys = a.key is None or b.key is None or a.key == b.key
    return keys and castable(a.element or VOID, b.element or VOID)


def cast(expression: Expression, to: Type) -> Expression:
    """The expression in another type, as a constant when it is one."""
    if expression.type == to:
        return expression
    if isinstance(expression, Literal):
        converted = literals.convert(expression, to)
        if converted is not None:
            return converted
    if not castable(expression.type, to):
        raise Misfit(TypeFault, f"{article(expression.type)} cannot be cast to {to}")
    return Call("cast", (expression,), to)


def unify(expressions: Sequence[Expression], what: str) -> tuple[Expression, ...]:
    """All of them in their common type: the branches of a CASE, the columns of a UNION."""
    fixed = [e for e in expressions if not _is_loose(e)] or list(expressions)
    type_ = fixed[0].type
    for expression in (*fixed[1:], *(e for e in expressions if _is_loose(e))):
        wider = common(type_, expression.type)
        if _is_loose(expression) and converted(expression, type_) is not None:
            wider = type_
        if wider is None:
            message = f"{what} have no common type: {type_} and {expression.type}"
            raise Misfit(TypeFault, message, "CAST one of them")
        type_ = wider
    return tuple(converted(e, type_) or cast(e, type_) for e in expressions)


def _is_loose(expression: Expression) -> bool:
    """A quoted constant takes the type of its company, if it can be read as one."""
    return isinstance(expression, Literal) and isinstance(expression.value, str)


def converted(expression: Expression, to: Type) -> Literal | None:
    """A constant in the other type when it is the same there, else None."""
    return literals.convert(expression, to) if isinstance(expression, Literal) else None


def operands(function: str, left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Both sides of ``+ - * / %`` in types that Spark computes with as they are."""
    for side in (left, right):
        if not is_number(side.type) and side.type != VOID:
            hint = _NUMBER_HINTS.get(side.type.name, "")
            message = f"{_SIGNS[function]} takes numbers, not {article(side.type)}"
            raise Misfit(TypeFault, message, hint)
    a, b = (_narrow(side, other) for side, other in ((left, right), (right, left)))
    if function == "divide" and "DECIMAL" not in (a.type.name, b.type.name):
        return cast(a, DOUBLE), cast(b, DOUBLE)
    if a.type.name in _FRACTIONS or b.type.name in _FRACTIONS:
        wide = common(a.type, b.type) or DOUBLE
        return cast(a, wide), cast(b, wide)
    if "DECIMAL" in (a.type.name, b.type.name):
        return cast(a, as_decimal(a.type)), cast(b, as_decimal(b.type))
    wide = common(a.type, b.type) or BIGINT
    return cast(a, wide), cast(b, wide)


def _narrow(side: Expression, other: Expression) -> Expression:
    """NULL takes the other side's type; a whole constant beside a DECIMAL its own digits."""
    if side.type == VOID:
        return cast(side, other.type if other.type != VOID else DOUBLE)
    if isinstance(side, Literal) and isinstance(side.value, int) and other.type.name == "DECIMAL":
        digits = len(str(abs(side.value)))
        return Literal(Decimal(side.value), Type("DECIMAL", precision=digits, scale=0))
    return side


def boolean(expression: Expression, what: str) -> Expression:
    """A condition: BOOLEAN, or NULL."""
    if expression.type == VOID:
        return Literal(None, BOOLEAN)
    if expression.type != BOOLEAN:
        raise Misfit(TypeFault, f"{what} must be BOOLEAN, not {expression.type}")
    return expression


def holds_map(type_: Type) -> bool:
    """Whether a MAP is in it: such values are neither compared nor hashed."""
    parts = (type_.element, type_.key, *(f.type for f in type_.fields))
    return type_.name == "MAP" or any(holds_map(part) for part in parts if part is not None)


def article(type_: Type) -> str:
    """The type with its article, for messages."""
    return f"{'an' if type_.name[0] in 'AEIOU' else 'a'} {type_}"
