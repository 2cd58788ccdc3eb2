"""Sketches: what a hash of a value does to a cell, and how cells become an estimate.

All of them start from a 64-bit hash of the value (Spark's ``xxhash64``, computed in the pane job),
so that panes of different blocks and machines can be merged. At least 95 of 100 answers keep the
error in this table.

| sketch    | cells                   | merge      | error                                     |
|-----------|-------------------------|------------|-------------------------------------------|
| hll       | 4096 registers          | maximum    | 3.25 % of the distinct count, or 1        |
| fm        | 1024 bit maps           | bitwise or | 6 % of the distinct count, or 2           |
| ams       | 5 rows of 1024 counters | sum        | 8.8 % of F2                               |
| count_min | 4 rows of 2048 counters | sum        | 0.14 % of the rows, never below the truth |
| kll       | as DataSketches has it  | its own    | 1.65 % of the ranks                       |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import datasketches
import numpy as np

# --- distinct counts ---------------------------------------------------------------------------

HLL_PRECISION = 12


def hll_precision(parameters: Sequence[float]) -> int:
    """Bits that choose the register: from the standard error asked for, 1.04 / sqrt(2**bits).

    >>> hll_precision(()), hll_precision((0.01,)), hll_precision((0.5,))
    (12, 14, 11)
    """
    if not parameters:
        return HLL_PRECISION
    bits = math.ceil(2 * math.log2(1.04 / parameters[0]))
    return max(11, min(bits, 16))  # 11 leaves 53 bits for the rank, exact in a double


def hll_ranks(rest: np.ndarray, precision: int) -> np.ndarray:
    """The rank of the least remainder of a register: one more than its leading zeros.

    The pane job keeps the least remainder of the hashes in a register, for the least number is the
    one with the most leading zeros. Rank 0 is an empty register.

    >>> hll_ranks(np.array([2**51, 2**50, 1]), 12)
    array([ 1,  2, 52], dtype=uint8)
    """
    bits = np.frexp(rest.astype(np.float64))[1]
    ranks = np.clip(64 - precision - bits + 1, 1, 64 - precision)
    return np.asarray(ranks, np.uint8)


def hll_estimate(keys: np.ndarray, ranks: np.ndarray, groups: int, precision: int) -> np.ndarray:
    """The distinct count of each key, from the ranks of its registers that are not empty.

    Ertl's estimator (New cardinality estimation algorithms for HyperLogLog sketches, 2017), which
    needs no correction for few values.
    """
    registers, highest = 1 << precision, 64 - precision
    cells = keys * (highest + 1) + ranks
    counts = np.bincount(cells, minlength=groups * (highest + 1)).reshape(groups, highest + 1)
    empty = registers - counts[:, 1:].sum(axis=1)
    total = np.zeros(groups)
    for rank in range(highest, 0, -1):
        total = 0.5 * (total + counts[:, rank])
    total += registers * _sigma(empty / registers)
    return registers**2 / (2 * math.log(2) * total)


def _sigma(x: np.ndarray) -> np.ndarray:
    """The sum x + sum of x^(2^k) 2^(k-1): what empty registers weigh; infinite when all are."""
    total, power, factor = x.copy(), x.copy(), 1.0
    for _ in range(64):
        power = power * power
        total += power * factor
        factor *= 2
    return np.where(x == 1.0, np.inf, total)


FM_MAPS = 1024


def fm_estimate(keys: np.ndarray, maps: np.ndarray, groups: int) -> np.ndarray:
    """The distinct count of each key, from its bit maps (Flajolet and Martin, 1983).

    A value sets the bit of its hash's lowest one in the map that the hash names. The lowest bit
    that no value has set shows how many values there were. If they are few, the untouched maps show
    more (linear counting).
    """
    lowest_zero = np.frexp((~maps & (maps + 1)).astype(np.float64))[1] - 1
    mean = np.bincount(keys, lowest_zero, minlength=groups) / FM_MAPS
    many = FM_MAPS * np.interp(mean, *_fm_means())
    empty = FM_MAPS - np.bincount(keys, minlength=groups)
    few = FM_MAPS * np.log(FM_MAPS / np.maximum(empty, 1))
    return np.where(few <= 1.5 * FM_MAPS, few, many)


@cache
def _fm_means() -> tuple[np.ndarray, np.ndarray]:
    """The mean place of the lowest zero, for numbers of values per map.

    Bit j is set by a share of 2**-(j + 1) of the values. All bits below r are set with the product
    of their probabilities, and the mean place is the sum of those products.
    """
    values = np.exp2(np.arange(-4, 40, 1 / 16))
    missing = np.exp(-values / np.exp2(np.arange(1, 50))[:, None])
    return np.cumprod(1 - missing, axis=0).sum(axis=0), values


# --- frequencies -------------------------------------------------------------------------------

AMS_ROWS, AMS_WIDTH = 5, 1024


def ams_estimate(keys: np.ndarray, cells: np.ndarray, sums: np.ndarray, groups: int) -> np.ndarray:
    """The sum of squared frequencies of each key: the median over the rows of counters.

    In every row each value adds its sign to one counter. So the squares of the counters add up to
    F2 in the mean, with a standard error of sqrt(2 / width) of it.
    """
    rows = keys * AMS_ROWS + cells // AMS_WIDTH
    squares = np.bincount(rows, sums.astype(np.float64) ** 2, minlength=groups * AMS_ROWS)
    return np.asarray(np.median(squares.reshape(groups, AMS_ROWS), axis=1))


CM_ROWS, CM_WIDTH = 4, 2048
HEAVY = 0.002
"""The share of a pane's rows that makes a value a candidate.

A value with this share of a window has it in at least one of its panes, whatever blocks brought
them. So the candidates of the panes hold every heavy value of the window.
"""


def cm_cells(hashes: np.ndarray) -> np.ndarray:
    """The counters of values, one line per row, from one hash each (Kirsch, Mitzenmacher).

    >>> cm_cells(np.array([(3 << 32) + 5])).tolist()
    [[5], [2056], [4107], [6158]]
    """
    low, high = hashes & 0xFFFFFFFF, ((hashes >> 32) & 0xFFFFFFFF) | 1
    return np.stack([row * CM_WIDTH + ((low + row * high) & (CM_WIDTH - 1))
                     for row in range(CM_ROWS)])


# --- quantiles ---------------------------------------------------------------------------------

KLL_K = 200
"""The size of a sketch: 1.33 % of the ranks for one quantile (1.65 % for all at once)."""


def kll_read(sketch: bytes | None) -> datasketches.kll_doubles_sketch | None:
    """A sketch as Spark's ``kll_sketch_agg_double`` writes it; None for none or an empty one."""
    if sketch is None:
        return None
    read = datasketches.kll_doubles_sketch.deserialize(sketch)
    return None if read.is_empty() else read


def kll_merge(
    left: datasketches.kll_doubles_sketch | None, right: datasketches.kll_doubles_sketch | None
) -> datasketches.kll_doubles_sketch | None:
    """Both in one; neither is changed, for a pane outlives the scan."""
    if left is None or right is None:
        return right if left is None else left
    merged = datasketches.kll_doubles_sketch(KLL_K)
    merged.merge(left)
    merged.merge(right)
    return merged
