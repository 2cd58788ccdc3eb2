"""Query trees: many streams that merge on their way to one output.

The leaves lie at the greatest depth and the root, at depth 0, is the output. Every operator is
named by its depth and its number from the left, as ``d2.3``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from penstock.policies.operators import Route, Stage
from penstock.simulator.network import Network
from penstock.simulator.outcomes import Floats

_STEPS = 100


def names(depth: int, fan_out: int) -> list[str]:
    """The operators of a tree, from the root to the leaves, each level from the left.

    >>> names(1, 3)
    ['d0.0', 'd1.0', 'd1.1', 'd1.2']
    """
    return [f"d{level}.{i}" for level in range(depth + 1) for i in range(fan_out**level)]


def tree(
    depth: int,
    fan_out: int,
    cost: Mapping[str, float],
    selectivity: Mapping[str, float] | None = None,
) -> Network:
    """A tree in which every operator merges what its children let out.

    >>> network = tree(1, 2, {"d0.0": 10.0, "d1.0": 10.0, "d1.1": 40.0})
    >>> [(route.id, route.cost) for route in network.routes]
    [('s0', 20.0), ('s1', 50.0)]
    """
    kept = selectivity or {}
    routes = []
    for leaf in range(fan_out**depth):
        way = [f"d{level}.{leaf // fan_out ** (depth - level)}" for level in range(depth, -1, -1)]
        stages = tuple(Stage(name, cost[name], kept.get(name, 1.0)) for name in way)
        routes.append(Route(f"s{leaf}", stages))
    return Network(tuple(routes))


def under(operator: str, depth: int, fan_out: int) -> int:
    """How many leaves lie under an operator: paths that lead through it.

    >>> under("d4.0", depth=6, fan_out=2)
    4
    """
    level = int(operator[1:].split(".")[0])
    return int(fan_out ** (depth - level))


def zipf(
    low: float, high: float, skew: float, count: int, random: np.random.Generator
) -> Floats:
    """Values between two bounds by Zipf's law: a skew of 0 is uniform, more favours small values.

    >>> zipf(1, 100, 0.9, 4, np.random.default_rng(1))
    array([11., 82.,  1., 81.])
    """
    values = np.linspace(low, high, _STEPS)
    weights = 1.0 / np.arange(1, _STEPS + 1) ** skew
    return random.choice(values, count, p=weights / weights.sum())
