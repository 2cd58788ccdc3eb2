"""Where LocalSwaps stops: a reason for what it finds in Fig. 14, from exact statistics."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from experiments.filters.workload import optimal
from penstock.policies.filters import LocalSwaps
from penstock.policies.filters.model.exhaustive import survivors_of_sets
from penstock.simulator.filters import CorrelatedFilters

_POLICY = LocalSwaps()


def stops(model: CorrelatedFilters) -> tuple[int, float]:
    """At how many of all orders LocalSwaps swaps nothing, and the cost of the worst over the least.

    >>> stops(CorrelatedFilters((1.0, 1.0, 9.0), keeps=(0.5, 0.5)))
    (2, 1.0)
    """
    left, costs = survivors_of_sets(model.patterns), np.array(model.costs)
    orders = np.array(list(permutations(range(len(costs)))))
    before = np.cumsum(1 << orders, axis=1) - (1 << orders)  # the filters in front, as a set
    reached, own = left[before], costs[orders]
    ahead = (reached[:, :-1] - left[before[:, 1:]]) / own[:, :-1]
    swapped = left[before[:, :-1] | 1 << orders[:, 1:]]
    behind = (reached[:, :-1] - swapped) / own[:, 1:]
    total = (reached * own).sum(axis=1)
    saved = (reached[:, 1:] - reached[:, :-1]) * own[:, 1:] + (
        reached[:, :-1] - swapped) * own[:, :-1]
    swaps = (ahead < _POLICY.alpha * behind) & (saved > _POLICY.gain * total[:, None])
    best = model.patterns.expected_cost(optimal(model), costs) * model.patterns.total
    staying = total[~swaps.any(axis=1)]
    return len(staying), float(round(staying.max() / best, 9))
