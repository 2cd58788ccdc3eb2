"""From the totals of a window to the values of its aggregates, one per group.

The meaning is Spark's. An aggregate of nothing is NULL (a count is 0), and so is a sum that its
type cannot hold. NULL is no value. NaN is greater than every number and equal to itself. -0.0 is
0.0, and MIN and MAX give 0.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.arrow import arrow_type
from penstock.model import Aggregate, Type
from penstock.synopses import sketches
from penstock.synopses.array_layout import OBJECTS
from penstock.synopses.families import ROWS, Family, Measure
from penstock.synopses.ring import Totals

_COUNTS = ("COUNT", "COUNT_DISTINCT", "APPROX_COUNT_DISTINCT", "APPROX_F2")
_WIDE = Context(prec=100, rounding=ROUND_HALF_UP)


@dataclass(frozen=True, slots=True)
class WindowTotals:
    """A window while the scan stands at its end: the totals of all families."""

    totals: Mapping[object, Totals]
    """By the name of the family."""
    groups: np.ndarray | slice
    """The keys that have rows in the window, ascending; a slice where all have."""
    keys: int
    """How many keys there are."""

    def of(self, family: Family) -> Totals:
        """The totals of a family."""
        return self.totals[family.name]


def answer(aggregate: Aggregate, sources: Iterable[Family], scope: WindowTotals) -> pa.Array:
    """The aggregate of every group of a window, from its families, typed as declared."""
    first, *others = (scope.of(family) for family in sources)
    function = aggregate.function
    if function in _SCALARS:
        return _SCALARS[function](aggregate, first, scope)
    if function == "APPROX_TOPK":
        return _approximate_topk(aggregate, first, others[0], scope)
    return _CELLS[function](aggregate, first, scope)


def nothing(aggregate: Aggregate, groups: int) -> pa.Array:
    """The aggregate of groups without rows, as of rows whose values are all NULL.

    >>> from penstock.model import BIGINT
    >>> nothing(Aggregate("COUNT", (), BIGINT), 2).to_pylist()
    [0, 0]
    """
    target = arrow_type(aggregate.type)
    if aggregate.function in _COUNTS:
        return pa.array([0] * groups, target)
    if aggregate.function in ("TOPK", "APPROX_TOPK"):
        return pa.array([[]] * groups, target)
    return pa.nulls(groups, target)


def typed(values: np.ndarray, null: np.ndarray | None, type_: Type) -> pa.Array:
    """Numbers as a column of a type, NULL where ``null`` says so; None means nowhere."""
    target = arrow_type(type_)
    if pa.types.is_null(target):
        return pa.nulls(len(values))
    if pa.types.is_date32(target):
        values = values.astype(np.int32)
    elif pa.types.is_boolean(target):
        values = values.astype(bool)
    mask = null if null is not None and null.any() else None
    column = pa.array(values, mask=mask)
    return column if column.type == target else column.cast(target, safe=False)


# --- scalars -----------------------------------------------------------------------------------


def _counting(aggregate: Aggregate) -> Measure:
    """What counts the values of an aggregate."""
    return Measure("count", aggregate.args[0]) if aggregate.args else ROWS


def _counted(aggregate: Aggregate, totals: Totals, scope: WindowTotals) -> np.ndarray:
    return np.asarray(totals.of(_counting(aggregate))[scope.groups])


def _count(aggregate: Aggregate, totals: Totals, scope: WindowTotals) -> pa.Array:
    return pa.array(_counted(aggregate, totals, scope))


def _sum(aggregate: Aggregate, totals: Totals, scope: WindowTotals) -> pa.Array:
    sums = totals.of(Measure("sum", aggregate.args[0]))[..., scope.groups]
    everywhere = totals.everywhere(_counting(aggregate))
    counts = None if everywhere else _counted(aggregate, totals, scope)
    return summed(sums, counts, aggregate.args[0].type, aggregate.type)


def summed(sums: np.ndarray, counts: np.ndarray | None, source: Type, to: Type) -> pa.Array:
    """Sums of a type, NULL where there is nothing to add or where the type cannot hold them.

    Without ``counts`` there is something to add everywhere.
    """
    null = None if counts is None else counts == 0
    if source.name == "DECIMAL":
        empty = [False] * len(sums) if null is None else null.tolist()
        rows = zip(sums.tolist(), empty, strict=True)
        return pa.array([None if none else _decimal(s, to) for s, none in rows], arrow_type(to))
    if source.name == "BIGINT":
        high = sums[0] + (sums[1] >> 32)
        beyond = (high < -(1 << 31)) | (high >= 1 << 31)
        null = beyond if null is None else null | beyond
        sums = (np.where(null, 0, high) << 32) + (sums[1] & 0xFFFFFFFF)
    return typed(sums, null, to)


def _decimal(unscaled: Any, type_: Type) -> Decimal | None:
    """A whole number of last digits as a DECIMAL; NULL when it has too many."""
    if unscaled != unscaled or abs(unscaled) >= 10 ** (type_.precision or 10):
        return None
    return Decimal(unscaled).scaleb(-(type_.scale or 0), _WIDE)


def _average(aggregate: Aggregate, totals: Totals, scope: WindowTotals) -> pa.Array:
    sums = totals.of(Measure("sum", aggregate.args[0]))[..., scope.groups]
    counts = _counted(aggregate, totals, scope)
    if aggregate.args[0].type.name == "DECIMAL":
        return _decimal_average(sums, counts, aggregate.args[0].type, aggregate.type)
    if aggregate.args[0].type.name == "BIGINT":
        sums = sums[0] * float(1 << 32) + sums[1]
    if totals.everywhere(_counting(aggregate)):
        return typed(sums / counts, None, aggregate.type)
    return typed(sums / np.maximum(counts, 1), counts == 0, aggregate.type)


def _decimal_average(
    sums: np.ndarray, counts: np.ndarray, source: Type, to: Type
) -> pa.Array:
    """Exact quotients, rounded half up to the digits of the answer."""

    def quotient(total: Any, count: int) -> Decimal | None:
        if not count or total != total:
            return None
        digit = Decimal(1).scaleb(-(to.scale or 0))
        mean = _WIDE.divide(Decimal(total).scaleb(-(source.scale or 0), _WIDE), Decimal(count))
        with localcontext(_WIDE):
            rounded = mean.quantize(digit)
        return _decimal(int(rounded.scaleb(to.scale or 0, _WIDE)), to)

    pairs = zip(sums.tolist(), counts.tolist(), strict=True)
    return pa.array([quotient(*pair) for pair in pairs], arrow_type(to))


def _extreme(aggregate: Aggregate, totals: Totals, scope: WindowTotals) -> pa.Array:
    arg = aggregate.args[0]
    extreme = Measure("min" if aggregate.function == "MIN" else "max", arg)
    values = totals.of(extreme)[scope.groups]
    if arg.type.name in OBJECTS:
        return pa.array(values.tolist(), arrow_type(aggregate.type))
    return typed(values, _counted(aggregate, totals, scope) == 0, aggregate.type)


def _beside(aggregate: Aggregate, totals: Totals, scope: WindowTotals) -> pa.Array:
    """The value in the least or greatest pair of what it is ordered by, and itself."""
    extreme = Measure("min" if aggregate.function == "MIN_BY" else "max", aggregate.args[0])
    pairs = totals.of(extreme)[scope.groups].tolist()
    values = [None if pair is None else pair["value"] for pair in pairs]
    return pa.array(values, arrow_type(aggregate.type))


def _list(aggregate: Aggregate, totals: Totals, scope: WindowTotals) -> pa.Array:
    """The values of the first pairs; NULL where there are none."""
    listed = Measure("list", aggregate.args[0], int(aggregate.parameters[0]))
    held = totals.of(listed)[scope.groups].tolist()
    values = [[pair["value"] for pair in pairs] if pairs else None for pairs in held]
    return pa.array(values, arrow_type(aggregate.type))


def _spread(aggregate: Aggregate, totals: Totals, scope: WindowTotals) -> pa.Array:
    """The variance of a sample, NULL for fewer than two values, or of all; or its root."""
    count, _, spread = totals.of(Measure("moments", aggregate.args[0]))[:, scope.groups]
    free = 0 if aggregate.function.endswith("_POP") else 1
    null = count <= free
    variance = spread / np.where(null, 1, count - free)
    if aggregate.function.startswith("STDDEV"):
        variance = np.sqrt(variance)
    return typed(variance, null, aggregate.type)


def _kll(aggregate: Aggregate, totals: Totals, scope: WindowTotals) -> pa.Array:
    held = totals.of(Measure("kll", aggregate.args[0]))[scope.groups]
    p = aggregate.parameters[0]
    answers = [None if sketch is None else sketch.get_quantile(p) for sketch in held]
    return pa.array(answers, arrow_type(aggregate.type))


_SCALARS = {
    "COUNT": _count,
    "SUM": _sum,
    "AVG": _average,
    "MIN": _extreme,
    "MAX": _extreme,
    "STDDEV": _spread,
    "STDDEV_POP": _spread,
    "VARIANCE": _spread,
    "VAR_POP": _spread,
    "APPROX_PERCENTILE": _kll,
    "COLLECT_LIST": _list,
    "MAX_BY": _beside,
    "MIN_BY": _beside,
}


# --- frequencies -------------------------------------------------------------------------------


def _distinct(aggregate: Aggregate, totals: Totals, scope: WindowTotals) -> pa.Array:
    held = totals.present & totals.ring.has_value
    counts = np.bincount(totals.ring.key_of[held], minlength=scope.keys)
    return pa.array(counts[scope.groups].astype(np.int64))


def _percentile(aggregate: Aggregate, totals: Totals, scope: WindowTotals) -> pa.Array:
    """As Spark's ``percentile``: position p (n - 1), interpolated between its two neighbours."""
    ring = totals.ring
    assert ring.values is not None
    order = ring.ordered
    counts = (totals.of(ROWS) * ring.has_value)[order]
    upto = np.cumsum(counts)
    numbers = np.bincount(ring.key_of[order], counts, minlength=scope.keys).astype(np.int64)
    number = numbers[scope.groups]
    before = (np.cumsum(numbers) - numbers)[scope.groups]
    position = aggregate.parameters[0] * np.maximum(number - 1, 0)
    low, high = np.floor(position).astype(np.int64), np.ceil(position).astype(np.int64)
    values = ring.numbers[ring.value_of[order]]
    last = max(len(values) - 1, 0)
    at_low, at_high = (
        values[np.minimum(np.searchsorted(upto, before + at, side="right"), last)]
        for at in (low, high))
    between = (high - position) * at_low + (position - low) * at_high
    return typed(np.where((low == high) | (at_low == at_high), at_low, between),
                 number == 0, aggregate.type)


