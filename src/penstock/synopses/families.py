"""What an aggregate needs of every pane: families of cells, and the measures kept in each cell.

A *family* groups the rows of a pane by the keys and by a *cell*. The cell is nothing more for
`scalars`, the value itself for `frequencies`, the number of a register or counter for a sketch. A
*measure* is what is kept per cell. Aggregates share both: AVG needs no more than SUM, and the
median, the distinct count and the top ten of one column are read off the same frequencies.

| family      | cell                       | serves                                             |
|-------------|----------------------------|----------------------------------------------------|
| scalars     | none                       | COUNT SUM AVG MIN MAX STDDEV VARIANCE, kll, lists  |
| frequencies | the value                  | COUNT DISTINCT, PERCENTILE, TOPK                   |
| hll         | a register                 | APPROX_COUNT_DISTINCT                              |
| fm          | a bit map                  | APPROX_COUNT_DISTINCT by method ``fm``             |
| ams         | a counter                  | APPROX_F2                                          |
| count_min   | a counter                  | APPROX_TOPK: how often a value occurs              |
| candidates  | a value frequent in a pane | APPROX_TOPK: which values to ask for               |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from penstock.errors import PlanError
from penstock.model import (
    BIGINT,
    BINARY,
    DOUBLE,
    INT,
    VOID,
    Aggregate,
    Expression,
    Field,
    Type,
)
from penstock.synopses import sketches

MeasureKind: TypeAlias = Literal[
    "rows", "count", "sum", "min", "max", "moments", "kll", "list", "rank", "bits", "signs", "hash"]
FamilyKind: TypeAlias = Literal[
    "scalars", "frequencies", "hll", "fm", "ams", "count_min", "candidates"]


@dataclass(frozen=True, slots=True)
class Measure:
    """What is kept of the rows of a cell.

    ``kind`` is one of

    - ``rows``, ``count``: all rows, or those whose argument is not NULL;
    - ``sum``, ``min``, ``max``: of the argument;
    - ``moments``: count, mean and the sum of squared deviations, for STDDEV and VARIANCE;
    - ``kll``: a sketch of the argument's distribution;
    - ``list``: the ``most`` least values, in their order;
    - ``rank``, ``bits``, ``signs``, ``hash``: what hll, fm, ams and candidates keep.
    """

    kind: MeasureKind
    arg: Expression | None = None
    most: int = 0
    """The most values of a list."""

    @property
    def type(self) -> Type:
        """The type of the argument."""
        return VOID if self.arg is None else self.arg.type

    @property
    def stored(self) -> Type:
        """The type of its column in a pane table.

        A sum of BIGINT comes in halves, ``high`` times 2**32 plus ``low``, since even a pane's sum
        may leave 64 bits and come back; one of DECIMAL is NULL when 38 digits cannot hold it.
        """
        match self.kind, self.type.name:
            case "min" | "max", _:
                return self.type
            case "kll", _:
                return BINARY
            case "list", _:
                return Type("ARRAY", element=self.type)
            case "moments", _:
                return _struct(DOUBLE, "count", "mean", "spread")
            case "sum", "BIGINT":
                return _struct(BIGINT, "high", "low")
            case "sum", "DECIMAL":
                return Type("DECIMAL", precision=38, scale=self.type.scale)
            case "sum", "FLOAT" | "DOUBLE":
                return DOUBLE
        return BIGINT


def _struct(type_: Type, *names: str) -> Type:
    return Type("STRUCT", fields=tuple(Field(name, type_) for name in names))


@dataclass(frozen=True, slots=True)
class Family:
    """A way to cut the rows of a pane into cells, and what is kept of each cell."""

    kind: FamilyKind
    args: tuple[Expression, ...] = ()
    """What the cell is made of; nothing for scalars."""
    parameters: tuple[float, ...] = ()
    measures: tuple[Measure, ...] = ()

    @property
    def name(self) -> tuple[str, tuple[Expression, ...], tuple[float, ...]]:
        """What makes two families one, whatever they measure."""
        return self.kind, self.args, self.parameters

    def over(self, place: Callable[[Expression], Expression]) -> Family:
        """The same of expressions that stand elsewhere."""
        measures = tuple(replace(m, arg=m.arg and place(m.arg)) for m in self.measures)
        return replace(self, args=tuple(map(place, self.args)), measures=measures)

    @property
    def cell(self) -> Type | None:
        """The type of the cell; None when the keys alone are a cell."""
        if self.kind == "scalars":
            return None
        return self.args[0].type if self.kind in ("frequencies", "candidates") else INT


ROWS = Measure("rows")
"""The first measure of exact families: a group without rows has no answer."""


def families(aggregate: Aggregate) -> tuple[Family, ...]:
    """The families an aggregate is answered from.

    >>> from penstock.model import Column
    >>> length = Column("length", INT)
    >>> [f] = families(Aggregate("AVG", (length,), Type("DOUBLE")))
    >>> f.kind, [measure.kind for measure in f.measures]
    ('scalars', ['rows', 'count', 'sum'])
    >>> [f.kind for f in families(Aggregate("APPROX_TOPK", (length,), INT, (10,)))]
    ['count_min', 'candidates']
    """
    function, args = aggregate.function, aggregate.args
    if function in _SCALARS:
        kinds = _SCALARS[function] if args else ()
        return (Family("scalars", measures=(ROWS, *(Measure(k, args[0]) for k in kinds))),)
    if function == "COLLECT_LIST":
        listed = Measure("list", args[0], int(aggregate.parameters[0]))
        return (Family("scalars", measures=(ROWS, listed)),)
    if function in ("COUNT_DISTINCT", "PERCENTILE", "TOPK"):
        weights = [m for w in args[1:] for m in (Measure("count", w), Measure("sum", w))]
        return (Family("frequencies", args[:1], measures=(ROWS, *weights)),)
    return _sketched(aggregate)


_SCALARS: dict[str, tuple[MeasureKind, ...]] = {
    "COUNT": ("count",),
    "SUM": ("count", "sum"),
    "AVG": ("count", "sum"),
    "MIN": ("count", "min"),
    "MAX": ("count", "max"),
    "MIN_BY": ("min",),
    "MAX_BY": ("max",),
    "STDDEV": ("moments",),
    "STDDEV_POP": ("moments",),
    "VARIANCE": ("moments",),
    "VAR_POP": ("moments",),
    "APPROX_PERCENTILE": ("kll",),
}


def _sketched(aggregate: Aggregate) -> tuple[Family, ...]:
    x = aggregate.args[:1]
    match aggregate.function, aggregate.method:
        case "APPROX_COUNT_DISTINCT", "" | "hll":
            precision = sketches.hll_precision(aggregate.parameters)
            return (Family("hll", x, (precision,), (Measure("rank", x[0]),)),)
        case "APPROX_COUNT_DISTINCT", "fm":
            return (Family("fm", x, measures=(Measure("bits", x[0]),)),)
        case "APPROX_F2", _:
            return (Family("ams", x, measures=(Measure("signs", x[0]),)),)
        case "APPROX_TOPK", _:
            return (
                Family("count_min", x, measures=(ROWS,)),
                Family("candidates", x, measures=(ROWS, Measure("hash", x[0]))),
            )
    raise PlanError(f"no synopsis serves {aggregate.function} {aggregate.method}".rstrip())


def gathered(aggregates: Iterable[Aggregate]) -> tuple[Family, ...]:
    """The families of several aggregates, each once with all that is measured of it.

    >>> from penstock.model import Column
    >>> x = Column("x", INT)
    >>> asked = [Aggregate("SUM", (x,), BIGINT), Aggregate("AVG", (x,), DOUBLE)]
    >>> [f] = gathered([*asked, Aggregate("MAX", (x,), INT)])
    >>> [measure.kind for measure in f.measures]
    ['rows', 'count', 'sum', 'max']
    """
    found: dict[object, Family] = {}
    for aggregate in aggregates:
        for family in families(aggregate):
            known = found.setdefault(family.name, family)
            measures = dict.fromkeys((*known.measures, *family.measures))
            found[family.name] = replace(known, measures=tuple(measures))
    return tuple(found.values())
