"""Shared joins in virtual time: every pair once, in order, as counted by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

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


# --- the figures of the paper -----------------------------------------------------------------


def figure(keys: dict[str, int], windows: tuple[int, ...], compare: float) -> JoinLoad:
    """Rows b0, a1, b2, ... b12, a unit of time apart, of which a11 and b12 probe."""
    names = [f"{'ba'[time % 2]}{time}" for time in range(13)]
    found = [keys.get(name, 10 + number) for number, name in enumerate(names)]
    return JoinLoad(np.arange(13.0), np.arange(13) % 2, np.array(found),
                    tuple(JoinWindow(length) for length in windows), compare,
                    method="nested_loops", filled=11)


def steps(load: JoinLoad, name: str) -> list[list[str]]:
    """Step by step: which pairs reach which queries, those of the nearest rows first."""
    simulation = JoinSimulation(load, policy(name), keep=True)
    (scan,) = simulation.schedule.scans
    told: dict[tuple[float, int], dict[int, list[int]]] = {}
    for at, leaving in simulation.run().released:
        near, far = scan.reach(leaving.first), scan.reach(leaving.last)
        step = told.setdefault((at, leaving.outer), {})
        for late, early in reversed(brute(load, far)):
            if late == leaving.outer and late - early >= near:
                step.setdefault(early, []).append(leaving.window)
    return [[f"{row(late)}-{row(early)} to Q{','.join(map(str, queries))}"
             for early, queries in sorted(step.items(), reverse=True)]
            for (_, late), step in told.items()]


def row(number: int) -> str:
    return f"{'ba'[number % 2]}{number}"


SYMBOLS = {"a11": 1, "b8": 1, "b4": 1, "b0": 1, "b12": 2, "a9": 2, "a5": 2, "a1": 2}
"""In Figures 2a and 3a rows join those with the same symbol."""


def test_figure_2a_pair_by_pair() -> None:
    assert steps(figure(SYMBOLS, (5, 9, 13), compare=0.5), "lwo") == [
        ["a11-b8 to Q1,2,3", "a11-b4 to Q2,3", "a11-b0 to Q3"],
        ["b12-a9 to Q1,2,3", "b12-a5 to Q2,3", "b12-a1 to Q3"],
    ]


def test_figure_3a_pair_by_pair() -> None:
    assert steps(figure(SYMBOLS, (5, 9, 13), compare=0.5), "swf") == [
        ["a11-b8 to Q1,2,3"],                                  # steps 1 and 2
        ["b12-a9 to Q1"],                                      # 3 and 4
        ["a11-b4 to Q2,3"],                                    # 5 and 6
        ["b12-a9 to Q2", "b12-a5 to Q2"],                      # 7 and 8
        ["a11-b0 to Q3"],                                      # 9 and 10
        ["b12-a9 to Q3", "b12-a5 to Q3", "b12-a1 to Q3"],      # 11 and 12
    ]


def test_figure_4_pair_by_pair() -> None:
    everything = {row(number): 1 for number in range(13)}
    assert steps(figure(everything, (4, 6, 12), compare=0.5), "mqt") == [
        ["a11-b10 to Q1,2,3", "a11-b8 to Q1,2,3"],
        ["a11-b6 to Q2,3"],                            # before b12 begins: 1/w beats 1/2w
        ["b12-a11 to Q1,2", "b12-a9 to Q1,2"],         # Q2 before b12 has scanned its window
        ["b12-a7 to Q2"],                              # 2/3w beats 1/3w
        ["a11-b4 to Q3", "a11-b2 to Q3", "a11-b0 to Q3"],
        ["b12-a11 to Q3", "b12-a9 to Q3", "b12-a7 to Q3"],  # as soon as a11 is through
        ["b12-a5 to Q3", "b12-a3 to Q3", "b12-a1 to Q3"],
    ]


# --- routing, and what is held back --------------------------------------------------------------


def test_only_a_probe_over_several_slices_compares_pairs_with_windows() -> None:
    load = figure(SYMBOLS, (5, 9, 13), compare=0.5)
    routed = replace(load, route=0.25)
    busy = {name: play_join(routed, policy(name)).busy - play_join(load, policy(name)).busy
            for name in POLICIES}
    # One window compared for the pair of the first slice, two for the second, three for the third.
    assert busy == {"isolated": 0.0, "lwo": 2 * 0.25 * (1 + 2 + 3), "swf": 0.0, "mqt": 0.0}


def test_rows_and_pairs_that_are_held_back_are_counted() -> None:
    found = {name: play_join(figure(SYMBOLS, (5, 9, 13), compare=0.5), policy(name))
             for name in ("lwo", "swf")}
    assert (found["lwo"].held_rows_peak, found["lwo"].held_peak) == (1, 3)
    # When a11 finds its third pair for Q3, two of b12's have been waiting for it.
    assert (found["swf"].held_rows_peak, found["swf"].held_peak) == (2, 3)
