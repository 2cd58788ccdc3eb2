"""Values as small numbers: arrays are indexed by numbers, and keys are anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.arrow import arrow_type
from penstock.model import BIGINT, Type

_LOW = (1 << 32) - 1


class Dictionary:
    """Numbers distinct values from 0 on, in the order in which they come.

    NULL is a value, NaN equals itself and -0.0 is 0.0, as in Spark's GROUP BY.

    >>> sites = Dictionary(Type("STRING"))
    >>> sites.codes(pa.array(["b", None, "a", "b"]))
    array([0, 1, 2, 0])
    >>> sites.values.to_pylist()
    ['b', None, 'a']
    """

    def __init__(self, type_: Type) -> None:
        """No value is known."""
        self.values: pa.Array = pa.array([], arrow_type(type_))
        self._known = _comparable(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def codes(self, array: pa.Array) -> np.ndarray:
        """The numbers of values, given to those that come for the first time."""
        array = _plain(array).cast(self.values.type)
        comparable = _comparable(array)
        found = pc.index_in(comparable, value_set=self._known)
        if found.null_count:
            self._learn(array, comparable, found.is_null())
            found = pc.index_in(comparable, value_set=self._known)
        return np.asarray(found).astype(np.int64)

    def find(self, array: pa.Array) -> np.ndarray:
        """The numbers of values, -1 for those never seen."""
        comparable = _comparable(_plain(array).cast(self.values.type))
        found = pc.index_in(comparable, value_set=self._known)
        return np.asarray(found.fill_null(-1)).astype(np.int64)

    def _learn(self, array: pa.Array, comparable: pa.Array, fresh: pa.Array) -> None:
        first = _firsts(comparable.filter(fresh))
        self.values = pa.concat_arrays([self.values, _zeroed(array.filter(fresh).take(first))])
        self._known = pa.concat_arrays([self._known, comparable.filter(fresh).take(first)])

    def take(self, codes: np.ndarray) -> pa.Array:
        """The values behind numbers."""
        return self.values.take(pa.array(codes))

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        return int(self.values.nbytes)


def _plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _zeroed(array: pa.Array) -> pa.Array:
    """Without -0.0, which adding zero makes 0.0, and with one NaN of the many there are."""
    if pa.types.is_floating(array.type):
        nan = pa.scalar(np.nan, array.type)
        return pc.if_else(pc.is_nan(array), nan, pc.add(array, pa.scalar(0.0, array.type)))
    return array


def _comparable(array: pa.Array) -> pa.Array:
    """What Arrow can look up, equal where Spark finds the values equal."""
    if pa.types.is_nested(array.type):
        return pa.array([repr(value) for value in array.to_pylist()], pa.string())
    if pa.types.is_null(array.type):
        return array.cast(pa.int8())
    return _zeroed(array)


def _firsts(array: pa.Array) -> pa.Array:
    """Where each distinct value stands first."""
    codes = np.asarray(array.dictionary_encode(null_encoding="encode").indices)
    return pa.array(np.sort(np.unique(codes, return_index=True)[1]))


def ranks(values: pa.Array) -> np.ndarray:
    """The place of each value in Spark's order: NaN is above all numbers.

    >>> ranks(pa.array([2.0, float("nan"), -1.0]))
    array([1, 2, 0])
    """
    if pa.types.is_nested(values.type):
        listed = [in_order(value) for value in values.to_pylist()]
        order = np.array(sorted(range(len(listed)), key=listed.__getitem__), np.int64)
    else:
        order = np.asarray(pc.array_sort_indices(values))
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places


def in_order(value: Any) -> Any:
    """Something that sorts as Spark sorts an array or a struct: by their parts, NULL first.

    >>> sorted([[2], [1, 5], [1, None], [1]], key=in_order)
    [[1], [1, None], [1, 5], [2]]
    """
    if value is None:
        return (0,)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return (1, [in_order(part) for part in value])
    return (1, value != value, 0 if value != value else value)


class Keys:
    """Numbers the distinct rows of some columns.

    >>> keys = Keys([Type("INT"), Type("STRING")])
    >>> keys.ids([pa.array([7, 7, 8]), pa.array(["x", "y", "x"])], 3)
    array([0, 1, 2])
    >>> [column.to_pylist() for column in keys.take(np.array([2, 0]))]
    [[8, 7], ['x', 'x']]
    """

    def __init__(self, types: Sequence[Type]) -> None:
        """No row is known; without columns there is one, number 0."""
        self._types = tuple(types)
        self._columns = [Dictionary(type_) for type_ in types]
        self._pairs = [Dictionary(BIGINT) for _ in types[1:]]
        self._seen = 0

    def __len__(self) -> int:
        if not self._columns:
            return self._seen
        return len(self._pairs[-1] if self._pairs else self._columns[0])

    def ids(self, columns: Sequence[pa.Array], rows: int) -> np.ndarray:
        """The numbers of rows, given to those that come for the first time."""
        if not columns:
            self._seen = max(self._seen, min(rows, 1))
            return np.zeros(rows, np.int64)
        codes = [d.codes(column) for d, column in zip(self._columns, columns, strict=True)]
        ids = codes[0]
        for pairs, more in zip(self._pairs, codes[1:], strict=True):
            ids = pairs.codes(pa.array(packed(ids, more)))
        return ids

    def take(self, ids: np.ndarray) -> list[pa.Array]:
        """The columns of the rows behind numbers."""
        taken: list[pa.Array] = []
        for pairs, column in zip(self._pairs[::-1], self._columns[:0:-1], strict=True):
            ids, codes = unpacked(np.asarray(pairs.values)[ids])
            taken.append(column.take(codes))
        taken += [column.take(ids) for column in self._columns[:1]]
        return taken[::-1]

    def kept(self, ids: np.ndarray) -> Keys:
        """Only these rows, renumbered in this order."""
        fresh = Keys(self._types)
        fresh.ids(self.take(ids), len(ids))
        return fresh

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        return sum(d.nbytes for d in (*self._columns, *self._pairs))


def packed(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Two numbers below 2**32 in one."""
    return np.asarray((left << 32) | right)


def unpacked(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two numbers of `packed`."""
    return pairs >> 32, pairs & _LOW
