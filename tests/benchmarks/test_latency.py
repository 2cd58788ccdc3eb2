"""The benchmark of latency, as far as it needs no Spark: what is asked, and how it is measured."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.latency import feeder, watcher
from benchmarks.latency.answers import Answer, Called, Filed, Latencies, of_rows, of_windows
from benchmarks.latency.measuring import Measured
from benchmarks.latency.program import _checks, _read, _row
from benchmarks.latency.workloads import CASES, WORKLOADS, Case, application, chosen
from harness.findings import Report
from penstock.generators.packets import OnOff
from penstock.language import bind

MIX = next(case for case in CASES if str(case) == "mix-5-5/shared/files")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_case_binds_with_all_its_queries(case: Case, tmp_path: Path) -> None:
    bound = bind(application(case, str(tmp_path), "benchmarks.latency.answers:take"))
    assert list(bound.queries) == case.workload.queries


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_all_filters_together_answer_about_as_many_rows_as_come_in(workload: Any) -> None:
    import duckdb

    packets = pa.Table.from_batches([OnOff(rate=50_000, burst=0.1, seed=1).packets(0, 2)])
    with duckdb.connect() as db:
        db.register("packets", packets)
        kept = [db.execute(f"SELECT count(*) FROM packets WHERE {condition}").fetchall()[0][0]
                / packets.num_rows for condition in workload.conditions.values()]
    assert 0.9 <= sum(kept) <= 1.2
    assert max(kept) <= 2.5 * min(kept)


def test_cases_are_chosen_by_patterns_and_a_pattern_that_fits_none_is_refused() -> None:
    assert len(chosen(["*"])) == len(CASES) == 24
    assert [str(case) for case in chosen(["filters-20/shared/*"])] == [
        "filters-20/shared/generated", "filters-20/shared/files"]
    assert _read("start,*/files") == ("start", "*/files")
    with pytest.raises(ValueError, match="no case is called 'x'"):
        _read("x")


def test_a_file_is_seen_when_it_is_whole_under_its_final_name(tmp_path: Path) -> None:
    folder, log = tmp_path / "out", tmp_path / "seen.log"
    folder.mkdir()
    process = watcher.start(log, [folder])
    try:
        (tmp_path / "staged").write_text("whole")
        (tmp_path / "staged").rename(folder / "moved")
        with open(folder / "written", "w") as file:
            opened = time.time()
            time.sleep(0.05)
            file.write("whole")
        (folder / ".hidden").touch()
        (folder / "last").touch()
        end = time.monotonic() + 10
        while (0, "last") not in watcher.seen(log) and time.monotonic() < end:
            time.sleep(0.01)
    finally:
        process.terminate()
        process.wait()
    seen = watcher.seen(log)
    assert set(seen) == {(0, "moved"), (0, "written"), (0, "last")}
    assert seen[0, "written"] >= opened + 0.05, "not when it was made"


def test_files_come_at_their_rate_and_rows_carry_the_moment(tmp_path: Path) -> None:
    began = time.time()
    feeder.feed(tmp_path, rate=200, files=3)
    files = sorted(tmp_path.iterdir())
    tables = [pq.read_table(file) for file in files]
    assert [table.num_rows for table in tables] == [20, 20, 20]
    times = [table["ts"].cast("int64").to_numpy() / 1e6 for table in tables]
    assert all(len(set(each)) == 1 for each in times)
    assert times[2][0] - times[0][0] >= 0.15 and began <= times[0][0] <= time.time()


def test_callbacks_and_files_tell_the_same(tmp_path: Path) -> None:
    """The rows of a filter, and of a window aggregate, to callbacks and to a shared folder."""
    stamp = pa.timestamp("us", "UTC")
    rows = pa.table({"ts": pa.array([1_000_000, 3_000_000], stamp), "src": [1, 2]})
    window = pa.table({"port": [80], "window_end": pa.array([5_000_000], stamp)})
    called = Called()
    called.take("f0", rows)
    called.take("w0", window)
    called.take("f1", rows.slice(0, 0))
    shared = pa.table({
        "query": ["f0", "f0", "w0"], "ts": pa.array([1_000_000, 3_000_000, None], stamp),
        "window_end": pa.array([None, None, 5_000_000], stamp)})
    (tmp_path / "out").mkdir()
    pq.write_table(shared, tmp_path / "out" / "a.parquet")
    (tmp_path / "log").write_text("7.5\t0\ta.parquet\n")
    filed = Filed(MIX, tmp_path / "out", tmp_path / "log")
    for came in (called, filed):
        assert came.reached(since=0.0) == {"f0": 3.0, "w0": 5.0}
        assert {answer.query: list(answer.times) for answer in came.all()} == {
            "f0": [1.0, 3.0], "w0": [5.0]}
    assert {answer.at for answer in filed.all()} == {7.5}
    assert called.reached(since=time.time() + 9) == {}, "what came before does not count"
    assert Filed(MIX, filed.root, filed.log).reached(since=7.6) == {}
    assert (called.count, filed.count) == (2, 1)


def test_latencies_are_those_of_rows_and_windows_in_the_span() -> None:
    answers = [Answer(10.0, "f0", np.array([9.0, 9.5, 2.0])), Answer(13.0, "f1", np.array([12.5])),
               Answer(11.0, "w0", np.array([10.0, 10.0])), Answer(12.0, "w0", np.array([10.0]))]
    rows = of_rows(answers, ["f0"], 5.0, 12.0)
    assert rows == Latencies(p50=0.75, p99=pytest.approx(0.995), max=1.0, count=2)
    assert of_windows(answers, ["w0"], 5.0, 12.0) == Latencies(2.0, 2.0, 2.0, 1), "its last rows"
    assert of_rows(answers, ["f1"], 5.0, 12.0) is None


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0, 9)), min_size=1, max_size=30))
def test_no_latency_is_longer_than_the_longest_and_every_row_counts_once(
    rows: list[tuple[float, float]]
) -> None:
    answers = [Answer(at + late, "f", np.array([at])) for at, late in rows]
    found = of_rows(answers, ["f"], 0.0, 51.0)
    assert found is not None and found.count == len(rows)
    assert 0 <= found.p50 <= found.p99 <= found.max <= 9.0 + 1e-9


def measured(p50: float, behind: float = 0.0) -> Measured:
    return Measured(1.0, Latencies(p50, 2 * p50, 3 * p50, 10), Latencies(p50, p50, p50, 2), behind)


def test_checks_name_the_worst_case_and_how_many_keep_the_target() -> None:
    report, other = Report("latency-mix-5-5"), Case(MIX.workload, "callback", "files")
    report.rows = [_row(MIX, "penstock", measured(0.2), measured(0.8)),
                   _row(MIX, "native", measured(0.8), measured(0.8)),
                   _row(other, "penstock", measured(0.6, behind=3.0), measured(0.3))]
    _checks(report)
    told = {check.id.split(": ")[1]: (check.measured, check.holds) for check in report.checks}
    assert told["p50 s"] == ("1 of 2; at most 0.60 s (callback, files)", False)
    assert told["window p99 s"] == ("2 of 2; at most 0.60 s (callback, files)", True)
    assert told["p50 to native's"] == ("1 of 2; at most 2.00 (callback, files)", False)
    assert told["behind"] == ("3.0 s", False)


def test_an_engine_that_never_answered_keeps_no_target() -> None:
    nothing, report = Measured(1.0, None, None, 9.0), Report("latency-mix-5-5")
    report.rows = [_row(MIX, "penstock", nothing, measured(0.8)),
                   _row(MIX, "native", measured(0.8), measured(0.8))]
    _checks(report)
    assert {check.holds for check in report.checks} == {False}
    assert {check.measured for check in report.checks} == {
        "0 of 1; never (shared, files)", "9.0 s"}
    report.rows[0] = _row(MIX, "penstock", measured(0.2), nothing)
    assert report.rows[0]["p50 to native's"] == 0.0
