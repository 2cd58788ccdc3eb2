"""A fan-out: many branches over one stream as a few shapes and one table of constants.

Every row of the stream computes each key once and looks all of them up in the table. There it finds
the members that may want it, with their constants. The shape of the member then decides exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.arrow import arrow_type
from penstock.model import Branch, Type, Value
from penstock.plan import Key, Shape
from penstock.planning.check import MEMBER
from penstock.planning.grids import Grid, grid
from penstock.planning.keys import Candidate, candidates, choose, code, tagged
from penstock.planning.operations import INTEGRAL
from penstock.planning.shapes import take

CODE, SHAPE = "@code", "@shape"
"""Columns of the table, besides `MEMBER`; the constants follow as @0, @1, ..."""


@dataclass(frozen=True, slots=True)
class TaggedKey:
    """A key with its tag, and for ranges the grid of bins."""

    key: Key
    tag: int
    grid: Grid | None = None


@dataclass(frozen=True, slots=True)
class FanoutEntry:
    """A row of constants, and the codes under which it is filed."""

    member: int
    shape: int
    constants: tuple[Value, ...]
    codes: Sequence[int]


@dataclass(frozen=True, slots=True)
class Fanout:
    """Everything that Spark needs to evaluate many branches in one pass."""

    keys: tuple[TaggedKey, ...]
    shapes: tuple[Shape, ...]
    slots: tuple[tuple[int, ...], ...]
    """For each shape, the constant column that holds each of its parameters."""
    constants: tuple[Type, ...]
    """Types of the constant columns."""
    riders: tuple[tuple[int, ...], ...]
    """For each shape, the positions of the branches that have it."""
    entries: tuple[FanoutEntry, ...]
    table: pa.Table
    """The same, one row per code."""


def fan_out(branches: Sequence[Branch]) -> Fanout:
    """Group branches by shape and file them under keys."""
    chosen = choose([candidates(branch) for branch in branches])
    keys = _tagged_keys(chosen)
    taken = [take(branch, c.key, c.listed) for branch, c in zip(branches, chosen, strict=True)]
    riders: dict[Shape, list[int]] = {}
    for member, (shape, _) in enumerate(taken):
        riders.setdefault(shape, []).append(member)
    shapes = tuple(riders)
    slots, constants = _columns(shapes)
    entries = tuple(_entries(riders, taken, chosen, {look.key: look for look in keys}))
    return Fanout(
        keys=keys,
        shapes=shapes,
        slots=slots,
        constants=constants,
        riders=tuple(map(tuple, riders.values())),
        entries=entries,
        table=_table(entries, slots, constants),
    )


def _tagged_keys(chosen: Sequence[Candidate]) -> tuple[TaggedKey, ...]:
    ranges: dict[Key, list[tuple[float, float]]] = {}
    for candidate in chosen:
        ranges.setdefault(candidate.key, []).append((candidate.low, candidate.high))
    return tuple(
        TaggedKey(key, tag, grid(bounds, whole=_is_whole(key)) if key.kind == "range" else None)
        for tag, (key, bounds) in enumerate(ranges.items())
    )


def _is_whole(key: Key) -> bool:
    return key.expression is not None and key.expression.type.name in (*INTEGRAL, "DATE")


def _columns(shapes: Sequence[Shape]) -> tuple[tuple[tuple[int, ...], ...], tuple[Type, ...]]:
    """Let the n-th parameter of a type share a column with those of other shapes."""
    columns: dict[tuple[Type, int], int] = {}
    slots = []
    for shape in shapes:
        used: dict[Type, int] = {}
        mine = []
        for type_ in shape.parameters:
            nth = used.get(type_, 0)
            used[type_] = nth + 1
            mine.append(columns.setdefault((type_, nth), len(columns)))
        slots.append(tuple(mine))
    return tuple(slots), tuple(type_ for type_, _ in columns)


def _entries(
    riders: dict[Shape, list[int]],
    taken: Sequence[tuple[Shape, tuple[tuple[Value, ...], ...]]],
    chosen: Sequence[Candidate],
    keys: dict[Key, TaggedKey],
) -> Iterator[FanoutEntry]:
    for number, members in enumerate(riders.values()):
        for member in members:
            codes = _codes(chosen[member], keys[chosen[member].key])
            rows = taken[member][1]
            if chosen[member].listed is None:
                yield FanoutEntry(member, number, rows[0], codes)
            else:  # one code for each listed constant
                for row, filed in zip(rows, codes, strict=True):
                    yield FanoutEntry(member, number, row, [filed])


def _codes(candidate: Candidate, key: TaggedKey) -> list[int]:
    if candidate.listed is not None:
        return [code(literal, key.tag) for literal in candidate.listed.literals]
    if key.grid is not None:
        bins = key.grid.bins(candidate.low, candidate.high)
        return [tagged(number, key.tag) for number in bins]
    return [tagged(0, key.tag)]


def _table(
    entries: Sequence[FanoutEntry], slots: Sequence[Sequence[int]], constants: Sequence[Type]
) -> pa.Table:
    values: list[list[Value]] = [[None] * len(entries) for _ in constants]
    for row, entry in enumerate(entries):
        for slot, value in zip(slots[entry.shape], entry.constants, strict=True):
            values[slot][row] = value
    columns = {
        MEMBER: pa.array([entry.member for entry in entries], pa.int32()),
        SHAPE: pa.array([entry.shape for entry in entries], pa.int32()),
        **{f"@{n}": pa.array(column, arrow_type(type_))
           for n, (column, type_) in enumerate(zip(values, constants, strict=True))},
    }  # fmt: skip
    times = np.array([len(entry.codes) for entry in entries], dtype=np.int64)
    repeated = pa.table(columns).take(pa.array(np.repeat(np.arange(len(entries)), times)))
    codes = pa.array([filed for entry in entries for filed in entry.codes], pa.int64())
    return repeated.add_column(0, CODE, codes)
