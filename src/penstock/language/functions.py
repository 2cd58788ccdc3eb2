"""The admitted functions: one explicit table, and nothing outside it.

Spark has functions that run any Java method or read the machine's state, so a function is refused
unless it is here. An entry says what each argument must be, and gives the typed call; conversions
of arguments are made explicit, so that Spark converts nothing by itself.
"""

from __future__ import annotations

from penstock.errors import Refused
from penstock.language import comparisons, typed_calls
from penstock.language.admitted import Admitted
from penstock.language.call_arguments import (
    anything,
    condition,
    constant_whole,
    double,
    number,
    untyped,
    whole,
)
from penstock.language.nested_functions import NESTED
from penstock.language.places import Misfit
from penstock.language.text_functions import TEXT
from penstock.language.time_functions import TIME, whole_number
from penstock.model import BIGINT, BOOLEAN, DOUBLE, INT, Call, Expression, Literal


def _math(function: str, arguments: int = 1) -> Admitted[Expression]:
    return Admitted((double,), typed_calls.gives(function, DOUBLE), arguments, arguments)


def _known(function: str) -> Admitted[Expression]:
    return Admitted((anything,), typed_calls.gives(function, BOOLEAN), 1, 1)


def _equal_null(args: tuple[Expression, ...]) -> Expression:
    return comparisons.compare("eq_null_safe", *args)


def _one_or_other(args: tuple[Expression, ...]) -> Expression:
    """NVL2: the second argument where the first is known, else the third."""
    known = Call("is_not_null", (anything(args[0]),), BOOLEAN)
    return typed_calls.choice((known, *args[1:]))


def _without_null(args: tuple[Expression, ...]) -> Expression:
    return typed_calls.common("coalesce", "ZEROIFNULL")((args[0], Literal(0, INT)))


def _without_zero(args: tuple[Expression, ...]) -> Expression:
    return typed_calls.null_if((args[0], Literal(0, INT)))


_TWO = (untyped, untyped)

_NUMBERS: dict[str, Admitted[Expression]] = {
    "ABS": Admitted((number,), typed_calls.like_first("abs"), 1, 1),
    "ACOS": _math("acos"),
    "ASIN": _math("asin"),
    "ATAN": _math("atan"),
    "ATAN2": _math("atan2", 2),
    "BIT_COUNT": Admitted((whole_number,), typed_calls.gives("bit_count", INT), 1, 1),
    "CBRT": _math("cbrt"),
    "CEIL": Admitted((number,), typed_calls.to_whole("ceil"), 1, 1),
    "COS": _math("cos"),
    "COSH": _math("cosh"),
    "DEGREES": _math("degrees"),
    "DIV": Admitted((number, number), typed_calls.integer_quotient, 2, 2),
    "E": _math("e", 0),
    "EXP": _math("exp"),
    "EXPM1": _math("expm1"),
    "FLOOR": Admitted((number,), typed_calls.to_whole("floor"), 1, 1),
    "HASH": Admitted((anything,), typed_calls.hashed("hash", INT), 1, None),
    "HYPOT": _math("hypot", 2),
    "ISNAN": Admitted((double,), typed_calls.gives("isnan", BOOLEAN), 1, 1),
    "LN": _math("ln"),
    "LOG10": _math("log10"),
    "LOG1P": _math("log1p"),
    "LOG2": _math("log2"),
    "MOD": Admitted(_TWO, typed_calls.arithmetic("mod"), 2, 2),
    "NANVL": _math("nanvl", 2),
    "PI": _math("pi", 0),
    "PMOD": Admitted((whole_number,), typed_calls.gives("pmod", BIGINT), 2, 2),
    "POWER": Admitted((double, double), typed_calls.gives("power", DOUBLE), 2, 2),
    "RADIANS": _math("radians"),
    "ROUND": Admitted((number, constant_whole), typed_calls.rounded, 1, 2),
    "SHIFTLEFT": Admitted((whole_number, whole), typed_calls.gives("shiftleft", BIGINT), 2, 2),
    "SHIFTRIGHT": Admitted((whole_number, whole), typed_calls.gives("shiftright", BIGINT), 2, 2),
    "SIGN": _math("sign"),
    "SIN": _math("sin"),
    "SINH": _math("sinh"),
    "SQRT": _math("sqrt"),
    "TAN": _math("tan"),
    "TANH": _math("tanh"),
    "TRY_ADD": Admitted(_TWO, typed_calls.arithmetic("add"), 2, 2),
    "TRY_DIVIDE": Admitted(_TWO, typed_calls.arithmetic("divide"), 2, 2),
    "TRY_MULTIPLY": Admitted(_TWO, typed_calls.arithmetic("multiply"), 2, 2),
    "TRY_SUBTRACT": Admitted(_TWO, typed_calls.arithmetic("subtract"), 2, 2),
    "WIDTH_BUCKET": Admitted(
        (double, double, double, whole_number), typed_calls.gives("width_bucket", BIGINT), 4, 4
    ),
    "XXHASH64": Admitted((anything,), typed_calls.hashed("xxhash64", BIGINT), 1, None),
}
_CHOICES: dict[str, Admitted[Expression]] = {
    "COALESCE": Admitted((untyped,), typed_calls.common("coalesce", "COALESCE"), 1, None),
    "EQUAL_NULL": Admitted(_TWO, _equal_null, 2, 2),
    "GREATEST": Admitted((untyped,), typed_calls.common("greatest", "GREATEST"), 2, None),
    "IF": Admitted((condition, untyped, untyped), typed_calls.choice, 3, 3),
    "ISNOTNULL": _known("is_not_null"),
    "ISNULL": _known("is_null"),
    "LEAST": Admitted((untyped,), typed_calls.common("least", "LEAST"), 2, None),
    "NULLIF": Admitted((anything, untyped), typed_calls.null_if, 2, 2),
    "NULLIFZERO": Admitted((number,), _without_zero, 1, 1),
    "NVL2": Admitted((anything, untyped, untyped), _one_or_other, 3, 3),
    "ZEROIFNULL": Admitted((number,), _without_null, 1, 1),
}

