"""The filters of the paper, section 9: Table 1, and how they change over time."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from penstock.policies.filters.model.drop_patterns import Order, greedy_order
from penstock.policies.filters.model.exhaustive import exhaustive_order
from penstock.simulator.filters import AGREEMENT, CorrelatedFilters, FilterLoad, permuted

SELECTIVITY, GAMMA = 0.5, 2
"""Table 1. The policies have the rest of it as their defaults."""
SELECTIVITIES = (0.2, 0.4, 0.6, 0.8)
"""By group, where the paper says that selectivities differ and not how."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What a process is asked to run."""

    count: int = 8
    keeps: tuple[float, ...] = (SELECTIVITY,)
    """By group, the last for all further groups."""
    size: int = GAMMA
    costly: float = 1.0
    """Probes of every filter of the second half."""
    rows: int = 0
    warm_up: int = 0
    period: int = 0
    """After so many rows filters exchange their selectivities; 0 is never."""
    mixed: bool = False
    """Whether each group has cheap and costly filters, instead of the one or the other."""
    agreement: float = AGREEMENT
    """Two filters of a group have the same result for this share of the rows."""
    in_a_row: bool = False
    """Whether the filters of a group are written one after the other, instead of in any order."""

    @property
    def model(self) -> CorrelatedFilters:
        """The filters at the beginning."""
        groups = ceil(self.count / self.size)
        keeps = (*self.keeps, *[self.keeps[-1]] * groups)[:groups]
        half = self.count // 2
        costs = (1.0,) * (self.count - half) + (self.costly,) * half
        if self.mixed:
            costs = tuple(self.costly if number % 2 else 1.0 for number in range(self.count))
        return CorrelatedFilters(costs, keeps, self.size, agreement=self.agreement)

    def load(self, seed: int) -> FilterLoad:
        """A stream, under filters that are written in a random order."""
        rng = np.random.default_rng([seed, self.count])
        model, total = self.model, self.rows + self.warm_up
        written = tuple(range(self.count))
        if not self.in_a_row:
            written = tuple(int(number) for number in rng.permutation(self.count))
        phases = [(total, model)]
        if self.period:
            phases = [(min(self.period, total - first), permuted(
                model, rng.permutation(self.count).tolist()))
                for first in range(0, total, self.period)]
        return FilterLoad(tuple(phases), written, warm_up=self.warm_up)


def optimal(model: CorrelatedFilters) -> Order:
    """The cheapest of all orders, by exhaustive search in the true statistics."""
    return exhaustive_order(model.patterns, np.array(model.costs))


def greedy(model: CorrelatedFilters) -> Order:
    """The greedy order of the true statistics."""
    return greedy_order(model.patterns, np.array(model.costs), range(len(model.costs)))
