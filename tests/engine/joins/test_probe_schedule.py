"""The schedule of a shared join: the paper's traces, and what holds for every policy."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.joins.probe_schedule import Pairs, ProbeSchedule
from penstock.policies.joins import POLICIES, JoinWindow, ScanCost, policy

every_policy = pytest.mark.parametrize("name", POLICIES)


def trace(name: str, windows: tuple[float, ...], arrivals: dict[int, list[int]]) -> list[str]:
    """What happens step by step: who scans up to which window, and what leaves for which query.

    ``arrivals`` has the outers that come before a step, by its number.
    """
    schedule = ProbeSchedule(policy(name), [JoinWindow(length) for length in windows])
    told: list[str] = []
    for step in range(100):
        for outer in arrivals.get(step, ()):
            schedule.arrive(outer)
        probe = schedule.decide()
        if probe is None:
            return told
        leaving = [f"Q{p.window}:{p.outer}[{p.first}-{p.last}]" for p in schedule.finish(probe)]
        told.append(f"{probe.outer} scans w{probe.last}" + "".join(f" {one}" for one in leaving))
    raise AssertionError("it does not end")


def test_figure_2a_lwo_finishes_an_outer_before_the_next() -> None:
    assert trace("lwo", (2, 3, 6), {0: [11], 1: [12]}) == [
        "11 scans w3 Q1:11[0-1] Q2:11[0-2] Q3:11[0-3]",
        "12 scans w3 Q1:12[0-1] Q2:12[0-2] Q3:12[0-3]",
    ]


def test_figure_3a_swf_holds_back_what_an_earlier_outer_must_precede() -> None:
    assert trace("swf", (2, 3, 6), {0: [11], 1: [12]}) == [
        "11 scans w1 Q1:11[0-1] Q2:11[0-1] Q3:11[0-1]",  # steps 1, 2
        "12 scans w1 Q1:12[0-1]",                         # steps 3, 4
        "11 scans w2 Q2:11[1-2] Q3:11[1-2]",              # steps 5, 6
        "12 scans w2 Q2:12[0-2]",                         # steps 7, 8
        "11 scans w3 Q3:11[2-3]",                         # steps 9, 10
        "12 scans w3 Q3:12[0-3]",                         # steps 11, 12
    ]


def test_figure_4_mqt_goes_on_with_the_old_outer_and_releases_early() -> None:
    assert trace("mqt", (2, 3, 6), {0: [11], 1: [12]}) == [
        "11 scans w1 Q1:11[0-1] Q2:11[0-1] Q3:11[0-1]",
        "11 scans w2 Q2:11[1-2] Q3:11[1-2]",
        "12 scans w1 Q1:12[0-1] Q2:12[0-1]",  # before it has scanned w2
        "12 scans w2 Q2:12[1-2]",
        "11 scans w3 Q3:11[2-3] Q3:12[0-2]",  # as soon as 11 is through
        "12 scans w3 Q3:12[2-3]",
    ]


def test_isolated_scans_every_window_apart() -> None:
    assert trace("isolated", (2, 6), {0: [11, 12]}) == [
        "11 scans w1 Q1:11[0-1]", "11 scans w1 Q1:11[0-1]",
        "12 scans w1 Q1:12[0-1]", "12 scans w1 Q1:12[0-1]",
    ]


# --- every policy --------------------------------------------------------------------------------


@every_policy
@settings(max_examples=80, deadline=None)
@given(windows=st.lists(st.builds(JoinWindow, st.integers(1, 30), st.integers(1, 3)), min_size=1,
                        max_size=5),
       cost=st.sampled_from([ScanCost(), ScanCost(5.0, 1.0)]),
       steps=st.lists(st.integers(0, 2), max_size=30))
def test_every_pair_leaves_once_and_in_the_order_of_the_outers(
    name: str, windows: list[JoinWindow], cost: ScanCost, steps: list[int]
) -> None:
    schedule = ProbeSchedule(policy(name), windows, cost)
    left: list[Pairs] = []
    scanned: dict[tuple[int, int], int] = {}
    outers = 0
    for coming in [*steps, *[0] * 1000]:
        for _ in range(coming):
            schedule.arrive(outers)
            outers += 1
        probe = schedule.decide()
        if probe is None:
            continue
        assert scanned.get((probe.scan, probe.outer), 0) == probe.first < probe.last
        scanned[probe.scan, probe.outer] = probe.last
        found = schedule.finish(probe)
        for pairs in found:  # nobody gets what has not been scanned
            assert pairs.last <= min(scanned[pairs.scan, pairs.outer], pairs.window)
        left += found
    assert schedule.waiting == 0
    for number, scan in enumerate(schedule.scans):
        for window in range(1, scan.levels + 1):
            mine = [p for p in left if (p.scan, p.window) == (number, window)]
            expected = [(outer, level) for outer in range(outers) for level in range(window)]
            assert [(p.outer, level) for p in mine for level in range(p.first, p.last)] == expected


@settings(max_examples=60, deadline=None)
@given(windows=st.lists(st.builds(JoinWindow, st.integers(1, 30)), min_size=1, max_size=4),
       outers=st.integers(1, 5))
def test_mqt_holds_nothing_back_that_could_leave(windows: list[JoinWindow], outers: int) -> None:
    schedule = ProbeSchedule(policy("mqt"), windows)
    for outer in range(outers):
        schedule.arrive(outer)
    scanned, left = dict.fromkeys(range(outers), 0), dict.fromkeys(range(outers), 0)
    while probe := schedule.decide():
        scanned[probe.outer] = probe.last
        levels = schedule.scans[0].levels
        for pairs in schedule.finish(probe):
            if pairs.window == levels:
                left[pairs.outer] = pairs.last
        front = next((o for o in range(outers) if scanned[o] < levels), None)
        if front is not None:
            assert left[front] == scanned[front], "the first that is not through waits for nobody"
