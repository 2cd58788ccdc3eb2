"""One run: a query, its traffic, a policy; and the figures that are kept of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from time import perf_counter

import numpy as np

from experiments.chain.queries import BYTES, QUERIES
from experiments.chain.rivals import BOUND, rival
from experiments.chain.traces import Traffic
from penstock.policies.operators import Route, Stage
from penstock.policies.operators.model.oracles import Level, clairvoyant
from penstock.simulator.arrivals import blocks
from penstock.simulator.host import simulate
from penstock.simulator.network import Network
from penstock.simulator.outcomes import Fate, Floats
from penstock.simulator.results import Result
from penstock.simulator.workload import Workload

AVERAGED = 100
"""Latencies are drawn as averages over so many outputs; the paper, with longer runs, has 400."""
_BINS = 500

Series = tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Load:
    """A query and its traffic; the streams of a query share the tuples by chance."""

    query: str
    traffic: Traffic
    model: str = "tuples"
    """Every tuple has its own fate by chance, or shrinks as expected (``divisible``)."""
    group: int = 1
    """Tuples arrive in groups of so many, when the last one of a group came."""
    mistake: float = 0.0
    """The policy is told costs and selectivities that are wrong by up to this part."""
    seed: int = 3


@dataclass(frozen=True, slots=True)
class Job:
    """What a process is asked to run."""

    load: Load
    policy: str


@dataclass(frozen=True, slots=True)
class Found:
    """What is kept of a run; memory in KB (1000 bytes), latencies in milliseconds."""

    peak: float
    mean: float = 0.0
    latency: float = 0.0
    """The worst of all tuples that came out."""
    mean_latency: float = 0.0
    tuples: int = 0
    switches: int = 0
    decisions: int = 0
    wall: float = 0.0
    """Real seconds that the simulation took."""
    memory: Series = ((), ())
    """Seconds, KB: the most in each of some hundred intervals."""
    latencies: Series = ((), ())
    """Seconds, ms: averages over consecutive outputs."""


Runs = dict[Job, Found]


@lru_cache(maxsize=2)
def workload(load: Load) -> Workload:
    """The tuples of a run, with their fates still to be drawn from the seed."""
    network = QUERIES[load.query]()
    times = load.traffic.times()
    if load.group > 1:
        times = np.repeat(blocks(times, load.group), load.group)
    if load.mistake:
        network = _misjudged(network, load)
    streams = np.random.default_rng(11).integers(len(network.routes), size=len(times))
    arrivals = {route.id: times[streams == i] for i, route in enumerate(network.routes)}
    return Workload(network, arrivals, model=load.model, bytes=BYTES, seed=load.seed,
                    name=load.query)


def _misjudged(network: Network, load: Load) -> Network:
    random = np.random.default_rng(load.seed)

    def off(value: float) -> float:
        return value * random.uniform(1 - load.mistake, 1 + load.mistake)

    return replace(network, believed=tuple(
        replace(route, stages=tuple(
            replace(stage, cost=off(stage.cost), selectivity=off(stage.selectivity))
            for stage in route.stages))
        for route in network.routes))


def play(job: Job) -> Found:
    """Run a job."""
    work = workload(job.load)
    if job.policy == BOUND:
        return _bounded(bound(work))
    chosen = rival(job.policy)
    begun = perf_counter()
    result = simulate(work, chosen)
    return _found(result, perf_counter() - begun)


def _found(result: Result, wall: float) -> Found:
    at, level = result.memory()
    waited = result.latencies() * 1e3
    return Found(
        peak=_kb(level.max(initial=0.0)),
        mean=_kb(result.mean_memory),
        latency=float(waited.max(initial=0.0)),
        mean_latency=float(waited.mean()) if len(waited) else 0.0,
        tuples=sum(len(times) for times in result.workload.arrivals.values()),
        switches=result.switches,
        decisions=result.decisions,
        wall=wall,
        memory=_highest(at, level),
        latencies=_averaged(np.array([output[0] for output in result.outputs]), waited),
    )


def bound(work: Workload) -> Level:
    """What nobody can beat who knows not only the future but the fate of every tuple.

    Tuples of one fate are a route of their own, whose chart is what really happens to them.
    """
    arrivals: dict[Fate, list[float]] = {}
    for at, _, fate in work.script():
        arrivals.setdefault(fate, []).append(at)
    routes = [_certain(str(i), fate) for i, fate in enumerate(arrivals)]
    return clairvoyant(
        routes, {route.id: when for route, when in zip(routes, arrivals.values(), strict=True)})


def _bounded(level: Level) -> Found:
    between = np.linspace(level.times[0], level.times[-1], _BINS)  # it falls steadily, not in steps
    at = np.concatenate([level.times, between])
    height = np.concatenate([level.levels, [level.at(time) for time in between.tolist()]])
    order = np.argsort(at, kind="stable")
    return Found(_kb(level.peak), memory=_highest(at[order], height[order]))


def _certain(name: str, fate: Fate) -> Route:
    """The way of a tuple until nothing is left of it."""
    steps = [(rows, kept, work)
             for rows, kept, work in zip(fate.rows, fate.rows[1:], fate.work, strict=False) if rows]
    return Route(name, tuple(Stage(f"{name}.{i}", work / rows, kept / rows)
                             for i, (rows, kept, work) in enumerate(steps)))


def _kb(rows: float) -> float:
    return float(rows) * BYTES / 1000


def _highest(at: Floats, level: Floats) -> Series:
    """The highest level in each interval: a peak is not lost between two points."""
    if not len(at):
        return (), ()
    edges = np.linspace(at[0], at[-1], _BINS)
    starts = np.maximum(np.searchsorted(at, edges, side="right") - 1, 0)
    highest = np.maximum.reduceat(level, starts)
    return tuple(edges.tolist()), tuple((highest * BYTES / 1000).tolist())


def _averaged(at: Floats, waited: Floats) -> Series:
    whole = len(waited) // AVERAGED * AVERAGED
    groups = waited[:whole].reshape(-1, AVERAGED).mean(axis=1)
    return tuple(at[AVERAGED - 1 : whole : AVERAGED].tolist()), tuple(groups.tolist())
