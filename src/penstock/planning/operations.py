"""What planning knows of the admitted functions: which compare, which combine, which choose.

The binder has made every conversion explicit: both sides of a comparison have one type, and a
constant stands on the right.
"""

from __future__ import annotations

from penstock.model import Literal, Type

EQUAL, IN, AND, OR = "eq", "in", "and", "or"
LOWER_BOUNDS = frozenset({"gt", "ge"})
UPPER_BOUNDS = frozenset({"lt", "le"})
COMPARISONS = frozenset({EQUAL, "ne", "eq_null_safe", *LOWER_BOUNDS, *UPPER_BOUNDS})
ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "mod", "div"})
CHOICES = frozenset({"coalesce", "nullif", "greatest", "least", "case", "if"})
TEXT = frozenset({"concat", "startswith", "endswith", "contains"})

INTEGRAL = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
"""Integral types with the digits that Spark gives them as decimals."""
FLOATING = frozenset({"FLOAT", "DOUBLE"})
NUMERIC = frozenset({*INTEGRAL, *FLOATING, "DECIMAL"})


def may_vary(function: str, result: Type, literal: Literal, others: tuple[Type, ...]) -> bool:
    """Whether a column may take a constant's place beside arguments of these types.

    Spark then computes the same type and the same value. If it would not, or requires a constant (a
    pattern, a unit, a position, a schema), the constant stays.

    >>> may_vary("add", Type("INT"), Literal(1, Type("INT")), (Type("INT"),))
    True
    >>> may_vary("rlike", Type("BOOLEAN"), Literal("a+", Type("STRING")), (Type("STRING"),))
    False
    """
    if literal.value is None or not others:
        return False
    if function in COMPARISONS or function in ARITHMETIC:
        decimals = literal.type.name == "DECIMAL" and function in ARITHMETIC
        return all(t == literal.type or (decimals and t.name == "DECIMAL") for t in others)
    if function in CHOICES:
        return literal.type == result
    return function in TEXT and literal.type.name == "STRING"
