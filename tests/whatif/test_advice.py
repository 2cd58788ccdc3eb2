"""Advice: the policy that would have met the limits, and what it is measured by."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.engine.settings import Settings
from penstock.events import Recorder
from penstock.events import kinds as ev
from penstock.testing import FakeHost
from penstock.whatif.advice import AdviceGoals, advise

MODULE = "penstock.demo.detectors"
APPLICATION = f"""
    CREATE STREAM s (length INT, port INT) FROM rate;
    CREATE FUNCTION f FROM '{MODULE}:looks_like_a_scan';
    CREATE QUERY q AS SELECT port FROM s WHERE f(port, length);
"""
FIGURES = {"q#0:python1": (0.0005, 0.3), "q#0:project": (0.0117, 1.0)}
"""The two-operator chart of the chain paper."""


@pytest.fixture(scope="module")
def record() -> list[ev.Event]:
    host = FakeHost.of(APPLICATION, "fifo", operators=FIGURES, settings=Settings(quantum=1.0))
    for at in (0.0, *(20.0 + 2.0 * n for n in range(20))):
        host.arrive("s", at, rows=1000)
    host.run()
    return host.record


def test_a_small_memory_is_chains_affair(record: list[ev.Event]) -> None:
    advice = advise(record, AdviceGoals(memory=8_000 * 16))
    fifo = next(o for o in advice.ranked if o.policy == "fifo")
    assert advice.chosen is not None and advice.chosen.policy.split("(")[0] in (
        "chain", "greedy", "chain_flush", "mixed")
    assert advice.chosen.peak_bytes <= 8_000 * 16 < fifo.peak_bytes


def test_a_short_latency_is_fifos_affair(record: list[ev.Event]) -> None:
    fifo = next(o for o in advise(record, AdviceGoals(latency=1e6)).ranked if o.policy == "fifo")
    assert fifo.latency is not None
    advice = advise(record, AdviceGoals(latency=fifo.latency.max))
    assert advice.chosen is not None and advice.chosen.latency is not None
    assert advice.chosen.latency.max <= fifo.latency.max


def test_what_nobody_meets_is_said_with_the_nearest(record: list[ev.Event]) -> None:
    advice = advise(record, AdviceGoals(memory=10.0))
    assert advice.chosen is None
    assert advice.ranked[0].peak_bytes == min(o.peak_bytes for o in advice.ranked)


@pytest.fixture
def state(record: list[ev.Event], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with Recorder(tmp_path / "state" / "runs" / "yesterday" / "events.jsonl") as recorder:
        for event in record:
            recorder.record(event)
    return tmp_path / "state"


def test_the_command_names_a_policy_and_its_evidence(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", "state", "--memory", "100 KB"]) == 0
    out = capsys.readouterr().out
    assert "SET operators = '" in out
    assert "fifo" in out and "no" in out
    assert main(["advise", "state", "--memory", "1 KB", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["operators"] is None


@pytest.mark.parametrize(("call", "fault"), [
    ([], "name a limit"), (["--latency", "soon"], "soon"), (["--memory", "-3 MB"], "MB")])
def test_a_wrong_call_is_one_sentence(
    call: list[str], fault: str, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", "state", *call]) == 2
    assert fault in capsys.readouterr().err


def test_a_record_that_is_too_thin_is_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    record: list[ev.Event],
) -> None:
    host = FakeHost.of(APPLICATION, "fifo", operators=FIGURES, settings=Settings(quantum=1.0))
    for at in (0.0, 100.0):
        host.arrive("s", at, rows=1000)
    host.run()
    monkeypatch.chdir(tmp_path)
    with Recorder(tmp_path / "state" / "runs" / "today" / "events.jsonl") as recorder:
        for event in host.record:
            recorder.record(event)
    assert main(["advise", "state", "--memory", "100 MB"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "the record is too thin to advise: it has" in out and "SET operators" in out
    assert main(["advise", "state", "--memory", "100 MB", "--json"]) == 0
    assert "say little" in json.loads(capsys.readouterr().out)["too_thin"]
    assert advise(record, AdviceGoals(memory=1e9)).thin == ""
