"""Which predicates drop which rows: the statistics behind every order, and what an order costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.bool_]
"""A line for each row or pattern, a column for each predicate in the order written: dropped?"""
Floats = npt.NDArray[np.float64]
Order = tuple[int, ...]
"""Numbers of predicates, the first to be evaluated first."""


@dataclass(frozen=True, slots=True, eq=False)
class DropPatterns:
    """Rows by the set of predicates that drop them. Filters may be correlated in any way.

    Three rows: the first predicate drops one, the second drops two, and four more rows pass.

    >>> patterns = DropPatterns(np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]], bool), passed=4.0)
    >>> patterns.survivors([0]), patterns.survivors([0, 1])
    (6.0, 5.0)
    >>> patterns.expected_cost((1, 2, 0), np.ones(3)) * 7
    16.0
    """

    dropped: Bits
    weights: Floats | None = None
    """How many rows each pattern stands for; one, if not given."""
    passed: float = 0.0
    """Rows that no predicate drops, beside those of a pattern without drops."""

    @property
    def total(self) -> float:
        """All rows."""
        return self.survivors(())

    def survivors(self, predicates: Sequence[int]) -> float:
        """How many rows none of these predicates drops."""
        alive = self._alive(predicates)
        kept = alive.sum() if self.weights is None else self.weights[alive].sum()
        return self.passed + float(kept)

    def drops(self, predicates: Sequence[int], after: Sequence[int] = ()) -> Floats:
        """By predicate, how many of the rows it drops that none of the earlier ones dropped."""
        alive = self._alive(after)
        chosen = self.dropped[alive][:, np.array(predicates, int)]
        weights = np.ones(len(chosen)) if self.weights is None else self.weights[alive]
        counted: Floats = weights @ chosen
        return counted

    def expected_cost(self, order: Sequence[int], seconds: Floats) -> float:
        """Seconds per row, if predicates are evaluated in this order (equation 1 of the paper)."""
        reached = [self.survivors(order[:place]) for place in range(len(order))]
        return float(np.dot(reached, seconds[list(order)])) / self.total if self.total else 0.0

    def _alive(self, predicates: Sequence[int]) -> Bits:
        dropped: Bits = np.logical_or.reduce(self.dropped[:, np.array(predicates, int)], axis=1)
        return ~dropped


def greedy_order(
    patterns: DropPatterns, seconds: Floats, present: Sequence[int], fixed: int = 0
) -> Order:
    """At each place the predicate that drops the most of what is left per second.

    Among equals the present order decides. The first ``fixed`` places stay as they are.

    >>> patterns = DropPatterns(np.array([[1, 0, 1], [1, 0, 1], [0, 1, 0]], bool))
    >>> greedy_order(patterns, np.ones(3), (0, 1, 2))
    (0, 1, 2)
    >>> greedy_order(patterns, np.array([4.0, 3.0, 1.0]), (0, 1, 2))
    (2, 1, 0)
    """
    order, left = list(present[:fixed]), list(present[fixed:])
    while left:
        rates = patterns.drops(left, order) / seconds[left]
        order.append(left.pop(int(np.argmax(rates))))  # argmax keeps the first of equals
    return tuple(order)
