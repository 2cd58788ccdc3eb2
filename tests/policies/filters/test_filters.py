"""One conformance suite for every filters policy of the catalogue, and what each promises."""

from __future__ import annotations

import copy
import pickle
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import PolicyError
from penstock.policies.filters import (
    FAMILY,
    POLICIES,
    AdaptiveOrder,
    DropPatterns,
    FilterPredicate,
    ProfileBatch,
    policy,
    view_of,
)
from penstock.policies.filters.model.drop_patterns import Bits, Floats, Order, greedy_order
from penstock.policies.filters.model.exhaustive import exhaustive_order
from penstock.policies.filters.model.matrix_view import MatrixView

every_policy = pytest.mark.parametrize("name", POLICIES)
quick = settings(max_examples=60, deadline=None)
EXACT = "(alpha=1, gain=0, enough=1)"
"""Any violation is corrected, however small."""

seconds = st.sampled_from([1.0, 2.0, 3.0, 10.0, 0.5])


@st.composite
def samples(draw: st.DrawFn, most: int = 6, least: int = 1) -> tuple[Bits, Floats]:
    """Dropped rows, by row and predicate, and what the predicates take."""
    count = draw(st.integers(least, most))
    row = st.lists(st.booleans(), min_size=count, max_size=count).filter(any)
    rows = draw(st.lists(row, min_size=1, max_size=24))
    return np.array(rows, bool), np.array([draw(seconds) for _ in range(count)])


def predicates(count: int) -> list[FilterPredicate]:
    return [FilterPredicate(f"F{number}") for number in range(1, count + 1)]


def profiled(adaptive: AdaptiveOrder, dropped: Bits, costs: Floats) -> ProfileBatch:
    """What a host that keeps to the request finds out about these rows, all of them profiled."""
    request = adaptive.request
    known = np.zeros(dropped.shape, bool)
    first = dropped[:, request.order].argmax(axis=1)
    for row, place in enumerate(first):
        asked = [*request.order[:place + 1], *request.unasked[place]]
        known[row, asked] = True
    return ProfileBatch(dropped & known, np.where(known, costs, np.nan), version=request.version)


def settled(name: str, dropped: Bits, costs: Floats, order: Order | None = None) -> AdaptiveOrder:
    """The same rows again and again, until nothing changes any more."""
    count = dropped.shape[1]
    window = f"window={len(dropped)}"
    adaptive = AdaptiveOrder(policy(f"{name}{EXACT[:-1]}, {window})"),
                             [FilterPredicate(one.name, cost) for one, cost in
                              zip(predicates(count), costs, strict=True)])
    if order:
        adaptive.profile.adopt(order, adaptive.profile.position, adaptive.profile.matrix.watched)
    unchanged = 0
    for _ in range(2000):
        adaptive.observe(profiled(adaptive, dropped, costs))
        unchanged = 0 if adaptive.decide() else unchanged + 1
        if unchanged > 2 * count:
            return adaptive
    raise AssertionError("it never settles")


def is_greedy(order: Order, patterns: DropPatterns, costs: Floats) -> bool:
    """Whether an order satisfies the greedy invariant (definition 4.1)."""
    for place in range(len(order)):
        rates = patterns.drops(order[place:], order[:place]) / costs[list(order[place:])]
        if rates[0] < rates.max():
            return False
    return True


# --- the contract --------------------------------------------------------------------------------


@every_policy
@quick
@given(given_rows=samples())
def test_a_decision_is_an_order_of_all_predicates_that_says_why(
    name: str, given_rows: tuple[Bits, Floats]
) -> None:
    dropped, costs = given_rows
    adaptive = AdaptiveOrder(policy(f"{name}(enough=1, window={len(dropped)})"),
                             predicates(len(costs)))
    adaptive.observe(profiled(adaptive, dropped, costs))
    before = adaptive.order
    decided = adaptive.decide()
    if decided is None:
        assert adaptive.order == before
        return
    assert adaptive.order == decided.order != before
    assert sorted(decided.order) == list(range(len(costs))) and decided.reason
    assert decided.after < decided.before * 0.99


@every_policy
@quick
@given(given_rows=samples())
def test_the_same_view_gives_the_same_decision(
    name: str, given_rows: tuple[Bits, Floats]
) -> None:
    dropped, costs = given_rows
    made = policy(f"{name}(enough=1, window={len(dropped)})")
    adaptive = AdaptiveOrder(made, predicates(len(costs)))
    adaptive.observe(profiled(adaptive, dropped, costs))
    view = view_of(adaptive.profile)
    assert made.choose(view) == made.choose(copy.deepcopy(view)) == made.choose(view)


