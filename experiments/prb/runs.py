"""One run: a query under a load and a policy; and sweeps of runs over a parameter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from experiments.prb.queries import Query
from harness.program import Progress
from penstock.policies.operators import policy
from penstock.simulator.arrivals import poisson
from penstock.simulator.fleet import scatter
from penstock.simulator.host import Overhead, simulate
from penstock.simulator.network import Network
from penstock.simulator.outcomes import Floats
from penstock.simulator.workload import Workload

UTILISATION = 0.9
RR, FIFO, RB, PRB = "round_robin", "fifo", "rate_based", "preemptive_rate_based"


@dataclass(frozen=True, slots=True)
class Load:
    """What is run, whatever the policy."""

    query: Query
    tuples: int
    """Of all streams together."""
    overhead: float = 0.0
    """Time that the processor loses at every transition."""
    room: bool = False
    """Whether arrivals are slower by the overhead that every tuple needs at least."""

    def workload(self, draw: int) -> Workload:
        """The tuples of a draw: Poisson arrivals, each at a stream by chance.

        For every load the random numbers are the same, so that two of them differ by nothing else.
        """
        network = self.query.network(draw)
        random = np.random.default_rng([draw, 1])
        streams = random.integers(len(network.routes), size=self.tuples)
        times = poisson(self._gap(network), self.tuples, random)
        arrivals = {route.id: times[streams == i] for i, route in enumerate(network.routes)}
        return Workload(network, arrivals, model="tuples", seed=draw)

    def _gap(self, network: Network) -> float:
        """Between two arrivals at any stream: the mean work for one tuple, over the utilisation."""
        extra = 2 * self.overhead if self.room else 0.0  # asking the scheduler, and invoking
        work = sum(route.cost + extra * len(route.stages) for route in network.routes)
        return work / len(network.routes) / UTILISATION


@dataclass(frozen=True, slots=True)
class Case:
    """What a process is asked to run."""

    load: Load
    policy: str
    draw: int


@dataclass(frozen=True, slots=True)
class Found:
    """What is kept of a run."""

    response: float
    """The mean, over the tuples that came out."""
    transitions: float
    """Per tuple: operators invoked and preempted, and calls of the scheduler."""


Runs = Mapping[Case, Found]


@dataclass(frozen=True, slots=True)
class Size:
    """How much is run."""

    tuples: int
    """Of all streams together."""
    flat: int
    """Draws of the tree with a single level and of its arrivals."""
    deep: int
    """The same for the tree of six levels."""
    slow: int
    """The same where Round-Robin runs too, which decides anew for every unit of work."""
    skews: tuple[float, ...]
    numbers: tuple[int, ...]
    """Of expensive operators."""
    prices: tuple[float, ...]
    """Of the expensive operator; the paper's range ends at 300."""
    overheads: tuple[float, ...]
    per_stream: int
    """Tuples of each stream where that reading of the stream length is tried."""


def play(case: Case) -> Found:
    """Run a case."""
    load = case.load
    result = simulate(load.workload(case.draw), policy(case.policy),
                      overhead=Overhead.each(load.overhead))
    transitions = result.invocations + result.preemptions + result.decisions
    return Found(result.mean_latency, transitions / load.tuples)


def play_all(cases: Iterable[Case], progress: Progress) -> Runs:
    """Run every case once, on all cores."""
    # The longest first, so that no core is left with one at the end.
    listed = sorted(dict.fromkeys(cases), key=lambda c: (-c.load.tuples, c.policy != RR))
    progress(f"{len(listed)} simulations")
    runs: dict[Case, Found] = {}
    for case, found in zip(listed, scatter(play, listed), strict=True):
        runs[case] = found
        if len(runs) % 200 == 0:
            progress(f"{len(runs)} of them done")
    return runs


@dataclass(frozen=True, slots=True)
class Sweep:
    """The same policies over a parameter, for some draws of trees and arrivals."""

    name: str
    """Of the parameter."""
    x: tuple[float, ...]
    loads: tuple[Load, ...]
    """One for each x."""
    policies: tuple[str, ...]
    draws: int

    def cases(self) -> list[Case]:
        """All runs that are needed."""
        return [Case(load, name, draw)
                for load in self.loads for name in self.policies for draw in range(self.draws)]

    def each(self, runs: Runs, name: str) -> Floats:
        """The mean response time under a policy: a row per draw, a column per x."""
        return np.array([[runs[Case(load, name, draw)].response for load in self.loads]
                         for draw in range(self.draws)])

    def response(self, runs: Runs, name: str) -> Floats:
        """The same, averaged over the draws."""
        mean: Floats = self.each(runs, name).mean(axis=0)
        return mean

    def gains(self, runs: Runs) -> Floats:
        """By how many per cent PRB's response is below RB's: a row per draw, a column per x."""
        percent: Floats = 100 * (1 - self.each(runs, PRB) / self.each(runs, RB))
        return percent


def crossing(x: Iterable[float], above: Iterable[float]) -> float | None:
    """Where a difference turns from positive to negative, on the line between two points.

    >>> crossing([0, 1, 2], [3.0, 1.0, -1.0])
    1.5
    >>> crossing([0, 1], [1.0, 2.0])
    """
    points = list(zip(x, above, strict=True))
    for (x1, y1), (x2, y2) in zip(points, points[1:], strict=False):
        if y1 > 0 >= y2:
            return float(x1 + (x2 - x1) * y1 / (y1 - y2))
    return None
