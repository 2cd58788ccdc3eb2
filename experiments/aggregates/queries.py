"""The paper's workload: eight groups of aggregates over a stream of packets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import expm1, log1p

import numpy as np

from penstock.policies.refresh import Costs, QueryGroup, WindowQuery, policy
from penstock.simulator.refreshes import Refreshing

VALUES = {"source": 1000, "destination": 1000, "protocol": 100, "port": 100}
"""Distinct values of each field at the low rate; twice as many at the high one."""
GROUPS = (("source",), ("destination",), ("source", "destination"), ("protocol",), ("port",),
          ("protocol", "port"), ("source", "protocol"), ("destination", "port"))
"""The paper has eight groups and names six; the last two are ours."""
RATE = 1500
SHORTEST, LONGEST = 20, 100
SECONDS = 200


@dataclass(frozen=True, slots=True)
class Load:
    """A point of the figures, whatever the policy."""

    queries: int
    high: bool
    ratio: float
    """What it costs to look at a value for an answer, as a part of merging a value of a pane."""
    factor: float
    """The part of the processor that the conservative schedule of 40 queries takes at the low rate;
    a faster machine has a lower one."""
    seconds: int = SECONDS
    told: bool = True
    """Whether the policy is told what answers cost; otherwise it takes all time for scanning."""

    def workload(self, seed: int) -> Refreshing:
        """The queries of a seed, and what their runs cost."""
        speed = capacity(self.ratio) * self.factor
        counted = self.ratio if self.told else 0.0
        groups = drawn(self.queries, self.high, counted, seed, speed)
        cells = {group.id: _cells(group.id, self.high) for group in groups}
        ranks = {group.id: _ranked(group.id, self.high) for group in groups}

        def price(group: str, windows: tuple[int, ...]) -> tuple[float, float]:
            ranked = sum(ranks[group][window] for window in windows)
            scan, answers = speed * cells[group] * max(windows), speed * self.ratio * ranked
            return (scan, answers) if self.told else (scan + answers, 0.0)

        random = np.random.default_rng([seed, 1])
        asked = np.cumsum(random.exponential(1.0, size=2 * self.seconds))
        once = speed * LONGEST  # one value in every pane of the sources
        return Refreshing(groups, price, self.seconds,
                          interruptions=tuple((float(at), once) for at in asked))


def drawn(
    queries: int, high: bool, ratio: float, seed: int, speed: float = 1.0
) -> tuple[QueryGroup, ...]:
    """Groups of random windows and slides; ``speed`` is the seconds for a cell."""
    random = np.random.default_rng([seed, queries])
    return tuple(_group("-".join(fields), queries // len(GROUPS), high, ratio, speed, random)
                 for fields in GROUPS)


def _group(
    id: str, size: int, high: bool, ratio: float, speed: float, random: np.random.Generator
) -> QueryGroup:
    windows = random.integers(SHORTEST, LONGEST + 1, size=size)
    slides = [int(random.integers(1, window // 2 + 1)) for window in windows]
    queries = tuple(WindowQuery(f"{id} {i}", int(window), slide)
                    for i, (window, slide) in enumerate(zip(windows, slides, strict=True)))
    ranked = float(np.mean([_ranked(id, high)[query.window] for query in queries]))
    costs = Costs(read=speed * _cells(id, high), merge=0.0, answer=speed * ratio * ranked)
    return QueryGroup(id, queries, costs=costs)


@lru_cache
def capacity(ratio: float) -> float:
    """Seconds for a cell with which the conservative schedule of 40 queries fills the processor."""
    fair = policy("conservative")
    needs = [sum(fair.cost(group, fair.prepare([group]))
                 for group in drawn(40, False, ratio, seed)) for seed in range(20)]
    return 1 / float(np.mean(needs))


def distinct(values: float, rows: float) -> float:
    """How many of so many equally likely values are expected among so many rows.

    >>> round(distinct(1000, 1500)), round(distinct(1_000_000, 1500))
    (777, 1499)
    """
    return -values * expm1(rows * log1p(-1 / values))


def _values(group: str, high: bool) -> float:
    return float(np.prod([VALUES[field] * (2 if high else 1) for field in group.split("-")]))


def _cells(group: str, high: bool) -> float:
    """Values in a pane."""
    return distinct(_values(group, high), RATE * (2 if high else 1))


@lru_cache
def _ranked(group: str, high: bool) -> tuple[float, ...]:
    """Values in a window, by its length."""
    rows = RATE * (2 if high else 1)
    return tuple(distinct(_values(group, high), rows * n) for n in range(LONGEST + 1))
