"""Progress charts: the lower envelope, its segments, and what they are made of."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policies.operators import Route, Stage, policy
from penstock.policies.operators.model.charts import Chart, chart, window_join
from tests.policies.operators.envelopes import envelope_size


@st.composite
def points(draw: st.DrawFn, largest: int = 24) -> list[tuple[int, Fraction]]:
    """Operator points in whole seconds and eighths, so that all arithmetic on them is exact."""
    spans = draw(st.lists(st.integers(1, 6), min_size=1, max_size=7))
    found, size = [(0, Fraction(1))], 8
    for span in spans:
        size = draw(st.integers(1, min(largest, size if largest == 8 else largest)))
        found.append((found[-1][0] + span, Fraction(size, 8)))
    return [*found[:-1], (found[-1][0], Fraction(0))]


any_points = st.one_of(points(8), points(24))


def charted(given_points: list[tuple[int, Fraction]]) -> Chart:
    return Chart.of_points([(t, float(s)) for t, s in given_points])


def lower_hull(given_points: list[tuple[int, Fraction]]) -> list[int]:
    """The lower convex hull with every point on it, exactly: Andrew's monotone chain."""
    hull: list[int] = []
    for i, (t, s) in enumerate(given_points):
        while len(hull) > 1:
            (t1, s1), (t2, s2) = given_points[hull[-2]], given_points[hull[-1]]
            if (s2 - s1) * (t - t1) <= (s - s1) * (t2 - t1):
                break
            hull.pop()
        hull.append(i)
    return hull


@given(any_points)
def test_the_envelope_is_the_lower_convex_hull(given_points: list[tuple[int, Fraction]]) -> None:
    assert list(charted(given_points).envelope) == lower_hull(given_points)


@given(any_points)
def test_slopes_never_increase(given_points: list[tuple[int, Fraction]]) -> None:
    """Proposition 1; and all are positive, since a block always leaves."""
    slopes = charted(given_points).slopes
    assert all(before >= after for before, after in pairwise(slopes))
    assert all(slope > 0 for slope in slopes)


@given(any_points)
def test_the_envelope_touches_the_chart_and_is_never_above_it(
    given_points: list[tuple[int, Fraction]]
) -> None:
    known = charted(given_points)
    assert known.envelope[0] == 0
    assert known.envelope[-1] == len(given_points) - 1
    for end in known.envelope:
        assert envelope_size(known, known.times[end]) == pytest.approx(known.sizes[end], abs=1e-12)
    for step in range(8 * given_points[-1][0] + 1):
        assert envelope_size(known, step / 8) <= known.size(step / 8) + 1e-12


@given(any_points)
def test_of_several_steepest_points_the_nearest_is_taken(
    given_points: list[tuple[int, Fraction]]
) -> None:
    known = charted(given_points)
    for i, (t, s) in enumerate(given_points[:-1]):
        falls = [(s - s2) / (t2 - t) for t2, s2 in given_points[i + 1 :]]
        assert known.steepest(i) == i + 1 + falls.index(max(falls))


@given(any_points)
def test_deltas_are_the_widest_gaps_between_chart_and_envelope(
    given_points: list[tuple[int, Fraction]]
) -> None:
    known = charted(given_points)
    for (a, b), delta in zip(pairwise(known.envelope), known.deltas, strict=True):
        just_before = [i - 2**-20 for i in range(given_points[a][0] + 1, given_points[b][0] + 1)]
        widest = max(known.size(t) - envelope_size(known, t) for t in just_before)
        assert widest <= delta <= widest + 1e-4


@given(points(8))
def test_with_selectivities_of_at_most_1_the_deltas_of_a_chart_add_up_to_at_most_1(
    given_points: list[tuple[int, Fraction]]
) -> None:
    """From the proof of Theorem 4.3."""
    known = charted(given_points)
    for (a, b), delta in zip(pairwise(known.envelope), known.deltas, strict=True):
        assert delta <= known.sizes[a] - known.sizes[b]
    assert sum(known.deltas) <= 1


@given(any_points)
def test_stages_and_points_say_the_same(given_points: list[tuple[int, Fraction]]) -> None:
    known = charted(given_points)
    again = Chart.of(known.stages())
    assert again.times == pytest.approx(known.times)
    assert again.sizes == pytest.approx(known.sizes)


@given(any_points)
def test_time_and_size_measured_in_other_units_give_the_same_segments(
    given_points: list[tuple[int, Fraction]]
) -> None:
    known = charted(given_points)
    scaled = Chart(tuple(t / 4096 for t in known.times), known.sizes)
    assert scaled.envelope == known.envelope


def test_the_paper_s_second_chart_hides_a_fast_operator_behind_slow_ones() -> None:
    """Section 6.1.1: the first three operators are one segment."""
    known = Chart.of_points([(0, 1), (400, 0.9), (2000, 0.88), (2200, 0.1), (4000, 0)])
    assert known.envelope == (0, 3, 4)
    assert known.slopes == pytest.approx((0.9 / 2200, 0.1 / 1800))


def test_a_join_that_multiplies_is_run_for_the_filter_behind_it() -> None:
    """Section 6.1.2: selectivity above 1 in the middle of the first segment."""
    known = Chart.of_points([(0, 1), (400, 0.9), (1300, 2.0), (1500, 0.2), (4000, 0)])
    assert known.envelope == (0, 3, 4)
    assert known.deltas[0] == pytest.approx(2.0 - (1 - 0.8 / 1500 * 1500))


def test_operators_that_cost_nothing_are_infinitely_steep_and_lead_or_follow() -> None:
    free_filter = Chart.of([Stage("free", 0.0, 0.5), Stage("dear", 2.0)])
    assert free_filter.slopes == (inf, 0.5)
    free_join = Chart.of([Stage("free", 0.0, 2.0), Stage("dear", 1.0)])
    assert free_join.envelope == (0, 2)
    assert free_join.slopes == (0.5,)


def test_a_stage_of_which_nothing_is_known_is_run_at_once() -> None:
    (cut,) = policy("chain").prepare([Route("p", (Stage("new"),))])
    assert cut.rank == -inf


def test_nothing_comes_after_an_operator_that_lets_nothing_through() -> None:
    known = chart(Route("p", (Stage("none", 2.0, 0.0), Stage("never", 3.0))))
    assert known.sizes == (1.0, 0.0, 0.0)
    assert known.slopes == (0.5, 0.0)


def test_the_middle_of_a_chart_can_be_read_off() -> None:
    known = Chart.of_points([(0, 1), (2, 0.5), (4, 0)])
    assert [known.size(t) for t in (0, 1.9, 2, 3.9, 4, 9)] == [1, 1, 0.5, 0.5, 0, 0]
    assert [envelope_size(known, t) for t in (0, 1, 3, 9)] == [1, 0.75, 0.25, 0]


@given(st.tuples(*[st.floats(0.1, 100)] * 2), st.tuples(*[st.floats(0, 10)] * 2),
       st.tuples(*[st.floats(0.001, 10)] * 2))
def test_a_window_join_costs_and_gives_what_its_rows_do_on_average(
    rates: tuple[float, float], matches: tuple[float, float], costs: tuple[float, float]
) -> None:
    """Section 4.3.1: seconds and rows of an interval of length 1, per row that comes in it."""
    cost, selectivity = window_join(rates, matches, costs)
    incoming = sum(rates)
    assert cost * incoming == pytest.approx(rates[0] * costs[0] + rates[1] * costs[1])
    results = rates[0] * matches[1] + rates[1] * matches[0]  # each meets the other's window
    assert selectivity * incoming == pytest.approx(results)
