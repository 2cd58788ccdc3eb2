"""A clock that is set back does not take the engine back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.clock import SteadyClock, VirtualClock


@given(st.lists(st.floats(0, 1e9), min_size=1))
def test_time_never_goes_back_and_is_never_behind(shown: list[float]) -> None:
    wall = VirtualClock()
    clock = SteadyClock(wall)
    last = 0.0
    for wall.time in shown:
        now = clock.now()
        assert now >= last and now >= wall.time
        last = now


def test_after_a_step_back_both_clocks_agree_again() -> None:
    wall = VirtualClock(1000.0)
    clock = SteadyClock(wall)
    clock.now()
    wall.time = 880.0
    times = []
    for _ in range(300):
        times.append(clock.now())
        wall.time += 1.0
    assert times[0] == 1000.0 and times[100] == 1050.0
    assert times[-1] == wall.time - 1.0
    assert clock.now() == wall.time
