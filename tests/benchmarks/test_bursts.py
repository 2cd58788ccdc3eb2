"""The benchmark of bursts, as far as it needs no Spark: what comes, when, and how it is judged."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.bursts import arrivals, program
from benchmarks.bursts.arrivals import ARRIVALS
from benchmarks.bursts.bound import bound
from benchmarks.bursts.checks import check
from benchmarks.bursts.measuring import Ground, Measured, _cold_reads
from benchmarks.bursts.pacing import Pace
from benchmarks.bursts.pipelines import PIPELINES, ROWS, Pipeline, Question, of_chart, prepare
from benchmarks.bursts.policies import MAIN, POLICIES, routes, slope_between, written
from experiments.chain.queries import ABOVE_ONE, FOUR, TWO, Points
from experiments.chain.queries import of_chart as of_paper
from harness.findings import Report
from penstock.engine.settings import Settings
from penstock.events import kinds as ev
from penstock.language import bind, load_function
from penstock.planning import plan
from penstock.policies.operators import POLICIES as ALL
from penstock.policies.operators import policy
from penstock.policies.operators.model.charts import chart
from penstock.simulator.outcomes import Floats
from penstock.testing import FakeHost
from penstock.whatif.predictions import compare
from penstock.whatif.recorded import Recording


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
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
    pipeline: Pipeline, folder: Path
) -> None:
    pipeline.write(folder)
    made = plan(bind(pipeline.sql("chain"), folder=str(folder)))
    assert [len(path.stages) for path in made.paths if path.end == "sink"] == [
        bool(q.matches) + len(q.conditions) + 1 for q in pipeline.questions]
    assert bool(pipeline.windows) == any(path.end == "panes" for path in made.paths)
    assert set(pipeline.arrivals) <= ARRIVALS.keys()


def test_conditions_keep_their_part_of_the_rows_independently(folder: Path) -> None:
    pipeline = PIPELINES[1]
    pipeline.write(folder)
    prepare(folder / "blocks", 1)
    rows = pq.read_table(folder / "blocks" / "0.parquet").slice(0, 4000)
    (question,) = pipeline.questions
    expected = float(rows.num_rows)
    for call, condition in zip(question.calls, question.conditions, strict=True):
        function = load_function("burst_functions", f"{call}_", str(folder))
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


@pytest.mark.parametrize(("points", "matches"), [(TWO, 0), (FOUR, 0), (ABOVE_ONE, 2)])
def test_the_paper_s_pipelines_have_the_envelopes_of_its_charts(
    points: Points, matches: int
) -> None:
    ours = Question("q", of_chart(points, matches), matches).route()
    known, theirs = chart(ours), chart(of_paper("q", points))
    slopes = np.array(known.slopes) / known.slopes[0]
    assert slopes == pytest.approx(np.array(theirs.slopes) / theirs.slopes[0])
    corners = [[made.sizes[i] for i in made.envelope] for made in (known, theirs)]
    assert corners[0] == pytest.approx(corners[1])


def test_every_policy_of_the_engine_goes_through_bursts_and_is_written_as_it_is_read() -> None:
    names = {written(name, 9.5, 0.25).partition("(")[0] for name in POLICIES}
    assert names == set(ALL)
    assert next(iter(POLICIES)) == MAIN[0] == "fifo", "the limits of the others follow from it"
    assert [policy(written(name, 9.5, 0.25)) for name in POLICIES]


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


def test_mixed_gets_a_slope_between_the_steep_and_the_gentle_segment() -> None:
    paths = routes(Recording.of(pretended("fifo", 0.3 * np.arange(20)).record))
    steep, gentle = policy(written("mixed_gamma", 0.0, slope_between(paths))).prepare(paths)
    assert "came first" in gentle.reason and "came first" not in steep.reason


def judged(
    rows: dict[str, dict[str, float]], answers: str = "same", **peaks: list[float]
) -> set[str]:
    """The checks that fail."""
    report, found = Report("bursts"), _found(rows, **peaks)
    found["fifo"] = [_measured("fifo", rows["fifo"]["peak waiting MB"], answers)]
    ids = check("two operators, even", PIPELINES[0], found, rows, report)
    assert ids == [each.id for each in report.checks]
    return {each.id.split(":")[0] for each in report.checks if not each.holds}


def test_a_burst_is_judged_by_what_was_measured() -> None:
    assert judged(_rows(chain=2.0)) == set()


@pytest.mark.parametrize(("wrong", "fails"), [
    ({"chain": 3.5}, {"third"}),
    ({"chain": 9.9}, {"third", "lowest"}),
    ({"chain": 2.0, "rate": 80.0}, {"rate"}),
    ({"chain": 2.0, "native": 120.0}, {"native"}),
    ({"chain": 2.0, "deciding": 2.5}, {"deciding"}),
    ({"chain": 2.0, "worst": 14.6}, {"chain_flush"}),
    ({"chain": 2.0, "predicted": 1.3}, {"predicted peak"}),
])
def test_what_is_not_as_it_must_be_is_found(wrong: dict[str, float], fails: set[str]) -> None:
    assert judged(_rows(**wrong)) == fails


def test_other_answers_are_found() -> None:
    assert judged(_rows(chain=2.0), answers="other") == {"answers"}


def test_a_lower_mean_counts_only_where_measurements_do_not_overlap() -> None:
    rows = _rows(chain=2.0)
    rows["chain_flush"]["peak waiting MB"] = 1.9
    assert judged(rows, chain=[1.8, 2.2], chain_flush=[1.7, 2.1]) == set()
    assert judged(rows, chain=[2.0, 2.2], chain_flush=[1.8, 1.9]) == {"lowest"}


def test_a_threshold_that_chain_keeps_by_itself_is_not_judged() -> None:
    rows = _rows(chain=2.0)
    rows["chain"]["max s"] = 12.0
    report = Report("bursts")
    check("x", PIPELINES[0], _found(rows), rows, report)
    assert "chain_flush: x" not in {each.id for each in report.checks}


def _measured(policy: str, peak: float, answers: str = "same") -> Measured:
    return Measured(policy, {"peak waiting MB": peak}, ([], []), answers, began=0.0, limit=12.5)


def _found(rows: dict[str, dict[str, float]], **peaks: list[float]) -> dict[str, list[Measured]]:
    return {name: [_measured(name, peak) for peak in peaks.get(name, [row["peak waiting MB"]])]
            for name, row in rows.items() if name != "bound"}


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


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The program with the test kit in place of Spark; how often each policy was measured."""
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
        asked["native"] += 1
        figures = {"peak waiting MB": 9.0, "rows/s": 1.0, "max s": 1.0}
        return Measured("native", figures, ([0.0], [9.0]), "same", began=0.0)

    monkeypatch.setattr(program, "measure", measure)
    monkeypatch.setattr(program, "native", native)
    monkeypatch.setattr(program, "prepare", lambda folder, blocks: None)
    monkeypatch.setattr(program, "absent", lambda: "no trace here")
    monkeypatch.setattr(Pace, "of", lambda pipeline, ground: PACE)
    return asked


