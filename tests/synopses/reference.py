"""Pane tables and answers by plain Python, row by row: slow, and easy to believe."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from hashlib import blake2b
from statistics import pvariance, variance
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa

from penstock.arrow import arrow_type
from penstock.model import Aggregate, Column, Type
from penstock.synopses import Family, Measure
from penstock.synopses import sketches as sk

Row = dict[str, Any]
"""A row by column, with its ``pane``."""


def same(value: Any) -> Any:
    """Something equal for values that Spark finds equal."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        value = list(value.values())
    return tuple(map(same, value)) if isinstance(value, list) else value


def order(value: Any) -> Any:
    """Something that sorts as Spark sorts the values of one type."""
    if value is None:
        return ()
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return tuple((part is not None, order(part)) for part in value)
    return (math.isnan(value), value) if isinstance(value, float) else value


def hash64(value: Any) -> int:
    digest = blake2b(repr(same(value)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


# --- pane tables ---------------------------------------------------------------------------------


def partials(rows: Iterable[Row], family: Family, keys: Sequence[Column]) -> pa.Table:
    """The pane table that the pane job would make of these rows."""
    cells: dict[Any, tuple[list[Any], list[tuple[Row, Any]]]] = {}
    for row in rows:
        for cell, detail in _cells(row, family):
            values = [row["pane"], *(row[key.name] for key in keys), cell]
            identity = tuple(map(same, values))
            cells.setdefault(identity, (values, []))[1].append((row, detail))
    if family.kind == "candidates":
        cells = _heavy(cells)
    return _table(list(cells.values()), family, keys)


def _heavy(cells: dict[Any, Any]) -> dict[Any, Any]:
    totals: Counter[Any] = Counter()
    for identity, (_, found) in cells.items():
        totals[identity[:-1]] += len(found)
    return {identity: held for identity, held in cells.items() if held[0][-1] is not None
            and len(held[1]) >= sk.HEAVY * totals[identity[:-1]]}


def _cells(row: Row, family: Family) -> list[tuple[Any, Any]]:
    if family.kind == "scalars":
        return [(None, None)]
    value = row[family.args[0].name]
    if family.kind in ("frequencies", "candidates"):
        return [(value, None)]
    if value is None:
        return [(None, 1)]
    hashed = hash64(value) % 2**64
    if family.kind == "hll":
        bits = int(family.parameters[0])
        return [(hashed % 2**bits, hashed >> bits)]
    if family.kind == "fm":
        rest = hashed // sk.FM_MAPS
        return [(hashed % sk.FM_MAPS, rest & -rest)]
    if family.kind == "count_min":
        found = sk.cm_cells(np.array([hash64(value)]))[:, 0].tolist()
        return [(None, 1), *((cell, 1) for cell in found)]
    signed = [hash64((hashed, n)) for n in range(sk.AMS_ROWS)]
    return [(None, 1), *((n * sk.AMS_WIDTH + h % sk.AMS_WIDTH, 1 if h >= 0 else -1)
                         for n, h in enumerate(signed))]


def _table(cells: Sequence[Any], family: Family, keys: Sequence[Column]) -> pa.Table:
    columns = {"pane": pa.array([values[0] for values, _ in cells], pa.int64())}
    for n, key in enumerate(keys):
        columns[f"k{n}"] = pa.array([v[1 + n] for v, _ in cells], arrow_type(key.type))
    if family.cell is not None:
        columns["cell"] = pa.array([v[-1] for v, _ in cells], arrow_type(family.cell))
    for n, measure in enumerate(family.measures):
        columns[f"m{n}"] = _measured(measure, [found for _, found in cells]).cast(
            arrow_type(measure.stored))
    return pa.table(columns)


def _measured(measure: Measure, cells: Sequence[list[tuple[Row, Any]]]) -> pa.Array:
    if measure.kind in ("rank", "bits", "signs"):
        merge: Callable[[list[int]], int] = {
            "rank": min, "signs": sum, "bits": lambda all_: int(np.bitwise_or.reduce(all_)),
        }[measure.kind]
        return pa.array([merge([d for _, d in found]) for found in cells], pa.int64())
    if measure.arg is None:
        return pa.array([len(found) for found in cells], pa.int64())
    name = measure.arg.name
    columns = [[row[name] for row, _ in found if row[name] is not None] for found in cells]
    if measure.kind == "list":
        least = [sorted(c, key=order)[: measure.most] for c in columns]
        return pa.array(least, arrow_type(measure.stored))
    return _OF_VALUES[measure.kind](columns, measure.type)


def _sums(columns: list[list[Any]], type_: Type) -> pa.Array:
    if type_.name == "BIGINT":
        halves = [{"high": sum(v >> 32 for v in c), "low": sum(v & 0xFFFFFFFF for v in c)}
                  for c in columns]
        return pa.array(halves, pa.struct({"high": pa.int64(), "low": pa.int64()}))
    if type_.name == "DECIMAL":
        wide = pa.decimal128(min(38, (type_.precision or 10) + 10), type_.scale or 0)
        return pa.array([_exact(c) for c in columns], wide)
    return pa.array([sum(c) if c else None for c in columns],
                    pa.float64() if type_.name in ("FLOAT", "DOUBLE") else pa.int64())


def _exact(values: list[Decimal]) -> Decimal:
    with localcontext(prec=100):
        return sum(values, Decimal(0))


def _moments(columns: list[list[Any]], type_: Type) -> pa.Array:
    kinds = {name: pa.float64() for name in ("count", "mean", "spread")}
    return pa.array([_moment(c) for c in columns], pa.struct(kinds))


def _moment(values: list[Any]) -> dict[str, float]:
    if not values:
        return {"count": 0.0, "mean": 0.0, "spread": 0.0}
    if not all(map(math.isfinite, values)):
        return {"count": float(len(values)), "mean": math.nan, "spread": math.nan}
    exact = [Fraction(v) for v in values]
    mean = sum(exact) / len(exact)
    spread = sum((v - mean) ** 2 for v in exact)
    return {"count": float(len(values)), "mean": float(mean), "spread": float(spread)}


def _kll(columns: list[list[Any]], type_: Type) -> pa.Array:
    made = []
    for values in columns:
        sketch = datasketches.kll_doubles_sketch(sk.KLL_K)
        for value in values:
            sketch.update(float(value))
        made.append(sketch.serialize() if values else None)
    return pa.array(made, pa.binary())


def _ends(best: Callable[..., Any]) -> Callable[[list[list[Any]], Type], pa.Array]:
    return lambda columns, type_: pa.array(
        [best(c, key=order) if c else None for c in columns], arrow_type(type_))


_OF_VALUES: dict[str, Callable[[list[list[Any]], Type], pa.Array]] = {
    "count": lambda columns, type_: pa.array([len(c) for c in columns], pa.int64()),
    "sum": _sums,
    "min": _ends(min),
    "max": _ends(max),
    "moments": _moments,
    "kll": _kll,
    "hash": lambda columns, type_: pa.array([hash64(c[0]) for c in columns], pa.int64()),
}


# --- answers -----------------------------------------------------------------------------------


def answers(
    rows: Iterable[Row],
    keys: Sequence[Column],
    aggregates: Sequence[Aggregate],
    end: int,
    length: int,
) -> dict[Any, list[Any]]:
    """The exact answers of a window, by group."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        if end - length <= row["pane"] < end:
            groups.setdefault(tuple(same(row[key.name]) for key in keys), []).append(row)
    return {key: [_answer(a, held) for a in aggregates] for key, held in groups.items()}


def _answer(aggregate: Aggregate, rows: list[Row]) -> Any:
    if not aggregate.args:
        return len(rows)
    name = aggregate.args[0].name
    values = [row[name] for row in rows if row[name] is not None]
    match aggregate.function:
        case "COUNT":
            return len(values)
        case "COUNT_DISTINCT":
            return len({same(v) for v in values})
        case "SUM":
            return total(values, aggregate.type)
        case "AVG":
            return _mean(values, aggregate.type)
        case "MIN":
            return min(values, key=order, default=None)
        case "MAX":
            return max(values, key=order, default=None)
        case "VARIANCE" | "STDDEV":
            return _variance(values, 2, variance, aggregate.function == "STDDEV")
        case "VAR_POP" | "STDDEV_POP":
            return _variance(values, 1, pvariance, aggregate.function == "STDDEV_POP")
        case "PERCENTILE":
            return _percentile(values, aggregate.parameters[0])
        case "TOPK":
            return _topk(aggregate, rows, name)
        case "MIN_BY" | "MAX_BY" if not values:
            return None
        case "MIN_BY":
            return min(values, key=order)["value"]
        case "MAX_BY":
            return max(values, key=order)["value"]
        case "COLLECT_LIST":
            least = sorted(values, key=order)[: int(aggregate.parameters[0])]
            return [pair["value"] for pair in least] or None
    raise AssertionError(aggregate.function)


def total(values: list[Any], type_: Type) -> Any:
    """A SUM of a type."""
    if not values:
        return None
    if type_.name == "DECIMAL":
        exact = _exact(values)
        held = abs(exact.scaleb(type_.scale or 0)) < 10 ** (type_.precision or 10)
        return exact if held else None
    result = sum(values)
    if type_.name == "BIGINT" and not -(2**63) <= result < 2**63:
        return None
    return result


def _mean(values: list[Any], type_: Type) -> Any:
    if not values:
        return None
    if type_.name != "DECIMAL":
        return sum(values) / len(values)
    with localcontext(prec=100, rounding=ROUND_HALF_UP):
        return (_exact(values) / len(values)).quantize(Decimal(1).scaleb(-(type_.scale or 0)))


def _variance(
    values: list[Any], least: int, form: Callable[[list[Fraction]], Fraction], root: bool
) -> float | None:
    if len(values) < least:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    spread = float(form([Fraction(v) for v in values]))
    return math.sqrt(spread) if root else spread


def _percentile(values: list[Any], p: float) -> float | None:
    if not values:
        return None
    values = sorted(values, key=order)
    position = p * (len(values) - 1)
    low, high = float(values[math.floor(position)]), float(values[math.ceil(position)])
    if math.floor(position) == math.ceil(position) or low == high:
        return low
    return (math.ceil(position) - position) * low + (position - math.floor(position)) * high


def _topk(aggregate: Aggregate, rows: list[Row], name: str) -> list[Any]:
    held: dict[Any, list[Row]] = {}
    for row in rows:
        if row[name] is not None:
            held.setdefault(same(row[name]), []).append(row)
    figures = {}
    for key, found in held.items():
        figure = len(found)
        if len(aggregate.args) == 2:
            weights = [row[aggregate.args[1].name] for row in found]
            figure = total([w for w in weights if w is not None],
                           aggregate.type.element.fields[1].type)
        figures[key] = (found[0][name], figure)
    ranked = [pair for pair in figures.values() if pair[1] is not None]
    ranked.sort(key=lambda pair: order(pair[0]))
    ranked.sort(key=lambda pair: order(pair[1]), reverse=True)
    names = [field.name for field in aggregate.type.element.fields]
    return [dict(zip(names, pair, strict=True)) for pair in ranked[: int(aggregate.parameters[0])]]
