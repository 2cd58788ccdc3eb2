"""When blocks arrive."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import WorkloadError
from penstock.generators.packets import OnOff
from penstock.simulator import arrivals

TIMES = st.lists(st.floats(0, 1e6), max_size=60).map(sorted).map(np.array)


def test_onoff_is_the_traffic_of_the_source() -> None:
    traffic = OnOff(rate=200, burst=3, length=0.2, seed=5)
    assert np.array_equal(arrivals.onoff(traffic, 10.0), traffic.arrivals(0.0, 10.0))


def test_poisson_has_the_mean_gap_and_the_spread_of_an_exponential() -> None:
    gaps = np.diff(arrivals.poisson(4.0, 50_000, np.random.default_rng(1)))
    assert gaps.mean() == pytest.approx(4.0, rel=0.03)
    assert gaps.std() == pytest.approx(4.0, rel=0.03)


def test_poisson_is_a_function_of_its_seed() -> None:
    one, same, other = (arrivals.poisson(1.0, 9, np.random.default_rng(s)) for s in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_bursts_are_even_within_and_silent_between() -> None:
    found = arrivals.bursts(rate=2.0, on=3.0, off=7.0, count=3)
    assert len(found) == 18
    assert np.array_equal(found[:6], [0.0, 0.5, 1.0, 1.5, 2.0, 2.5])
    assert np.array_equal(found[6:12], found[:6] + 10.0)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_trace_begins_at_zero_and_ascends(tmp_path: Path, packed: bool) -> None:
    text = b"host,at\n1,107.5\n2,100.0\n3,102.5\n"
    file = tmp_path / ("arrivals.csv.gz" if packed else "arrivals.csv")
    file.write_bytes(gzip.compress(text) if packed else text)
    assert np.array_equal(arrivals.trace(file, "at"), [0.0, 2.5, 7.5])
    assert np.array_equal(arrivals.trace(file, "at", speed=2.5), [0.0, 1.0, 3.0])


@pytest.mark.parametrize(("text", "message"), [
    ("ts\n", "holds no arrival times"),
    ("at\n1\n", "cannot read arrival times"),
    ("ts\nsoon\n", "cannot read arrival times"),
    ("ts\nnan\n", "holds no arrival times"),
])
def test_a_trace_without_times_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "arrivals.csv"
    file.write_text(text)
    with pytest.raises(WorkloadError, match=message):
        arrivals.trace(file)


def test_a_trace_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"cannot read arrival times from .*nowhere\.csv"):
        arrivals.trace(tmp_path / "nowhere.csv")


@given(TIMES, st.integers(1, 9))
def test_a_block_is_there_when_its_last_row_has_come(times: np.ndarray, rows: int) -> None:
    found = arrivals.blocks(times, rows)
    assert len(found) == len(times) // rows
    assert [np.searchsorted(times, at, side="right") >= rows * (i + 1)
            for i, at in enumerate(found)] == [True] * len(found)