def _topk(aggregate: Aggregate, totals: Totals, scope: WindowTotals) -> pa.Array:
    """The k values that occur most, or with the largest sum; equals by value, ascending.

    NULL is not among them, nor is a value whose sum is NULL.
    """
    ring = totals.ring
    order = ring.ordered
    order = order[(totals.present & ring.has_value)[order]]
    if len(aggregate.args) == 1:
        counts = totals.of(ROWS)[order]
        return _listed(aggregate, totals, scope, order, counts, -counts)
    weight = aggregate.args[1]
    sums = summed(totals.of(Measure("sum", weight))[..., order],
                  totals.of(Measure("count", weight))[order], weight.type, _fields(aggregate)[1])
    valid = np.asarray(sums.is_valid())
    sums, order = sums.filter(pa.array(valid)), order[valid]
    return _listed(aggregate, totals, scope, order, sums, _falling(sums))


def _falling(sums: pa.Array) -> np.ndarray:
    """Numbers that rise as the sums fall, equal where they are equal; NaN is the largest sum."""
    values = np.array(sums.to_pylist(), object) if pa.types.is_decimal(sums.type) else (
        np.asarray(sums))
    return -np.unique(values, return_inverse=True, equal_nan=True)[1].reshape(-1)


def _listed(
    aggregate: Aggregate, totals: Totals, scope: WindowTotals,
    cells: np.ndarray, figures: pa.Array | np.ndarray, rising: np.ndarray,
) -> pa.Array:
    """Lists of the first k cells of each group, given in the order of keys and values."""
    ring = totals.ring
    assert ring.values is not None
    keys = ring.key_of[cells]
    by_figure = _sorted(keys, rising)
    sizes = np.bincount(keys, minlength=scope.keys)
    rank = np.arange(len(cells)) - (np.cumsum(sizes) - sizes)[keys[by_figure]]
    chosen = by_figure[rank < int(aggregate.parameters[0])]
    lengths = np.minimum(sizes, int(aggregate.parameters[0]))[scope.groups]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    target = arrow_type(aggregate.type)
    counted = isinstance(figures, np.ndarray)
    columns = [ring.values.take(ring.value_of[cells[chosen]]),
               pa.array(figures[chosen]) if counted else figures.take(pa.array(chosen))]
    fields = [target.value_type.field(n) for n in range(2)]
    columns = [c.cast(f.type) for c, f in zip(columns, fields, strict=True)]
    structs = pa.StructArray.from_arrays(columns, fields=fields)
    return pa.ListArray.from_arrays(pa.array(offsets), structs, type=target)


