"""Several policies on one workload: the figures of each, side by side, and their curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

import numpy as np

from penstock.policies.operators import policy
from penstock.policies.operators.model.oracles import Level, clairvoyant
from penstock.simulator.host import simulate
from penstock.simulator.outcomes import Floats
from penstock.simulator.results import Result
from penstock.simulator.scenario import Scenario

BOUND = "bound"
"""Stands where a policy would: the memory that no scheduler can go below, were it clairvoyant."""

_STRETCHES = 300
"""Parts of its time into which a curve is cut; more would only blacken a figure."""

Figures = dict[str, float]
Curve = tuple[list[float], list[float]]


@dataclass(frozen=True, slots=True)
class SimulationTask:
    """One simulation. It carries all it needs, so it can be run anywhere."""

    scenario: Scenario
    policy: str


@dataclass(frozen=True, slots=True)
class SimulationOutcome:
    """What is kept of one simulation: figures and curves of few points, not every block."""

    policy: str
    seed: int
    figures: Figures
    queries: Mapping[str, Figures] = field(default_factory=dict)
    """Figures of latency for each query."""
    memory: Curve = ([], [])
    latency: Curve = ([], [])


Scatter = Callable[
    [Callable[[SimulationTask], SimulationOutcome], Sequence[SimulationTask]],
    Iterable[SimulationOutcome]]
"""Whatever applies a function to many items and gives the answers in their order."""


def compare(
    scenarios: Sequence[Scenario], policies: Sequence[str], scatter: Scatter = map
) -> Iterator[SimulationOutcome]:
    """Every policy on every scenario: the same workload with different seeds.

    If there is one, the clairvoyant bound comes last, as if it were a policy.

    >>> from penstock.simulator.description import read
    >>> example = read('''
    ... [queries.q]
    ... operators = [{ cost = 1, selectivity = 0.2 }, { cost = 5 }]
    ... arrivals = { kind = "even", gap = 1, count = 7 }
    ... ''')
    >>> for found in compare([example], ["fifo", "greedy"]):
    ...     print(found.policy, round(found.figures["peak"], 3))
    fifo 4.0
    greedy 2.2
    bound 2.2
    """
    wanted = [*policies, *([BOUND] if all(map(has_bound, scenarios)) else [])]
    tasks = [SimulationTask(each, name) for name in wanted for each in scenarios]
    return iter(scatter(play, tasks))


def has_bound(scenario: Scenario) -> bool:
    """Whether the bound is known: blocks shrink as expected, and none waits for a partner."""
    workload = scenario.workload
    return workload.model == "divisible" and not workload.network.joins


def play(task: SimulationTask) -> SimulationOutcome:
    """Run one simulation and keep what people look at."""
    scenario = task.scenario
    if task.policy == BOUND:
        return _bound(scenario)
    # The policy is made here, since one that learns must start afresh with every run.
    result = simulate(scenario.workload, policy(task.policy),
                      overhead=scenario.overhead, window=scenario.window)
    queries = _by_query(scenario, result)
    came = [out[0] for out in result.outputs]
    return SimulationOutcome(
        task.policy, scenario.workload.seed, _figures(scenario, result, queries), queries,
        thinned(*result.memory()), thinned(came, result.latencies()))


# --- figures ---------------------------------------------------------------------------------


def _figures(scenario: Scenario, result: Result, queries: Mapping[str, Figures]) -> Figures:
    figures = {
        **_memory(scenario, result.peak, result.mean_memory),
        **_latency(result.latencies()),
        "invocations": result.invocations,
        "switches": result.switches,
        "preemptions": result.preemptions,
        "decisions": result.decisions,
        "finished": result.finished,
    }
    missed = [each["missed"] for each in queries.values() if "missed" in each]
    return figures | ({"missed": sum(missed)} if missed else {})


def _memory(scenario: Scenario, peak: float, mean: float) -> Figures:
    """Memory in rows, and in bytes if the workload says how many a row has."""
    each = scenario.workload.bytes
    in_bytes = {"peak_bytes": peak * each} if each != 1 else {}
    return {"peak": peak, **in_bytes, "mean_memory": mean}


def _by_query(scenario: Scenario, result: Result) -> dict[str, Figures]:
    """For each query the latency of its answers, and how many missed the latency goal."""
    names = [route.id for route in scenario.workload.network.routes]
    on = np.array([out[2] for out in result.outputs], int)
    latencies = result.latencies()
    found = {}
    for query, routes in scenario.routes_of.items():
        own = latencies[np.isin(on, [names.index(route) for route in routes])]
        promised = scenario.promised(query)
        found[query] = _latency(own)
        if isfinite(promised):
            late = own > promised * (1 + 1e-9)  # sums of costs are rounded
            found[query] |= {"promised": promised, "missed": int(late.sum())}
    return found


def _latency(found: Floats) -> Figures:
    if len(found) == 0:
        return {"answers": 0}
    return {"answers": len(found), "mean_latency": float(found.mean()),
            "p99_latency": float(np.percentile(found, 99)), "max_latency": float(found.max())}


def averaged(outcomes: Iterable[SimulationOutcome]) -> dict[str, Figures]:
    """Per policy the figures, averaged over the seeds; the peak also as a multiple of the bound.

    >>> one, two = (SimulationOutcome("fifo", seed, {"peak": 2.0 + seed}) for seed in (0, 1))
    >>> bounds = [SimulationOutcome("bound", seed, {"peak": 2.0}) for seed in (0, 1)]
    >>> averaged([one, two, *bounds])
    {'fifo': {'peak': 2.5, 'ratio': 1.25}, 'bound': {'peak': 2.0, 'ratio': 1.0}}
    """
    listed = list(outcomes)
    bounds = {each.seed: each.figures["peak"] for each in listed if each.policy == BOUND}
    found: dict[str, Figures] = {}
    for name in dict.fromkeys(each.policy for each in listed):
        runs = [each for each in listed if each.policy == name]
        found[name] = mean([run.figures for run in runs])
        if bounds:
            ratios = [run.figures["peak"] / bounds[run.seed] for run in runs]
            found[name]["ratio"] = sum(ratios) / len(ratios)
    return found


def averaged_queries(outcomes: Iterable[SimulationOutcome]) -> dict[str, dict[str, Figures]]:
    """Per query and policy the figures of latency, averaged over the seeds."""
    listed = [each for each in outcomes if each.policy != BOUND]
    policies = dict.fromkeys(each.policy for each in listed)
    queries = dict.fromkeys(query for each in listed for query in each.queries)
    return {query: {name: mean([e.queries[query] for e in listed if e.policy == name])
                    for name in policies} for query in queries}


def mean(runs: Sequence[Figures]) -> Figures:
    """Each figure, averaged over the runs that have it.

    >>> mean([{"a": 1, "b": 2.0}, {"a": 2}])
    {'a': 1.5, 'b': 2.0}
    """
    if len(runs) == 1:
        return dict(runs[0])
    keys = dict.fromkeys(key for run in runs for key in run)
    values = {key: [run[key] for run in runs if key in run] for key in keys}
    return {key: sum(each) / len(each) for key, each in values.items()}


# --- curves ----------------------------------------------------------------------------------


def thinned(x: Sequence[float] | Floats, y: Sequence[float] | Floats) -> Curve:
    """A curve with few points: of many, the highest in each stretch of time.

    >>> thinned([0.0, 1.0, 2.0], [5.0, 1.0, 3.0])
    ([0.0, 1.0, 2.0], [5.0, 1.0, 3.0])
    """
    at, level = np.asarray(x, float), np.asarray(y, float)
    if len(at) > 3 * _STRETCHES:
        edges = np.linspace(at[0], at[-1], _STRETCHES + 1)[1:-1]
        stretches = np.split(np.arange(len(at)), np.searchsorted(at, edges))
        chosen = [int(part[level[part].argmax()]) for part in stretches if len(part)]
        at, level = at[chosen], level[chosen]
    return at.tolist(), level.tolist()


# --- the bound -------------------------------------------------------------------------------


def _bound(scenario: Scenario) -> SimulationOutcome:
    workload = scenario.workload
    routes = workload.network.routes
    rows = {route.id: workload.entering(route.id).tolist() for route in routes}
    times = {route.id: workload.times(route.id).tolist() for route in routes}
    level = clairvoyant(routes, times, rows)
    figures = _memory(scenario, level.peak, _mean_level(level))
    return SimulationOutcome(BOUND, workload.seed, figures, memory=thinned(*level.corners()))


def _mean_level(level: Level) -> float:
    """Averaged over time: trapezoids between the corners."""
    at, amount = map(np.array, level.corners())
    span = at[-1] - at[0] if len(at) else 0.0
    return float(((amount[1:] + amount[:-1]) / 2 * np.diff(at)).sum() / span) if span else 0.0
