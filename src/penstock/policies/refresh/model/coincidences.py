"""How often tasks of different periods fall due together, and what they then cost, exactly.

The common multiple of several periods soon becomes too large to count through: that of 1 to 50 has
22 digits. So nothing is counted. Which multiples of a period are multiples of none of some others
depends on divisors, and is settled prime by prime.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from math import gcd, prod


def mean_cost(tasks: Iterable[tuple[int, float]]) -> float:
    """The mean cost per pane of tasks (period, cost) in step; of those due, the most costly counts.

    In two of six panes only the task of period 2 is due, in one only that of 3, in one both are:

    >>> round(mean_cost([(2, 9.0), (3, 14.0)]), 2)
    7.67
    """
    total = 0.0
    above: list[int] = []
    for period, cost in sorted(tasks, key=lambda task: (-task[1], task[0])):
        total += cost * alone(period, above)
        above.append(period)
    return total


def alone(period: int, others: Iterable[int]) -> float:
    """The part of all panes that are multiples of this period and of none of the others.

    >>> alone(3, [2]), alone(4, [2])
    (0.16666666666666666, 0.0)
    """
    return spared(primitive(other // gcd(other, period) for other in others)) / period


def primitive(periods: Iterable[int]) -> frozenset[int]:
    """The periods that are no multiple of another one: they have the same multiples.

    >>> sorted(primitive([6, 4, 2, 9, 3]))
    [2, 3]
    """
    kept: list[int] = []
    for period in sorted(set(periods)):
        if all(period % shorter for shorter in kept):
            kept.append(period)
    return frozenset(kept)


@lru_cache(maxsize=1 << 17)
def spared(periods: frozenset[int]) -> float:
    """The part of all panes that are multiples of none of these (primitive) periods.

    >>> round(spared(frozenset([2, 3])), 3), round(spared(frozenset([4, 6])), 3)
    (0.333, 0.667)
    """
    if 1 in periods:
        return 0.0
    shared = Counter(prime for period in periods for prime in factors(period))
    apart = [p for p in periods if all(shared[prime] == 1 for prime in factors(p))]
    left = 1.0 * prod(1 - 1 / p for p in sorted(apart))  # no prime in common: independent
    rest = periods.difference(apart)
    if not rest:
        return left
    # First the panes that the most frequent prime divides, then those that it does not divide.
    prime = max(sorted(shared), key=shared.__getitem__)
    without = frozenset(p for p in rest if p % prime)
    divided = primitive(p // prime if p % prime == 0 else p for p in rest)
    return left * ((1 - 1 / prime) * spared(without) + spared(divided) / prime)


@lru_cache(maxsize=1 << 16)
def factors(number: int) -> tuple[int, ...]:
    """Its prime factors, each once.

    >>> factors(60)
    (2, 3, 5)
    """
    found, rest, divisor = [], number, 2
    while divisor * divisor <= rest:
        if rest % divisor == 0:
            found.append(divisor)
            while rest % divisor == 0:
                rest //= divisor
        divisor += 1
    return tuple(found) + ((rest,) if rest > 1 else ())
