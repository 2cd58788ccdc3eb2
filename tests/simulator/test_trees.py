"""Query trees by depth and fan-out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policies.operators import policy
from penstock.simulator import trees
from penstock.simulator.host import simulate
from penstock.simulator.workload import Workload

SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 4))


@given(SHAPES)
def test_every_leaf_is_a_route_down_to_the_root(shape: tuple[int, int]) -> None:
    depth, fan_out = shape
    network = trees.tree(depth, fan_out, dict.fromkeys(trees.names(depth, fan_out), 1.0))
    assert len(network.routes) == fan_out**depth
    assert {len(route.stages) for route in network.routes} == {depth + 1}
    assert {route.stages[-1].operator for route in network.routes} == {"d0.0"}
    assert set(network.operators) == set(trees.names(depth, fan_out))


@given(SHAPES)
def test_as_many_routes_lead_through_an_operator_as_leaves_lie_under_it(
    shape: tuple[int, int]
) -> None:
    depth, fan_out = shape
    names = trees.names(depth, fan_out)
    network = trees.tree(depth, fan_out, dict.fromkeys(names, 1.0))
    for name in names:
        through = sum(name in {s.operator for s in route.stages} for route in network.routes)
        assert through == trees.under(name, depth, fan_out)


def test_the_response_times_of_the_prb_paper() -> None:
    """Section 2.4: 60 if the cheap stream goes first, 75 if the expensive one does."""
    network = trees.tree(1, 2, {"d0.0": 20.0, "d1.0": 10.0, "d1.1": 40.0})
    both = Workload(network, {"s0": np.zeros(1), "s1": np.zeros(1)})
    assert simulate(both, policy("rate_based")).mean_latency == 60.0
    network = trees.tree(1, 2, {"d0.0": 20.0, "d1.0": 40.0, "d1.1": 10.0})
    both = Workload(network, {"s0": np.zeros(1), "s1": np.zeros(1)})
    assert simulate(both, policy("fifo")).mean_latency == 75.0


def test_zipf_without_skew_is_uniform_and_with_skew_prefers_small_values() -> None:
    means = [trees.zipf(1, 100, skew, 20_000, np.random.default_rng(3)).mean()
             for skew in (0.0, 0.5, 0.9)]
    assert means[0] == pytest.approx(50.5, rel=0.02)
    assert means[0] > means[1] > means[2]


@given(st.floats(0, 2), st.integers(0, 99))
def test_zipf_stays_within_its_bounds(skew: float, seed: int) -> None:
    found = trees.zipf(0.01, 1.0, skew, 50, np.random.default_rng(seed))
    assert found.min() >= 0.01
    assert found.max() <= 1.0
