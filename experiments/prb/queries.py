"""The query trees of the paper: fifty streams and a merge, and six levels of pairs.

The root lies at depth 0 and merges everything. The paper counts levels from below it, and its
figures come out only if merging at the root is free, so that is how it is read here; `root` asks
for another reading.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.simulator.network import Network
from penstock.simulator.trees import names, tree, zipf

ROOT = "d0.0"
LIKE_OTHERS = -1.0
"""For the cost of the root: drawn like that of every operator."""
STREAMS = 50
"""Fan-out of the tree with a single level, in sections 5.1 and 5.2."""
DEPTH, FAN_OUT = 6, 2
"""Of the tree in sections 5.3 to 5.6, which has 64 streams."""


@dataclass(frozen=True, slots=True)
class Flat:
    """Fifty filters and a merge; each draw has other costs and selectivities."""

    cost_skew: float | None = None
    """Of costs from 1 to 100, towards the cheap; None: all cost 100."""
    selectivity_skew: float | None = None
    """Of selectivities from 0.01 to 1, towards the selective; None: all let everything through."""
    root: float = 0.0

    def network(self, draw: int) -> Network:
        """The tree of a draw."""
        operators = names(1, STREAMS)
        costs, kept = dict.fromkeys(operators, 100.0), dict.fromkeys(operators, 1.0)
        if self.cost_skew is not None:
            costs = _drawn(operators, 1.0, 100.0, self.cost_skew, draw)
        if self.selectivity_skew is not None:
            kept = _drawn(operators, 0.01, 1.0, self.selectivity_skew, draw) | {ROOT: 1.0}
        return tree(1, STREAMS, _with_root(costs, self.root), kept)


@dataclass(frozen=True, slots=True)
class Pairs:
    """A tree of six levels, every operator with two children, of which some are expensive."""

    expensive: tuple[str, ...]
    price: float = 100.0
    root: float = 0.0

    def network(self, draw: int) -> Network:
        """The tree of a draw: the other operators cost whole units from 1 to 10."""
        operators = names(DEPTH, FAN_OUT)
        drawn = np.random.default_rng([draw, 0]).integers(1, 11, len(operators)).astype(float)
        costs = _with_root(dict(zip(operators, drawn.tolist(), strict=True)), self.root)
        return tree(DEPTH, FAN_OUT, costs | dict.fromkeys(self.expensive, self.price))


Query = Flat | Pairs


def leftmost(depth: int) -> tuple[str, ...]:
    """The operator of the leftmost path at a depth.

    >>> leftmost(4)
    ('d4.0',)
    """
    return (f"d{depth}.0",)


def leaves(count: int) -> tuple[str, ...]:
    """So many leaves, from the left.

    >>> leaves(2)
    ('d6.0', 'd6.1')
    """
    return tuple(f"d{DEPTH}.{i}" for i in range(count))


def _drawn(
    operators: list[str], low: float, high: float, skew: float, draw: int
) -> dict[str, float]:
    """From the same random numbers for every skew, so that a curve shows the skew and not luck."""
    values = zipf(low, high, skew, len(operators), np.random.default_rng([draw, 0]))
    return dict(zip(operators, values.tolist(), strict=True))


def _with_root(costs: dict[str, float], root: float) -> dict[str, float]:
    return costs if root == LIKE_OTHERS else costs | {ROOT: root}
