"""The benchmark of bursts, as far as it needs no Spark: what comes, when, and how it is judged."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.bursts import arrivals, program
from benchmarks.bursts.arrivals import ARRIVALS
from benchmarks.bursts.bound import bound
from benchmarks.bursts.checks import check
from benchmarks.bursts.measuring import Ground, Measured, _cold_reads, middle
from benchmarks.bursts.pacing import Pace
from benchmarks.bursts.pipelines import PIPELINES, ROWS, Pipeline, prepare
from harness.findings import Report
from penstock.engine.settings import Settings
from penstock.events import kinds as ev
from penstock.language import bind, load_function
from penstock.model import Block
from penstock.planning import plan
from penstock.policies.operators import POLICIES
from penstock.simulator.outcomes import Floats
from penstock.testing import FakeHost
from penstock.whatif.predictions import compare


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Path]:
    """A folder for a pipeline; its module is imported from there, and forgotten afterwards."""
    yield tmp_path
    sys.modules.pop("burst_functions", None)


PACE = Pace(every=0.5, chain=0.4, fifo=1.0)


@pytest.mark.parametrize("kind", ARRIVALS)
def test_blocks_come_in_order_and_at_a_block_per_pace_where_it_is_busy(kind: str) -> None:
    if kind == "DEC-PKT" and arrivals.absent():
        pytest.skip("the trace is not there")
    times = ARRIVALS[kind](24)
    assert len(times) == 24
    assert times[0] == 0
    assert (np.diff(times) >= 0).all()
    over_four = np.sort(times[4:] - times[:-4]) / 4
    assert over_four[: len(over_four) // 3].mean() == pytest.approx(1.0)


@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda pipeline: pipeline.name)
def test_every_question_is_a_path_of_its_own_with_a_stage_per_operator(
    pipeline: Pipeline, written: Path
) -> None:
    pipeline.write(written)
    made = plan(bind(pipeline.sql("chain"), folder=str(written)))
    assert [len(path.stages) for path in made.paths] == [
        bool(q.matches) + len(q.conditions) + 1 for q in pipeline.questions]
    assert set(pipeline.arrivals) <= ARRIVALS.keys()


def test_conditions_keep_their_part_of_the_rows_independently(written: Path) -> None:
    pipeline = PIPELINES[1]
    pipeline.write(written)
    prepare(written / "blocks", 1)
    rows = pq.read_table(written / "blocks" / "0.parquet").slice(0, 4000)
    (question,) = pipeline.questions
    expected = float(rows.num_rows)
    for call, condition in zip(question.calls, question.conditions, strict=True):
        function = load_function("burst_functions", f"{call}_", str(written))
        rows = rows.filter(function(rows["n"].combine_chunks(), rows["a"].combine_chunks()))
        expected *= condition.kept
        assert rows.num_rows == pytest.approx(expected, rel=0.1)


def test_a_read_is_cold_unless_it_is_the_first_or_the_block_is_in_memory() -> None:
    def decided(at: float, run: int, first: int = 0) -> ev.JobDecided:
        return ev.JobDecided(at=at, job=run, kind="segment", reason="", work=ev.PathWork(
            segment="p", riders=1, stream="s", blocks=(7,), rows=10, stages=(first, 2)))

    events: list[ev.Event] = [
        decided(1.0, 1), decided(2.0, 2),
        ev.BlockHot(at=2.5, stream="s", number=7, bytes=80), decided(3.0, 3),
        ev.JobFinished(at=4.0, job=3, kind="segment", seconds=1.0, result=ev.SegmentResult(
            rows_in=5, kept=ev.KeptRows(rows=5, bytes=40, on_disk=True))), decided(5.0, 4, first=1),
        ev.BlockCold(at=5.5, stream="s", number=7), decided(6.0, 5)]
    assert _cold_reads(events, since=0.0) == 3, "runs 2 and 5, and what run 3 kept"
    assert _cold_reads(events, since=5.0) == 1


def test_of_several_measurements_the_one_with_the_peak_in_the_middle_answers_for_all() -> None:
    def measured(peak: float, answers: str = "same") -> Measured:
        return Measured("chain", {"peak waiting MB": peak}, ([], []), answers, began=0.0)

    several = [measured(3.0), measured(2.0), measured(7.0)]
    assert middle(several) == several[0]
    assert middle(several[:1]) == several[0]
    assert middle([*several[:2], measured(7.0, "other")]).answers != "same"


SQL = """
    CREATE STREAM s (length INT, src INT, dst INT, port INT) FROM rate;
    CREATE FUNCTION f FROM 'penstock.demo.detectors:looks_like_a_scan';
    CREATE FUNCTION g FROM 'penstock.demo.detectors:looks_like_a_scan';
    CREATE QUERY q AS SELECT src FROM s WHERE f(port, length) AND g(dst, src);
