"""A workload's script and the fates of its blocks."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import WorkloadError
from penstock.policies.operators import policy
from penstock.simulator.host import simulate
from penstock.simulator.network import Network, path
from penstock.simulator.outcomes import fates
from penstock.simulator.workload import Workload
from tests.simulator.readings import memory_at

HALF = path("q", [(1.0, 0.5), (2.0, 0.4), (1.0, 1.0)])


# --- the script ------------------------------------------------------------------------------


def test_the_script_is_in_order_of_time_and_then_of_the_plan() -> None:
    network = Network((path("b", [(1.0, 1.0)]), path("a", [(1.0, 1.0)])))
    workload = Workload(network, {"a": np.array([0.0, 2.0]), "b": np.array([1.0, 2.0])})
    assert [(at, route) for at, route, _ in workload.script()] == [
        (0.0, 1), (1.0, 0), (2.0, 0), (2.0, 1)]


def test_a_route_without_arrivals_stays_empty() -> None:
    network = Network((path("a", [(1.0, 1.0)]), path("b", [(1.0, 1.0)])))
    result = simulate(Workload(network, {"a": np.zeros(1)}), policy("fifo"))
    assert (len(result.outputs), result.peak) == (1, 1.0)


def test_a_workload_without_arrivals_ends_at_once() -> None:
    result = simulate(Workload(Network((HALF,)), {}), policy("chain"))
    assert (result.finished, result.peak, result.mean_memory, result.mean_latency) == (0, 0, 0, 0)
    assert np.array_equal(memory_at(result, np.array([0.0, 1.0])), [0.0, 0.0])


def test_another_policy_lets_out_the_same_rows() -> None:
    random = np.random.default_rng(4)
    times = np.cumsum(random.exponential(1.0, 300))
    workload = Workload(Network((HALF,)), {"q": times}, rows=10, model="tuples", seed=8)
    answers = []
    for name in ("fifo", "chain", "round_robin"):
        result = simulate(workload, policy(name))
        answers.append(sorted((arrived, rows) for _, arrived, _, rows in result.outputs))
    assert answers[0] == answers[1] == answers[2]


def test_a_workload_travels_between_processes() -> None:
    workload = Workload(Network((HALF,)), {"q": np.arange(3.0)}, model="tuples", rows=4, seed=2)
    assert pickle.loads(pickle.dumps(workload)).script() == workload.script()


@pytest.mark.parametrize(("given_", "message"), [
    ({"model": "fluid"}, "no model 'fluid'"),
    ({"arrivals": {"q": np.array([1.0, 0.0])}}, "ascending"),
    ({"rows": {"q": np.ones(3)}}, "2 blocks arrive, but 3 have rows"),
    ({"rows": 0.0}, "without rows"),
])
def test_what_cannot_be_simulated_is_refused(given_: dict[str, object], message: str) -> None:
    usual: dict[str, object] = {"network": Network((HALF,)), "arrivals": {"q": np.arange(2.0)}}
    with pytest.raises(WorkloadError, match=message):
        Workload(**{**usual, **given_})  # type: ignore[arg-type]


# --- fates -----------------------------------------------------------------------------------


def test_divisible_rows_shrink_as_expected_and_cost_what_they_are() -> None:
    (fate,) = fates(HALF, np.array([8.0]), "divisible", np.random.default_rng(0))
    assert fate.rows == (8.0, 4.0, 1.6, 1.6)
    assert fate.work == (8.0, 8.0, 1.6)


def test_tuples_keep_the_selectivities_on_average() -> None:
    found = fates(HALF, np.full(4000, 20.0), "tuples", np.random.default_rng(1))
    rows = np.array([fate.rows for fate in found]).sum(axis=0)
    assert rows[1] / rows[0] == pytest.approx(0.5, rel=0.02)
    assert rows[2] / rows[1] == pytest.approx(0.4, rel=0.03)
    assert rows[3] == rows[2]


@given(st.floats(0, 4), st.integers(0, 999))
def test_a_row_gives_the_whole_part_of_a_selectivity_and_at_most_one_more(
    selectivity: float, seed: int
) -> None:
    route = path("q", [(1.0, selectivity)])
    for fate in fates(route, np.ones(20), "tuples", np.random.default_rng(seed)):
        assert int(selectivity) <= fate.rows[1] <= int(selectivity) + 1
        assert fate.rows[1] == int(fate.rows[1])


def test_fates_are_a_function_of_the_seed() -> None:
    one, same, other = (fates(HALF, np.full(50, 10.0), "tuples", np.random.default_rng(seed))
                        for seed in (3, 3, 4))
    assert one == same
    assert one != other


def test_a_block_that_grows_beyond_counting_is_refused() -> None:
    route = path("q", [(1.0, 1e6)] * 4)
    with pytest.raises(WorkloadError, match="too many to follow one by one"):
        fates(route, np.ones(1), "tuples", np.random.default_rng(0))
