"""Section 8: star joins, on Example 1. Packets pass routers; each stream has an order of its own.

The four streams are joined on the packet's number. All equalities follow from those with one of
them, so the join is a star, and a row of any stream probes the windows of the others until one of
them does not know the packet. That is a conjunction, whose filters overlap as the routes do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations

import numpy as np

from experiments.filters.runs import Size
from experiments.filters.telling import Telling
from penstock.policies.filters import DropPatterns, policy
from penstock.policies.filters.model.drop_patterns import Bits
from penstock.policies.filters.model.exhaustive import exhaustive_order
from penstock.simulator.filters import FilterLoad, play_filters

ROUTERS = 4
ROUTES = tuple(route for length in range(1, ROUTERS + 1)
               for route in permutations(range(ROUTERS), length))
"""Every way on which a packet can pass some routers."""
SPREAD = 0.15
"""The smaller, the fewer routes have most of the traffic (the parameter of a Dirichlet draw)."""


@dataclass(frozen=True, slots=True)
class RouterStream:
    """The rows that one router sends, and the windows of the others as filters."""

    router: int
    traffic: tuple[float, ...]
    """By route: its part of the packets."""
    costs: tuple[float, ...] = field(default=(1.0,) * (ROUTERS - 1), init=False)

    @property
    def others(self) -> tuple[int, ...]:
        """The routers whose windows are probed, in the order written."""
        return tuple(other for other in range(ROUTERS) if other != self.router)

    @property
    def patterns(self) -> DropPatterns:
        """By route through this router: which windows do not know the packet yet."""
        through = [(route, part) for route, part in zip(ROUTES, self.traffic, strict=True)
                   if self.router in route]
        dropped = [[other not in route[:route.index(self.router)] for other in self.others]
                   for route, _ in through]
        return DropPatterns(np.array(dropped, bool), np.array([part for _, part in through]))

    def drawn(self, rng: np.random.Generator, rows: int) -> Bits:
        """Rows of this stream, in any order: windows are far longer than a packet's way."""
        patterns = self.patterns
        assert patterns.weights is not None
        taken = rng.choice(len(patterns.weights), rows, p=patterns.weights / patterns.total)
        dropped: Bits = patterns.dropped[taken]
        return dropped


def traffic(seed: int) -> tuple[float, ...]:
    """How much of the traffic takes each route."""
    drawn = np.random.default_rng([seed, 8]).dirichlet([SPREAD] * len(ROUTES))
    return tuple(drawn.tolist())


def tell(telling: Telling, size: Size) -> None:
    """Probes per row in each stream's own order, beside fixed orders and a tree of joins."""
    listed = [_one(seed, size) for seed in range(4 * size.seeds)]
    found = {name: float(np.mean([one[name] for one in listed])) for name in listed[0]}
    near = np.array([one["a_greedy"] / one["optimal"] for one in listed])
    telling.check("routers", "in a star join every stream settles in about its best order of "
                  "probes", "within 2 % of the best orders in 9 of 10 draws of the traffic",
                  f"{(near <= 1.02).mean():.0%} of {len(near)}; at most {near.max():.3f} times",
                  bool((near <= 1.02).mean() >= 0.9))
    telling.check("routers-written", "one order for all streams costs more",
                  "above every stream's own, the mean over the draws",
                  f"{found['one order'] / found['a_greedy']:.3f} times, as written "
                  f"{found['as written'] / found['a_greedy']:.3f}, the worst "
                  f"{found['worst'] / found['a_greedy']:.3f}",
                  found["one order"] > found["a_greedy"])
    telling.rows("routers", "probes per row", ("in four streams",), {
        name: [value] for name, value in found.items()})


def _one(seed: int, size: Size) -> dict[str, float]:
    """Probes per row over all streams, under one draw of the traffic."""
    parts = traffic(seed)
    streams = [RouterStream(router, parts) for router in range(ROUTERS)]
    rows = np.array([stream.patterns.total for stream in streams])
    settled = [play_filters(FilterLoad(((size.rows // 2, stream),), warm_up=size.rows // 4),
                            policy("a_greedy"), seed) for stream in streams]
    costs = [{order: stream.patterns.expected_cost(order, np.ones(ROUTERS - 1))
              for order in permutations(range(ROUTERS - 1))} for stream in streams]
    best = [costs[router][exhaustive_order(stream.patterns, np.ones(ROUTERS - 1))]
            for router, stream in enumerate(streams)]
    in_one_order = min(
        np.dot(rows, [cost[_own(stream, order)] for stream, cost in zip(streams, costs,
                                                                        strict=True)])
        for order in permutations(range(ROUTERS)))
    of = {"a_greedy": [one.tuples / one.rows for one in settled], "optimal": best,
          "as written": [cost[tuple(range(ROUTERS - 1))] for cost in costs],
          "worst": [max(cost.values()) for cost in costs],
          "tree of joins": [_tree(stream) for stream in streams]}
    means = {name: float(np.dot(rows, each) / rows.sum()) for name, each in of.items()}
    return {**means, "one order": float(in_one_order / rows.sum())}


def _own(stream: RouterStream, order: tuple[int, ...]) -> tuple[int, ...]:
    """The order of a stream's filters, if all streams probe routers in one order."""
    return tuple(stream.others.index(router) for router in order if router != stream.router)


def _tree(stream: RouterStream) -> float:
    """Look-ups per row in ((R1 R2) R3) R4, which stores what the first two and three have found."""
    patterns, total = stream.patterns, stream.patterns.total
    if stream.router == 3:
        return 1.0
    together = (0, 1) if stream.router == 2 else (0,)
    found = patterns.survivors(together) / total
    if stream.router == 2:
        return 1 + found
    return 1 + found + patterns.survivors((0, 1)) / total
