"""The aggregates of windows: one explicit table, with the types that Spark gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from penstock.errors import TypeFault
from penstock.language import coercion, typed_calls
from penstock.language.admitted import Admitted
from penstock.language.call_arguments import (
    anything,
    condition,
    constant_string,
    constant_whole,
    number,
)
from penstock.language.places import Misfit
from penstock.model import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    Aggregate,
    Call,
    Expression,
    Field,
    Literal,
    SketchMethod,
    Type,
)

LARGEST_K = 10_000
"""The most values that a top-k may ask for: an answer is one row."""
_SKETCHES: tuple[SketchMethod, ...] = ("hll", "fm")
"""The methods of APPROX_COUNT_DISTINCT, the default first."""
Build: TypeAlias = Callable[[tuple[Expression, ...]], Aggregate]

# --- what an argument must be --------------------------------------------------------------------


def orderable(value: Expression) -> Expression:
    """A value with an order, and so with equality."""
    if coercion.holds_map(value.type) or value.type.name == "INTERVAL":
        raise Misfit(TypeFault, f"{coercion.article(value.type)} cannot be compared")
    return anything(value)


def share(value: Expression) -> Expression:
    """A constant from 0 to 1, as a DOUBLE."""
    constant = coercion.converted(value, DOUBLE) if coercion.is_number(value.type) else None
    if constant is None or not isinstance(constant.value, float) or not 0 <= constant.value <= 1:
        raise Misfit(TypeFault, "expected a constant from 0 to 1", "0.5 is the median")
    return constant


def how_many(value: Expression) -> Expression:
    """A constant number of values."""
    constant = constant_whole(value)
    if not isinstance(constant, Literal) or not isinstance(constant.value, int):
        raise Misfit(TypeFault, "expected a constant whole number")
    if not 1 <= constant.value <= LARGEST_K:
        raise Misfit(TypeFault, f"expected a number of values from 1 to {LARGEST_K:,}")
    return constant


def sketch(value: Expression) -> Expression:
    """The name of a sketch."""
    constant = constant_string(value) if isinstance(value, Literal) else value
    if not isinstance(constant, Literal) or str(constant.value).lower() not in _SKETCHES:
        raise Misfit(TypeFault, "expected 'hll' or 'fm'")
    return constant


# --- what comes out ------------------------------------------------------------------------------


def _gives(function: str, type_: Type, method: SketchMethod = "") -> Build:
    return lambda args: Aggregate(function, args, type_, method=method)


def sum_type(type_: Type) -> Type:
    """The type of a sum.

    >>> print(sum_type(INT), sum_type(Type("DECIMAL", precision=10, scale=2)))
    BIGINT DECIMAL(20,2)
    """
    if type_.name == "DECIMAL":
        return _decimal(type_, 10, 0)
    return BIGINT if type_.name in coercion.INTEGERS else DOUBLE


def _decimal(type_: Type, digits: int, fraction: int) -> Type:
    precision, scale = (type_.precision or 0) + digits, (type_.scale or 0) + fraction
    return Type("DECIMAL", precision=min(38, precision), scale=min(38, scale))


def _sum(args: tuple[Expression, ...]) -> Aggregate:
    return Aggregate("SUM", args, sum_type(args[0].type))


def _avg(args: tuple[Expression, ...]) -> Aggregate:
    type_ = args[0].type
    return Aggregate("AVG", args, _decimal(type_, 4, 4) if type_.name == "DECIMAL" else DOUBLE)


def _count(args: tuple[Expression, ...]) -> Aggregate:
    """COUNT of a constant that is not NULL counts rows, as COUNT(*) does."""
    (value,) = args
    counts_rows = isinstance(value, Literal) and value.value is not None
    return Aggregate("COUNT", () if counts_rows else args, BIGINT)


def _extreme(function: str) -> Build:
    return lambda args: Aggregate(function, args, args[0].type)


def _percentile(function: str, method: SketchMethod = "") -> Build:
    return lambda args: Aggregate(function, args[:1], DOUBLE, _parameters(args[1:]), method)


def _median(args: tuple[Expression, ...]) -> Aggregate:
    return Aggregate("PERCENTILE", args, DOUBLE, (0.5,))


def _distinct_sketch(args: tuple[Expression, ...]) -> Aggregate:
    named = args[1] if len(args) > 1 else None
    word = str(named.value).lower() if isinstance(named, Literal) else ""
    method = next((known for known in _SKETCHES if known == word), _SKETCHES[0])
    return Aggregate("APPROX_COUNT_DISTINCT", args[:1], BIGINT, method=method)


def _top(function: str, method: SketchMethod = "") -> Build:
    """The k most frequent values, or those with the largest sum of a weight."""

    def build(args: tuple[Expression, ...]) -> Aggregate:
        value, k, *weight = args
        measure = Field("sum", sum_type(weight[0].type)) if weight else Field("count", BIGINT)
        entry = Type("STRUCT", fields=(Field("value", value.type), measure))
        type_ = Type("ARRAY", element=entry)
        return Aggregate(function, (value, *weight), type_, _parameters((k,)), method)

    return build


def _count_if(args: tuple[Expression, ...]) -> Aggregate:
    return only_where(args[0], COUNT_ROWS)


def _by(function: str) -> Build:
    """The value beside the least or greatest of another; of equals the least or greatest value.

    Both stand in a struct whose order is that of the other first, so it is a MIN or MAX of structs.
    """

    def build(args: tuple[Expression, ...]) -> Aggregate:
        value, order = args
        return Aggregate(function, (_paired(value, order),), value.type)

    return build


def _listed(args: tuple[Expression, ...]) -> Aggregate:
    """The first so many values by a time; those of one time by their own order."""
    value, most, order = args
    type_ = Type("ARRAY", element=value.type)
    return Aggregate("COLLECT_LIST", (_paired(value, order),), type_, _parameters((most,)))


def _paired(value: Expression, order: Expression) -> Expression:
    """What a value is ordered by, and the value; NULL where one of them is."""
    pair = typed_calls.struct(("order", "value"), (order, value))
    known = tuple(Call("is_not_null", (one,), BOOLEAN) for one in dict.fromkeys((value, order)))
    both = known[0] if len(known) == 1 else Call("and", known, BOOLEAN)
    return Call("case", (both, pair), pair.type)


def _parameters(constants: Sequence[Expression]) -> tuple[float, ...]:
    values = [constant.value for constant in constants if isinstance(constant, Literal)]
    return tuple(value for value in values if isinstance(value, int | float))


AGGREGATES: dict[str, Admitted[Aggregate]] = {
    "APPROX_COUNT_DISTINCT": Admitted((orderable, sketch), _distinct_sketch, 1, 2),
    "APPROX_F2": Admitted((orderable,), _gives("APPROX_F2", DOUBLE, "ams"), 1, 1),
    "APPROX_PERCENTILE": Admitted((number, share), _percentile("APPROX_PERCENTILE", "kll"), 2, 2),
    "APPROX_TOPK": Admitted((orderable, how_many), _top("APPROX_TOPK", "count_min"), 2, 2),
    "AVG": Admitted((number,), _avg, 1, 1),
    "BOOL_AND": Admitted((condition,), _extreme("MIN"), 1, 1),
    "BOOL_OR": Admitted((condition,), _extreme("MAX"), 1, 1),
    "COLLECT_LIST": Admitted((orderable, how_many), _listed, 2, 2),
    "COUNT": Admitted((anything,), _count, 1, 1),
    "COUNT_IF": Admitted((condition,), _count_if, 1, 1),
    "FIRST": Admitted((orderable,), _by("MIN_BY"), 1, 1),
    "LAST": Admitted((orderable,), _by("MAX_BY"), 1, 1),
    "MAX": Admitted((orderable,), _extreme("MAX"), 1, 1),
    "MAX_BY": Admitted((orderable, orderable), _by("MAX_BY"), 2, 2),
    "MEDIAN": Admitted((number,), _median, 1, 1),
    "MIN": Admitted((orderable,), _extreme("MIN"), 1, 1),
    "MIN_BY": Admitted((orderable, orderable), _by("MIN_BY"), 2, 2),
    "PERCENTILE": Admitted((number, share), _percentile("PERCENTILE"), 2, 2),
    "STDDEV": Admitted((number,), _gives("STDDEV", DOUBLE), 1, 1),
    "STDDEV_POP": Admitted((number,), _gives("STDDEV_POP", DOUBLE), 1, 1),
    "SUM": Admitted((number,), _sum, 1, 1),
    "TOPK": Admitted((orderable, how_many, number), _top("TOPK"), 2, 3),
    "VARIANCE": Admitted((number,), _gives("VARIANCE", DOUBLE), 1, 1),
    "VAR_POP": Admitted((number,), _gives("VAR_POP", DOUBLE), 1, 1),
}
"""Every aggregate, under its first name."""

BY_TIME = ("COLLECT_LIST", "FIRST", "LAST")
"""Aggregates that order rows by their event time, which the binder adds to their arguments."""

SYNONYMS = {
    "ANY": "BOOL_OR",
    "ANY_VALUE": "MIN",
    "APPROX_QUANTILE": "APPROX_PERCENTILE",
    "APPROX_TOP_K": "APPROX_TOPK",
    "ARG_MAX": "MAX_BY",
    "ARG_MIN": "MIN_BY",
    "COUNTIF": "COUNT_IF",
    "EARLIEST_BY_OFFSET": "FIRST",
    "EVERY": "BOOL_AND",
    "FIRST_VALUE": "FIRST",
    "LAST_VALUE": "LAST",
    "LATEST_BY_OFFSET": "LAST",
    "MEAN": "AVG",
    "PERCENTILE_APPROX": "APPROX_PERCENTILE",
    "QUANTILE_CONT": "PERCENTILE",
    "SOME": "BOOL_OR",
    "STD": "STDDEV",
    "STDDEV_SAMP": "STDDEV",
    "VAR_SAMP": "VARIANCE",
}
"""Other names that Spark and other systems have for the same aggregates."""

COUNT_ROWS = Aggregate("COUNT", (), BIGINT)
"""COUNT(*)."""
COUNT_DISTINCT: Admitted[Aggregate] = Admitted((orderable,), _gives("COUNT_DISTINCT", BIGINT), 1, 1)
"""COUNT(DISTINCT x)."""


def is_aggregate(name: str) -> bool:
    """Whether a function of that name looks at many rows."""
    return name.upper() in AGGREGATES or name.upper() in SYNONYMS


def only_where(condition: Expression, aggregate: Aggregate) -> Aggregate:
    """``aggregate FILTER (WHERE condition)``: what is left out is NULL, which aggregates skip.

    >>> from penstock.model import BOOLEAN, Column
    >>> only_where(Column("ok", BOOLEAN), COUNT_ROWS).args[0].function
    'case'
    """
    first, *others = aggregate.args or (Literal(1, INT),)
    kept = Call("case", (condition, first), first.type)
    return Aggregate(
        aggregate.function, (kept, *others), aggregate.type, aggregate.parameters, aggregate.method
    )
