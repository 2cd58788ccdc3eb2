"""Lanes: how a measure lies in memory, how two panes of it merge, how a pane table is read.

A lane is an array whose last axis is the cell. Numbers lie in NumPy's own types and merge by
ufuncs; strings, decimals and sketches are objects that merge by a Python function.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.synopses.dictionaries import in_order
from penstock.synopses.families import Family, Measure
from penstock.synopses.sketches import hll_ranks, kll_merge, kll_read

Merge = Callable[[np.ndarray, np.ndarray], np.ndarray]

NESTED = ("ARRAY", "STRUCT")
OBJECTS = ("STRING", "BINARY", "DECIMAL", *NESTED)
"""Types whose least and greatest are kept as Python objects."""
FLOATS = ("FLOAT", "DOUBLE")
_WIDE = Context(prec=80)


@dataclass(frozen=True)
class Lane:
    """How a measure is kept: ``width`` numbers per cell, or one when it is 0."""

    dtype: Any
    merge: Merge
    neutral: Any
    """What merges without effect: the cell of a pane that has no row there."""
    read: Callable[[pa.Array], np.ndarray]
    """A column of a pane table, neutral where NULL."""
    width: int = 0

    def empty(self, cells: int) -> np.ndarray:
        """Cells without rows."""
        shape = (self.width, cells) if self.width else (cells,)
        return np.full(shape, self.neutral, self.dtype)


def lane(measure: Measure, family: Family) -> Lane:
    """The lane of a measure.

    >>> count = lane(Measure("rows"), Family("scalars"))
    >>> count.merge(count.empty(2), count.read(pa.array([3, None])))
    array([3, 0])
    """
    kind, type_ = measure.kind, measure.type.name
    if kind in ("rows", "count", "signs"):
        return Lane(np.int64, np.add, 0, _numbers(np.int64, 0))
    if kind == "sum":
        return _sum(type_)
    if kind in ("min", "max"):
        return _extreme(kind, type_)
    if kind == "rank":
        precision = int(family.parameters[0])
        return Lane(np.uint8, np.maximum, 0, lambda c: hll_ranks(_filled(c, 0), precision))
    if kind == "list":
        return Lane(object, _lists(measure.most), None, _objects)
    return _OTHERS[kind]


def _sum(type_: str) -> Lane:
    if type_ in FLOATS:
        return Lane(np.float64, np.add, 0.0, _numbers(np.float64, 0.0))
    if type_ == "DECIMAL":
        return Lane(object, np.add, 0, _unscaled)
    if type_ == "BIGINT":  # in halves, for even a pane's sum may leave 64 bits and come back
        return Lane(np.int64, np.add, 0, _fields("high", "low"), width=2)
    return Lane(np.int64, np.add, 0, _numbers(np.int64, 0))


def _extreme(kind: str, type_: str) -> Lane:
    least = kind == "min"
    if type_ in NESTED:
        return Lane(object, _FIRST if least else _FINAL, None, _objects)
    if type_ in OBJECTS:
        return Lane(object, _LEAST if least else _GREATEST, None, _objects)
    if type_ in FLOATS:  # NaN is greater than all: fmin passes it by, maximum keeps it
        neutral = np.nan if least else -np.inf
        return Lane(np.float64, np.fmin if least else np.maximum, neutral,
                    lambda column: _numbers(np.float64, neutral)(column) + 0.0)
    bounds = np.iinfo(np.int64)
    end = bounds.max if least else bounds.min
    return Lane(np.int64, np.minimum if least else np.maximum, end, _numbers(np.int64, end))


# --- reading -----------------------------------------------------------------------------------


def _filled(column: pa.Array, neutral: Any) -> np.ndarray:
    return np.asarray(column.fill_null(neutral) if column.null_count else column)


def _numbers(dtype: Any, neutral: Any) -> Callable[[pa.Array], np.ndarray]:
    """Numbers, and what is counted in them: days, microseconds, truth values."""

    def read(column: pa.Array) -> np.ndarray:
        if pa.types.is_date32(column.type):
            column = column.cast(pa.int32())
        column = column.cast(pa.float64() if dtype is np.float64 else pa.int64())
        return _filled(column, neutral).astype(dtype, copy=False)

    return read


def _objects(column: pa.Array) -> np.ndarray:
    array = np.empty(len(column), object)
    array[:] = column.to_pylist()
    return array


def _unscaled(column: pa.Array) -> np.ndarray:
    """Decimals as whole numbers of their last digit.

    A pane without values has the sum 0 here, so that NULL says one thing: 38 digits could not hold
    the sum. It becomes NaN, which stays NaN whatever is added.
    """
    scale = column.type.scale
    array = np.empty(len(column), object)
    array[:] = [np.nan if v is None else int(v.scaleb(scale, _WIDE)) for v in column.to_pylist()]
    return array


def _fields(*names: str) -> Callable[[pa.Array], np.ndarray]:
    def read(column: pa.Array) -> np.ndarray:
        return np.stack([_filled(pc.struct_field(column, name), 0) for name in names])

    return read


# --- merging -----------------------------------------------------------------------------------


def _chosen(better: Callable[[Any, Any], bool]) -> Merge:
    def choose(left: Any, right: Any) -> Any:
        if left is None or right is None:
            return right if left is None else left
        return right if better(right, left) else left

    chosen: Merge = np.frompyfunc(choose, 2, 1)
    return chosen


def _lists(most: int) -> Merge:
    """The least values of two lists that are in order."""

    def join(left: Any, right: Any) -> Any:
        if not left or not right:
            return left or right
        return list(islice(heapq.merge(left, right, key=in_order), most))

    joined: Merge = np.frompyfunc(join, 2, 1)
    return joined


def merged_moments(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Count, mean and sum of squared deviations of two sets in one (Chan, Golub, LeVeque 1979).

    Sums of squares would lose all digits where the deviations are small beside the values.

    >>> merged_moments(np.array([[1.], [1e9], [0.]]), np.array([[1.], [1e9 + 1], [0.]])).tolist()
    [[2.0], [1000000000.5], [0.5]]
    """
    (n, mean, spread), (more, other, others) = left, right
    both = n + more
    share = more / np.maximum(both, 1)
    apart = other - mean
    merged = np.where(more == 0, mean, np.where(n == 0, other, mean + apart * share))
    between = np.where((more == 0) | (n == 0), 0.0, apart * apart * n * share)
    return np.stack([both, merged, spread + others + between])


def _moments(column: pa.Array) -> np.ndarray:
    return _fields("count", "mean", "spread")(column).astype(np.float64)


def _sketches(column: pa.Array) -> np.ndarray:
    array = np.empty(len(column), object)
    array[:] = [kll_read(sketch) for sketch in column.to_pylist()]
    return array


_LEAST, _GREATEST = _chosen(lambda a, b: a < b), _chosen(lambda a, b: a > b)
_FIRST = _chosen(lambda a, b: in_order(a) < in_order(b))
_FINAL = _chosen(lambda a, b: in_order(a) > in_order(b))
_OTHERS = {
    "moments": Lane(np.float64, merged_moments, 0.0, _moments, width=3),
    "kll": Lane(object, np.frompyfunc(kll_merge, 2, 1), None, _sketches),
    "bits": Lane(np.int64, np.bitwise_or, 0, _numbers(np.int64, 0)),
    "hash": Lane(np.int64, np.maximum, np.iinfo(np.int64).min,
                 _numbers(np.int64, np.iinfo(np.int64).min)),
}
