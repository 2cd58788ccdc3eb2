"""Exhaustive: the cheapest of all orders. For tests and figures to compare policies with."""

from __future__ import annotations

import numpy as np

from penstock.policies.filters.model.drop_patterns import DropPatterns, Floats, Order


def exhaustive_order(patterns: DropPatterns, seconds: Floats) -> Order:
    """An order whose expected cost is the least of all.

    What the predicates of a prefix leave does not depend on their order. So the cheapest order of
    each set of predicates follows from those of the sets with one predicate less: 2^n steps instead
    of n!. The problem is NP-hard, so this is for a handful of predicates.

    Greedy may be beaten. Here the third predicate drops the most, but then the others are still
    needed:

    >>> dropped = np.array([[1, 0, 0], [1, 0, 1], [0, 1, 0], [0, 1, 1]], bool)
    >>> from penstock.policies.filters.model.drop_patterns import greedy_order
    >>> patterns, even = DropPatterns(dropped, weights=np.array([2.0, 3.0, 2.0, 3.0])), np.ones(3)
    >>> for order in greedy_order(patterns, even, (0, 1, 2)), exhaustive_order(patterns, even):
    ...     print(order, round(10 * patterns.expected_cost(order, even)))
    (2, 0, 1) 16
    (0, 1, 2) 15
    """
    count = len(seconds)
    left = survivors_of_sets(patterns)
    costs, last = np.full(1 << count, np.inf), np.zeros(1 << count, int)
    costs[0] = 0.0
    for chosen in range(1 << count):
        for predicate in range(count):
            wider = chosen | 1 << predicate
            cost = costs[chosen] + seconds[predicate] * left[chosen]
            # Among equals the predicate that is written later comes last.
            if wider != chosen and (cost, -predicate) < (costs[wider], -last[wider]):
                costs[wider], last[wider] = cost, predicate
    order, chosen = [], (1 << count) - 1
    while chosen:
        order.append(int(last[chosen]))
        chosen ^= 1 << order[-1]
    return tuple(reversed(order))


def survivors_of_sets(patterns: DropPatterns) -> Floats:
    """By set of predicates, as bits of its number, how many rows none of them drops.

    >>> survivors_of_sets(DropPatterns(np.array([[1, 0], [1, 1]], bool), passed=3.0))
    array([5., 3., 4., 3.])
    """
    count = patterns.dropped.shape[1]
    numbers = patterns.dropped @ (1 << np.arange(count))
    rows: Floats = np.bincount(numbers, patterns.weights, minlength=1 << count).astype(float)
    rows[0] += patterns.passed
    # Sum over subsets, one predicate at a time: rows of a pattern count for every wider pattern.
    for predicate in range(count):
        halves = rows.reshape(-1, 2, 1 << predicate)
        halves[:, 1] += halves[:, 0]
    return rows[::-1].copy()  # a set is survived by the patterns within its complement
