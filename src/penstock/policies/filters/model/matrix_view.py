"""The matrix view: how many profiled rows each predicate drops after those before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from penstock.policies.filters.model.drop_patterns import Bits, Order

Counts = npt.NDArray[np.int64]


class MatrixView:
    """The paper's V, kept up to date as rows enter and leave the profile window.

    The entry [i, j] counts the rows that none of the predicates before place i drops and the one at
    place j does. It is proportional to a conditional drop rate. Only entries at or right of the
    diagonal are kept, and only those that the policy watches.

    The profile window of Figure 6(a), under the order F3 F1 F2 F4 and under the one after it:

    >>> window = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [1, 1, 0, 1], [0, 1, 1, 1], [0, 0, 1, 1],
    ...                    [1, 1, 0, 1]], bool)
    >>> for order in (2, 0, 1, 3), (3, 2, 0, 1):
    ...     print(MatrixView(order, window).counts)
    [[3 3 3 4]
     [0 3 2 2]
     [0 0 0 0]
     [0 0 0 0]]
    [[4 3 3 3]
     [0 1 1 0]
     [0 0 1 0]
     [0 0 0 0]]

    Reference: section 4.2.1 and Figure 3 of the filters paper, whose line 8 must test for 1.
    """

    def __init__(self, order: Sequence[int], rows: Bits, watched: Bits | None = None) -> None:
        """Count all rows of a window."""
        self.order: Order = tuple(order)
        self.watched = every_entry(len(self.order)) if watched is None else watched
        self.counts = self._counted(rows)
        self.updated = 0
        """Entries that were incremented or decremented so far, row by row."""

    def add(self, rows: Bits) -> None:
        """Rows have entered the window."""
        self.counts += self._noted(rows)

    def remove(self, rows: Bits) -> None:
        """Rows have left it."""
        self.counts -= self._noted(rows)

    def _noted(self, rows: Bits) -> Counts:
        counted = self._counted(rows)
        self.updated += int(counted.sum())
        return counted

    def _counted(self, rows: Bits) -> Counts:
        bits = rows[:, self.order]
        reached = np.ones(bits.shape)  # whether a row is left when a place is reached
        reached[:, 1:] -= np.logical_or.accumulate(bits, axis=1)[:, :-1]
        counts: Counts = (reached.T @ bits).astype(np.int64) * self.watched
        return counts


def every_entry(predicates: int) -> Bits:
    """All entries at or right of the diagonal: what A-Greedy watches."""
    return np.triu(np.ones((predicates, predicates), bool))


def unasked(watched: Bits) -> tuple[tuple[int, ...], ...]:
    """By the place at which a profiled row was dropped, the later places to evaluate as well.

    >>> unasked(every_entry(3))
    ((1, 2), (2,), ())
    """
    return tuple(
        tuple(later for later in range(place + 1, len(watched)) if watched[:place + 1, later].any())
        for place in range(len(watched)))
