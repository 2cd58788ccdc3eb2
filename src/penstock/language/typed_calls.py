"""What comes out of a function: the typed call, from arguments that are as they must be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from penstock.errors import TypeFault
from penstock.language import (
    call_arguments,
    coercion,
    comparisons,
    literals,
    patterns,
    types,
)
from penstock.language.places import Misfit
from penstock.model import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    VOID,
    Call,
    Expression,
    Field,
    Literal,
    Type,
    name_key,
)

Build: TypeAlias = Callable[[tuple[Expression, ...]], Expression]


def gives(function: str, type_: Type) -> Build:
    """A call that has this type whatever its arguments."""
    return lambda args: Call(function, args, type_)


def like_first(function: str) -> Build:
    """A call that has the type of its first argument."""
    return lambda args: Call(function, args, args[0].type)


def common(function: str, name: str) -> Build:
    """A call whose arguments and result have one type."""

    def build(args: tuple[Expression, ...]) -> Expression:
        unified = coercion.unify(args, f"the arguments of {name}")
        if function in ("greatest", "least") and coercion.holds_map(unified[0].type):
            raise Misfit(TypeFault, f"{name} cannot order {coercion.article(unified[0].type)}")
        return Call(function, unified, unified[0].type)

    return build


def arithmetic(function: str) -> Build:
    """A sum, difference, product, quotient or remainder, computed at once for whole constants."""

    def build(args: tuple[Expression, ...]) -> Expression:
        left, right = coercion.operands(function, args[0], args[1])
        if isinstance(left, Literal) and isinstance(right, Literal):
            constant = literals.folded(function, left, right)
            if constant is not None:
                return constant
        type_ = coercion.arithmetic_type(function, left.type, right.type)
        return Call(function, (left, right), type_)

    return build


def integer_quotient(args: tuple[Expression, ...]) -> Expression:
    """DIV: a whole quotient, as a BIGINT."""
    for arg in args:
        if arg.type.name not in coercion.INTEGERS:
            raise Misfit(TypeFault, f"DIV takes whole numbers, not {coercion.article(arg.type)}")
    return Call("div", tuple(coercion.cast(arg, BIGINT) for arg in args), BIGINT)


def negate(args: tuple[Expression, ...]) -> Expression:
    """Minus a number."""
    (value,) = args
    constant = literals.negated(value) if isinstance(value, Literal) else None
    return constant or Call("negate", args, value.type)


def rounded(args: tuple[Expression, ...]) -> Expression:
    """ROUND to so many digits after the point, or before it."""
    value = args[0]
    digits = args[1] if len(args) > 1 else Literal(0, INT)
    places = digits.value if isinstance(digits, Literal) else None
    if not isinstance(places, int) or abs(places) > 38:
        raise Misfit(TypeFault, "ROUND keeps -38 to 38 digits after the point")
    if value.type.name != "DECIMAL":
        return Call("round", (value, digits), value.type)
    whole_digits = (value.type.precision or 0) - (value.type.scale or 0) + 1
    if places < 0:
        type_ = Type("DECIMAL", precision=min(max(whole_digits, 1 - places), 38), scale=0)
    else:
        scale = min(value.type.scale or 0, places)
        type_ = Type("DECIMAL", precision=min(whole_digits + scale, 38), scale=scale)
    return Call("round", (value, digits), type_)


def to_whole(function: str) -> Build:
    """FLOOR and CEIL: a BIGINT, or a DECIMAL without digits after the point."""

    def build(args: tuple[Expression, ...]) -> Expression:
        (value,) = args
        if value.type.name in coercion.INTEGERS:
            return coercion.cast(value, BIGINT)
        if value.type.name == "DECIMAL":
            digits = (value.type.precision or 0) - (value.type.scale or 0) + 1
            type_ = Type("DECIMAL", precision=min(digits, 38), scale=0)
            return Call(function, args, type_)
        return Call(function, (coercion.cast(value, DOUBLE),), BIGINT)

    return build


def null_if(args: tuple[Expression, ...]) -> Expression:
    """NULLIF: the first value, or NULL where it equals the second."""
    value, other = args
    left, right = comparisons.comparable(value, other)
    if left == value:
        return Call("nullif", (value, right), value.type)
    same = Call("eq", (left, right), BOOLEAN)
    return Call("if", (same, Literal(None, value.type), value), value.type)


def choice(args: tuple[Expression, ...]) -> Expression:
    """IF(condition, yes, no)."""
    yes, no = coercion.unify(args[1:], "the branches of IF")
    return Call("if", (args[0], yes, no), yes.type)


def split_part(args: tuple[Expression, ...]) -> Expression:
    """SPLIT_PART, which has no part 0."""
    if isinstance(args[2], Literal) and args[2].value == 0:
        raise Misfit(TypeFault, "SPLIT_PART counts from 1, or from -1 backwards")
    return Call("split_part", args, STRING)


def _pattern(value: Expression) -> str:
    assert isinstance(value, Literal) and isinstance(value.value, str)
    return value.value


def like(function: str, escape: str = "\\") -> Build:
    """LIKE or ILIKE with this escape, kept in ``detail``."""

    def build(args: tuple[Expression, ...]) -> Expression:
        patterns.check_like(_pattern(args[1]), escape)
        return Call(function, args, BOOLEAN, detail=escape)

    return build


def rlike(args: tuple[Expression, ...]) -> Expression:
    """RLIKE with a pattern that Java will take."""
    patterns.check_regex(_pattern(args[1]))
    return Call("rlike", args, BOOLEAN)


def regexp_extract(args: tuple[Expression, ...]) -> Expression:
    """REGEXP_EXTRACT of a group that the pattern has."""
    regex = patterns.check_regex(_pattern(args[1]))
    group = args[2] if len(args) > 2 else Literal(1, INT)
    index = group.value if isinstance(group, Literal) else None
    if not isinstance(index, int) or not 0 <= index <= regex.groups:
        message = f"the pattern has {regex.groups} groups, so there is no group {index!r}"
        raise Misfit(TypeFault, message, "0 is the whole match")
    return Call("regexp_extract", (args[0], args[1], group), STRING)


def regexp_extract_all(args: tuple[Expression, ...]) -> Expression:
    """REGEXP_EXTRACT_ALL of a group that the pattern has."""
    found = regexp_extract(args)
    assert isinstance(found, Call)
    return Call("regexp_extract_all", found.args, Type("ARRAY", element=STRING))


def regexp_replace(args: tuple[Expression, ...]) -> Expression:
    """REGEXP_REPLACE by a text whose groups the pattern has."""
    regex = patterns.check_regex(_pattern(args[1]))
    patterns.check_replacement(_pattern(args[2]), regex)
    return Call("regexp_replace", args, STRING)


TRUNCATIONS = (
    "YEAR",
    "QUARTER",
    "MONTH",
    "WEEK",
    "DAY",
    "HOUR",
    "MINUTE",
    "SECOND",
    "MILLISECOND",
    "MICROSECOND",
)
"""The units of DATE_TRUNC."""


_SHORT_UNITS = {"MM": "MONTH", "MON": "MONTH", "Q": "QUARTER", "YY": "YEAR", "YYYY": "YEAR"}


def date_trunc(args: tuple[Expression, ...]) -> Expression:
    """DATE_TRUNC to a unit that it knows."""
    unit = _pattern(args[0]).upper()
    unit = _SHORT_UNITS.get(unit, unit)
    if unit not in TRUNCATIONS:
        message = f"DATE_TRUNC knows no unit '{unit}'"
        raise Misfit(TypeFault, message, f"it knows {', '.join(TRUNCATIONS)}")
    return Call("date_trunc", (Literal(unit, STRING), args[1]), TIMESTAMP)


def hashed(function: str, type_: Type) -> Build:
    """A hash of values that can be hashed."""

    def build(args: tuple[Expression, ...]) -> Expression:
        for arg in args:
            if coercion.holds_map(arg.type):
                message = f"{function.upper()} cannot hash {coercion.article(arg.type)}"
                raise Misfit(TypeFault, message)
        return Call(function, args, type_)

    return build


def array_of(args: tuple[Expression, ...]) -> Expression:
    """ARRAY of values in their common type."""
    unified = coercion.unify(args, "the elements of ARRAY")
    if unified[0].type == VOID:
        unified = tuple(Literal(None, STRING) for _ in unified)
    return Call("array", unified, Type("ARRAY", element=unified[0].type))


def from_json(args: tuple[Expression, ...]) -> Expression:
    """FROM_JSON with a schema that is kept as the type of the call."""
    try:
        schema = types.parse_schema(_pattern(args[1]))
    except ValueError as error:
        raise Misfit(TypeFault, f"FROM_JSON: this is not a schema: {error}") from None
    if schema.name == "MAP" and schema.key != STRING:
        raise Misfit(TypeFault, "FROM_JSON: the keys of a MAP are STRING in JSON")
    if any(f.name.lower() == "_corrupt_record" and f.type != STRING for f in schema.fields):
        raise Misfit(TypeFault, "FROM_JSON: _corrupt_record holds a STRING")
    return Call("from_json", (args[0],), schema)


def concatenated(args: tuple[Expression, ...]) -> Expression:
    """CONCAT of texts, or of arrays in their common type."""
    if any(arg.type.name == "ARRAY" for arg in args):
        unified = coercion.unify(args, "the arguments of CONCAT")
        return Call("concat", unified, unified[0].type)
    return Call("concat", tuple(call_arguments.string(arg) for arg in args), STRING)


def padded(function: str) -> Build:
    """LPAD and RPAD, with blanks unless another text is given."""

    def build(args: tuple[Expression, ...]) -> Expression:
        filling = args[2] if len(args) > 2 else Literal(" ", STRING)
        return Call(function, (*args[:2], filling), STRING)

    return build


def key_of(type_: Type, key: Expression) -> Expression:
    """A key of a MAP, in the type of its keys."""
    wanted = type_.key or VOID
    constant = coercion.converted(key, wanted)
    if constant is None and coercion.common(key.type, wanted) != wanted:
        raise Misfit(TypeFault, f"the keys of this map are {wanted}, not {key.type}")
    return constant or coercion.cast(key, wanted)


def named_struct(args: tuple[Expression, ...]) -> Expression:
    """NAMED_STRUCT('name', value, ...)."""
    names = [arg.value for arg in args[::2] if isinstance(arg, Literal)]
    words = [name for name in names if isinstance(name, str)]
    if len(args) % 2 or len(words) < len(args) // 2:
        raise Misfit(TypeFault, "NAMED_STRUCT takes names in quotes and values in turn")
    if len({name_key(word) for word in words}) < len(words) or not all(words):
        raise Misfit(TypeFault, "the fields of a STRUCT have names, each once")
    return struct(words, tuple(call_arguments.anything(arg) for arg in args[1::2]))


def struct(names: Sequence[str], values: tuple[Expression, ...]) -> Expression:
    """A STRUCT of these fields."""
    fields = tuple(Field(n, v.type) for n, v in zip(names, values, strict=True))
    return Call("struct", values, Type("STRUCT", fields=fields))


def integers(function: str) -> Build:
    """Bits of whole numbers, in their common type."""

    def build(args: tuple[Expression, ...]) -> Expression:
        for arg in args:
            if arg.type.name not in (*coercion.INTEGERS, "VOID"):
                message = f"bits are those of whole numbers, not of {coercion.article(arg.type)}"
                raise Misfit(TypeFault, message)
        unified = coercion.unify(args, "the two sides")
        type_ = unified[0].type if unified[0].type != VOID else INT
        return Call(function, tuple(coercion.cast(arg, type_) for arg in unified), type_)

    return build