def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: bool, **chosen: object
            ) -> list[Report]:
    monkeypatch.setattr(program, "workplace", lambda name: nullcontext((None, tmp_path)))
    return list(program.run(quick, tmp_path, lambda text: None, **chosen))  # type: ignore[arg-type]


def test_a_report_has_every_policy_of_every_workload_with_its_predictions(
    tmp_path: Path, without_spark: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (report,) = reports(tmp_path, monkeypatch, quick=True)
    assert report.name == "bursts-two-operators"
    assert [row["policy"] for row in report.rows] == ["native", *MAIN, "bound"]
    verdicts = {check.id: check.holds for check in report.checks}
    assert verdicts["predicted peak: two operators, even"], "the model knows all costs"
    assert verdicts["predicted mean latency: two operators, even"]
    assert verdicts["third: two operators, even"]
    assert all(figure.file.exists() for figure in report.figures)


def test_pipelines_policies_and_repeats_can_be_chosen(
    tmp_path: Path, without_spark: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = {"pipelines": ("two-operators", "two-operators-and-aggregates"),
              "policies": ("chain", "chain_flush_exact"), "repeats": 2}
    ours, aggregates = reports(tmp_path, monkeypatch, quick=False, **chosen)
    assert [row["policy"] for row in ours.rows] == [
        "native", "fifo", "chain", "chain_flush_exact", "bound"]
    assert [row["policy"] for row in aggregates.rows] == [
        "fifo", "chain", "chain_flush_exact", "bound"]
    assert without_spark == {"native": 2, "fifo": 4, "chain": 4, "chain_flush": 4}
    assert {row["measured"] for row in ours.rows if row["policy"] != "bound"} == {2}
    assert "no trace here" in ours.about
