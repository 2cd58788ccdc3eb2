"""Measures in Arrow: the values of a column as numbers, and what is kept of them for each cell.

It is shipped to Python workers by value and imports nothing else of Penstock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Kept:
    """A measure of the rows of a cell."""

    kind: str
    """rows, count, sum, min, max, moments, or bits, which combines whole numbers by OR."""
    column: str
    """The column that is measured; empty for rows."""
    type: pa.DataType
    """The type of its column in the pane table."""


def kind_of(kept: Kept) -> str:
    """How it is measured: a sum depends on the type of its column."""
    if kept.kind == "sum" and pa.types.is_struct(kept.type):
        return "halves"
    return "decimals" if kept.kind == "sum" and pa.types.is_decimal(kept.type) else kept.kind


# --- values ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Numbers:
    """Values as arrays of numbers, with what is needed for NULL and for the way back."""

    arrays: tuple[np.ndarray, ...]
    valid: np.ndarray | None
    """Whether each value is not NULL; None if no value is NULL."""
    back: Callable[[np.ndarray], pa.Array] | None = None
    """The function from numbers back to values, if the numbers stand for something else."""

    def of(self, rows: np.ndarray) -> Numbers:
        """The numbers of some rows."""
        return Numbers(tuple(a[rows] for a in self.arrays), None, self.back)


def whole_numbers(array: pa.Array) -> pa.Array | None:
    """Whole numbers that are equal exactly where the values are; None if there are none."""
    type_ = array.type
    if pa.types.is_timestamp(type_):
        return array.view(pa.int64())
    if pa.types.is_date32(type_):
        return array.view(pa.int32()).cast(pa.int64())
    if pa.types.is_integer(type_) or pa.types.is_boolean(type_):
        return array.cast(pa.int64())
    return None


def from_whole(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Whole numbers as values of a type."""
    if pa.types.is_date32(type_):
        return values.cast(pa.int32()).view(type_)
    return values.view(type_) if pa.types.is_timestamp(type_) else values.cast(type_)


def known(array: pa.Array) -> np.ndarray | None:
    """Whether each value is not NULL; None if no value is NULL."""
    return np.asarray(array.is_valid()) if array.null_count else None


def _filled(array: pa.Array) -> np.ndarray:
    return np.asarray(array.fill_null(0) if array.null_count else array)


def _no_numbers(array: pa.Array) -> Numbers:
    return Numbers((), known(array))


def _doubles(array: pa.Array) -> Numbers:
    return Numbers((_filled(array).astype(np.float64),), known(array))


def _integers(array: pa.Array) -> Numbers:
    return Numbers((_filled(array),), known(array))


def _halves(array: pa.Array) -> Numbers:
    """High and low 32 bits, whose sums are exact in doubles."""
    values = _filled(array)
    return Numbers(((values >> 32).astype(np.float64), (values & _LOW).astype(np.float64)),
                    known(array))


_LOW = 0xFFFFFFFF


def _limbs(array: pa.Array) -> Numbers:
    """Decimals as whole numbers of their last digit, with 32 of the 128 bits in each array."""
    words = np.frombuffer(array.buffers()[1], np.int32, 4 * len(array), 16 * array.offset)
    limbs = words.reshape(-1, 4)
    low = [limbs[:, n].view(np.uint32).astype(np.float64) for n in range(3)]
    return Numbers((*low, limbs[:, 3].astype(np.float64)), known(array))


def _ordered(array: pa.Array) -> Numbers:
    """Whole numbers in Spark's order of the values: NaN is above all."""
    type_, valid = array.type, known(array)
    if pa.types.is_floating(type_):
        values = _filled(array).astype(np.float64) + 0.0
        bits = np.where(np.isnan(values), _NAN, values.view(np.int64))
        return Numbers((_flipped(bits),), valid, lambda found: pa.array(
            _flipped(found).view(np.float64)).cast(type_))
    whole = whole_numbers(array)
    if whole is not None:
        return Numbers((_filled(whole),), valid, lambda found: from_whole(pa.array(found), type_))
    found = array.dictionary_encode()
    order = np.asarray(pc.array_sort_indices(found.dictionary))
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    codes = _filled(found.indices)
    return Numbers((places[codes] if len(places) else codes.astype(np.int64),), valid,
                    lambda places: found.dictionary.take(pa.array(order[places])))


_NAN = 0x7FF8000000000000
"""The bits of the one NaN that stands for all."""


def _flipped(bits: np.ndarray) -> np.ndarray:
    """The bits of doubles as whole numbers in the same order, and back."""
    return np.asarray(bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF))


