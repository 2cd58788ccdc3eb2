"""Records of staged runs: a path's stages are told apart, and a replay runs them as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.engine import SegmentJob
from penstock.engine.settings import Settings
from penstock.events import kinds as ev
from penstock.policies.operators import policies, policy
from penstock.testing import FakeHost
from penstock.whatif.path_models import JOBS
from penstock.whatif.predictions import compare
from penstock.whatif.recorded import Recording, replay

MODULE = "penstock.demo.detectors"
APPLICATION = f"""
    CREATE STREAM s (length INT, src INT, dst INT, port INT) FROM rate;
    CREATE FUNCTION f FROM '{MODULE}:looks_like_a_scan';
    CREATE FUNCTION g FROM '{MODULE}:looks_like_a_scan';
    CREATE QUERY q AS SELECT src FROM s WHERE length > 5 AND f(port, length) AND g(dst, src);
"""
FIGURES = {"q#0:filter": (0.0004, 0.9), "q#0:python1": (0.0016, 0.98),
           "q#0:python2": (0.0002, 0.1), "q#0:project": (0.02, 1.0)}


def burst(name: str) -> list[ev.Event]:
    host = FakeHost.of(APPLICATION, name, operators=FIGURES, settings=Settings(quantum=1.0))
    random = np.random.default_rng(3)
    for at in (0.0, 5.0, *np.sort(random.uniform(20.0, 95.0, 30)).tolist()):
        host.arrive("s", at, rows=1000)
    host.run()
    return host.record


def decisions(events: list[ev.Event]) -> list[tuple[float, str, tuple[int, ...]]]:
    return [(round(e.at, 3), e.work.segment, e.work.blocks)
            for e in events if isinstance(e, ev.JobDecided)]


def peak(events: list[ev.Event]) -> int:
    return max(e.bytes for e in events if isinstance(e, ev.Queued))


@pytest.mark.parametrize("ran", ["fifo", "chain", "greedy"])
def test_stages_are_told_apart_whatever_policy_ran(ran: str) -> None:
    (model,) = Recording.of(burst(ran)).paths.values()
    costs = [stage.work * model.cost.per_row for stage in model.stages]
    assert costs == pytest.approx([0.0004, 0.0016, 0.0002, 0.02], rel=0.02)
    kept = [stage.selectivity for stage in model.stages]
    assert kept[:3] == pytest.approx([0.9, 0.98, 0.1], rel=0.02)


@pytest.mark.parametrize("ran", ["fifo", "chain", "greedy"])
@pytest.mark.parametrize("tried", ["fifo", "chain", "greedy"])
def test_a_record_of_one_policy_tells_what_another_does(ran: str, tried: str) -> None:
    predicted, real = replay(Recording.of(burst(ran)), policy(tried)), burst(tried)
    assert peak(predicted) == pytest.approx(peak(real), rel=0.1)
    if ran == tried == "fifo":
        assert decisions(predicted) == decisions(real)


def test_chain_keeps_less_waiting_than_fifo_and_what_if_says_so() -> None:
    outcomes = compare(burst("fifo"), policies("chain")).simulated
    fifo, chain = (outcome.peak_bytes for outcome in outcomes)
    assert chain < 0.7 * fifo
    assert peak(burst("chain")) < 0.7 * peak(burst("fifo"))


class Sampling(FakeHost):
    """A host on which samples take time, the first one more than later ones."""

    sampled = False

    def outcome(self, job: SegmentJob) -> ev.JobFinished | ev.JobFailed:
        end = super().outcome(job)
        if not job.sample or isinstance(end, ev.JobFailed):
            return end
        taken = 0.5 if self.sampled else 8.0
        self.sampled = True
        return replace(end, at=end.at + taken, result=replace(end.result, sampling=taken))


@pytest.mark.parametrize("tried", ["fifo", "chain"])
def test_a_sample_is_no_part_of_the_cost_of_stages_but_takes_its_time(tried: str) -> None:
    records = []
    for name in ("fifo", tried):
        host = Sampling.of(APPLICATION, name, operators=FIGURES, samples=True,
                           settings=Settings(quantum=1.0))
        for at in range(40):
            host.arrive("s", 10.0 + 25.0 * at, rows=1000)
        host.run()
        records.append(host.record)
    recording = Recording.of(records[0])
    (model,) = recording.paths.values()
    assert recording.sampling == 0.5
    work, _ = model.through(0, 4, rows=1000.0)
    assert model.cost.seconds(work, earlier=9) == pytest.approx(3.7804)
    ends = [record[-1].at for record in (replay(recording, policy(tried)), records[1])]
    assert ends[0] == pytest.approx(ends[1], rel=0.07), "all but the first, cold sample"


def test_a_sample_that_was_disturbed_does_no_harm() -> None:
    def disturbed(event: ev.Event) -> ev.Event:
        if isinstance(event, ev.JobFinished) and event.result.measured and event.job % 2:
            return replace(event, result=replace(event.result, measured={
                name: replace(told, seconds=1.5 * told.seconds)
                for name, told in event.result.measured.items()}))
        return event

    events = burst("fifo")
    runs = [e.job for e in events if isinstance(e, ev.JobFinished) and e.result.measured]
    assert {run % 2 for run in runs} == {0, 1}
    (model,) = Recording.of(list(map(disturbed, events))).paths.values()
    (true,) = Recording.of(events).paths.values()
    assert [stage.work for stage in model.stages] == [stage.work for stage in true.stages]


class Busy(FakeHost):
    """A host on which jobs cost something, and take a tenth longer than samples."""

    def outcome(self, job: SegmentJob) -> ev.JobFinished | ev.JobFailed:
        end = super().outcome(job)
        assert not isinstance(end, ev.JobFailed)
        taken = 1.1 * (end.at - self.clock.now() + JOBS * 0.1)
        return replace(end, at=self.clock.now() + taken,
                       result=replace(end.result, bare=0.1 if job.sample else 0.0))


def test_a_busy_machine_makes_rows_and_jobs_longer_alike() -> None:
    host = Busy.of(APPLICATION, "fifo", operators=FIGURES, samples=True)
    for at in range(20):
        host.arrive("s", 10.0 * at, rows=1000)
    host.run()
    (model,) = Recording.of(host.record).paths.values()
    assert model.cost.fixed == pytest.approx(1.1 * JOBS * 0.1)
    assert model.cost.per_row == pytest.approx(1.1)
    assert model.seconds(0, 4, rows=1000.0, earlier=9) == pytest.approx(1.1 * (3.7804 + JOBS * 0.1))


def test_a_record_with_an_order_that_changed_is_replayed_in_its_last_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "replayed.py").write_text(
        "import penstock\n" + "\n".join(
            f"@penstock.predicate\ndef {name}(a): ...\n" for name in ("one", "two")))
    monkeypatch.syspath_prepend(str(tmp_path))
    host = FakeHost.of("""
        CREATE STREAM s (ts TIMESTAMP, a INT) FROM rate TIME ts;
        CREATE FUNCTION one FROM 'replayed:one'; CREATE FUNCTION two FROM 'replayed:two';
        CREATE QUERY q AS SELECT a FROM s WHERE one(a) AND two(a);""",
        "greedy", filters="a_greedy(p=0.1, enough=20)",
        operators={"q#0:python1": (4e-3, 0.9), "q#0:python2": (1e-3, 0.2)},
        drops=lambda job: {"10": 0.1, "01": 0.8})
    for number in range(12):
        host.arrive("s", at=3.0 * number, rows=1000)
    host.end("s", at=40.0)
    host.run()
    assert any(isinstance(event, ev.OrderChanged) for event in host.record)
    recording = Recording.of(host.record)
    stages = recording.paths["q#0"].stages
    assert [stage.name for stage in stages[:2]] == ["q#0:python2", "q#0:python1"]
    assert stages[0].selectivity == pytest.approx(0.2, abs=0.05)
