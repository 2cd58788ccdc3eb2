"""Several policies on one workload."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from penstock.policies.operators import POLICIES, policy
from penstock.simulator import fleet
from penstock.simulator.comparison import (
    BOUND,
    SimulationOutcome,
    averaged,
    averaged_queries,
    compare,
    has_bound,
    thinned,
)
from penstock.simulator.description import read
from penstock.simulator.host import simulate
from penstock.simulator.scenario import Scenario

EXAMPLE_1 = """
bytes = 100
[queries.q]
operators = [{ cost = 1, selectivity = 0.2 }, { cost = 5 }]
arrivals = { kind = "even", gap = 1, count = 7 }
"""

RANDOM = """
model = "tuples"
[queries.a]
operators = [{ cost = 0.2, selectivity = 0.5 }, { cost = 0.1 }]
latency = 4
arrivals = { kind = "poisson", gap = 3, count = 120, rows = 10 }
[queries.b]
operators = [{ cost = 0.1, selectivity = 0.1 }, { cost = 0.4 }]
arrivals = { kind = "poisson", gap = 5, count = 80, rows = 10 }
"""


def seeds(text: str, count: int = 2) -> list[Scenario]:
    return [read(text, seed=seed) for seed in range(count)]


def test_the_figures_are_those_of_the_paper() -> None:
    found = averaged(compare([read(EXAMPLE_1)], ["fifo", "greedy", "chain"]))
    assert [found[name]["peak"] for name in ("fifo", "greedy", "chain")] == [4.0, 2.2, 2.2]
    assert found["fifo"]["peak_bytes"] == 400.0
    assert found["fifo"]["ratio"] == pytest.approx(4.0 / 2.2)
    assert found["chain"]["ratio"] == pytest.approx(1.0)


def test_the_figures_are_those_of_the_simulation() -> None:
    scenario = read(EXAMPLE_1 + "[overhead]\nschedule = 0.25\npreempt = 0.5")
    (found, _) = compare([scenario], ["greedy"])
    result = simulate(scenario.workload, policy("greedy"), overhead=scenario.overhead)
    latency = result.latencies()
    assert found.figures == {
        "peak": result.peak, "peak_bytes": result.peak * 100, "mean_memory": result.mean_memory,
        "answers": 7, "mean_latency": result.mean_latency,
        "p99_latency": float(np.percentile(latency, 99)), "max_latency": result.max_latency,
        "invocations": result.invocations, "switches": result.switches,
        "preemptions": result.preemptions, "decisions": result.decisions,
        "finished": result.finished}


def test_no_policy_is_below_the_bound() -> None:
    text = EXAMPLE_1.replace('"even", gap = 1, count = 7', '"poisson", gap = 2, count = 200')
    found = averaged(compare(seeds(text), list(POLICIES)))
    assert list(found) == [*POLICIES, BOUND]
    assert min(figures["ratio"] for figures in found.values()) == found[BOUND]["ratio"] == 1.0
    assert all(figures["mean_memory"] >= found[BOUND]["mean_memory"]
               for figures in found.values())


def test_there_is_no_bound_for_random_rows_or_joins() -> None:
    assert has_bound(read(EXAMPLE_1))
    assert not has_bound(read(RANDOM))
    assert [found.policy for found in compare(seeds(RANDOM, 1), ["fifo"])] == ["fifo"]
    join = """
        [queries.j.join]
        left = { cost = 1, matches = 1 }
        right = { cost = 1, matches = 1 }
        [arrivals]
        kind = "even"
        gap = 4
        count = 5"""
    assert not has_bound(read(join))
    assert averaged(compare([read(join)], ["fifo"]))["fifo"]["answers"] == 10


def test_a_policy_that_learns_begins_anew_with_every_run() -> None:
    runs = list(compare([read(RANDOM), read(RANDOM)], ["mixed(latency=3)"]))
    assert runs[0] == runs[1]


# --- queries ---------------------------------------------------------------------------------


def test_every_query_has_its_latency_and_what_it_missed() -> None:
    (run,) = compare([read(RANDOM)], ["rate_based"])
    result = simulate(read(RANDOM).workload, policy("rate_based"))
    own = result.latencies("a")
    assert run.queries["a"] == {
        "answers": len(own), "mean_latency": own.mean(), "max_latency": own.max(),
        "p99_latency": np.percentile(own, 99), "promised": 4.0, "missed": (own > 4.0).sum()}
    assert 0 < run.queries["a"]["missed"] < len(own)
    assert "missed" not in run.queries["b"]
    assert run.figures["missed"] == run.queries["a"]["missed"]


def test_where_nothing_was_promised_nothing_is_missed() -> None:
    (run, _) = compare([read(EXAMPLE_1)], ["fifo"])
    assert "missed" not in run.figures


def test_a_deadline_that_is_just_met_is_not_missed() -> None:
    text = EXAMPLE_1.replace("arrivals", "latency = 8\narrivals")
    (run, _) = compare([read(text)], ["fifo"])
    assert (run.figures["max_latency"], run.figures["missed"]) == (8.0, 0)


def test_a_query_of_many_routes_is_one_line() -> None:
    tree = """
        [queries.t.tree]
        depth = 1
        fan_out = 4
        cost = 1
        [queries.other]
        operators = [{ cost = 1 }]
        [arrivals]
        kind = "even"
        gap = 20
        count = 5"""
    found = averaged_queries(compare([read(tree)], ["fifo"]))
    assert {query: found[query]["fifo"]["answers"] for query in found} == {"t": 20, "other": 5}


def test_a_query_without_answers_has_no_latency() -> None:
    text = EXAMPLE_1.replace("cost = 5", "cost = 5, selectivity = 0")
    (run, _) = compare([read(text)], ["fifo"])
    assert run.queries["q"] == {"answers": 0}


# --- seeds and fleets ------------------------------------------------------------------------


def test_figures_are_averaged_over_seeds() -> None:
    runs = list(compare(seeds(RANDOM, 3), ["fifo", "chain"]))
    assert [(run.policy, run.seed) for run in runs] == [
        (name, seed) for name in ("fifo", "chain") for seed in range(3)]
    found = averaged(runs)
    peaks = [run.figures["peak"] for run in runs if run.policy == "chain"]
    assert len(set(peaks)) > 1
    assert found["chain"]["peak"] == pytest.approx(np.mean(peaks))
    by_query = averaged_queries(runs)
    latencies = [run.queries["b"]["mean_latency"] for run in runs if run.policy == "fifo"]
    assert by_query["b"]["fifo"]["mean_latency"] == pytest.approx(np.mean(latencies))


def test_the_same_file_and_seed_give_the_same_outcome_also_in_other_processes() -> None:
    names = ["fifo", "chain", "mixed(latency=3)", "round_robin"]
    here, again = (list(compare(seeds(RANDOM), names)) for _ in range(2))
    there = list(compare(seeds(RANDOM), names, partial(fleet.scatter, processes=2)))
    assert here == again == there


# --- curves ----------------------------------------------------------------------------------


def test_a_thinned_curve_keeps_its_peak_and_its_order() -> None:
    random = np.random.default_rng(0)
    at = np.sort(random.random(50_000))
    level = random.random(50_000)
    x, y = thinned(at, level)
    assert len(x) <= 300
    assert max(y) == level.max()
    assert x == sorted(x)


def test_a_short_curve_stays_as_it_is() -> None:
    (run, bound) = compare([read(EXAMPLE_1)], ["fifo"])
    at, level = simulate(read(EXAMPLE_1).workload, policy("fifo")).memory()
    assert run.memory == (at.tolist(), level.tolist())
    assert run.latency == ([2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0], [2, 3, 4, 5, 6, 7, 8])
    assert max(bound.memory[1]) == pytest.approx(2.2)


def test_an_outcome_without_a_bound_has_no_ratio() -> None:
    assert averaged([SimulationOutcome("fifo", 0, {"peak": 2.0})]) == {"fifo": {"peak": 2.0}}
