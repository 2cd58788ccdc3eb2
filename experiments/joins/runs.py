"""Runs of the workload under policies, averaged over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from experiments.joins.workload import RATES, Streams
from harness.program import Progress
from penstock.policies.joins import policy
from penstock.policies.joins.base import Decision, View
from penstock.policies.joins.mqt import MaximumQueryThroughput
from penstock.simulator.fleet import scatter
from penstock.simulator.joins import play_join

LWO, SWF, MQT = "lwo", "swf", "mqt"
POLICIES = (LWO, SWF, MQT)
SMALLER_FIRST = "mqt with ties to the smaller window"


@dataclass(frozen=True, slots=True)
class SmallerFirst(MaximumQueryThroughput):
    """MQT, but of equal throughputs it takes that of the outer which has scanned least."""

    def choose(self, view: View) -> Decision | None:
        """As MQT does, with the view turned round."""
        return MaximumQueryThroughput.choose(self, replace(view, waiting=view.waiting[::-1]))


@dataclass(frozen=True, slots=True)
class Case:
    """What a process is asked to run."""

    streams: Streams
    policy: str
    seed: int


@dataclass(frozen=True, slots=True)
class Found:
    """What is kept of a run."""

    mean: float
    """Seconds that pairs took to reach a query, the mean over the queries."""
    per_pair: float
    """The same, the mean over all pairs of all queries."""
    means: tuple[float, ...]
    """By window."""
    longest: tuple[float, ...]
    """By window: the longest that a pair took."""
    waiting: float
    """The most rows that waited to go on, as a part of the join buffers."""
    held: float
    """The most pairs that were held back, as a part of the join buffers."""
    held_rows: float
    """The most rows whose pairs were held back, as a part of the join buffers."""


Runs = Mapping[Case, Found]


@dataclass(frozen=True, slots=True)
class Size:
    """How much is run."""

    outers: int
    seeds: int
    bursts: tuple[float, ...]
    loads: tuple[float, ...]
    """Of the machine, where the influence of that is shown."""


def run_one(case: Case) -> Found:
    """Run a case."""
    streams = case.streams
    chosen = SmallerFirst() if case.policy == SMALLER_FIRST else policy(case.policy)
    found = play_join(streams.drawn(case.seed), chosen)
    buffers = 2 * RATES[streams.method] * max(streams.windows)
    some = [found.responses[length] for length in streams.windows]
    return Found(found.mean_of(streams.listed), found.mean_pair(streams.listed),
                 tuple(one.mean for one in some), tuple(one.longest for one in some),
                 found.waiting_peak / buffers, found.held_peak / buffers,
                 found.held_rows_peak / buffers)


def run_all(cases: Iterable[Case], progress: Progress) -> Runs:
    """Run every case once, on all cores."""
    listed = list(dict.fromkeys(cases))
    progress(f"{len(listed)} simulations")
    return dict(zip(listed, scatter(run_one, listed), strict=True))


@dataclass(frozen=True, slots=True)
class Sweep:
    """The policies over a parameter."""

    name: str
    x: tuple[str, ...]
    loads: tuple[Streams, ...]
    """One for each x."""
    seeds: int
    policies: tuple[str, ...] = POLICIES

    def cases(self) -> list[Case]:
        """All runs that are needed."""
        return [Case(streams, name, seed)
                for streams in self.loads for name in self.policies for seed in range(self.seeds)]

    def mean(self, runs: Runs, name: str, what: str = "mean") -> np.ndarray:
        """A figure under a policy over the parameter, averaged over the seeds.

        Figures by window have a row for each x.
        """
        return np.array([np.mean([getattr(runs[Case(streams, name, seed)], what)
                                  for seed in range(self.seeds)], axis=0)
                         for streams in self.loads])

    def most(self, runs: Runs, name: str, what: str) -> float:
        """The largest that a figure becomes anywhere."""
        return max(np.max(getattr(runs[Case(streams, name, seed)], what))
                   for streams in self.loads for seed in range(self.seeds))
