"""The aggregates experiment: what the paper's example gives, and what the figures rest on."""

from __future__ import annotations

import doctest
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from experiments.aggregates import calibration, example, on_spark, program
from experiments.aggregates.queries import GROUPS, LONGEST, SHORTEST, Load, capacity, drawn
from experiments.aggregates.runs import (
    AS,
    CS,
    H_LP,
    HS,
    NO_S,
    P_HS,
    P_LP,
    Case,
    Size,
    named,
    run_one,
)
from penstock.events import kinds as ev
from penstock.language import bind
from penstock.planning import plan
from penstock.policies.refresh import QueryGroup, WindowQuery, policy
from penstock.simulator.fleet import scatter
from penstock.simulator.refreshes import Refreshed, Refreshing, play

SMALL = Size(queries=(40,), seeds=1, seconds=30, factors=(0.5, 2.0), ratios=(0.0, 3.0), varied=40,
             cheap=(0.01,))


@pytest.mark.parametrize("module", ["example", "queries"])
def test_examples_in_docstrings_hold(module: str) -> None:
    assert doctest.testmod(import_module(f"experiments.aggregates.{module}")).failed == 0


# --- refreshes in virtual time ---------------------------------------------------------------


def test_latency_is_what_lies_between_two_answers_beyond_what_was_asked() -> None:
    found = Refreshed(12.0, 12, {"q": WindowQuery("q", 5, 2)}, {"q": [2, 5, 6, 10]})
    assert found.extra("q") == (0 + 1 + 0 + 2) / 4


def test_a_query_that_still_waits_is_late_already() -> None:
    found = Refreshed(12.0, 12, {"q": WindowQuery("q", 5, 2), "never": WindowQuery("never", 5, 4)},
                      {"q": [2, 4]})
    assert found.extra("q") == 6 / 3
    assert found.extra("never") == 8
    assert found.latency == (2 + 8) / 2


def test_a_processor_that_is_too_slow_stretches_periods() -> None:
    group = QueryGroup("g", (WindowQuery("q", 10, 2),))
    found = play(Refreshing((group,), lambda of, windows: (3.5, 0.0), panes=20), policy("edf"))
    assert found.ends["q"] == [2, 5, 9, 12, 16]
    assert found.busy == 6 * 3.5  # the last one ended too late to count


def test_one_time_queries_take_their_time() -> None:
    group = QueryGroup("g", (WindowQuery("q", 10, 2),))
    load = Refreshing((group,), lambda of, windows: (0.1, 0.0), panes=6,
                      interruptions=((1.5, 1.0),))
    assert play(load, policy("edf")).ends["q"] == [2, 4]
    slow = Refreshing((group,), lambda of, windows: (0.1, 0.0), panes=6,
                      interruptions=((1.5, 2.0),))
    assert play(slow, policy("edf")).ends["q"] == [3, 5]


# --- the workload ----------------------------------------------------------------------------


def test_the_workload_is_the_papers() -> None:
    groups = drawn(240, high=False, ratio=0.5, seed=3)
    assert len(groups) == len(GROUPS) == 8
    for group in groups:
        assert len(group.queries) == 30
        for query in group.queries:
            assert SHORTEST <= query.window <= LONGEST
            assert 1 <= query.period <= query.window // 2


def test_the_load_is_that_of_the_conservative_schedule_of_40_queries() -> None:
    speed, fair = capacity(0.5), policy("conservative")
    needs = [sum(fair.cost(group, fair.prepare([group]))
                 for group in drawn(40, False, 0.5, seed, speed)) for seed in range(20)]
    assert sum(needs) / 20 == pytest.approx(1.0)


def test_at_the_high_rate_a_scan_costs_twice_as_much() -> None:
    low, high = (Load(40, rate, 0.5, 1.0).workload(0) for rate in (False, True))
    for group in low.groups:
        assert high.price(group.id, (60,))[0] == pytest.approx(
            2 * low.price(group.id, (60,))[0], rel=0.05)


def test_a_joint_run_reads_the_longest_window_once() -> None:
    load = Load(40, False, 0.5, 1.0).workload(0)
    alone, joint = load.price("source", (60,)), load.price("source", (60, 20, 30))
    assert alone[0] == joint[0]
    assert alone[1] < joint[1]


def test_a_policy_that_is_not_told_what_answers_cost_takes_it_for_scanning() -> None:
    told, untold = (Load(40, False, 0.5, 1.0, told=told).workload(0) for told in (True, False))
    assert sum(told.price("port", (60, 20))) == sum(untold.price("port", (60, 20)))
    assert untold.price("port", (60, 20))[1] == 0
    assert all(group.costs.answer == 0 for group in untold.groups)
    assert all(group.costs.answer > 0 for group in told.groups)


def test_costs_are_measured() -> None:
    for prices in (calibration.hash_tables(repeat=1), calibration.arrays(repeat=1)):
        assert prices.cell > 0
        assert prices.ranked > 0


def test_a_run_finds_the_same_in_another_process() -> None:
    load = Load(80, True, 0.5, 1.0, seconds=40)
    cases = [Case(load, name, 2) for name in (NO_S, AS, CS, HS, H_LP)]
    assert list(scatter(run_one, cases, processes=2)) == list(map(run_one, cases))


# --- hybrid as in the paper ------------------------------------------------------------------


def test_the_papers_hybrid_makes_the_same_tasks_whether_it_is_late_or_not() -> None:
    for group in drawn(160, high=False, ratio=0.01, seed=1):
        for name in (P_HS, P_LP):
            made = named(name).prepare([replace(group, late=True)])
            assert made == policy(HS).prepare([group])
            assert made != policy(HS).prepare([replace(group, late=True)])


