"""The pieces of the chain experiment: what the figures rest on, without making the figures."""

from __future__ import annotations

import doctest
import pickle
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from experiments.chain import calibration, program, traces
from experiments.chain.queries import FALLING, FOUR, QUERIES, TWO, chain_rate, many, most, service
from experiments.chain.rivals import PAPERS, flush, labels, mixed, rival
from experiments.chain.runs import Job, Load, bound, play, workload
from experiments.chain.sweeps import burst
from experiments.chain.traces import Burst, Synthetic
from penstock.policies.operators.model.charts import Chart, chart
from penstock.simulator.host import simulate
from tests.policies.operators.envelopes import envelope_size
from tests.simulator.readings import memory_at

MODULES = ("book", "calibration", "queries", "rivals", "runs", "sweeps", "traces")


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without the recorded traces."""
    monkeypatch.setattr(traces, "DATA", tmp_path)
    for cached in (traces.hour, calibration.load_for, calibration.excerpt):
        cached.cache_clear()


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings_hold(module: str) -> None:
    assert doctest.testmod(import_module(f"experiments.chain.{module}")).failed == 0


# --- queries -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("query", "points"), [
    ("two operators", TWO), ("four operators", FOUR), ("falling slopes", FALLING)])
def test_a_query_has_the_chart_it_was_made_from(
    query: str, points: tuple[tuple[float, float], ...]
) -> None:
    known = chart(QUERIES[query]().routes[0])
    assert known.times == pytest.approx([t / 1e8 for t, _ in points])
    assert known.sizes == pytest.approx([s for _, s in points])


def test_a_page_takes_four_milliseconds_and_chain_is_faster_on_steep_segments() -> None:
    assert service(QUERIES["four operators"]()) == pytest.approx(40e-6)
    assert chain_rate(QUERIES["four operators"]()) == pytest.approx(4000 / 2200)
    assert chain_rate(QUERIES["two operators"]()) == pytest.approx(8)


@pytest.mark.parametrize("operators", [2, 3, 8, 16])
def test_cutting_the_second_operator_leaves_work_and_envelope_as_they_were(operators: int) -> None:
    parts, two = Chart.of_points(many(operators)), Chart.of_points(TWO)
    for progress in np.linspace(0, 4000, 41):
        assert envelope_size(parts, progress) == pytest.approx(envelope_size(two, progress))


def test_both_streams_of_the_window_join_double_there() -> None:
    network = QUERIES["window join"]()
    assert network.joins == (("join.R", "join.S"),)
    assert [stage.selectivity for route in network.routes for stage in route.stages
            if stage.operator.startswith("join")] == [2.0, 2.0]


@pytest.mark.parametrize("query", ["two operators", "four operators", "falling slopes"])
def test_fifo_never_needs_more_than_the_limit_says(query: str) -> None:
    limit = most(QUERIES[query]())
    for intensity in (1.1, 2.0, 6.0):
        load = burst(query, intensity, tuples=600)
        assert play(Job(load, "fifo")).peak <= 1.01 * limit * play(Job(load, "chain")).peak


# --- how fast ------------------------------------------------------------------------------------


def test_waits_are_what_the_simulator_finds_for_fifo() -> None:
    load = burst("four operators", 1.7, tuples=300)
    seconds = service(QUERIES["four operators"]())
    found = simulate(workload(load), rival("fifo")).latencies()
    assert found == pytest.approx(calibration.waits(load.traffic.times(), seconds))


@pytest.mark.usefixtures("no_data")
def test_the_speed_is_such_that_fifo_reaches_the_latency_asked_for() -> None:
    load = calibration.reaching("falling slopes", 0.004, margin=0.0)
    assert play(Job(load, "fifo")).latency == pytest.approx(4.0, rel=0.01)


@pytest.mark.usefixtures("no_data")
def test_an_excerpt_begins_when_nothing_waits_and_holds_the_worst_moment() -> None:
    seconds = service(QUERIES["four operators"]())
    whole = calibration.at_load(calibration.TRACE, seconds, 0.6)
    part = calibration.around_peak(whole, seconds, margin=0.01)
    waited = calibration.waits(whole.times(), seconds)
    assert waited[part.first] == pytest.approx(seconds)
    assert calibration.waits(part.times(), seconds).max() == pytest.approx(waited.max())


def test_utilisation_undoes_the_speed() -> None:
    known = calibration.at_load(calibration.TRACE, 40e-6, 0.7)
    assert calibration.utilisation(known, 40e-6) == pytest.approx(0.7)


def test_the_synthetic_stream_is_half_of_what_can_be_done() -> None:
    load = calibration.synthetic("four operators", 0.005, seconds=0.5)
    assert isinstance(load.traffic, Synthetic)
    worst = calibration.waits(load.traffic.times(), 40e-6).max()
    assert worst == pytest.approx(0.005, rel=0.05)
    assert load.traffic.rate * 40e-6 == pytest.approx(0.5)


@pytest.mark.usefixtures("no_data")
def test_the_report_says_that_a_generated_hour_stood_in() -> None:
    assert traces.present(calibration.TRACE) is None
    load = calibration.excerpt("four operators", 0.5, 0.0)
    told = program._about(program.Plan(True, 1.0, {"four operators": load}, {}))
    assert any("no recorded trace was found" in paragraph for paragraph in told)
    assert any("PENSTOCK_DATA" in paragraph for paragraph in told)


# --- runs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["four operators", "selectivity above 1", "falling slopes"])
@pytest.mark.parametrize("policy", PAPERS)
def test_no_policy_is_below_the_bound_at_any_instant(query: str, policy: str) -> None:
    load = Load(query, Burst(1.5 / service(QUERIES[query]()), 400))
    result, least = simulate(workload(load), rival(policy)), bound(workload(load))
    times = np.linspace(0, result.finished, 500)
    found = memory_at(result, times)
    assert all(level >= least.at(at) - 1e-6 for at, level in zip(times, found, strict=True))
    assert least.peak > 1


def test_a_run_is_the_same_again_and_can_be_sent_to_another_process() -> None:
    job = Job(burst("three queries", 1.4, tuples=200), flush(0.01))
    again = pickle.loads(pickle.dumps(job))
    assert again == job
    assert replace(play(job), wall=0.0) == replace(play(again), wall=0.0)


def test_tuples_in_pages_arrive_when_the_last_of_a_page_came() -> None:
    load = Load("four operators", Burst(10.0, 250), group=100)
    times = workload(load).arrivals["q"]
    assert len(times) == 200
    assert sorted(set(times)) == pytest.approx([9.9, 19.9])


def test_chain_by_operator_changes_operators_a_few_times_per_page() -> None:
    load = replace(burst("four operators", 1.2, tuples=2000), group=100, model="tuples")
    by_tuple, by_operator = play(Job(load, "chain")), play(Job(load, "chain by operator"))
    assert by_operator.switches < 0.1 * by_tuple.switches


def test_wrong_figures_reach_the_policy_only() -> None:
    load = replace(burst("falling slopes", 1.3, tuples=200), mistake=0.2, seed=5)
    network = workload(load).network
    true, told = network.routes[0], network.told()[0]
    assert all(abs(a.cost / b.cost - 1) <= 0.2 for a, b in
               zip(told.stages, true.stages, strict=True))
    assert told != true
    fifo = [play(Job(known, "fifo")).latency for known in (load, replace(load, mistake=0.0))]
    assert fifo[0] == fifo[1]


def test_labels_name_policies_that_exist() -> None:
    named = labels(0.12, gammas=(0.0001,))
    assert named["chain_flush(120 ms)"] == flush(0.12)
    assert named["mixed(0.0001)"] == mixed(0.0001) == "mixed(gamma=10000)"
    for policy in named.values():
        assert rival(policy) is not None
