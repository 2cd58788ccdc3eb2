"""The benchmark of the core, made small."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import core


def test_a_round_runs_every_path_once_for_each_block() -> None:
    made = core.host(4, "chain")
    assert core.spent(made, 4) > 0
    assert len(made.runs) == core.JOBS
    assert {len(job.blocks) for job in made.runs} == {1}


def test_the_benchmark_tells_the_ratio_of_each_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "PATHS", (2, 20))
    monkeypatch.setattr(core, "JOBS", 40)
    report = core.run(True, tmp_path, lambda text: None)
    assert [row["policy"] for row in report.rows] == list(core.POLICIES)
    assert [check.id for check in report.checks] == ["paths"]
