"""Rows for eight predicates in correlated pairs, and the predicates themselves.

A row has a column for every predicate, whose lowest bit says whether the predicate keeps it. The
two of a pair agree on four rows of five. A predicate works on its column for as many rounds as it
is told, so that one can be 40 or 400 times as costly as the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

PREDICATES = 8
AGREE = 0.8
ROUNDS = 64
"""Of a cheap predicate: about 0.05 microseconds a row."""
FILES = 4
"""Of a block: both cores have work."""
MODULE = '''
import numpy as np
import pyarrow as pa
import penstock

ROUNDS = {rounds!r}


def worked(values, rounds):
    """Whether each row is kept; it takes as long as the rounds say."""
    values = np.asarray(values).astype(np.uint64)
    mixed = values.copy()
    for _ in range(rounds):
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return ((values & np.uint64(1)) == 1) & (mixed != 1)

'''
_PREDICATE = '''
@penstock.predicate
def p{n}(c):
    return worked(c.to_numpy(zero_copy_only=False), ROUNDS[{n}])

'''


@dataclass(frozen=True, slots=True)
class Load:
    """What all sides filter."""

    blocks: int
    rows: int
    """Of a block."""
    costly: int = 40
    """How many times as costly the first predicate is."""
    keeps: tuple[tuple[float, ...], ...] = ((0.5,) * PREDICATES,)
    """The share of the rows that each predicate keeps; of several, each holds for equal parts of
    the blocks."""

    @property
    def rounds(self) -> list[int]:
        """The work of each predicate."""
        return [ROUNDS * self.costly, *[ROUNDS] * (PREDICATES - 1)]

    @property
    def best(self) -> list[int]:
        """The best order where all keep a half: one of each pair, the others, the costly one."""
        return [1, 2, 4, 6, 3, 5, 7, 0]


def block(load: Load, number: int) -> pa.Table:
    """The rows of a block; the same ones whenever they are asked for."""
    chance = np.random.default_rng([5, number])
    part = min(number, load.blocks - 1) * len(load.keeps) // load.blocks  # others warm up
    keeps = load.keeps[part]
    columns: dict[str, npt.NDArray[np.int32]] = {
        "id": np.arange(number * load.rows, (number + 1) * load.rows, dtype=np.int32)}
    for first in range(0, PREDICATES, 2):
        level = chance.random(load.rows)
        other = np.where(chance.random(load.rows) < 2 * AGREE - 1, level, chance.random(load.rows))
        for number_of, drawn in ((first, level), (first + 1, other)):
            noise = chance.integers(0, 1 << 29, load.rows, dtype=np.int32)
            kept = (drawn < keeps[number_of]).astype(np.int32)
            columns[f"c{number_of}"] = noise * 2 + kept
    return pa.table(columns)


def write(load: Load, folder: Path, first: int = 0, count: int | None = None) -> Path:
    """The blocks, each as some files of equal size."""
    folder.mkdir(parents=True)
    each = load.rows // FILES
    for number in range(first, first + (load.blocks if count is None else count)):
        table = block(load, number)
        for part in range(FILES):
            pq.write_table(table.slice(part * each, each),
                           folder / f"{number:04d}-{part}.parquet")
    return folder


def write_module(load: Load, folder: Path) -> Path:
    """The predicates as a module, `eight`."""
    text = MODULE.format(rounds=load.rounds)
    text += "".join(_PREDICATE.format(n=n) for n in range(PREDICATES))
    (folder / "eight.py").write_text(text)
    return folder


def decisive(load: Load, queries: Sequence[Sequence[int]]) -> float:
    """The share of the rows for which only the costly predicate can say if some query wants them.

    No order spares a row of these: all other predicates of a query that asks for it keep the row.
    """
    table = block(load, 0)
    bits = [(table[f"c{n}"].to_numpy() & 1).astype(bool) for n in range(PREDICATES)]
    asking = [[bits[n] for n in wanted if n] for wanted in queries if 0 in wanted]
    return float(np.logical_or.reduce([np.logical_and.reduce(one) for one in asking]).mean())


def kept(load: Load, wanted: list[int]) -> int:
    """How many rows of all blocks some predicates keep."""
    found = 0
    for number in range(load.blocks):
        table = block(load, number)
        bits = [table[f"c{n}"].to_numpy() & 1 for n in wanted]
        found += int(np.logical_and.reduce(bits).sum())
    return found
