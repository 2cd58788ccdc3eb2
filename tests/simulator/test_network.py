"""Where routes meet: shared operators, and joins of two sides."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.policies.operators import POLICIES, Route, Stage, policy
from penstock.simulator.host import simulate
from penstock.simulator.network import Network, path
from penstock.simulator.results import Result
from penstock.simulator.workload import Workload


def outputs(result: Result) -> list[tuple[float, float, int]]:
    return [(at, arrived, route) for at, arrived, route, _ in result.outputs]


# --- shared operators ------------------------------------------------------------------------

MERGE = Stage("merge", 2.0)
MERGED = Network((Route("a", (Stage("a", 1.0), MERGE)), Route("b", (Stage("b", 3.0), MERGE))))


def test_routes_that_name_one_operator_share_its_queue() -> None:
    assert MERGED.operators == ("a", "merge", "b")
    both = Workload(MERGED, {"a": np.zeros(1), "b": np.zeros(1)})
    assert outputs(simulate(both, policy("fifo"))) == [(3.0, 0.0, 0), (8.0, 0.0, 1)]


@pytest.mark.parametrize("name", [*POLICIES, "chain_flush(exact=true)"])
def test_every_policy_brings_every_block_through_a_merge(name: str) -> None:
    random = np.random.default_rng(6)
    times = {route: np.cumsum(random.exponential(3.0, 200)) for route in "ab"}
    result = simulate(Workload(MERGED, times), policy(name))
    assert len(result.outputs) == 400
    assert result.memory()[1][-1] == 0.0


def test_where_routes_meet_the_better_rank_and_the_stricter_promise_hold() -> None:
    routes = (Route("a", (Stage("a", 1.0, 0.1), MERGE), latency=9.0),
              Route("b", (Stage("b", 3.0), MERGE), latency=5.0))
    network = Network(routes)
    chain = policy("chain")
    places = network.places(routes, chain.prepare(routes))
    ranks = {cut.path: cut.rank for cut in chain.prepare(routes) if "merge" in cut.operators}
    merge = places[network.operators.index("merge")]
    assert merge.rank == min(ranks.values())
    assert merge.latency == 5.0


def test_exact_chain_flush_serves_a_tight_block_that_stands_behind_another() -> None:
    """A block of a slow path may reach the shared queue after younger ones of a fast path."""
    routes = (Route("slow", (Stage("slow", 8.0), MERGE), latency=14.0),
              Route("fast", (Stage("fast", 0.1), MERGE), latency=60.0))
    times = {"slow": np.array([0.0, 30.0]), "fast": np.arange(0.0, 40.0, 4.0)}
    result = simulate(Workload(Network(routes), times), policy("chain_flush(exact=true)"))
    assert len(result.outputs) == 12


# --- joins -----------------------------------------------------------------------------------


def joined(left: list[float], right: list[float]) -> Workload:
    """Two streams into a join that takes a second per row, with an operator of 4 s on the left."""
    after = Stage("after", 0.5)
    routes = (Route("l", (Stage("before", 4.0), Stage("join.l", 1.0), after)),
              Route("r", (Stage("join.r", 1.0), after)))
    network = Network(routes, joins=(("join.l", "join.r"),))
    return Workload(network, {"l": np.array(left), "r": np.array(right)})


@pytest.mark.parametrize("name", POLICIES)
def test_a_join_waits_for_its_empty_side(name: str) -> None:
    """The row on the right came first, but whether it is the next is not known before 14."""
    result = simulate(joined([10.0], [0.0]), policy(name))
    assert [arrived for _, arrived, _ in outputs(result)] == [0.0, 10.0]
    assert outputs(result)[0][0] == 15.5


@pytest.mark.parametrize("name", [*POLICIES, "chain_flush(exact=true)"])
def test_a_join_lets_rows_out_in_the_order_of_their_arrival(name: str) -> None:
    random = np.random.default_rng(2)
    left, right = (np.cumsum(random.exponential(7.0, 60)).tolist() for _ in range(2))
    result = simulate(joined(left, right), policy(name))
    through = [arrived for _, arrived, _ in outputs(result)]
    assert through == sorted(through)
    assert len(through) == 120


def test_at_the_end_a_join_no_longer_waits() -> None:
    result = simulate(joined([0.0], [1.0, 2.0, 50.0]), policy("fifo"))
    assert [arrived for _, arrived, _ in outputs(result)] == [0.0, 1.0, 2.0, 50.0]
    assert result.memory()[1][-1] == 0.0
    # The rows of 1 and 2 had to wait until it was certain, at 50, that the left side is over.
    assert outputs(result)[1][0] >= 50.0


def test_both_sides_of_a_join_have_the_better_rank_of_the_two() -> None:
    network = joined([0.0], [0.0]).network
    routes = network.told()
    places = network.places(routes, policy("chain").prepare(routes))
    left, right = (places[network.operators.index(f"join.{side}")] for side in "lr")
    assert left.rank == right.rank


# --- what a policy is told -------------------------------------------------------------------


def test_a_policy_is_told_what_is_believed_and_then_what_was_measured() -> None:
    true = path("q", [(1.0, 0.2), (5.0, 1.0)])
    wrong = path("q", [(4.0, 0.9), (5.0, 1.0)])
    network = Network((true,), believed=(wrong,))
    assert network.told() == (wrong,)
    measured = {"q.1": Stage("q.1", 1.0, 0.2)}
    assert network.told(measured) == (true,)
