"""The ON/OFF traffic: one stream however it is cut, with the rate and the bursts asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.generators.packets import ORIGIN, SCHEMA, OnOff

streams = st.builds(
    OnOff,
    rate=st.sampled_from([20.0, 333.3, 5000.0]),
    burst=st.sampled_from([0.1, 0.565, 1.0, 5.0, 50.0]),
    length=st.sampled_from([0.001, 0.02, 1.0]),
    seed=st.integers(0, 2**63 - 1),
    rows=st.none() | st.integers(0, 3000),
)
seconds = st.floats(0, 4)


@given(streams, st.lists(seconds, min_size=2, max_size=6))
def test_the_stream_is_the_same_however_it_is_cut_in_time(
    traffic: OnOff, cuts: list[float]
) -> None:
    cuts = sorted(cuts)
    parts = [traffic.packets(a, b) for a, b in zip(cuts, cuts[1:], strict=False)]
    assert pa.concat_batches(parts).equals(traffic.packets(cuts[0], cuts[-1]))


@given(streams, st.lists(st.integers(1, 700), min_size=1, max_size=6), st.integers(20, 300))
@settings(deadline=None)  # many small batches
def test_the_stream_is_the_same_however_it_is_cut_in_rows(
    traffic: OnOff, steps: list[int], size: int
) -> None:
    places = [ORIGIN]
    for step in steps:
        places.append(traffic.advance(places[-1], step))
    parts = [list(traffic.batches(a, b, size)) for a, b in zip(places, places[1:], strict=False)]
    whole = list(traffic.batches(ORIGIN, traffic.advance(ORIGIN, sum(steps))))
    assert pa.Table.from_batches(sum(parts, []), SCHEMA).equals(
        pa.Table.from_batches(whole, SCHEMA)
    )


@given(streams, seconds, seconds)
def test_arrivals_packets_and_count_agree_and_ascend(traffic: OnOff, a: float, b: float) -> None:
    begin, end = min(a, b), max(a, b)
    arrivals, packets = traffic.arrivals(begin, end), traffic.packets(begin, end)
    micros = packets["ts"].cast(pa.int64()).to_numpy() - traffic.start
    assert np.array_equal(np.rint(arrivals * 1e6), micros)
    assert traffic.count(begin, end) == packets.num_rows
    assert (np.diff(micros) >= 0).all()
    if packets.num_rows:
        assert round(begin * 1e6) <= micros[0] and micros[-1] < round(end * 1e6)


@given(streams, st.integers(0, 5000))
def test_a_bounded_stream_has_exactly_its_rows_and_is_a_prefix(traffic: OnOff, rows: int) -> None:
    bounded, endless = replace(traffic, rows=rows), replace(traffic, rows=None)
    end = bounded.advance(ORIGIN, 10 * rows + 10)
    assert end.rows == rows
    assert bounded.advance(end, 100) == end == bounded.reach(end, 10**12)
    assert list(bounded.batches(ORIGIN, end)) == list(endless.batches(ORIGIN, end))


@given(streams, seconds)
def test_reaching_a_time_in_two_steps_is_reaching_it_in_one(traffic: OnOff, time: float) -> None:
    goal = round(time * 1e6)
    halfway = traffic.reach(ORIGIN, goal // 2)
    assert traffic.reach(halfway, goal) == traffic.reach(ORIGIN, goal)
    assert traffic.reach(traffic.reach(halfway, goal), goal // 2).rows >= halfway.rows


@given(streams)
@settings(max_examples=20)
def test_same_seed_same_packets_other_seed_other_packets(traffic: OnOff) -> None:
    traffic = replace(traffic, rows=500)
    again, other = replace(traffic), replace(traffic, seed=traffic.seed ^ 1)
    end = traffic.advance(ORIGIN, 500)
    first = list(traffic.batches(ORIGIN, end))
    assert first == list(again.batches(ORIGIN, end))
    assert first != list(other.batches(ORIGIN, other.advance(ORIGIN, 500)))


def test_the_first_packet_comes_at_the_start() -> None:
    for seed in range(20):
        first = OnOff(rate=3, seed=seed, start=42).packets(0, 0.01)
        assert first["ts"].cast(pa.int64()).to_pylist() == [42]


@pytest.mark.parametrize("burst", [0.565, 2, 5, 10])
def test_the_long_run_mean_is_the_rate_within_three_percent(burst: float) -> None:
    # The relative error of the mean over f flows is 1.57 / sqrt(f) (Pareto, alpha = 2.3): 40,000
    # flows give 0.8 %, and three percent is almost four times that.
    flows = 40_000
    traffic = OnOff(rate=1000, burst=burst, length=0.01, seed=11)
    duration = flows * burst * 1.77 * traffic.length
    assert traffic.count(0, duration) / duration == pytest.approx(1000, rel=0.03)


@pytest.mark.parametrize("rate", [0.5, 7, 60])
def test_flows_of_few_packets_keep_the_mean(rate: float) -> None:
    traffic = OnOff(rate=rate, burst=2, length=0.01, seed=5)
    assert traffic.count(0, 2000) / 2000 == pytest.approx(rate, rel=0.08)


def window_rates(traffic: OnOff, duration: float) -> npt.NDArray[np.float64]:
    """Rates over windows of half the shortest flow, as multiples of the mean."""
    width = traffic.length / 2
    edges = np.arange(0, duration, width)
    counts, _ = np.histogram(traffic.arrivals(0, duration), bins=edges)
    return counts / (width * traffic.rate)


@pytest.mark.parametrize("burst", [2, 5, 10, 20])
def test_bursts_run_at_burst_times_the_mean(burst: float) -> None:
    rates = window_rates(OnOff(rate=1000, burst=burst, length=0.1, seed=3), duration=2000)
    silent = np.exp(-1 / burst)  # the flows that are ON at one moment are Poisson(1 / burst)
    one_flow = silent + silent / burst / 2  # the middle of the moments with one flow
    assert np.quantile(rates, one_flow) == pytest.approx(burst, rel=0.05)
    assert np.mean(rates == 0) == pytest.approx(silent, abs=0.08)


def test_traffic_with_bursts_of_five_peaks_between_five_and_fifteen_times_the_mean() -> None:
    rates = window_rates(OnOff(rate=1000, burst=5, length=0.1, seed=3), duration=2000)
    assert np.quantile(rates, 0.95) == pytest.approx(5, rel=0.05)
    assert 5 <= np.quantile(rates, 0.999) <= 15


def test_a_flow_lasts_a_pareto_time() -> None:
    # At burst = 1000 flows hardly ever overlap, so a silence of a period or more separates them.
    traffic = OnOff(rate=10, burst=1000, length=0.01, seed=9)
    arrivals = traffic.arrivals(0, 20_000)
    breaks = np.flatnonzero(np.diff(arrivals) > 0.001)
    sizes = np.diff(breaks)
    durations = sizes / 10_000 / traffic.length
    assert len(durations) > 800
    for times in (1.2, 2, 4):
        assert np.mean(durations > times) == pytest.approx(times**-2.3, abs=0.04)


def test_columns_are_skewed_as_described() -> None:
    packets = OnOff(rate=100_000, rows=400_000, seed=1).packets(0, 3600)
    assert packets.schema == SCHEMA and packets.num_rows == 400_000

    def share(column: str, value: int | str) -> float:
        return float(np.mean(packets[column].to_numpy(zero_copy_only=False) == value))

    assert share("src", 1) == pytest.approx(1 / 8.895, rel=0.03)
    assert share("src", 2) == pytest.approx(0.5 / 8.895, rel=0.03)
    assert share("dst", 1) == pytest.approx(1 / 7.509, rel=0.03)
    assert share("port", 443) == pytest.approx(0.42, rel=0.03)
    assert share("port", 53) == pytest.approx(0.12, rel=0.03)
    assert share("length", 40) == pytest.approx(0.34, rel=0.03)
    assert share("length", 1500) == pytest.approx(0.26, rel=0.03)
    assert share("protocol", "udp") == pytest.approx(0.20, rel=0.03)
    assert set(packets["src"].unique().to_pylist()) == set(range(1, 4097))


def test_rows_drawn_from_different_epochs_differ() -> None:
    traffic = OnOff(rate=1000, burst=1, length=0.001, seed=2)  # an epoch is a second
    first, second = traffic.packets(0, 1), traffic.packets(1, 2)
    rows = min(first.num_rows, second.num_rows)
    assert rows > 500
    assert first["src"].slice(0, rows) != second["src"].slice(0, rows)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rate", 0),
        ("rate", float("nan")),
        ("burst", 0.05),
        ("length", 1e9),
        ("seed", -1),
        ("rows", -1),
        ("start", -5),
    ],
)
def test_an_impossible_stream_is_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"^{field} must lie between"):
        OnOff(**{field: value})  # type: ignore[arg-type]
