"""What benchmarks of live streams share: files that appear, and what a watch knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.live import Arrival, Feeder, Watch, through, until
from penstock.events import kinds as ev


@pytest.fixture
def feeder(tmp_path: Path) -> Feeder:
    (tmp_path / "block").write_text("rows")
    return Feeder(file=lambda *_: tmp_path / "block", folder=lambda stream: tmp_path / stream)


def test_files_appear_whole_in_the_order_of_their_numbers(feeder: Feeder, tmp_path: Path) -> None:
    for number in (0, 1, 2):
        feeder.put("s", number)
    files = sorted((tmp_path / "s").iterdir(), key=lambda file: file.stat().st_mtime)
    assert [file.name for file in files] == ["00000.parquet", "00001.parquet", "00002.parquet"]
    assert all(file.read_text() == "rows" for file in files)
    assert set(feeder.arrived) == {("s", 0), ("s", 1), ("s", 2)}


def test_first_blocks_go_through_one_by_one_and_the_rest_at_their_times(feeder: Feeder) -> None:
    open_at: list[int] = []

    def answered(stream: str, number: int) -> bool:
        """A block is answered as soon as it is there."""
        if number < 2:
            open_at.append(len(feeder.arrived))
        return (stream, number) in feeder.arrived

    arrivals = [Arrival(0.0, "s", 2), Arrival(0.05, "t", 3)]
    began = through(feeder, [("s", 0), ("s", 1)], arrivals, answered)
    assert open_at == [1, 2], "the second block waits for the first"
    assert feeder.arrived["t", 3] - began >= 0.05


def test_who_waits_in_vain_says_so() -> None:
    with pytest.raises(TimeoutError):
        until(lambda: False, seconds=0.0)


def test_a_block_is_through_when_a_job_has_delivered_it_and_not_before() -> None:
    def decided(job: int, kind: ev.JobKind, block: int) -> ev.JobDecided:
        return ev.JobDecided(at=1.0, job=job, kind=kind, reason="", work=ev.PathWork(
            segment="p", riders=1, stream="s", blocks=(block,), rows=10))

    def finished(job: int, result: ev.PathResult, kind: ev.JobKind) -> ev.JobFinished:
        return ev.JobFinished(at=float(job), job=job, kind=kind, seconds=1.0,
                              result=result)  # type: ignore[arg-type]

    watch = Watch()
    kept = ev.SegmentResult(rows_in=1, kept=ev.KeptRows(rows=1, bytes=8))
    results = {1: kept, 2: ev.SegmentResult(rows_in=1), 3: ev.PanesResult(rows_in=1)}
    for job, result in results.items():
        kind: ev.JobKind = "panes" if job == 3 else "segment"
        watch(decided(job, kind, job))
        watch(finished(job, result, kind))
    watch(ev.Memory(at=9.0, driver=1))
    assert watch.done == {("s", 2): 2.0}
    assert watch.finished == {1: 1.0, 2: 2.0, 3: 3.0}
    assert [ended.job for _, ended in watch.jobs(since=2.0)] == [2, 3]
    assert len(watch.memory) == 1 and len(watch.events) == 6
