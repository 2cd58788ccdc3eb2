"""Pipelined filters in virtual time: rows pass predicates in an order that adapts.

Time is counted in probes, the work of the cheapest predicate on one row. Rows come in blocks, and
the policy is asked between two of them, as on Spark. The same `AdaptiveOrder` decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from math import ceil, sqrt
from typing import Protocol

import numpy as np

from penstock.policies.filters import (
    AdaptiveOrder,
    Decision,
    DropPatterns,
    FilterPredicate,
    Policy,
    ProfileBatch,
    ProfileRequest,
)
from penstock.policies.filters.model.drop_patterns import Bits, Floats, Order

AGREEMENT = 0.8
"""Two filters of a group have the same result for this share of the rows."""


class FilterModel(Protocol):
    """Filters as chance has them."""

    @property
    def costs(self) -> tuple[float, ...]:
        """By filter: probes per row."""

    def drawn(self, rng: np.random.Generator, rows: int) -> Bits:
        """By row and filter: whether the filter drops the row."""


@dataclass(frozen=True, slots=True)
class CorrelatedFilters:
    """Filters in groups: those of one group are alike, those of different groups independent.

    For every row a group has a result of its own, which each of its filters either copies or
    replaces by chance. That gives every filter the selectivity of its group, and every two of a
    group the agreement. Where two independent filters agree more often than that, they stay
    independent.

    >>> pair = CorrelatedFilters((1.0, 1.0), keeps=(0.5,), size=2)
    >>> rows = pair.drawn(np.random.default_rng(1), 100_000)
    >>> rows.mean(axis=0).round(2).tolist(), (rows[:, 0] == rows[:, 1]).mean().round(2)
    ([0.5, 0.5], np.float64(0.8))
    >>> pair.patterns.expected_cost((0, 1), np.ones(2))
    1.5

    Reference: section 9.2 of the filters paper, which says how filters agree, not how to draw them.
    """

    costs: tuple[float, ...]
    """By filter: probes per row."""
    keeps: tuple[float, ...]
    """By group: the selectivity of its filters."""
    size: int = 2
    """The correlation factor: filters in a group, of which the last may have fewer."""
    places: tuple[int, ...] = ()
    """By filter: which of the model's filters it is, so that filters can change places."""
    agreement: float = AGREEMENT

    def __post_init__(self) -> None:
        """Every group has a selectivity."""
        assert len(self.keeps) == ceil(len(self.costs) / self.size), "a selectivity per group"
        assert sorted(self._places) == list(range(len(self.costs))), "every filter once"

    @property
    def groups(self) -> tuple[int, ...]:
        """By filter: its group."""
        return tuple(place // self.size for place in self._places)

    def copies(self, group: int) -> float:
        """How likely a filter copies the result of its group."""
        by_chance = self.keeps[group] ** 2 + (1 - self.keeps[group]) ** 2
        return sqrt(max(0.0, self.agreement - by_chance) / (1 - by_chance)) if by_chance < 1 else 0

    def drawn(self, rng: np.random.Generator, rows: int) -> Bits:
        """By row and filter: whether the filter drops the row."""
        keeps = np.array(self.keeps)
        of_groups = rng.random((rows, len(keeps))) >= keeps
        groups = np.array(self.groups)
        copied = np.array([self.copies(group) for group in range(len(keeps))])[groups]
        chance = rng.random((rows, len(groups)))
        own = chance - copied >= keeps[groups] * (1 - copied)  # what is left of the same number
        dropped: Bits = np.where(chance < copied, of_groups[:, groups], own)
        return dropped

    @property
    def patterns(self) -> DropPatterns:
        """Which filters drop together, and how likely: exact, for up to some sixteen filters."""
        members: list[list[int]] = [[] for _ in self.keeps]
        for number, group in enumerate(self.groups):
            members[group].append(number)
        dropped = np.zeros((1, len(self.costs)), bool)
        weights = np.ones(1)
        for group, numbers in enumerate(members):
            kinds = np.array(list(product([False, True], repeat=len(numbers))))
            likely = self._likely(group, kinds)
            dropped = np.repeat(dropped, len(kinds), axis=0)
            dropped[:, numbers] = np.tile(kinds, (len(weights), 1))
            weights = np.outer(weights, likely).ravel()
        return DropPatterns(dropped, weights)

    def _likely(self, group: int, kinds: Bits) -> Floats:
        keep, copies = self.keeps[group], self.copies(group)
        likely = np.zeros(len(kinds))
        for dropped, chance in ((False, keep), (True, 1 - keep)):
            drops = copies * dropped + (1 - copies) * (1 - keep)
            likely += chance * np.where(kinds, drops, 1 - drops).prod(axis=1)
        return likely

    @property
    def _places(self) -> tuple[int, ...]:
        return self.places or tuple(range(len(self.costs)))


@dataclass(frozen=True, slots=True)
class ProfilingPrices:
    """What the upkeep of a profile takes, in probes; filters on profiled rows are counted.

    The defaults make the shares of Table 2 for a drop-profiling probability of 0.01: the window and
    the matrix of 3 and of 8 filters.
    """

    window: float = 0.44
    """Of a profiled row: to note it and its costs, and to let another go."""
    view: float = 0.25
    """Of a profiled row: to update the matrix, whatever its size."""
    entry: float = 0.018
    """Of an entry of the matrix that is incremented or decremented."""
    scan: float = 0.018
    """Of a profiled row, for every line of the matrix that is counted from scratch."""


@dataclass(frozen=True, slots=True)
class FilterLoad:
    """A stream of rows and its filters, whatever the policy."""

    phases: tuple[tuple[int, FilterModel], ...]
    """One after the other: so many rows, under these filters. All have as many filters."""
    written: Order = ()
    """The order in which the filters are written; as they are numbered, if not given."""
    block: int = 1000
    """Rows between two decisions."""
    warm_up: int = 0
    """The first so many rows are not counted."""
    prices: ProfilingPrices = ProfilingPrices()

    @property
    def rows(self) -> int:
        """All of them."""
        return sum(rows for rows, _ in self.phases)


@dataclass(slots=True)
class Filtered:
    """What came of it, in probes."""

    rows: int = 0
    tuples: float = 0.0
    """Filters on rows, in the order of the moment."""
    profiled: float = 0.0
    """The other filters on profiled rows."""
    window: float = 0.0
    view: float = 0.0
    correcting: float = 0.0
    profiled_rows: int = 0
    evaluated: list[int] = field(default_factory=list)
    """By block, of the warm-up too: how many filters were evaluated on its rows."""
    changes: list[tuple[int, Decision]] = field(default_factory=list)
    """New orders, and after how many rows."""
    order: Order = ()
    """The last one."""

    @property
    def probes(self) -> float:
        """All work."""
        return self.tuples + self.overhead

    @property
    def overhead(self) -> float:
        """Profiling, the window, the matrix, and corrections."""
        return self.profiled + self.window + self.view + self.correcting

    @property
    def rate(self) -> float:
        """Rows per thousand probes."""
        return 1000 * self.rows / self.probes if self.probes else 0.0


class FilterSimulation:
    """Plays a load under a policy, or in a fixed order."""

    def __init__(self, load: FilterLoad, policy: Policy | None, seed: int) -> None:
        """Without a policy the order written stays. Rows do not depend on the policy."""
        self.load, self.policy = load, policy
        self.found = Filtered()
        self._rows, self._chance = (np.random.default_rng([seed, stream]) for stream in (0, 1))
        written = load.written or tuple(range(len(load.phases[0][1].costs)))
        self._written = np.array(written)
        self._adaptive = None if policy is None else AdaptiveOrder(
            policy, [FilterPredicate(f"F{number + 1}") for number in written])
        self._done = 0

    def run(self) -> Filtered:
        """Let all rows come."""
        for rows, filters in self.load.phases:
            costs = np.array(filters.costs)[self._written]
            for first in range(0, rows, self.load.block):
                size = min(self.load.block, rows - first)
                dropped = filters.drawn(self._rows, size)[:, self._written]
                self._block(dropped, costs)
        order = self._adaptive.order if self._adaptive else range(len(self._written))
        self.found.order = tuple(int(self._written[place]) for place in order)
        return self.found

    def _block(self, dropped: Bits, costs: Floats) -> None:
        counted = self._done >= self.load.warm_up
        count = dropped.shape[1]
        order = list(self._adaptive.order) if self._adaptive else list(range(count))
        bits = dropped[:, order]
        is_dropped = bits.any(axis=1)
        first = np.where(is_dropped, bits.argmax(axis=1), count - 1)
        until = np.cumsum(costs[order])
        self.found.evaluated.append(int(first.sum()) + len(first))
        if counted:
            self.found.rows += len(dropped)
            self.found.tuples += float(until[first].sum())
        if self._adaptive:
            self._profile(self._adaptive, dropped[is_dropped], first[is_dropped], costs,
                          len(dropped), counted)
        self._done += len(dropped)

    def _profile(
        self, adaptive: AdaptiveOrder, dropped: Bits, first: np.ndarray, costs: Floats, rows: int,
        counted: bool,
    ) -> None:
        request, before = adaptive.request, _upkeep(adaptive)
        sampled = self._chance.random(len(dropped)) < request.probability
        if sampled.any():
            extra = asked_beyond(request)
            known = asked_until(request)[first[sampled]] | extra[first[sampled]]
            adaptive.observe(ProfileBatch(
                dropped[sampled] & known, np.where(known, costs, np.nan),
                passed=(rows - len(dropped)) / len(dropped), version=request.version))
        decided = adaptive.decide()
        if decided:
            self.found.changes.append((self._done + rows, decided))
        if counted and sampled.any():
            updated, scanned = (after - ago for after, ago in
                                zip(_upkeep(adaptive), before, strict=True))
            prices, profiled = self.load.prices, int(sampled.sum())
            self.found.profiled_rows += profiled
            self.found.profiled += float((extra @ costs)[first[sampled]].sum())
            self.found.window += prices.window * profiled
            self.found.view += prices.view * profiled + prices.entry * updated
            self.found.correcting += prices.scan * scanned


def asked_until(request: ProfileRequest) -> Bits:
    """By place and predicate: evaluated on every row that is dropped there."""
    count = len(request.order)
    until = np.zeros((count, count), bool)
    for place, predicate in enumerate(request.order):
        until[place:, predicate] = True
    return until


def asked_beyond(request: ProfileRequest) -> Bits:
    """By place and predicate: evaluated on a profiled row that is dropped there."""
    count = len(request.order)
    beyond = np.zeros((count, count), bool)
    for place, predicates in enumerate(request.unasked):
        beyond[place, list(predicates)] = True
    return beyond


def play_filters(load: FilterLoad, policy: Policy | None = None, seed: int = 0) -> Filtered:
    """Run a policy over a stream, or the order written.

    Of two filters that each drop half of the rows the second is ten times as cheap:

    >>> from penstock.policies.filters import policy
    >>> filters = CorrelatedFilters((10.0, 1.0), keeps=(0.5, 0.5), size=1)
    >>> load = FilterLoad(((100_000, filters),), warm_up=50_000)
    >>> found = play_filters(load, policy("a_greedy"))
    >>> found.order, round(found.tuples / found.rows), round(100 * found.overhead / found.probes)
    ((1, 0), 6, 1)
    >>> round(play_filters(load).probes / 50_000, 1)
    10.5
    """
    return FilterSimulation(load, policy, seed).run()


def _upkeep(adaptive: AdaptiveOrder) -> tuple[int, int]:
    return adaptive.profile.matrix.updated, adaptive.profile.scanned


def permuted(filters: CorrelatedFilters, order: Sequence[int]) -> CorrelatedFilters:
    """The same filters with other selectivities: each takes the part of another in the model."""
    return CorrelatedFilters(filters.costs, filters.keeps, filters.size, tuple(order),
                             filters.agreement)