"""
COSTS = {"q#0:python1": (0.002, 0.1), "q#0:python2": (0.05, 1.0), "q#0:project": (0.0, 1.0)}


def pretended(policy: str, times: Floats) -> FakeHost:
    """A run of the test kit in place of one on Spark."""
    host = FakeHost.of(SQL, policy, operators=COSTS,
                       settings=Settings(until_drained=True, quantum=0.3))
    for at in times:
        host.arrive("s", at=float(at))
    host.run()
    return host


def test_no_run_is_below_the_bound_of_its_own_figures() -> None:
    host = pretended("fifo", 0.3 * np.arange(20))
    compared = compare(host.record, {})
    _, level = bound(compared.recording, host.record, began=0.0)
    assert 0 < max(level) < compared.recorded.peak_bytes / 1e6


def test_a_burst_is_judged_by_what_was_measured() -> None:
    report = Report("bursts")
    ids = check("two operators, even", 1, PACE, _found("same"), _rows(chain=2.0), report)
    assert ids == [each.id for each in report.checks]
    assert all(each.holds for each in report.checks), report.checks


@pytest.mark.parametrize(("wrong", "fails"), [
    ({"chain": 4.1}, {"half"}),
    ({"chain": 9.9}, {"half", "lowest"}),
    ({"chain": 2.0, "rate": 80.0}, {"rate"}),
    ({"chain": 2.0, "native": 120.0}, {"native"}),
    ({"chain": 2.0, "deciding": 2.5}, {"deciding"}),
    ({"chain": 2.0, "worst": 14.6}, {"chain_flush"}),
    ({"chain": 2.0, "predicted": 1.3}, {"predicted peak"}),
])
def test_what_is_not_as_it_must_be_is_found(wrong: dict[str, float], fails: set[str]) -> None:
    report = Report("bursts")
    check("two operators, even", 1, PACE, _found("same"), _rows(**wrong), report)
    assert {each.id.split(":")[0] for each in report.checks if not each.holds} == fails


def test_native_spark_runs_several_queries_at_once_and_is_not_compared() -> None:
    report = Report("bursts")
    check("x", 3, PACE, _found("same"), _rows(chain=2.0, native=120.0), report)
    assert all(each.holds for each in report.checks)
    assert "native: x" not in {each.id for each in report.checks}


def test_other_answers_and_a_burst_of_another_pace_are_found() -> None:
    report = Report("bursts")
    check("x", 1, Pace(0.5, 0.6, 1.0), _found("same") | {"fifo": _measured("fifo", "other")},
          _rows(chain=2.0), report)
    assert {each.id for each in report.checks if not each.holds} == {"pace: x", "answers: x"}


def _measured(policy: str, answers: str) -> Measured:
    block = ev.BlockArrived(at=0.0, block=Block("s", 0, 100, 1_000_000, 0.0), read=100)
    return Measured(policy, {}, ([], []), answers, began=0.0, events=[block], limit=12.5)


def _found(answers: str) -> dict[str, Measured]:
    return {name: _measured(name, answers)
            for name in ("native", "fifo", "round_robin", "chain", "chain_flush")}


def _rows(
    chain: float, rate: float = 95.0, native: float = 90.0, deciding: float = 0.1,
    worst: float = 13.0, predicted: float = 1.1,
) -> dict[str, dict[str, float]]:
    def row(peak: float, rows_per_second: float, longest: float) -> dict[str, float]:
        return {"peak waiting MB": peak, "rows/s": rows_per_second,
                "times native": rows_per_second / native, "max s": longest,
                "scheduling %": deciding, "whole peak MB": peak, "mean s": 1.0,
                "predicted peak MB": predicted * peak, "predicted mean s": 1.0}

    return {"native": {"peak waiting MB": 11.0, "rows/s": native}, "fifo": row(10.0, 100.0, 10.0),
            "round_robin": row(8.0, 99.0, 11.0), "chain": row(chain, rate, 20.0),
            "chain_flush": row(9.0, 98.0, worst),
            "bound": {"peak waiting MB": 1.0}}


def test_blocks_of_several_streams_come_in_turn() -> None:
    pipeline = PIPELINES[3]
    assert [pipeline.stream(number) for number in range(4)] == ["x", "y", "z", "x"]
    assert pipeline.blocks % len(pipeline.questions) == 0
    assert ROWS % 10 == 0, "every row meets the relation"


@pytest.mark.parametrize("quick", [True, False])
def test_the_whole_program_reports_every_policy_of_every_workload(
    quick: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[str] = Counter()

    def measure(pipeline: Pipeline, policy: str, times: Floats, ground: Ground) -> Measured:
        asked[policy.partition("(")[0]] += 1
        events = pretended(policy, times).record
        waits = [e for e in events if isinstance(e, ev.Queued)]
        worst = max(e.at for e in events) - float(times[-1])
        figures = {"peak waiting MB": max(e.bytes for e in waits) / 1e6, "max s": worst,
                   "rows/s": 1.0, "scheduling %": 0.0}
        series = [e.at for e in waits], [e.bytes / 1e6 for e in waits]
        return Measured(policy, figures, series, "same", began=0.0, events=events)

    def native(pipeline: Pipeline, times: Floats, ground: Ground) -> Measured:
        return Measured("native", {"peak waiting MB": 9.0, "rows/s": 1.0}, ([0.0], [9.0]), "same",
                        began=0.0)

    monkeypatch.setattr(program, "measure", measure)
    monkeypatch.setattr(program, "native", native)
    monkeypatch.setattr(program, "prepare", lambda folder, blocks: None)
    monkeypatch.setattr(program, "absent", lambda: "no trace here")
    monkeypatch.setattr(program, "Engine", lambda **_: nullcontext(SimpleNamespace(session=None)))
    monkeypatch.setattr(Pace, "of", lambda pipeline, ground: PACE)
    told: list[str] = []
    report = program.run(quick, tmp_path, told.append)
    tried = program.MAIN if quick else tuple(POLICIES)
    workloads = ["two operators, even"] if quick else [
        f"{pipeline.name}, {pipeline.arrivals[0]}" for pipeline in PIPELINES]
    assert [(row["workload"], row["policy"]) for row in report.rows] == [
        (workload, name) for workload in workloads for name in ("native", *tried, "bound")]
    assert ("no trace here" in told) is not quick
    verdicts = {check.id: check.holds for check in report.checks}
    assert verdicts["predicted peak: two operators, even"], "the model knows all costs"
    assert verdicts["predicted mean latency: two operators, even"]
    assert verdicts["half: two operators, even"]
    assert [figure.id for figure in report.figures] == workloads
    often = {name: count / len(workloads) for name, count in asked.items()}
    assert often["fifo"] == often["chain"] == (1 if quick else program.TIMES)
    assert often["round_robin"] == 1, "its peak is far from Chain's"
    assert all(figure.file.exists() for figure in report.figures)
