"""Running sums over the panes of a ring: what a window holds is the difference of two of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import numpy as np

FEW = 10_000
"""Cells up to which it is worth it: with more of them the time goes into the numbers themselves,
and running sums would double the memory that they take."""
SPARE = 8
"""Rows beyond half as many again that are made at once, so that few panes are copied often."""


class PrefixSums:
    """Sums of all panes up to each pane, of whole numbers: those of fractions would lose digits.

    >>> running = PrefixSums()
    >>> for pane in (4, 5, 7):
    ...     running.extend(pane, {0: np.array([pane, 1])}, cells=2)
    >>> running.windows(8, [1, 3, 9])[0].tolist()
    [7, 1, 12, 2, 16, 3]
    >>> running.forget(before=5)
    >>> running.windows(8, [1, 3, 9])[0].tolist()
    [7, 1, 12, 2, 12, 2]
    """

    def __init__(self) -> None:
        """No pane yet."""
        self._panes: list[int] = []
        self._sums: dict[int, np.ndarray] = {}
        """By measure; the last axis is the cells, and the one before has a row for each pane."""
        self._first = 0
        """The row before that of the first pane: the sums of what was forgotten."""
        self._room = 0
        """Rows that there are."""

    def __len__(self) -> int:
        return len(self._panes)

    @property
    def last(self) -> int | None:
        """The youngest pane."""
        return self._panes[-1] if self._panes else None

    def extend(self, pane: int, lanes: Mapping[int, np.ndarray], cells: int) -> None:
        """A pane that is younger than all so far."""
        row = self._first + len(self._panes) + 1
        if row >= self._room:
            self._make_room(lanes, cells)
            row = len(self._panes) + 1
        for n, values in lanes.items():
            before, upto = self._sums[n][..., row - 1, :], self._sums[n][..., row, :]
            upto[...] = before
            upto[..., : values.shape[-1]] += values
        self._panes.append(pane)

    def _make_room(self, lanes: Mapping[int, np.ndarray], cells: int) -> None:
        """More rows; those that were forgotten go."""
        used = len(self._panes) + 1
        self._room = used + used // 2 + SPARE
        sums = {n: np.zeros((*values.shape[:-1], self._room, cells), np.int64)
                for n, values in lanes.items()}
        for n, held in self._sums.items():
            sums[n][..., :used, :] = held[..., self._first : self._first + used, :]
        self._sums, self._first = sums, 0

    def windows(self, end: int, lengths: Sequence[int]) -> WindowSums:
        """The sums of windows that end at a pane (exclusive), until the panes change."""
        last, *firsts = (self._first + bisect_left(self._panes, pane)
                         for pane in (end, *(end - length for length in lengths)))
        return WindowSums(self._sums, last, firsts)

    def forget(self, before: int) -> None:
        """Drop the panes before this one."""
        place = bisect_left(self._panes, before)
        self._first += place
        del self._panes[:place]

    def cut(self, pane: int) -> None:
        """Drop this pane and all younger ones: they have changed."""
        del self._panes[bisect_left(self._panes, pane) :]

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        return sum(sums.nbytes for sums in self._sums.values())


class WindowSums(dict[int, np.ndarray]):
    """The sums of windows by measure, window after window; made on first use."""

    def __init__(self, sums: Mapping[int, np.ndarray], last: int, firsts: Sequence[int]) -> None:
        """Windows from these rows of running sums to the last one."""
        super().__init__()
        self._sums, self._last, self._firsts = sums, last, np.array(firsts)

    def __missing__(self, n: int) -> np.ndarray:
        taken = self._sums[n].take(self._firsts, axis=-2)
        np.subtract(self._sums[n][..., self._last, None, :], taken, out=taken)
        self[n] = taken.reshape(*taken.shape[:-2], -1)
        return self[n]

    def shortest(self, n: int) -> np.ndarray:
        """The sums of the shortest window, which lies within all the others."""
        sums = self._sums[n]
        return np.asarray(sums[..., self._last, :] - sums[..., self._firsts.max(), :])