@every_policy
def test_a_view_does_not_change_with_the_profile(name: str) -> None:
    adaptive = AdaptiveOrder(policy(name), predicates(3))
    adaptive.observe(ProfileBatch(np.eye(3, dtype=bool), np.ones(3)))
    view = view_of(adaptive.profile)
    matrix, total = view.matrix.copy(), view.patterns.total
    adaptive.observe(ProfileBatch(np.ones((1500, 3), bool), np.full(3, 7.0)))
    assert (view.matrix == matrix).all() and view.patterns.total == total
    assert view.seconds.tolist() == [1, 1, 1]


@every_policy
def test_a_policy_is_a_frozen_value_that_its_name_makes(name: str) -> None:
    made = policy(name)
    assert made == policy(f" {name.upper()} ") == pickle.loads(pickle.dumps(made))
    assert isinstance(made, FAMILY.contract) and made.__doc__ and "Reference:" in made.__doc__
    with pytest.raises(PolicyError, match="takes alpha, p, window, enough, gain"):
        policy(f"{name}(size=2)")


@pytest.mark.parametrize("wrong", ["alpha=0", "alpha=1.5", "p=0", "p=2", "gain=1", "gain=-1",
                                   "enough=0", "window=10, enough=11"])
def test_parameters_that_make_no_sense_are_refused(wrong: str) -> None:
    with pytest.raises(PolicyError, match="filters policy: "):
        policy(f"a_greedy({wrong})")


def test_a_policy_that_is_not_there_is_told_with_the_nearest() -> None:
    with pytest.raises(PolicyError, match="did you mean 'a_greedy'"):
        policy("agreedy")


@every_policy
@pytest.mark.parametrize("count", [1, 2, 8])
def test_nothing_is_decided_before_enough_rows_were_profiled(name: str, count: int) -> None:
    adaptive = AdaptiveOrder(policy(name), predicates(count))
    dropped = np.eye(count, dtype=bool)[[count - 1] * 99]
    adaptive.observe(profiled(adaptive, dropped, np.ones(count)))
    assert adaptive.decide() is None and adaptive.order == tuple(range(count))


def test_what_a_profiled_row_is_asked_is_that_of_figure_7() -> None:
    def asked(name: str) -> list[int]:
        adaptive = AdaptiveOrder(policy(name), predicates(4))
        return [len(later) for later in adaptive.request.unasked]

    assert asked("a_greedy") == asked("independent") == asked("static_greedy") == [3, 2, 1, 0]
    assert asked("sweep") == [1, 0, 0, 0], "the predicate at the second place"
    assert asked("local_swaps") == [1, 1, 1, 0], "the next one"


# --- the profile ---------------------------------------------------------------------------------


@every_policy
@quick
@given(data=st.data())
def test_the_incremental_matrix_is_the_one_computed_from_scratch(
    name: str, data: st.DataObject
) -> None:
    """Whatever enters, leaves and changes places in between."""
    count, window = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 12))
    adaptive = AdaptiveOrder(policy(f"{name}(window={window}, enough=1, gain=0)"),
                             predicates(count))
    kept: list[list[bool]] = []
    times: list[list[float]] = []
    row = st.lists(st.booleans(), min_size=count, max_size=count).filter(any)
    for _ in range(data.draw(st.integers(1, 8))):
        dropped = np.array(data.draw(st.lists(row, min_size=1, max_size=16)), bool)
        batch = profiled(adaptive, dropped, np.array([data.draw(seconds) for _ in range(count)]))
        adaptive.observe(batch)
        kept = [*kept, *batch.dropped.tolist()][-window:]
        times = [*times, *batch.seconds.tolist()][-window:]
        profile = adaptive.profile
        scratch = MatrixView(profile.order, np.array(kept, bool), profile.matrix.watched)
        assert (profile.matrix.counts == scratch.counts).all()
        assert profile.rows == len(kept)
        for number, column in enumerate(np.array(times).T):
            if not np.isnan(column).all():
                assert profile.seconds[number] == pytest.approx(np.nanmean(column))
        before, was_complete = profile.version, profile.is_complete
        adaptive.decide()
        if profile.version != before and not was_complete:
            kept = []  # what was sampled for another order says too little


