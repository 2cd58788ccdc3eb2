"""Running sums over the panes of a ring: what a window holds is the difference of two of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

import numpy as np

Sums = dict[int, np.ndarray]
"""By the number of the measure, the sums of all cells."""

FEW = 10_000
"""Cells up to which it is worth it: with more of them the time goes into the numbers themselves,
and running sums would double the memory that they take."""


class Running:
    """Sums of all panes up to each pane, of whole numbers: those of fractions would lose digits.

    >>> running = Running()
    >>> for pane in (4, 5, 7):
    ...     running.extend(pane, {0: np.array([pane, 1])}, cells=2)
    >>> running.windows(8, [1, 3, 9])[0].tolist()
    [[7, 1], [12, 2], [16, 3]]
    >>> running.forget(before=5)
    >>> running.windows(8, [1, 3, 9])[0].tolist()
    [[7, 1], [12, 2], [12, 2]]
    """

    def __init__(self) -> None:
        """No pane yet."""
        self._panes: list[int] = []
        self._upto: list[Sums] = []
        self._forgotten: Sums | None = None
        """The sums up to the last pane that was forgotten; None is nothing."""

    def __len__(self) -> int:
        return len(self._panes)

    def extend(self, pane: int, lanes: Mapping[int, np.ndarray], cells: int) -> None:
        """A pane that is younger than all so far."""
        before = self._upto[-1] if self._upto else self._forgotten
        sums = {}
        for n, values in lanes.items():
            total = np.zeros((*values.shape[:-1], cells), np.int64)
            if before is not None:
                total += before[n]
            total[..., : values.shape[-1]] += values
            sums[n] = total
        self._panes.append(pane)
        self._upto.append(sums)

    def windows(self, end: int, lengths: Sequence[int]) -> Sums:
        """The sums of windows that end at a pane (exclusive); the windows are the first axis."""
        last, firsts = self._before(end), [self._before(end - length) for length in lengths]
        newest = self._upto[-1]
        nothing = {n: np.zeros_like(values) for n, values in newest.items()}
        return {n: (last or nothing)[n] - np.stack([(first or nothing)[n] for first in firsts])
                for n in newest}

    def _before(self, pane: int) -> Sums | None:
        place = bisect_left(self._panes, pane)
        return self._upto[place - 1] if place else self._forgotten

    def forget(self, before: int) -> None:
        """Drop the panes before this one."""
        place = bisect_left(self._panes, before)
        if place:
            self._forgotten = self._upto[place - 1]
            del self._panes[:place], self._upto[:place]

    def cut(self, pane: int) -> None:
        """Drop this pane and all younger ones: they have changed."""
        place = bisect_left(self._panes, pane)
        del self._panes[place:], self._upto[place:]

    def newer(self, panes: Sequence[int]) -> Sequence[int]:
        """Those of some panes, ascending, that it has not taken in."""
        return panes if not self._panes else panes[bisect_right(panes, self._panes[-1]):]

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        return sum(values.nbytes for sums in self._upto for values in sums.values())
