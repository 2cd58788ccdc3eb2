"""Examples 2 to 7 of the filters paper, with Figure 2 as it was reconstructed, and Figure 6."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.policies.filters import (
    AdaptiveOrder,
    DropPatterns,
    FilterPredicate,
    ProfileBatch,
    policy,
)
from penstock.policies.filters.model.drop_patterns import Bits, Order, greedy_order
from penstock.policies.filters.model.exhaustive import exhaustive_order
from penstock.policies.filters.model.matrix_view import MatrixView

DROPS = {1: "0000", 2: "0010", 3: "0011", 4: "0111", 5: "1101", 6: "1101", 7: "1000"}
"""By tuple, which of F1 to F4 drop it."""
STREAM = (1, 2, 1, 4, 7, 2, 5, 4)
GREEDY: Order = (2, 0, 1, 3)
"""F3 F1 F2 F4."""
CORRECTED: Order = (3, 2, 0, 1)
"""F4 F3 F1 F2."""


def bits(*tuples: int) -> Bits:
    return np.array([[bit == "1" for bit in DROPS[one]] for one in tuples], bool)


def dropped(*tuples: int) -> Bits:
    rows = bits(*tuples)
    return rows[rows.any(axis=1)]


def of_four(text: str, order: Order = GREEDY) -> AdaptiveOrder:
    adaptive = AdaptiveOrder(policy(text), [FilterPredicate(f"F{n}") for n in (1, 2, 3, 4)])
    watched = adaptive.profile.matrix.watched
    adaptive.profile.adopt(order, adaptive.profile.position, watched)
    return adaptive


@pytest.mark.parametrize(("order", "probes"), [((0, 1, 2, 3), 20), ((2, 1, 3, 0), 18),
                                               (GREEDY, 16)])
def test_example_2_counts_the_probes_of_three_orders(order: Order, probes: int) -> None:
    cost = DropPatterns(bits(*STREAM)).expected_cost(order, np.ones(4))
    assert cost * len(STREAM) == pytest.approx(probes)


def test_example_2_has_no_better_order() -> None:
    patterns = DropPatterns(bits(*STREAM))
    best = exhaustive_order(patterns, np.ones(4))
    assert patterns.expected_cost(best, np.ones(4)) * len(STREAM) == pytest.approx(16)


def test_example_3_profiles_the_six_tuples_that_are_dropped() -> None:
    assert dropped(*STREAM).tolist() == bits(2, 4, 7, 2, 5, 4).tolist()


def test_example_4_the_matrix_view_satisfies_the_invariant() -> None:
    view = MatrixView(GREEDY, dropped(*STREAM))
    assert view.counts.tolist() == [[4, 2, 3, 3], [0, 2, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert greedy_order(DropPatterns(dropped(*STREAM)), np.ones(4), GREEDY) == GREEDY


def test_example_5_and_figure_6_a_violation_is_detected_and_corrected() -> None:
    adaptive = of_four("a_greedy(alpha=1, gain=0, enough=6, window=6)")
    adaptive.observe(ProfileBatch(dropped(*STREAM), np.ones(4)))
    assert adaptive.decide() is None and adaptive.order == GREEDY
    adaptive.observe(ProfileBatch(dropped(3), np.ones(4)))
    adaptive.observe(ProfileBatch(dropped(6), np.ones(4)))
    assert adaptive.profile.matrix.counts.tolist() == [
        [3, 3, 3, 4], [0, 3, 2, 2], [0, 0, 0, 0], [0, 0, 0, 0]]
    decided = adaptive.decide()
    assert decided and decided.order == CORRECTED
    assert decided.reason.startswith("F4 before F3: drops 4 per second against 3")
    assert adaptive.profile.matrix.counts.tolist() == [
        [4, 3, 3, 3], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    assert adaptive.decide() is None


def test_figure_6_a_window_holds_the_latest_six() -> None:
    adaptive = of_four("a_greedy(window=6, enough=6)")
    for one in (*STREAM, 3, 6):
        adaptive.observe(ProfileBatch(dropped(one), np.ones(4)))
    window = adaptive.profile.patterns.dropped
    assert window.tolist() == bits(7, 2, 5, 4, 3, 6).tolist()


# --- Example 6: Independent -------------------------------------------------------------------


@pytest.mark.parametrize("n", [4, 8, 12])
def test_example_6_independent_asks_the_same_question_again_and_again(n: int) -> None:
    values = np.arange(1, 101)
    rows = np.stack([values > 49] * (n - 1) + [values < 50], axis=1)
    found = {}
    for name in ("independent", "a_greedy"):
        adaptive = AdaptiveOrder(policy(f"{name}(alpha=1, gain=0, window=100)"),
                                 [FilterPredicate(f"F{k}") for k in range(1, n + 1)])
        adaptive.observe(ProfileBatch(rows, np.ones(n)))
        adaptive.decide()
        found[name] = DropPatterns(rows).expected_cost(adaptive.order, np.ones(n))
    assert found["independent"] == pytest.approx(0.49 * n + 0.51)
    assert found["a_greedy"] == pytest.approx(1.49)


# --- Example 7: LocalSwaps --------------------------------------------------------------------


def after_the_change(n: int) -> Bits:
    """F1 to Fn-1 drop a slice of the values each; Fn drops all but that of Fn-1."""
    rows = np.eye(n, dtype=bool)
    rows[:, -1] = True
    rows[n - 2, -1] = False
    return rows


@pytest.mark.parametrize("n", [4, 10])
def test_example_7_local_swaps_is_trapped_where_a_greedy_and_sweep_are_not(n: int) -> None:
    """The paper's 50 (n + 1) is the cost of a hundred rows; that of the best is 100 (1 + 1 / n)."""
    rows = np.repeat(after_the_change(n), 100 // n, axis=0)
    found = {}
    for name in ("local_swaps", "a_greedy", "sweep"):
        adaptive = AdaptiveOrder(policy(f"{name}(alpha=1, gain=0, enough=1, window={len(rows)})"),
                                 [FilterPredicate(f"F{k}") for k in range(1, n + 1)])
        for _ in range(20 * n):
            adaptive.observe(ProfileBatch(_asked(adaptive, rows), np.ones(n),
                                          version=adaptive.profile.version))
            adaptive.decide()
        found[name] = DropPatterns(rows).expected_cost(adaptive.order, np.ones(n))
        if name == "local_swaps":
            assert adaptive.order == tuple(range(n))
        else:
            assert adaptive.order[:2] == (n - 1, n - 2)
    assert 100 * found["local_swaps"] == pytest.approx(50 * (n + 1))
    assert found["a_greedy"] == found["sweep"] == pytest.approx(1 + 1 / n)


def _asked(adaptive: AdaptiveOrder, rows: Bits) -> Bits:
    """Only what the policy asks of these rows."""
    request = adaptive.request
    known = np.zeros(rows.shape, bool)
    for row, place in enumerate(rows[:, request.order].argmax(axis=1)):
        known[row, [*request.order[:place + 1], *request.unasked[place]]] = True
    return rows & known