@quick
@given(given_rows=samples(), data=st.data())
def test_an_entry_counts_what_none_before_drops(
    given_rows: tuple[Bits, Floats], data: st.DataObject
) -> None:
    dropped, costs = given_rows
    order = data.draw(st.permutations(range(len(costs))))
    counts = MatrixView(order, dropped).counts
    for i in range(len(order)):
        for j in range(len(order)):
            counted = sum(row[order[j]] and not any(row[list(order[:i])]) for row in dropped)
            assert counts[i, j] == (counted if j >= i else 0)


def test_figure_3_needs_as_many_updates_as_there_are_ones_to_count() -> None:
    view = MatrixView((0, 1, 2), np.zeros((0, 3), bool))
    view.add(np.array([[0, 1, 1]], bool))  # dropped at the second place: two lines, two columns
    assert view.updated == 4 and view.counts.tolist() == [[0, 1, 1], [0, 1, 1], [0, 0, 0]]


def test_a_batch_of_an_earlier_stage_is_left_aside_unless_it_is_complete() -> None:
    late = ProfileBatch(np.array([[1, 0, 0]], bool), np.ones(3), version=0)
    for name, rows in (("sweep", 0), ("local_swaps", 0), ("a_greedy", 1), ("independent", 1)):
        adaptive = AdaptiveOrder(policy(name), predicates(3))
        profile = adaptive.profile
        profile.adopt((1, 0, 2), 1, profile.matrix.watched)
        adaptive.observe(late)
        assert profile.rows == rows, name


def test_costs_outlive_a_stage_and_leave_with_the_window() -> None:
    adaptive = AdaptiveOrder(policy("sweep(window=4, enough=4)"), predicates(3))
    adaptive.observe(profiled(adaptive, np.eye(3, dtype=bool)[[1] * 4], np.array([2.0, 4.0, 8.0])))
    assert adaptive.decide() is not None and adaptive.profile.rows == 0, "F2 goes first"
    assert adaptive.profile.seconds.tolist() == [2, 4, 1], "the third was never evaluated"
    adaptive.observe(profiled(adaptive, np.eye(3, dtype=bool)[[0] * 4], np.array([3.0, 5.0, 9.0])))
    assert adaptive.profile.seconds.tolist() == [3, 5, 9]


# --- what a good order costs ----------------------------------------------------------------------


@quick
@given(given_rows=samples(most=5), passed=st.integers(0, 30))
def test_exhaustive_is_the_best_of_all_orders(
    given_rows: tuple[Bits, Floats], passed: int
) -> None:
    dropped, costs = given_rows
    patterns = DropPatterns(dropped, passed=passed)
    best = min(patterns.expected_cost(order, costs) for order in permutations(range(len(costs))))
    found = patterns.expected_cost(exhaustive_order(patterns, costs), costs)
    assert found == pytest.approx(best)


@settings(max_examples=200, deadline=None)
@given(given_rows=samples(most=7), passed=st.integers(0, 30), data=st.data())
def test_a_greedy_order_costs_at_most_four_times_the_best(
    given_rows: tuple[Bits, Floats], passed: int, data: st.DataObject
) -> None:
    """Theorem 4.1, without and with the thrash-avoidance factor."""
    dropped, costs = given_rows
    patterns = DropPatterns(dropped, passed=passed)
    best = patterns.expected_cost(exhaustive_order(patterns, costs), costs)
    present = tuple(data.draw(st.permutations(range(len(costs)))))
    order = greedy_order(patterns, costs, present)
    assert is_greedy(order, patterns, costs)
    assert patterns.expected_cost(order, costs) <= 4 * best * (1 + 1e-9)


@quick
@given(given_rows=samples(most=6), alpha=st.sampled_from([0.3, 0.6, 0.9]))
def test_what_alpha_lets_stand_costs_at_most_four_times_as_much_over_alpha(
    given_rows: tuple[Bits, Floats], alpha: float
) -> None:
    dropped, costs = given_rows
    text = f"a_greedy(alpha={alpha}, gain=0, enough=1, window={len(dropped)})"
    adaptive = AdaptiveOrder(policy(text), predicates(len(costs)))
    adaptive.observe(ProfileBatch(dropped, costs))
    adaptive.decide()
    assert adaptive.decide() is None
    patterns = DropPatterns(dropped)
    best = patterns.expected_cost(exhaustive_order(patterns, costs), costs)
    assert patterns.expected_cost(adaptive.order, costs) <= 4 / alpha * best * (1 + 1e-9)