def _sorted(keys: np.ndarray, rising: np.ndarray) -> np.ndarray:
    """The order by key and figure; equals stay as they stand.

    Key, figure and place in one number, where 63 bits hold them, sort five times faster.
    """
    if not len(keys):
        return keys
    rising = rising - rising.min()
    figure, place = int(rising.max()).bit_length(), (len(keys) - 1).bit_length()
    if int(keys.max()).bit_length() + figure + place > 63:
        return np.lexsort((rising, keys))
    together = (((keys << figure) | rising) << place) | np.arange(len(keys))
    together.sort()
    return np.asarray(together & ((1 << place) - 1))


def _fields(aggregate: Aggregate) -> tuple[Type, ...]:
    assert aggregate.type.element is not None
    return tuple(field.type for field in aggregate.type.element.fields)


# --- sketches ----------------------------------------------------------------------------------


def _approximate_distinct(aggregate: Aggregate, totals: Totals, scope: WindowTotals) -> pa.Array:
    family = totals.ring.family
    held = totals.present & totals.ring.has_value
    keys, cells = totals.ring.key_of[held], totals.lanes[0][held]
    if family.kind == "hll":
        counts = sketches.hll_estimate(keys, cells, scope.keys, int(family.parameters[0]))
    else:
        counts = sketches.fm_estimate(keys, cells, scope.keys)
    return pa.array(np.rint(counts[scope.groups]).astype(np.int64))


