"""Every value that lies in a range lies in a bin that the range is filed under."""

from __future__ import annotations

import math

from hypothesis import example, given
from hypothesis import strategies as st

from penstock.planning.grids import MOST_BINS, ROWS_PER_RANGE, SMALLEST_TABLE, Grid, grid

NUMBERS = st.floats(allow_nan=False)
LIMITS = st.sampled_from(
    [-(2.0**63), 2.0**63, 1.7e308, -1.7e308, 5e-324, -0.0, math.inf, -math.inf]
)
BOUNDS = st.one_of(NUMBERS, LIMITS, st.integers(-1000, 1000).map(float))
RANGES = st.lists(st.tuples(BOUNDS, BOUNDS).map(lambda pair: (min(pair), max(pair))), max_size=30)


@given(RANGES, BOUNDS, st.booleans())
@example([(0.0, 0.0)], 0.0, True)
@example([(-1.7e308, 1.7e308), (1.0, 2.0)], 1.5, False)
@example([(2.0**63 - 1024, 2.0**63)], 2.0**63 - 1, True)
def test_a_value_in_a_range_lies_in_one_of_its_bins(ranges, value, whole):
    found = grid(ranges, whole=whole)
    for low, high in ranges:
        for inside in (low, high, min(max(value, low), high)):
            assert found.bin(inside) in found.bins(low, high)


@given(RANGES, st.booleans())
@example([(0.0, 1.43780339594945e308)] * 8, False)
def test_the_table_stays_small(ranges, whole):
    found = grid(ranges, whole=whole)
    rows = sum(len(found.bins(low, high)) for low, high in ranges)
    assert rows <= max(SMALLEST_TABLE, ROWS_PER_RANGE * len(ranges))
    assert found.last - found.first <= MOST_BINS + 128
    assert math.frexp(found.width)[0] == 0.5, "a power of two"


def test_nan_lies_above_every_number():
    found = grid([(0.0, 10.0), (5.0, math.inf)])
    assert found.bin(math.nan) == found.last
    assert found.last in found.bins(5.0, math.inf)
    assert found.last not in found.bins(0.0, 10.0)


def test_values_beyond_all_bounds_meet_no_bounded_range():
    found = grid([(0.0, 10.0), (100.0, 120.0)])
    for low, high in [(0.0, 10.0), (100.0, 120.0)]:
        assert found.bin(-1e9) not in found.bins(low, high)
        assert found.bin(1e9) not in found.bins(low, high)


def test_a_bound_far_away_does_not_put_all_others_into_one_bin():
    near = [(float(n), float(n + 1)) for n in range(0, 1000, 2)]
    found = grid([*near, (0.0, 9e18)], whole=True)
    assert len({found.bin(low) for low, _ in near}) > 100


def test_the_edges_stay_when_a_range_is_added_between_them():
    ranges = [(float(n), float(n + 5)) for n in range(0, 1000, 10)]
    assert grid(ranges) == grid([*ranges, (203.0, 777.0)])


def test_whole_numbers_have_no_bins_narrower_than_one():
    assert grid([(3.0, 5.0), (7.0, 9.0)], whole=True).width == 1.0


def test_no_finite_bound_is_one_bin():
    assert grid([(-math.inf, math.inf)]) == Grid(1.0, 0, 0)
