"""What reading a synopsis and making an answer cost, measured on two kinds of frequency synopses.

A pane has the bytes per value; a scan adds one pane after the other into totals; an answer looks at
all totals. The paper's prototype was a Java program, so its synopses were hash tables; Penstock's
are arrays.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

VALUES, ROWS, PANES, K = 1000, 1500, 60, 10
"""A synopsis of bytes per source: distinct values, rows in a pane, panes, and the k of a top-k."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Seconds on this machine."""

    cell: float
    """To merge the total of one value of one pane: a of the model."""
    ranked: float
    """To look at one value for an answer, the mean of a top-k and a quantile: b."""

    @property
    def ratio(self) -> float:
        """b / a; how fast the machine is does not matter beyond that, since load is a parameter."""
        return self.ranked / self.cell


def hash_tables(repeat: int = 20) -> Prices:
    """Synopses as hash tables: a lookup for each value of each pane."""
    panes = [dict(zip(values.tolist(), sums.tolist(), strict=True)) for values, sums in _panes()]

    def scan() -> dict[int, int]:
        totals: dict[int, int] = {}
        known = totals.get
        for pane in panes:
            for value, size in pane.items():
                totals[value] = known(value, 0) + size
        return totals

    totals = scan()
    cells = sum(map(len, panes))
    ranked = (_seconds(lambda: heapq.nlargest(K, totals, key=totals.__getitem__), repeat)
              + _seconds(lambda: sorted(totals.values())[len(totals) // 2], repeat)) / 2
    return Prices(_seconds(scan, repeat) / cells, ranked / len(totals))


def arrays(repeat: int = 20) -> Prices:
    """Synopses as arrays: a pane is two columns, its values and their sums."""
    panes = _panes()
    totals = np.zeros(VALUES, dtype=np.int64)

    def scan() -> None:
        totals[:] = 0
        for values, sums in panes:
            totals[values] += sums

    scan()
    cells = sum(len(values) for values, _ in panes)
    ranked = (_seconds(lambda: np.argpartition(totals, VALUES - K), repeat)
              + _seconds(lambda: np.partition(totals, VALUES // 2), repeat)) / 2
    return Prices(_seconds(scan, repeat) / cells, ranked / VALUES)


def _panes() -> list[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(0)
    panes = []
    for _ in range(PANES):
        values, at = np.unique(random.integers(VALUES, size=ROWS), return_inverse=True)
        sizes = random.integers(40, 1500, size=ROWS)
        panes.append((values, np.bincount(at, sizes).astype(np.int64)))
    return panes


def _seconds(work: Callable[[], object], repeat: int) -> float:
    """The best of some: what else runs on the machine only adds."""
    best = float("inf")
    for _ in range(repeat):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best