ADMITTED: dict[str, Admitted[Expression]] = dict(
    sorted({**_NUMBERS, **_CHOICES, **TEXT, **TIME, **NESTED}.items())
)
"""Every function, under its first name."""

SYNONYMS = {
    "ARRAY_CAT": "CONCAT",
    "ARRAY_CONCAT": "CONCAT",
    "ARRAY_INDEXOF": "ARRAY_POSITION",
    "ARRAY_LENGTH": "SIZE",
    "ARRAY_REVERSE": "REVERSE",
    "ARRAY_SIZE": "SIZE",
    "ARRAY_TO_STRING": "ARRAY_JOIN",
    "CARDINALITY": "SIZE",
    "CEILING": "CEIL",
    "CHAR": "CHR",
    "CHARACTER_LENGTH": "LENGTH",
    "CHAR_LENGTH": "LENGTH",
    "DATEPART": "DATE_PART",
    "DATE_DIFF": "DATEDIFF",
    "DAYOFMONTH": "DAY",
    "ENDS_WITH": "ENDSWITH",
    "EXTRACTJSONFIELD": "GET_JSON_OBJECT",
    "FORMAT_DATE": "DATE_FORMAT",
    "FORMAT_TIMESTAMP": "DATE_FORMAT",
    "FROM_BASE64": "UNBASE64",
    "IFNULL": "COALESCE",
    "JSON_EXTRACT_STRING": "GET_JSON_OBJECT",
    "JSON_VALUE": "GET_JSON_OBJECT",
    "LCASE": "LOWER",
    "LEN": "LENGTH",
    "LIST_CONTAINS": "ARRAY_CONTAINS",
    "LIST_DISTINCT": "ARRAY_DISTINCT",
    "LIST_POSITION": "ARRAY_POSITION",
    "LIST_VALUE": "ARRAY",
    "NVL": "COALESCE",
    "PARSE_DATE": "TO_DATE",
    "PARSE_TIMESTAMP": "TO_TIMESTAMP",
    "POW": "POWER",
    "REGEXP": "RLIKE",
    "REGEXP_LIKE": "RLIKE",
    "SHA": "SHA1",
    "SHA256": "SHA2",
    "SIGNUM": "SIGN",
    "STARTS_WITH": "STARTSWITH",
    "STRING_SPLIT": "STRING_TO_ARRAY",
    "STRPOS": "INSTR",
    "STR_SPLIT": "STRING_TO_ARRAY",
    "SUBSTRING": "SUBSTR",
    "TO_BASE64": "BASE64",
    "TRY_ELEMENT_AT": "ELEMENT_AT",
    "TRY_MAKE_TIMESTAMP": "MAKE_TIMESTAMP",
    "TRY_MOD": "MOD",
    "TRY_TO_DATE": "TO_DATE",
    "TRY_TO_TIMESTAMP": "TO_TIMESTAMP",
    "TRY_URL_DECODE": "URL_DECODE",
    "UCASE": "UPPER",
    "UNIX_SECONDS": "UNIX_TIMESTAMP",
    "WEEKOFYEAR": "WEEK",
}
"""Other names that Spark and other systems have for the same functions."""

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


_RATHER = {
    "the time of a row is the stream's TIME column": (
        "NOW", "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "CURDATE", "LOCALTIMESTAMP",
    ),
    "XXHASH64(key) % 100 = 0 takes a hundredth of the rows": (
        "RAND", "RANDN", "RANDOM", "UNIFORM",
    ),
    "XXHASH64(a, b) gives the same number for the same row": (
        "UUID", "MONOTONICALLY_INCREASING_ID",
    ),
    "write FROM s LATERAL VIEW explode(x) t AS y, or FROM s CROSS JOIN UNNEST(x) AS t (y)": (
        "EXPLODE", "EXPLODE_OUTER", "POSEXPLODE",
    ),
    "a column may stand in the names of folders, as in day=2025-01-01/": ("INPUT_FILE_NAME",),
}
"""What to write rather than a refused function."""


def refusal(name: str) -> Misfit | None:
    """Why a function is never admitted, or None when nothing is known against it."""
    reason = REFUSED.get(name.upper())
    if reason is None:
        return None
    hint = next((hint for hint, names in _RATHER.items() if name.upper() in names), "")
    return Misfit(Refused, f"the function {name} is not admitted: {reason}", hint)
