"""Runs of the filters under policies, averaged over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.filters.workload import Filters, optimal
from harness.program import Progress
from penstock.policies.filters import policy
from penstock.simulator.filters import play_filters
from penstock.simulator.fleet import scatter

A_GREEDY, SWEEP, INDEPENDENT, SWAPS = "a_greedy", "sweep", "independent", "local_swaps"
ADAPTIVE = (A_GREEDY, SWEEP, INDEPENDENT, SWAPS)
OPTIMAL = "optimal"
"""The cheapest order from the beginning, for filters that never change."""
EVERY = 2000
"""Rows between two points of a timeline."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a process is asked to run."""

    filters: Filters
    policy: str
    seed: int


@dataclass(frozen=True, slots=True)
class Found:
    """What is kept of a run; work in probes per row."""

    rate: float
    """Rows per thousand probes."""
    tuples: float
    profiled: float
    window: float
    view: float
    correcting: float
    total: float
    """Probes of the whole run."""
    changes: int
    timeline: tuple[int, ...]
    """Filters evaluated per 2000 rows, from the beginning, if something changes."""

    @property
    def probes(self) -> float:
        """All work per row."""
        return self.tuples + self.overhead

    @property
    def overhead(self) -> float:
        """Work per row that is not done on rows in the order of the moment."""
        return self.profiled + self.window + self.view + self.correcting

    @property
    def share(self) -> float:
        """The part of the work that the overhead is."""
        return self.overhead / self.probes


Runs = Mapping[Case, Found]


@dataclass(frozen=True, slots=True)
class Size:
    """How much is run."""

    seeds: int
    rows: int
    """Measured per run, after as many to converge."""
    counts: tuple[int, ...]
    """Of filters."""
    workload: int
    """Rows of Figs 19 to 21."""
    periods: tuple[int, ...]
    instances: int
    """Random conjunctions, for greedy's distance from the optimum."""
    blocks: int
    """Of 400,000 rows, on Arrow, after as many to converge."""


def run_one(case: Case) -> Found:
    """Run a case."""
    load = case.filters.load(case.seed)
    if case.policy == OPTIMAL:
        load = replace(load, written=optimal(case.filters.model))
    chosen = None if case.policy == OPTIMAL else policy(case.policy)
    found = play_filters(load, chosen, case.seed)
    evaluated = np.array(found.evaluated if case.filters.period else [])
    per_point = EVERY // load.block
    points = evaluated[:len(evaluated) // per_point * per_point].reshape(-1, per_point).sum(axis=1)
    parts = (part / found.rows for part in (
        found.tuples, found.profiled, found.window, found.view, found.correcting))
    return Found(found.rate, *parts, found.probes, len(found.changes), tuple(points.tolist()))


def run_all(cases: Iterable[Case], progress: Progress) -> Runs:
    """Run every case once, on all cores."""
    listed = list(dict.fromkeys(cases))
    progress(f"{len(listed)} simulations")
    return dict(zip(listed, scatter(run_one, listed), strict=True))


@dataclass(frozen=True, slots=True)
class Sweeping:
    """Policies over a parameter."""

    name: str
    x: tuple[float, ...]
    filters: tuple[Filters, ...]
    """One for each x."""
    policies: tuple[str, ...]
    seeds: int
    limits: Mapping[str, float]
    """By policy, the last x at which it is run; all, if not given."""

    def cases(self) -> list[Case]:
        """All runs that are needed."""
        return [Case(filters, name, seed) for x, filters in zip(self.x, self.filters, strict=True)
                for name in self.policies if x <= self.limits.get(name, x)
                for seed in range(self.seeds)]

    def values(self, runs: Runs, name: str, what: str) -> np.ndarray:
        """A figure under a policy: a line for each x, a column for each seed."""
        return np.array([[getattr(runs[Case(filters, name, seed)], what)
                          for seed in range(self.seeds)] for filters in self._of(name)])

    def points(self, name: str) -> tuple[float, ...]:
        """The x at which a policy is run."""
        return tuple(x for x in self.x if x <= self.limits.get(name, x))

    def _of(self, name: str) -> Sequence[Filters]:
        return self.filters[:len(self.points(name))]


def sweeping(
    name: str, x: Sequence[float], filters: Sequence[Filters], policies: Sequence[str], seeds: int,
    **limits: float,
) -> Sweeping:
    """Policies over a parameter."""
    return Sweeping(name, tuple(x), tuple(filters), tuple(policies), seeds, limits)


