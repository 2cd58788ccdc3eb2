"""The order of one partition, where its rows differ from those of the others (`per_partition`).

This module is shipped to the workers by value, together with `conjunction_worker` and the drop
patterns of the policies.

The engine decides one order for all rows of a path. A task begins with it. As soon as it has
profiled enough rows of its own, it asks what the greedy order for these would save. If that is
material, it goes on in that order until its end. No row is evaluated differently for it: the task
has the same predicates, and only their order changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from penstock.policies.filters.model.drop_patterns import DropPatterns, greedy_order

LEAST = 1e-12
"""Seconds: no predicate is taken to be faster."""


def own_order(
    dropped: npt.NDArray[np.bool_], passed: int, seconds: Sequence[float], saving: float
) -> tuple[int, ...]:
    """The greedy order for some rows, if it saves this part of the cost; else the present one.

    Predicates are told by their present places.

    >>> rows = np.array([[0, 1], [0, 1], [0, 1], [1, 0]], bool)
    >>> own_order(rows, 0, (1.0, 1.0), saving=0.2), own_order(rows, 0, (1.0, 1.0), saving=0.5)
    ((1, 0), (0, 1))
    """
    present = tuple(range(dropped.shape[1]))
    patterns, costs = DropPatterns(dropped, passed=passed), np.maximum(seconds, LEAST)
    order = greedy_order(patterns, costs, present)
    before, after = (patterns.expected_cost(one, costs) for one in (present, order))
    return order if after < before * (1 - saving) else present
