"""The slots between the bounds of windows: each difference of times is in one, found in a cell."""

from __future__ import annotations

from bisect import bisect_right

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model import WindowJoin
from penstock.spark.compile.pair_counts import CELLS, Slots

SECOND = 1_000_000
windows = st.builds(
    lambda lower, length: WindowJoin((), lower, lower + length),
    st.integers(-3600 * SECOND, 3600 * SECOND), st.integers(0, 3600 * SECOND))
near = st.builds(lambda lower, length: WindowJoin((), lower, lower + length),
                 st.integers(-3, 3), st.integers(0, 3))


@settings(max_examples=100, deadline=None)
@given(asked=st.lists(windows | near, min_size=1, max_size=12), data=st.data())
def test_a_difference_is_in_the_slot_that_the_bounds_give_it(
    asked: list[WindowJoin], data: st.DataObject
) -> None:
    slots = Slots.of(asked)
    assert len(slots.starts) <= CELLS + 1
    edges = st.sampled_from(slots.bounds).flatmap(
        lambda bound: st.integers(bound - 2, bound + 2))
    apart = data.draw(edges | st.integers(slots.bounds[0], slots.bounds[-1]))
    if slots.bounds[0] <= apart < slots.bounds[-1]:
        assert slots.place(apart) == bisect_right(slots.bounds, apart) - 1


@settings(max_examples=50, deadline=None)
@given(asked=st.lists(windows | near, min_size=1, max_size=6), chosen=st.data())
def test_a_window_has_the_differences_of_its_slots(
    asked: list[WindowJoin], chosen: st.DataObject
) -> None:
    slots = Slots.of(asked)
    apart = chosen.draw(st.integers(slots.bounds[0], slots.bounds[-1] - 1))
    for window in asked:
        covered = slots.of_window(window)
        assert (covered.start <= slots.place(apart) < covered.stop) == (
            window.lower <= apart <= window.upper)