def test_on_a_machine_that_is_never_late_both_forms_of_hybrid_are_the_same() -> None:
    load = Load(40, False, 0.1, 0.2, seconds=60)
    ours, papers = (run_one(Case(load, name, 0)) for name in (HS, P_HS))
    assert ours == papers
    assert ours.latency == 0


# --- on Spark --------------------------------------------------------------------------------


def test_the_queries_on_spark_are_eight_groups_of_the_papers_fields() -> None:
    asked = on_spark.drawn(240, seed=1)
    text = ("CREATE STREAM packets (ts TIMESTAMP, src INT, dst INT, length INT) FROM onoff TIME ts;"
            + "".join(one.text for one in asked))
    groups = plan(bind(text)).groups
    assert [len(group.members) for group in groups] == [30] * 8
    assert all(len(group.aggregates) == 2 for group in groups)  # the top ten, and a quantile
    keys = {one.group: one.key for one in asked}
    assert len(set(keys.values())) == len(GROUPS)
    assert keys[2] == (f"{on_spark.FIELDS['source']} + {1000 * on_spark.SCALE} * "
                       f"{on_spark.FIELDS['destination']}")


def refreshed(job: int, at: float, end: int, *queries: str) -> list[ev.Event]:
    scan = ev.ScanWork(end=end, queries=queries, reason="")
    return [
        ev.JobDecided(at=at, job=job, kind="refresh", reason="", waiting=0,
                      work=ev.RefreshWork(group="g", scans=(scan,))),
        ev.JobFinished(at=at, job=job, kind="refresh", seconds=0.1,
                       result=ev.RefreshResult(answers=dict.fromkeys(queries, 1), arrived=0.0))]


def test_queries_that_were_hardly_answered_count_with_what_they_have_waited() -> None:
    often, seldom, never = (on_spark.Asked(f"q_{i}", 0, 20, 2) for i in range(3))
    events = [*refreshed(0, 9.0, 100, "q_0", "q_1", "q_2"), *refreshed(1, 11.0, 102, "q_0"),
              *refreshed(2, 12.0, 105, "q_0", "q_1"), *refreshed(3, 12.5, 110, "q_0")]
    found = on_spark.measured(
        [often, seldom, never], events, since=10.0, seconds=12 * on_spark.PANE)
    # Of 12 panes q_0 was answered after 2 and 5: 0, 1 too many, and has waited for 7: 5.
    # q_1 after 5, and has waited for 7: 3, 5. q_2 has waited for 12: 10.
    assert found.latency == pytest.approx((6 / 3 + 8 / 2 + 10) / 3)
    assert found.throughput == pytest.approx(3 / 2.4)
    assert found.starved == 2


def test_where_the_first_answer_comes_after_the_warm_up_panes_count_from_its_end() -> None:
    asked = [on_spark.Asked("q_0", 0, 20, 2)]
    events = [*refreshed(0, 10.0 + 3 * on_spark.PANE, 8_000_003, "q_0"),
              *refreshed(1, 10.0 + 9 * on_spark.PANE, 8_000_005, "q_0")]
    found = on_spark.measured(asked, events, since=10.0, seconds=12 * on_spark.PANE)
    # Of 12 panes it was answered after 3 and 5, and has waited for 7.
    assert found.latency == pytest.approx((1 + 0 + 5) / 3)


def test_where_nothing_was_answered_all_have_waited_for_the_whole_time() -> None:
    asked = on_spark.drawn(8, seed=0)
    found = on_spark.measured(asked, [], since=10.0, seconds=60.0)
    assert (found.throughput, found.starved) == (0.0, 8)
    assert found.latency == pytest.approx(sum(300 - one.slide for one in asked) / 8)


# --- the whole -------------------------------------------------------------------------------


def test_the_papers_schedules_played_for_an_hour_cost_what_its_formula_says() -> None:
    hour = example.played(CS)
    merges = sum(max(window for _, window in run.queries) - 1
                 for run in hour.runs if run.end <= example.MINUTES)
    assert merges / example.MINUTES == pytest.approx(example.costs()["as they are"])


def test_every_figure_of_the_paper_is_drawn_and_every_claim_is_beside_a_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "QUICK", SMALL)
    (report,) = program.run(True, tmp_path, lambda text: None)
    assert {f"fig{number}" for number in range(4, 9)} <= {figure.id for figure in report.figures}
    linked = [check for figure in report.figures for check in figure.checks]
    assert sorted(linked) == sorted(check.id for check in report.checks)
    assert {figure.file for figure in report.figures} == set((tmp_path / "figures").iterdir())
    assert all(check.measured for check in report.checks)
    exact = {check.id: check.holds for check in report.checks}
    assert exact["costs"]
    assert exact["choice"]
    assert exact["played"]


def test_what_was_measured_on_spark_is_told_by_policy_with_its_spread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = {name: [on_spark.Measured(10.0 * n, 9.0 / n, 1), on_spark.Measured(12.0 * n, 9.0, 0)]
                for n, name in enumerate(on_spark.SHORT, start=1)}
    left = {name: list(runs) for name, runs in measured.items()}
    monkeypatch.setattr(on_spark, "SEEDS", 2)
    monkeypatch.setattr(on_spark, "run", lambda policy, asked: left[policy].pop(0))
    (report,) = program.run(False, tmp_path, lambda text: None, ["spark-80"])
    assert report.name == "aggregates-spark-80"
    assert [row["policy"] for row in report.rows] == list(on_spark.SHORT.values())
    first = report.rows[0]
    assert (first["answers/s"], first["answers/s least"], first["answers/s most"]) == (11, 10, 12)
    assert (first["answered less than twice"], first["runs"]) == (0.5, 2)
    assert {check.id for check in report.checks} == {"spark-lp", "spark-hs", "spark-no-s"}
