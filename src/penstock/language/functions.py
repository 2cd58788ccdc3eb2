"""The admitted functions: one explicit table, and nothing outside it.

Spark has functions that run any Java method or read the machine's state, so a function is refused
unless it is here. An entry says what each argument must be, and gives the typed call; conversions
of arguments are made explicit, so that Spark converts nothing by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from penstock.errors import TypeFault
from penstock.language import coercion, comparisons, literals, patterns, types
from penstock.language.places import Misfit
from penstock.model import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    VOID,
    Call,
    Expression,
    Literal,
    Type,
)

Argument: TypeAlias = Callable[[Expression], Expression]
Build: TypeAlias = Callable[[tuple[Expression, ...]], Expression]


@dataclass(frozen=True, slots=True)
class Admitted:
    """A function of the language."""

    arguments: tuple[Argument, ...]
    """What each argument must be; the last entry serves all further arguments."""
    build: Build
    """The typed call, from arguments that are as they must be."""
    least: int
    """The fewest arguments."""
    most: int | None
    """The most arguments; None for any number."""

    def call(self, name: str, given: Sequence[Expression]) -> Expression:
        """The function applied to these arguments."""
        if len(given) < self.least or (self.most is not None and len(given) > self.most):
            raise Misfit(TypeFault, f"{name} takes {self._count()}, not {len(given)}")
        kinds = (*self.arguments, *[self.arguments[-1]] * len(given))
        fitted = []
        for kind, argument in zip(kinds, given, strict=False):
            try:
                fitted.append(kind(argument))
            except Misfit as misfit:
                raise Misfit(misfit.kind, f"{name}: {misfit.message}", misfit.hint) from None
        return self.build(tuple(fitted))

    def _count(self) -> str:
        if self.most is None:
            return f"at least {self.least} argument{'s' if self.least != 1 else ''}"
        if self.least == self.most:
            return f"{self.least} argument{'s' if self.least != 1 else ''}"
        return f"{self.least} to {self.most} arguments"


# --- what an argument must be ------------------------------------------------------------------


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
            raise Misfit(TypeFault, f"'{value.value}' is not a TIMESTAMP")
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


# --- what comes out ----------------------------------------------------------------------------


def _gives(function: str, type_: Type) -> Build:
    return lambda args: Call(function, args, type_)


def _like_first(function: str) -> Build:
    return lambda args: Call(function, args, args[0].type)


def _common(function: str, name: str) -> Build:
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


def _integer_quotient(args: tuple[Expression, ...]) -> Expression:
    for arg in args:
        if arg.type.name not in coercion.INTEGERS:
            raise Misfit(TypeFault, f"DIV takes whole numbers, not {coercion.article(arg.type)}")
    return Call("div", tuple(coercion.cast(arg, BIGINT) for arg in args), BIGINT)


def negate(args: tuple[Expression, ...]) -> Expression:
    """Minus a number."""
    (value,) = args
    constant = literals.negated(value) if isinstance(value, Literal) else None
    return constant or Call("negate", args, value.type)


def _rounded(args: tuple[Expression, ...]) -> Expression:
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


def _to_whole(function: str) -> Build:
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


def _null_if(args: tuple[Expression, ...]) -> Expression:
    value, other = args
    left, right = comparisons.comparable(value, other)
    if left == value:
        return Call("nullif", (value, right), value.type)
    same = Call("eq", (left, right), BOOLEAN)
    return Call("if", (same, Literal(None, value.type), value), value.type)


def _choice(args: tuple[Expression, ...]) -> Expression:
    yes, no = coercion.unify(args[1:], "the branches of IF")
    return Call("if", (args[0], yes, no), yes.type)


def _length(args: tuple[Expression, ...]) -> Expression:
    return Call("length", args, INT)


def _split_part(args: tuple[Expression, ...]) -> Expression:
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


def _rlike(args: tuple[Expression, ...]) -> Expression:
    patterns.check_regex(_pattern(args[1]))
    return Call("rlike", args, BOOLEAN)


def _regexp_extract(args: tuple[Expression, ...]) -> Expression:
    regex = patterns.check_regex(_pattern(args[1]))
    group = args[2] if len(args) > 2 else Literal(1, INT)
    index = group.value if isinstance(group, Literal) else None
    if not isinstance(index, int) or not 0 <= index <= regex.groups:
        message = f"the pattern has {regex.groups} groups, so there is no group {index}"
        raise Misfit(TypeFault, message, "0 is the whole match")
    return Call("regexp_extract", (args[0], args[1], group), STRING)


def _regexp_replace(args: tuple[Expression, ...]) -> Expression:
    regex = patterns.check_regex(_pattern(args[1]))
    patterns.check_replacement(_pattern(args[2]), regex)
    return Call("regexp_replace", args, STRING)


TRUNCATIONS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND",
               "MILLISECOND", "MICROSECOND")
"""The units of DATE_TRUNC."""


def _date_trunc(args: tuple[Expression, ...]) -> Expression:
    unit = _pattern(args[0]).upper()
    if unit not in TRUNCATIONS:
        message = f"DATE_TRUNC knows no unit '{unit}'"
        raise Misfit(TypeFault, message, f"it knows {', '.join(TRUNCATIONS)}")
    return Call("date_trunc", (Literal(unit, STRING), args[1]), TIMESTAMP)


def _hash(args: tuple[Expression, ...]) -> Expression:
    for arg in args:
        if coercion.holds_map(arg.type):
            raise Misfit(TypeFault, f"XXHASH64 cannot hash {coercion.article(arg.type)}")
    return Call("xxhash64", args, BIGINT)


def _array(args: tuple[Expression, ...]) -> Expression:
    unified = coercion.unify(args, "the elements of ARRAY")
    if unified[0].type == VOID:
        unified = tuple(Literal(None, STRING) for _ in unified)
    return Call("array", unified, Type("ARRAY", element=unified[0].type))


def _from_json(args: tuple[Expression, ...]) -> Expression:
    try:
        schema = types.parse_schema(_pattern(args[1]))
    except ValueError as error:
        raise Misfit(TypeFault, f"FROM_JSON: this is not a schema: {error}") from None
    if schema.name == "MAP" and schema.key != STRING:
        raise Misfit(TypeFault, "FROM_JSON: the keys of a MAP are STRING in JSON")
    if any(f.name.lower() == "_corrupt_record" and f.type != STRING for f in schema.fields):
        raise Misfit(TypeFault, "FROM_JSON: _corrupt_record holds a STRING")
    return Call("from_json", (args[0],), schema)


def _extract(part: str) -> Admitted:
    return Admitted((moment,), _gives(part, INT), 1, 1)


def _math(function: str) -> Admitted:
    return Admitted((double,), _gives(function, DOUBLE), 1, 1)


def _text(function: str) -> Admitted:
    return Admitted((string,), _gives(function, STRING), 1, 1)


def _test(function: str) -> Admitted:
    return Admitted((string, string), _gives(function, BOOLEAN), 2, 2)


_REGEX = (string, constant_string)

ADMITTED: dict[str, Admitted] = {
    "ABS": Admitted((number,), _like_first("abs"), 1, 1),
    "ARRAY": Admitted((untyped,), _array, 1, None),
    "CEIL": Admitted((number,), _to_whole("ceil"), 1, 1),
    "COALESCE": Admitted((untyped,), _common("coalesce", "COALESCE"), 1, None),
    "CONCAT": Admitted((string,), _gives("concat", STRING), 1, None),
    "CONTAINS": _test("contains"),
    "DATE_TRUNC": Admitted((constant_string, moment), _date_trunc, 2, 2),
    "DAY": _extract("day"),
    "DAYOFWEEK": _extract("dayofweek"),
    "DAYOFYEAR": _extract("dayofyear"),
    "DIV": Admitted((number, number), _integer_quotient, 2, 2),
    "ENDSWITH": _test("endswith"),
    "EXP": _math("exp"),
    "FLOOR": Admitted((number,), _to_whole("floor"), 1, 1),
    "FROM_JSON": Admitted((string, constant_string), _from_json, 2, 2),
    "GREATEST": Admitted((untyped,), _common("greatest", "GREATEST"), 2, None),
    "HOUR": _extract("hour"),
    "IF": Admitted((condition, untyped, untyped), _choice, 3, 3),
    "LEAST": Admitted((untyped,), _common("least", "LEAST"), 2, None),
    "LENGTH": Admitted((bytes_or_string,), _length, 1, 1),
    "LN": _math("ln"),
    "LOWER": _text("lower"),
    "LTRIM": _text("ltrim"),
    "MD5": Admitted((bytes_or_string,), _gives("md5", STRING), 1, 1),
    "MINUTE": _extract("minute"),
    "MOD": Admitted((untyped, untyped), arithmetic("mod"), 2, 2),
    "MONTH": _extract("month"),
    "NULLIF": Admitted((anything, untyped), _null_if, 2, 2),
    "POWER": Admitted((double, double), _gives("power", DOUBLE), 2, 2),
    "QUARTER": _extract("quarter"),
    "REGEXP_EXTRACT": Admitted((*_REGEX, constant_whole), _regexp_extract, 2, 3),
    "REGEXP_REPLACE": Admitted((*_REGEX, constant_string), _regexp_replace, 3, 3),
    "REPLACE": Admitted((string, string, string), _gives("replace", STRING), 3, 3),
    "RLIKE": Admitted(_REGEX, _rlike, 2, 2),
    "ROUND": Admitted((number, constant_whole), _rounded, 1, 2),
    "RTRIM": _text("rtrim"),
    "SECOND": _extract("second"),
    "SIGN": _math("sign"),
    "SPLIT_PART": Admitted((string, string, whole), _split_part, 3, 3),
    "SQRT": _math("sqrt"),
    "STARTSWITH": _test("startswith"),
    "SUBSTR": Admitted((string, whole, whole), _gives("substr", STRING), 2, 3),
    "TRIM": _text("trim"),
    "UNIX_TIMESTAMP": Admitted((moment,), _gives("unix_timestamp", BIGINT), 1, 1),
    "UPPER": _text("upper"),
    "WEEK": _extract("week"),
    "XXHASH64": Admitted((anything,), _hash, 1, None),
    "YEAR": _extract("year"),
}
"""Every function, under its first name."""

SYNONYMS = {
    "CEILING": "CEIL",
    "CHAR_LENGTH": "LENGTH",
    "CHARACTER_LENGTH": "LENGTH",
    "DAYOFMONTH": "DAY",
    "IFNULL": "COALESCE",
    "LCASE": "LOWER",
    "LEN": "LENGTH",
    "NVL": "COALESCE",
    "POW": "POWER",
    "REGEXP": "RLIKE",
    "REGEXP_LIKE": "RLIKE",
    "SIGNUM": "SIGN",
    "SUBSTRING": "SUBSTR",
    "UCASE": "UPPER",
    "WEEKOFYEAR": "WEEK",
}
"""Other names that Spark has for the same functions."""

AGGREGATES = frozenset(
    "SUM COUNT AVG MEAN MIN MAX STDDEV STDDEV_SAMP STD VARIANCE VAR_SAMP MEDIAN PERCENTILE TOPK "
    "APPROX_COUNT_DISTINCT APPROX_PERCENTILE APPROX_TOPK HOP TUMBLE".split()
)
"""Functions of form 4, which this version does not run."""

REFUSED = {
    **dict.fromkeys(("REFLECT", "JAVA_METHOD", "TRY_REFLECT"), "it would run any Java method"),
    **dict.fromkeys(
        ("INPUT_FILE_NAME", "INPUT_FILE_BLOCK_START", "INPUT_FILE_BLOCK_LENGTH",
         "SPARK_PARTITION_ID", "MONOTONICALLY_INCREASING_ID", "CURRENT_USER", "USER",
         "SESSION_USER", "CURRENT_CATALOG", "CURRENT_DATABASE", "CURRENT_SCHEMA", "VERSION"),
        "its value depends on the machine, not on the row",
    ),
    **dict.fromkeys(
        ("RAND", "RANDN", "RANDOM", "RANDSTR", "UUID", "SHUFFLE", "UNIFORM", "NOW",
         "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "CURDATE", "LOCALTIMESTAMP",
         "CURRENT_TIMEZONE"),
        "its value changes from run to run",
    ),
    **dict.fromkeys(
        ("EXPLODE", "EXPLODE_OUTER", "POSEXPLODE", "INLINE", "STACK", "JSON_TUPLE"),
        "it makes several rows of one",
    ),
    **dict.fromkeys(("RAISE_ERROR", "ASSERT_TRUE", "SLEEP"), "it would stop a run"),
}
"""Functions of Spark that will not be admitted, with the reason."""
