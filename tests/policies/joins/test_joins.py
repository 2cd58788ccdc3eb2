"""One conformance suite for every joins policy of the catalogue, and what each promises."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import PolicyError
from penstock.policies.joins import (
    FAMILY,
    POLICIES,
    JoinWindow,
    ScanCost,
    SharedScan,
    View,
    Waiting,
    policy,
)
from penstock.policies.joins.model.windows import combined, worthwhile

every_policy = pytest.mark.parametrize("name", POLICIES)
quick = settings(max_examples=60, deadline=None)

windows = st.lists(st.builds(JoinWindow, st.integers(1, 30), st.integers(1, 4)), min_size=1,
                   max_size=6)
costs = st.builds(ScanCost, st.sampled_from([0.0, 0.5, 5.0, 100.0]), st.sampled_from([0.1, 1.0]))


@st.composite
def views(draw: st.DrawFn, name: str) -> View:
    """Outers at some levels of every scan: those further on came earlier."""
    scans = policy(name).prepare(draw(windows), draw(costs))
    waiting, first = [], 0
    for number, scan in enumerate(scans):
        allowed = scan.levels
        for scanned in range(scan.levels - 1, -1, -1):
            if length := draw(st.integers(0, 3)):
                waiting.append(Waiting(number, scanned, allowed, first, length))
                allowed, first = scanned, first + length
    return View(scans, tuple(waiting))


# --- the contract --------------------------------------------------------------------------------


@every_policy
@quick
@given(data=st.data())
def test_a_decision_takes_an_outer_that_waits_and_keeps_behind_the_one_before(
    name: str, data: st.DataObject
) -> None:
    view = data.draw(views(name))
    decided = policy(name).choose(view)
    if decided is None:
        assert not view.waiting
        return
    (chosen,) = [w for w in view.waiting if (w.scan, w.scanned) == (decided.scan, decided.scanned)]
    if view.scans[decided.scan].levels > 1 and name not in ("lwo", "isolated"):
        assert chosen.scanned < decided.until <= chosen.allowed
    assert decided.until <= view.scans[decided.scan].levels and decided.reason


@every_policy
@quick
@given(data=st.data())
def test_the_same_view_gives_the_same_decision(name: str, data: st.DataObject) -> None:
    view, made = data.draw(views(name)), policy(name)
    assert made.choose(view) == made.choose(copy.deepcopy(view)) == policy(name).choose(view)


@every_policy
@quick
@given(asked=windows, cost=costs)
def test_the_scans_serve_every_query_and_end_with_the_largest_window(
    name: str, asked: list[JoinWindow], cost: ScanCost
) -> None:
    scans = policy(name).prepare(asked, cost)
    assert sum(scan.served(0, scan.levels) for scan in scans) == sum(w.queries for w in asked)
    assert max(scan.reach(scan.levels) for scan in scans) == max(w.length for w in asked)
    for scan in scans:
        lengths = [window.length for window in scan.windows]
        assert all(one < other for one, other in pairwise(lengths))


@every_policy
def test_a_policy_is_a_frozen_value_that_its_name_makes(name: str) -> None:
    made = policy(name)
    assert made == policy(f" {name.upper()} ") == pickle.loads(pickle.dumps(made))
    assert isinstance(made, FAMILY.contract) and made.__doc__ and "Reference:" in made.__doc__
    with pytest.raises(PolicyError, match="takes (none|merge)"):
        policy(f"{name}(size=2)")


def test_a_policy_that_is_not_there_is_told_with_the_nearest() -> None:
    with pytest.raises(PolicyError, match="did you mean 'mqt'"):
        policy("mqtt")


# --- maximum query throughput --------------------------------------------------------------------


def test_the_matrix_of_figure_4() -> None:
    shared = SharedScan((JoinWindow(2), JoinWindow(3), JoinWindow(6)))
    matrix = [[Fraction(most).limit_denominator(9) for most in row] for row in
              shared.max_throughput]
    f = Fraction
    assert matrix[0][1:] == [f(1, 2), f(2, 3), f(2, 3)]
    assert matrix[1][2:] == [f(1), f(1)]
    assert matrix[2][3:] == [f(1, 3)]


@quick
@given(asked=windows, cost=costs)
def test_the_matrix_is_the_best_of_all_scans_that_are_allowed(
    asked: list[JoinWindow], cost: ScanCost
) -> None:
    shared = SharedScan(tuple(combined(asked)), cost)
    for i in range(shared.levels):
        for j in range(i + 1, shared.levels + 1):
            tried = [shared.served(i, k) / cost.seconds(shared.reach(k) - shared.reach(i))
                     for k in range(i + 1, j + 1)]
            assert shared.max_throughput[i][j] == max(tried)


@quick
@given(data=st.data())
def test_mqt_takes_the_largest_entry_and_of_equals_the_furthest_on(data: st.DataObject) -> None:
    view = data.draw(views("mqt"))
    decided = policy("mqt").choose(view)
    if decided is not None:
        (scan,) = view.scans
        entries = {w.scanned: scan.max_throughput[w.scanned][w.allowed] for w in view.waiting}
        best = max(entries.values())
        assert decided.scanned == max(at for at, entry in entries.items() if entry == best)


# --- small slices --------------------------------------------------------------------------------


def waits(merged: Sequence[JoinWindow], cost: ScanCost) -> float:
    """How long all queries wait for an outer, and for the fixed parts of its jobs."""
    everybody = left = sum(window.queries for window in merged)
    total, begun = 0.0, 0.0
    for window in merged:
        total += cost.fixed * everybody + cost.per_length * (window.length - begun) * left
        left, begun = left - window.queries, window.length
    return total


@quick
@given(asked=windows, cost=costs)
def test_no_other_slices_of_a_window_make_queries_wait_less(
    asked: list[JoinWindow], cost: ScanCost
) -> None:
    merged, ordered = worthwhile(asked, cost), combined(asked)
    for last in product((False, True), repeat=len(ordered) - 1):
        other, queries = [], 0
        for window, ends in zip(ordered, (*last, True), strict=True):
            queries += window.queries
            if ends:
                other.append(JoinWindow(window.length, queries))
                queries = 0
        assert waits(merged, cost) <= waits(other, cost) * (1 + 1e-9)
    if not cost.fixed:
        assert list(merged) == combined(asked)
