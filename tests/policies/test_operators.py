"""One conformance suite for every operator policy of the catalogue."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import PolicyError
from penstock.policies.operators import POLICIES, Queue, View, policy

queues = st.builds(
    Queue, segment=st.uuids().map(str), length=st.integers(1, 9), oldest=st.floats(0, 100),
    rows=st.integers(1, 10**6), bytes=st.integers(1, 10**9), cost=st.floats(0, 10),
    selectivity=st.floats(0, 5))
views = st.builds(View, now=st.floats(100, 200), queues=st.lists(queues, min_size=1).map(tuple))


@pytest.mark.parametrize("name", POLICIES)
@given(view=views)
def test_a_choice_is_a_queue_of_the_view_with_a_reason(name: str, view: View) -> None:
    choice = policy(name).choose(view)
    assert choice is not None
    assert choice.segment in {queue.segment for queue in view.queues}
    assert choice.reason


@pytest.mark.parametrize("name", POLICIES)
@given(view=views)
def test_the_same_view_gives_the_same_decision(name: str, view: View) -> None:
    assert policy(name).choose(view) == policy(name).choose(view)


@pytest.mark.parametrize("name", POLICIES)
def test_nothing_to_run_is_no_decision(name: str) -> None:
    assert policy(name).choose(View(1.0, ())) is None


@given(views)
def test_fifo_takes_the_oldest_and_the_first_of_equals(view: View) -> None:
    choice = policy("fifo").choose(view)
    assert choice is not None
    oldest = min(queue.oldest for queue in view.queues)
    assert choice.segment == next(q.segment for q in view.queues if q.oldest == oldest)


@pytest.mark.parametrize(("text", "message"), [
    ("fivo", "did you mean 'fifo'"),
    ("fifo(speed=3)", "no parameter 'speed'"),
    ("fifo(x)", "not of the form"),
    ("!", "no operator policy"),
])
def test_a_wrong_policy_text_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        policy(text)