@pytest.mark.parametrize("name", ["a_greedy", "sweep", "static_greedy"])
@quick
@given(given_rows=samples(), data=st.data())
def test_with_frozen_statistics_the_greedy_order_is_reached(
    name: str, given_rows: tuple[Bits, Floats], data: st.DataObject
) -> None:
    dropped, costs = given_rows
    patterns = DropPatterns(dropped)
    start = None
    if name != "static_greedy":  # which orders once, from the order written
        start = tuple(data.draw(st.permutations(range(len(costs)))))
    adaptive = settled(name, dropped, costs, start)
    assert is_greedy(adaptive.order, patterns, costs)


@quick
@given(tenths=st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=4), data=st.data())
def test_independent_is_optimal_on_independent_filters(
    tenths: list[int], data: st.DataObject
) -> None:
    """Every combination of four equally likely values per predicate, which drops some of them."""
    costs = np.array([data.draw(seconds) for _ in tenths])
    grid = np.stack(np.meshgrid(*[np.arange(4)] * len(tenths), indexing="ij"), axis=-1)
    rows = grid.reshape(-1, len(tenths)) < np.array(tenths)
    dropped = rows[rows.any(axis=1)]
    adaptive = settled("independent", dropped, costs)
    patterns = DropPatterns(dropped, passed=len(rows) - len(dropped))
    best = patterns.expected_cost(exhaustive_order(patterns, costs), costs)
    assert patterns.expected_cost(adaptive.order, costs) == pytest.approx(best)
    greedy = settled("a_greedy", dropped, costs)
    assert patterns.expected_cost(greedy.order, costs) == pytest.approx(best)


@every_policy
@quick
@given(given_rows=samples())
def test_every_policy_settles(name: str, given_rows: tuple[Bits, Floats]) -> None:
    settled(name, *given_rows)


def test_a_change_that_saves_too_little_is_not_made() -> None:
    """The later predicate drops 12 % more of the rows, but only a row in two hundred is dropped."""
    dropped = np.array([[1, 0]] * 100 + [[0, 1]] * 112, bool)
    batch = ProfileBatch(dropped, np.ones(2), passed=200.0)
    for gain, changes in ((0.0, True), (0.01, False)):
        adaptive = AdaptiveOrder(policy(f"a_greedy(gain={gain})"), predicates(2))
        adaptive.observe(batch)
        assert (adaptive.decide() is not None) is changes


def test_alpha_keeps_the_order_while_two_predicates_drop_almost_as_much() -> None:
    for more, changes in ((105, False), (120, True)):
        dropped = np.array([[1, 0]] * 100 + [[0, 1]] * more, bool)
        adaptive = AdaptiveOrder(policy("a_greedy"), predicates(2))
        adaptive.observe(ProfileBatch(dropped, np.ones(2)))
        assert (adaptive.decide() is not None) is changes


def test_alpha_keeps_predicates_that_drop_alike_from_changing_places_again_and_again() -> None:
    """Nothing ever changes, and only the sample varies."""
    changes = {}
    for alpha in (1.0, 0.9):
        rng = np.random.default_rng(3)
        adaptive = AdaptiveOrder(policy(f"a_greedy(alpha={alpha}, gain=0)"), predicates(3))
        changes[alpha] = 0
        for _ in range(300):
            rows = rng.random((60, 3)) < 0.5
            adaptive.observe(ProfileBatch(rows[rows.any(axis=1)], np.ones(3)))
            changes[alpha] += adaptive.decide() is not None
    assert changes[1.0] > 30 and changes[0.9] <= changes[1.0] / 5


def test_a_profile_in_batches_is_that_of_single_rows() -> None:
    rng = np.random.default_rng(5)
    dropped = rng.random((700, 4)) < [0.2, 0.4, 0.1, 0.6]
    dropped = dropped[dropped.any(axis=1)]
    single, batches = (AdaptiveOrder(policy("a_greedy(window=300)"), predicates(4))
                       for _ in range(2))
    for row in dropped:
        single.observe(ProfileBatch(row[None], np.ones(4)))
    for first in range(0, len(dropped), 64):
        batches.observe(ProfileBatch(dropped[first:first + 64], np.ones(4)))
    assert (single.profile.matrix.counts == batches.profile.matrix.counts).all()
    assert single.profile.matrix.updated == batches.profile.matrix.updated
    assert single.decide() == batches.decide() is not None