NUMBERS: dict[str, Callable[[pa.Array], Numbers]] = {
    "count": _no_numbers,
    "sum": _doubles,
    "halves": _halves,
    "decimals": _limbs,
    "moments": _doubles,
    "min": _ordered,
    "max": _ordered,
    "bits": _integers,
}


# --- measures ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cells:
    """Values and the cells they belong to."""

    places: np.ndarray
    values: Numbers
    size: int
    held: np.ndarray
    """The cells that are asked for."""

    def counts(self) -> np.ndarray:
        """How many values each cell has."""
        return np.asarray(np.bincount(self.places, minlength=self.size)[self.held])

    def sums(self) -> list[np.ndarray]:
        """The sums of each array."""
        return [np.bincount(self.places, values, self.size)[self.held]
                for values in self.values.arrays]

    def merged(self, ufunc: np.ufunc, neutral: int) -> np.ndarray:
        """The result of a function over each cell's values."""
        found = np.full(self.size, neutral, np.int64)
        ufunc.at(found, self.places, self.values.arrays[0])
        return np.asarray(found[self.held])


def _count(cells: Cells, type_: pa.DataType) -> pa.Array:
    return pa.array(cells.counts())


def _sum(cells: Cells, type_: pa.DataType) -> pa.Array:
    (found,) = cells.sums()
    kind = np.float64 if pa.types.is_floating(type_) else np.int64
    return pa.array(found.astype(kind), mask=cells.counts() == 0)


def _high_and_low(cells: Cells, type_: pa.DataType) -> pa.Array:
    halves = [pa.array(half.astype(np.int64)) for half in cells.sums()]
    return pa.StructArray.from_arrays(halves, fields=list(type_))


def _decimals(cells: Cells, type_: pa.DataType) -> pa.Array:
    """Sums of decimals, NULL where they have more than 38 digits."""
    limbs = [limb.astype(np.int64) for limb in cells.sums()]
    for n in range(3):
        limbs[n + 1] += limbs[n] >> 32
        limbs[n] &= _LOW
    beyond = limbs[3] != limbs[3].astype(np.int32)
    high = (limbs[3] << 32) | limbs[2]
    for n in np.flatnonzero((np.abs(high) >= _MOST >> 64) & ~beyond).tolist():
        low = (int(limbs[1][n]) << 32) | int(limbs[0][n])
        beyond[n] = abs((int(high[n]) << 64) + low) >= _MOST
    words = np.stack([(limbs[1] << 32) | limbs[0], high], axis=1)
    valid = pa.array(~beyond).buffers()[1] if beyond.any() else None
    return pa.Array.from_buffers(type_, len(words), [valid, pa.py_buffer(words)])


_MOST = 10**38


def _moments(cells: Cells, type_: pa.DataType) -> pa.Array:
    """Count, mean and the sum of squared deviations from it."""
    (values,) = cells.values.arrays
    counts = np.bincount(cells.places, minlength=cells.size).astype(np.float64)
    means = np.bincount(cells.places, values, cells.size) / np.maximum(counts, 1.0)
    apart = values - means[cells.places]
    spread = np.bincount(cells.places, apart * apart, cells.size)
    parts = [pa.array(found[cells.held], pa.float64()) for found in (counts, means, spread)]
    return pa.StructArray.from_arrays(parts, fields=list(type_))


def _extreme(ufunc: np.ufunc, neutral: int) -> Callable[[Cells, pa.DataType], pa.Array]:
    def found(cells: Cells, type_: pa.DataType) -> pa.Array:
        some = cells.counts() > 0
        assert cells.values.back is not None
        values = cells.values.back(cells.merged(ufunc, neutral)[some])
        at = pa.array(np.cumsum(some) - 1, mask=~some)
        return values.take(at).cast(type_)

    return found


def _bits(cells: Cells, type_: pa.DataType) -> pa.Array:
    found = cells.merged(np.bitwise_or, 0)
    return pa.array(np.where(found == 0, 1, found))  # the cell of NULL has rows


_BOUNDS = np.iinfo(np.int64)
MEASURES: dict[str, Callable[[Cells, Any], pa.Array]] = {
    "count": _count,
    "sum": _sum,
    "halves": _high_and_low,
    "decimals": _decimals,
    "moments": _moments,
    "min": _extreme(np.minimum, _BOUNDS.max),
    "max": _extreme(np.maximum, _BOUNDS.min),
    "bits": _bits,
}
