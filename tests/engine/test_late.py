"""Rows that come after their windows were answered: which of them no answer will hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.aggregates.refresher import Refresher
from penstock.model import Window
from penstock.policies.refresh import QueryGroup, WindowQuery, policy


@given(
    length=st.integers(1, 12), slide=st.integers(1, 12), answered=st.integers(-30, 30),
    rows=st.sets(st.integers(-60, 60), min_size=1))
def test_a_drained_run_answers_for_the_rows_that_its_windows_reach_back_to(
    length: int, slide: int, answered: int, rows: set[int]
) -> None:
    """Panes are a unit long here, so that a row is its pane."""
    refresher = Refresher(policy("hybrid"), drained=True)
    refresher.adopt(0.0, [QueryGroup("g", (WindowQuery("q", length, slide),))], {"q": answered})
    refresher.close("g", max(rows) + 1, sorted(rows))
    refresher.conclude("g")
    held: set[int] = set()
    while (scan := refresher.decide(0.0)) is not None:
        assert scan.end > answered
        held |= {row for row in rows if scan.end - length <= row < scan.end}
        refresher.passed(scan)
    reach = Window(length, slide, exactly=True).reaches_back(answered)
    between = {row for row in rows if row >= reach and row % slide < slide - length}
    assert rows - held == {row for row in rows if row < reach} | between


@given(length=st.integers(1, 12), slide=st.integers(1, 12), answered=st.integers(-30, 30))
def test_whichever_end_a_live_answer_has_next_no_row_is_passed_by_unseen(
    length: int, slide: int, answered: int
) -> None:
    """The next end lies at most a slide after the last: what it misses is early enough."""
    reach = Window(length, slide).reaches_back(answered)
    for end in range(answered + 1, answered + slide + 1):
        assert min(end - length, answered) <= reach <= answered