def _f2(aggregate: Aggregate, totals: Totals, scope: WindowTotals) -> pa.Array:
    ring = totals.ring
    assert ring.values is not None
    held = totals.present & ring.has_value
    numbers = ring.numbers[ring.value_of[held]].astype(np.int64)
    estimate = sketches.ams_estimate(
        ring.key_of[held], numbers, totals.lanes[0][held], scope.keys)
    return pa.array(estimate[scope.groups])


def _approximate_topk(
    aggregate: Aggregate, counters: Totals, candidates: Totals, scope: WindowTotals
) -> pa.Array:
    """The candidates of the window's panes with the largest counts in the counters."""
    ring = candidates.ring
    order = ring.ordered
    order = order[(candidates.present & ring.has_value)[order]]
    (hashed,) = (m for m in ring.family.measures if m.kind == "hash")
    cells = sketches.cm_cells(candidates.of(hashed)[order])
    keys = ring.key_of[order]
    seen = [counters.of(ROWS)[counters.ring.find(keys, pa.array(row))] for row in cells]
    counts = np.min(seen, axis=0)
    return _listed(aggregate, candidates, scope, order, counts, -counts)


_CELLS = {
    "COUNT_DISTINCT": _distinct,
    "PERCENTILE": _percentile,
    "TOPK": _topk,
    "APPROX_COUNT_DISTINCT": _approximate_distinct,
    "APPROX_F2": _f2,
}

