"""The admitted functions: one explicit table, and nothing outside it.

Spark has functions that run any Java method or read the machine's state, so a function is refused
unless it is here. An entry says what each argument must be, and gives the typed call; conversions
of arguments are made explicit, so that Spark converts nothing by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from penstock.errors import Refused, TypeFault
from penstock.language import typed_calls
from penstock.language.call_arguments import (
    anything,
    bytes_or_string,
    condition,
    constant_string,
    constant_whole,
    double,
    moment,
    number,
    string,
    untyped,
    whole,
)
from penstock.language.places import Misfit
from penstock.model import BIGINT, BOOLEAN, DOUBLE, INT, STRING, Expression

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Admitted(Generic[Result]):
    """A function of the language."""

    arguments: tuple[Callable[[Expression], Expression], ...]
    """What each argument must be; the last entry serves all further ones."""
    build: Callable[[tuple[Expression, ...]], Result]
    """The typed call, from arguments that are as they must be."""
    least: int
    """The fewest arguments."""
    most: int | None
    """The most arguments; None for any number."""

    def call(self, name: str, given: Sequence[Expression]) -> Result:
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


def _extract(part: str) -> Admitted[Expression]:
    return Admitted((moment,), typed_calls.gives(part, INT), 1, 1)


def _math(function: str) -> Admitted[Expression]:
    return Admitted((double,), typed_calls.gives(function, DOUBLE), 1, 1)


def _text(function: str) -> Admitted[Expression]:
    return Admitted((string,), typed_calls.gives(function, STRING), 1, 1)


def _test(function: str) -> Admitted[Expression]:
    return Admitted((string, string), typed_calls.gives(function, BOOLEAN), 2, 2)


_REGEX = (string, constant_string)

ADMITTED: dict[str, Admitted[Expression]] = {
    "ABS": Admitted((number,), typed_calls.like_first("abs"), 1, 1),
    "ARRAY": Admitted((untyped,), typed_calls.array_of, 1, None),
    "CEIL": Admitted((number,), typed_calls.to_whole("ceil"), 1, 1),
    "COALESCE": Admitted((untyped,), typed_calls.common("coalesce", "COALESCE"), 1, None),
    "CONCAT": Admitted((string,), typed_calls.gives("concat", STRING), 1, None),
    "CONTAINS": _test("contains"),
    "DATE_TRUNC": Admitted((constant_string, moment), typed_calls.date_trunc, 2, 2),
    "DAY": _extract("day"),
    "DAYOFWEEK": _extract("dayofweek"),
    "DAYOFYEAR": _extract("dayofyear"),
    "DIV": Admitted((number, number), typed_calls.integer_quotient, 2, 2),
    "ENDSWITH": _test("endswith"),
    "EXP": _math("exp"),
    "FLOOR": Admitted((number,), typed_calls.to_whole("floor"), 1, 1),
    "FROM_JSON": Admitted((string, constant_string), typed_calls.from_json, 2, 2),
    "GREATEST": Admitted((untyped,), typed_calls.common("greatest", "GREATEST"), 2, None),
    "HOUR": _extract("hour"),
    "IF": Admitted((condition, untyped, untyped), typed_calls.choice, 3, 3),
    "LEAST": Admitted((untyped,), typed_calls.common("least", "LEAST"), 2, None),
    "LENGTH": Admitted((bytes_or_string,), typed_calls.gives("length", INT), 1, 1),
    "LN": _math("ln"),
    "LOWER": _text("lower"),
    "LTRIM": _text("ltrim"),
    "MD5": Admitted((bytes_or_string,), typed_calls.gives("md5", STRING), 1, 1),
    "MINUTE": _extract("minute"),
    "MOD": Admitted((untyped, untyped), typed_calls.arithmetic("mod"), 2, 2),
    "MONTH": _extract("month"),
    "NULLIF": Admitted((anything, untyped), typed_calls.null_if, 2, 2),
    "POWER": Admitted((double, double), typed_calls.gives("power", DOUBLE), 2, 2),
    "QUARTER": _extract("quarter"),
    "REGEXP_EXTRACT": Admitted((*_REGEX, constant_whole), typed_calls.regexp_extract, 2, 3),
    "REGEXP_REPLACE": Admitted((*_REGEX, constant_string), typed_calls.regexp_replace, 3, 3),
    "REPLACE": Admitted((string,), typed_calls.gives("replace", STRING), 3, 3),
    "RLIKE": Admitted(_REGEX, typed_calls.rlike, 2, 2),
    "ROUND": Admitted((number, constant_whole), typed_calls.rounded, 1, 2),
    "RTRIM": _text("rtrim"),
    "SECOND": _extract("second"),
    "SIGN": _math("sign"),
    "SPLIT_PART": Admitted((string, string, whole), typed_calls.split_part, 3, 3),
    "SQRT": _math("sqrt"),
    "STARTSWITH": _test("startswith"),
    "SUBSTR": Admitted((string, whole, whole), typed_calls.gives("substr", STRING), 2, 3),
    "TRIM": _text("trim"),
    "UNIX_TIMESTAMP": Admitted((moment,), typed_calls.gives("unix_timestamp", BIGINT), 1, 1),
    "UPPER": _text("upper"),
    "WEEK": _extract("week"),
    "XXHASH64": Admitted((anything,), typed_calls.hashed, 1, None),
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

REFUSED = {
    **dict.fromkeys(("REFLECT", "JAVA_METHOD", "TRY_REFLECT"), "it would run any Java method"),
    **dict.fromkeys(
        (
            "INPUT_FILE_NAME",
            "INPUT_FILE_BLOCK_START",
            "INPUT_FILE_BLOCK_LENGTH",
            "SPARK_PARTITION_ID",
            "MONOTONICALLY_INCREASING_ID",
            "CURRENT_USER",
            "USER",
            "SESSION_USER",
            "CURRENT_CATALOG",
            "CURRENT_DATABASE",
            "CURRENT_SCHEMA",
            "VERSION",
        ),
        "its value depends on the machine, not on the row",
    ),
    **dict.fromkeys(
        (
            "RAND",
            "RANDN",
            "RANDOM",
            "RANDSTR",
            "UUID",
            "SHUFFLE",
            "UNIFORM",
            "NOW",
            "CURRENT_TIMESTAMP",
            "CURRENT_DATE",
            "CURRENT_TIME",
            "CURDATE",
            "LOCALTIMESTAMP",
            "CURRENT_TIMEZONE",
        ),
        "its value changes from run to run",
    ),
    **dict.fromkeys(
        ("EXPLODE", "EXPLODE_OUTER", "POSEXPLODE", "INLINE", "STACK", "JSON_TUPLE"),
        "it makes several rows of one",
    ),
    **dict.fromkeys(("RAISE_ERROR", "ASSERT_TRUE", "SLEEP"), "it would stop a run"),
}
"""Functions of Spark that will not be admitted, with the reason."""


def refusal(name: str) -> Misfit | None:
    """Why a function is never admitted, or None when nothing is known against it."""
    reason = REFUSED.get(name.upper())
    if reason is None:
        return None
    return Misfit(Refused, f"the function {name} is not admitted: {reason}")
