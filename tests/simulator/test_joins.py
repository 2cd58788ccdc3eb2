"""Shared joins in virtual time: every pair once, in order, as counted by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.policies.joins import POLICIES, JoinWindow, policy
from penstock.simulator.joins import JoinLoad, JoinSimulation, play_join, reaches

every_policy = pytest.mark.parametrize("name", POLICIES)


@st.composite
def loads(draw: st.DrawFn) -> JoinLoad:
    """Few rows at whole seconds, so that many have the same time and lie on edges of windows."""
    rows = draw(st.integers(1, 40))
    times = sorted(draw(st.lists(st.integers(0, 20), min_size=rows, max_size=rows)))
    numbers = st.lists(st.integers(0, 1), min_size=rows, max_size=rows)
    lengths = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4, unique=True))
    return JoinLoad(np.array(times, float), np.array(draw(numbers)), np.array(draw(numbers)),
                    tuple(map(JoinWindow, lengths)), compare=draw(st.sampled_from([0.0, 0.1, 1.0])),
                    emit=0.05, method=draw(st.sampled_from(["hash", "nested_loops"])))


def brute(load: JoinLoad, length: float) -> list[tuple[int, int]]:
    """The pairs within a window, by their later and earlier rows."""
    return [(late, early) for late in range(len(load.times)) for early in range(late)
            if load.sides[late] != load.sides[early] and load.keys[late] == load.keys[early]
            and load.times[late] - load.times[early] < length]


@settings(max_examples=80, deadline=None)
@given(load=loads())
def test_what_a_row_meets_is_what_it_meets_by_hand(load: JoinLoad) -> None:
    lengths = sorted(window.length for window in load.windows)
    seen, matched = reaches(load, lengths)
    for n, length in enumerate(lengths, 1):
        expected = Counter(late for late, _ in brute(load, length))
        assert matched[:, n].tolist() == [expected[row] for row in range(len(load.times))]
        for row in range(len(load.times)):
            met = sum(load.sides[other] != load.sides[row]
                      and load.times[row] - load.times[other] < length for other in range(row))
            assert seen[row, n] == met


@every_policy
@settings(max_examples=30, deadline=None)
@given(load=loads())
def test_every_query_gets_its_pairs_once_and_none_before_it_can_be_there(
    name: str, load: JoinLoad
) -> None:
    found = play_join(load, policy(name))
    for window in load.windows:
        responses = found.responses[window.length]
        assert responses.pairs == len(brute(load, window.length))
        assert 0 <= responses.mean <= responses.longest + 1e-9
    assert found.busy <= found.seconds + 1e-9
    if name != "isolated":
        assert found.held_peak <= len(brute(load, max(w.length for w in load.windows)))


@every_policy
@settings(max_examples=30, deadline=None)
@given(load=loads())
def test_pairs_leave_for_a_query_in_the_order_of_their_later_rows(
    name: str, load: JoinLoad
) -> None:
    found = JoinSimulation(load, policy(name), keep=True).run()
    times = [at for at, _ in found.released]
    assert times == sorted(times)
    for key in {(pairs.scan, pairs.window) for _, pairs in found.released}:
        outers = [pairs.outer for _, pairs in found.released if (pairs.scan, pairs.window) == key]
        assert outers == sorted(outers)


@settings(max_examples=30, deadline=None)
@given(load=loads())
def test_sharing_never_takes_longer_than_isolated_execution(load: JoinLoad) -> None:
    apart = play_join(load, policy("isolated"))
    for name in ("lwo", "swf", "mqt"):
        assert play_join(load, policy(name)).busy <= apart.busy + 1e-9
