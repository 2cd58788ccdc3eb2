"""Runs of the workload under policies, averaged over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from experiments.aggregates.queries import Load
from harness.program import Progress
from penstock.policies.refresh import Policy, QueryGroup, Task, policy
from penstock.policies.refresh.hybrid import Hybrid
from penstock.policies.refresh.late_pending import LatePending
from penstock.policies.refresh.model.tasks import subgroups
from penstock.simulator.fleet import scatter
from penstock.simulator.outcomes import Floats
from penstock.simulator.refreshes import play

NO_S, AS, CS, HS = "no_sharing", "aggressive", "conservative", "hybrid"
H_LS, H_LP = "hybrid+late", "hybrid+late_pending"
SHORT = {NO_S: "No-S", AS: "AS", CS: "CS", HS: "HS", H_LS: "H-LS", H_LP: "H-LP"}
P_HS, P_LP = "hybrid as in the paper", "hybrid as in the paper+late_pending"
PAPERS = {P_HS: "HS as in the paper", P_LP: "H-LP as in the paper"}
"""Hybrid that weighs schedules as if no task were ever late, whatever happens."""


@dataclass(frozen=True, slots=True)
class PapersHybrid(Hybrid):
    """Counts on the scans that periods share when they coincide, even of tasks that are late."""

    def divide(self, group: QueryGroup) -> tuple[Task, ...]:
        """As if the group were in time."""
        return Hybrid.divide(self, replace(group, late=False))


def named(name: str) -> Policy:
    """A policy of the catalogue, or one of the paper's forms of hybrid."""
    ours = {P_HS: PapersHybrid(), P_LP: LatePending(PapersHybrid())}
    return ours.get(name) or policy(name)


@dataclass(frozen=True, slots=True)
class Case:
    """What a process is asked to run."""

    load: Load
    policy: str
    seed: int


@dataclass(frozen=True, slots=True)
class Found:
    """What is kept of a run."""

    throughput: float
    """Answers per second."""
    latency: float
    """Panes more than asked between two answers, the mean over the queries."""
    tasks: float
    """Tasks, as a part of the sub-groups that the conservative schedule has."""


Runs = Mapping[Case, Found]


@dataclass(frozen=True, slots=True)
class Size:
    """How much is run."""

    queries: tuple[int, ...]
    seeds: int
    seconds: int
    factors: tuple[float, ...]
    """Of the load, where its influence is shown."""
    ratios: tuple[float, ...]
    """Of the price of an answer, likewise."""
    varied: int
    """The number of queries there."""
    cheap: tuple[float, ...]
    """Prices of an answer at which both forms of hybrid are run with every number of queries."""
    live: tuple[int, ...] = ()
    """Numbers of queries that are run on Spark too."""


def run_one(case: Case) -> Found:
    """Run a case."""
    load = case.load.workload(case.seed)
    found = play(load, named(case.policy))
    apart = sum(len(subgroups(group)) for group in load.groups)
    return Found(found.throughput, found.latency, found.tasks / apart)


def run_all(cases: Iterable[Case], progress: Progress) -> Runs:
    """Run every case once, on all cores."""
    # The longest first, so that no core is left with one at the end.
    listed = sorted(dict.fromkeys(cases), key=lambda case: -case.load.queries)
    progress(f"{len(listed)} simulations")
    return dict(zip(listed, scatter(run_one, listed), strict=True))


@dataclass(frozen=True, slots=True)
class Sweep:
    """The same policies over a parameter."""

    name: str
    x: tuple[float, ...]
    loads: tuple[Load, ...]
    """One for each x."""
    policies: tuple[str, ...]
    seeds: int

    def cases(self) -> list[Case]:
        """All runs that are needed."""
        return [Case(load, name, seed)
                for load in self.loads for name in self.policies for seed in range(self.seeds)]

    def mean(self, runs: Runs, name: str, what: str) -> Floats:
        """A figure under a policy over the parameter, averaged over the seeds."""
        return np.array([
            np.mean([getattr(runs[Case(load, name, seed)], what) for seed in range(self.seeds)])
            for load in self.loads])
