"""Pipelined filters in virtual time: correlation as told, probes as counted by hand."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.policies.filters import POLICIES, DropPatterns, policy
from penstock.policies.filters.model.drop_patterns import Bits, greedy_order
from penstock.simulator.filters import (
    CorrelatedFilters,
    FilterLoad,
    FilterSimulation,
    ProfilingPrices,
    asked_beyond,
    asked_until,
    permuted,
    play_filters,
)

every_policy = pytest.mark.parametrize("name", POLICIES)
PAIRS = CorrelatedFilters((1.0, 2.0, 5.0), keeps=(0.5, 0.7), size=2)


class Recorded:
    """Rows that come again and again."""

    def __init__(self, dropped: list[list[int]], costs: tuple[float, ...]) -> None:
        self.dropped, self.costs = np.array(dropped, bool), costs

    def drawn(self, rng: np.random.Generator, rows: int) -> Bits:
        return np.resize(self.dropped, (rows, len(self.costs)))


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.7])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_filters_of_a_group_agree_on_four_of_five_rows(keep: float, size: int) -> None:
    model = CorrelatedFilters((1.0,) * 5, (keep,) * -(-5 // size), size)
    rows = model.drawn(np.random.default_rng(size), 60_000)
    assert rows.mean(axis=0) == pytest.approx([1 - keep] * 5, abs=0.01)
    for one, other in combinations(range(5), 2):
        alike = one // size == other // size
        expected = 0.8 if alike else keep**2 + (1 - keep) ** 2
        assert (rows[:, one] == rows[:, other]).mean() == pytest.approx(expected, abs=0.012)


@pytest.mark.parametrize("keep", [0.05, 0.9, 1.0])
def test_filters_that_agree_by_chance_anyway_are_independent(keep: float) -> None:
    assert CorrelatedFilters((1.0, 1.0), (keep,)).copies(0) == 0


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_exact_patterns_are_those_of_many_rows(size: int) -> None:
    keeps = (0.3, 0.5, 0.6, 0.8)[:-(-4 // size)]
    model = CorrelatedFilters((1.0,) * 4, keeps, size, places=(2, 0, 3, 1))
    rows = model.drawn(np.random.default_rng(2), 200_000)
    patterns = model.patterns
    assert patterns.total == pytest.approx(1)
    for count in range(5):
        for chosen in combinations(range(4), count):
            seen = (~rows[:, list(chosen)].any(axis=1)).mean()
            assert patterns.survivors(chosen) == pytest.approx(seen, abs=0.006)


def test_filters_exchange_their_selectivities() -> None:
    model = permuted(CorrelatedFilters((1.0, 9.0), (0.2, 0.8), size=1), (1, 0))
    assert model.costs == (1.0, 9.0)
    assert model.patterns.drops([0, 1]) == pytest.approx([0.2, 0.8])


def test_probes_of_an_order_are_counted_row_by_row() -> None:
    rows = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [0, 1, 1]]
    load = FilterLoad(((400, Recorded(rows, (1.0, 2.0, 5.0))),), block=40)
    found = play_filters(load)
    assert found.probes == found.tuples == 100 * (8 + 1 + 8 + 3)
    assert found.evaluated == [10 * (3 + 1 + 3 + 2)] * 10 and found.overhead == 0
    other = play_filters(FilterLoad(load.phases, written=(1, 2, 0)))
    assert other.tuples == 100 * (7 + 2 + 8 + 2) and other.order == (1, 2, 0)


def test_profiling_is_counted_as_figure_7_has_it() -> None:
    """Every row is dropped by the second of three filters, in an order that stays."""
    model = Recorded([[0, 1, 0]], (1.0, 2.0, 5.0))
    prices = ProfilingPrices(window=0.5, view=0.25, entry=0.125, scan=0.0)
    asked = {"a_greedy": 5.0, "independent": 5.0, "local_swaps": 5.0, "sweep": 0.0}
    for name, more in asked.items():
        load = FilterLoad(((100, model),), prices=prices)
        found = play_filters(load, policy(f"{name}(p=1, window=1000, enough=1000)"))
        assert found.profiled_rows == 100 and found.tuples == 100 * 3
        assert found.profiled == 100 * more, name
        assert found.window == 50
    entries = 2 * 100  # a row dropped at the second place counts in two lines of its column
    assert play_filters(load, policy("a_greedy(p=1, enough=1000)")).view == 25 + entries * 0.125


@pytest.mark.parametrize("p", [0.01, 0.2])
def test_so_many_of_the_dropped_rows_are_profiled_as_the_policy_says(p: float) -> None:
    load = FilterLoad(((60_000, PAIRS),))
    found = play_filters(load, policy(f"a_greedy(p={p})"), seed=6)
    dropped = 60_000 * (1 - PAIRS.patterns.survivors((0, 1, 2)))
    assert found.profiled_rows == pytest.approx(p * dropped, rel=0.1)


@every_policy
def test_a_run_is_a_function_of_its_seed(name: str) -> None:
    load = FilterLoad(((20_000, PAIRS),), written=(2, 0, 1))
    first, second, other = (play_filters(load, policy(name), seed) for seed in (1, 1, 2))
    assert first == second != other


@every_policy
def test_rows_do_not_depend_on_the_policy(name: str) -> None:
    """The filters a fixed order evaluates, block by block, are those of another order's rows."""
    load = FilterLoad(((5_000, PAIRS),))
    simulations = [FilterSimulation(load, None, 3),
                   FilterSimulation(load, policy(f"{name}(window=1000, enough=1000, gain=0.9)"), 3)]
    fixed, adapting = (simulation.run() for simulation in simulations)
    assert fixed.evaluated == adapting.evaluated and fixed.tuples == adapting.tuples


