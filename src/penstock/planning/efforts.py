"""SQL conditions in the order of what they cost: Spark stops at the first one that is false.

Spark evaluates the conditions of a `WHERE` as they are written. No condition of the language can
fail or has an effect, so the order changes no answer. What a condition costs follows from its
functions: to search for a pattern takes many times as long as to compare two numbers. Where a path
has conditions of one query only, this order holds until they are measured
(`penstock.engine.paths.filter_orders`).
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.model import Call, Column, Expression, walk

EFFORTS = {
    "from_json": 400, "rlike": 100, "regexp_extract": 100, "regexp_replace": 100, "md5": 100,
    "like": 20, "ilike": 20, "replace": 20, "split_part": 20, "contains": 10, "xxhash64": 10,
    "date_trunc": 10, "round": 10, "power": 10, "exp": 10, "ln": 10, "lower": 10, "upper": 10,
    "trim": 10, "ltrim": 10, "rtrim": 10, "concat": 10, "substr": 5,
}
"""What a function costs, as a multiple of comparing two numbers; the others cost 1."""
PARSING = 50
"""What it costs to make something else of a text, or a text of something else."""
TEXT = 3
"""What it costs to read a column of text or of nested values."""


def cheapest_first(conditions: Iterable[Expression]) -> list[Expression]:
    """Conditions in the order of their effort; those that cost the same stay as written.

    >>> from penstock.model import BOOLEAN, INT, STRING, Literal
    >>> name, port = Column("name", STRING), Column("port", INT)
    >>> pattern = Call("rlike", (name, Literal("a+b", STRING)), BOOLEAN)
    >>> equal = Call("eq", (port, Literal(80, INT)), BOOLEAN)
    >>> cheapest_first([pattern, equal]) == [equal, pattern]
    True
    """
    return sorted(conditions, key=effort)


def effort(expression: Expression) -> int:
    """What it costs to evaluate an expression on a row."""
    return sum(_own(part) for part in walk(expression))


def _own(part: Expression) -> int:
    match part:
        case Call(function="cast", args=(arg,)):
            return PARSING if "STRING" in (part.type.name, arg.type.name) else 1
        case Call(function=function):
            return EFFORTS.get(function, 1)
        case Column(type=type_):
            return TEXT if type_.name in ("STRING", "BINARY", "MAP", "ARRAY", "STRUCT") else 0
    return 0