@every_policy
def test_the_warm_up_is_not_counted(name: str) -> None:
    load = FilterLoad(((6_000, PAIRS),), warm_up=2_000)
    found = play_filters(load, policy(name))
    assert found.rows == 4_000 and len(found.evaluated) == 6


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), size=st.integers(1, 3))
def test_a_greedy_settles_within_a_twentieth_of_the_greedy_order(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    keeps = tuple(rng.uniform(0.2, 0.8, -(-5 // size)))
    model = CorrelatedFilters(tuple(rng.choice([1.0, 3.0, 10.0], 5)), keeps, size)
    found = play_filters(FilterLoad(((120_000, model),), warm_up=60_000),
                         policy("a_greedy(p=0.1)"), seed)
    costs, patterns = np.array(model.costs), model.patterns
    ideal = patterns.expected_cost(greedy_order(patterns, costs, range(5)), costs)
    assert found.tuples / found.rows == pytest.approx(ideal, rel=0.05) or (
        found.tuples / found.rows < ideal)


def test_a_change_of_selectivities_is_followed() -> None:
    one = CorrelatedFilters((1.0, 1.0, 1.0), (0.1, 0.5, 0.9), size=1)
    load = FilterLoad(((150_000, one), (300_000, permuted(one, (2, 1, 0)))))
    for name in ("a_greedy", "sweep", "independent", "local_swaps"):
        found = play_filters(load, policy(name), seed=4)
        assert found.order == (2, 1, 0), name
        assert any(at > 150_000 for at, _ in found.changes)
    assert play_filters(load, policy("static_greedy"), seed=4).order == (0, 1, 2)


def test_what_is_asked_of_a_row_depends_on_where_it_was_dropped() -> None:
    simulation = FilterSimulation(FilterLoad(((10, PAIRS),)), policy("local_swaps"), 0)
    assert simulation._adaptive is not None
    request = simulation._adaptive.request
    assert asked_until(request).tolist() == [
        [True, False, False], [True, True, False], [True, True, True]]
    assert asked_beyond(request).tolist() == [
        [False, True, False], [False, False, True], [False, False, False]]


def test_a_load_needs_a_selectivity_per_group() -> None:
    with pytest.raises(AssertionError, match="a selectivity per group"):
        CorrelatedFilters((1.0,) * 4, (0.5,), size=2)
    with pytest.raises(AssertionError, match="every filter once"):
        CorrelatedFilters((1.0,) * 2, (0.5,), size=2, places=(0, 0))


def test_no_rows_are_no_load() -> None:
    found = play_filters(FilterLoad(((0, PAIRS),)), policy("a_greedy"))
    assert found.rate == 0 and found.order == (0, 1, 2) and not found.changes
    assert DropPatterns(np.zeros((0, 2), bool)).expected_cost((0, 1), np.ones(2)) == 0
