"""The benchmark of the simulator; and another simulator, which must find the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import simulator
from benchmarks.queueing import Processor, response
from benchmarks.simulator import LOOKING, RANKED, WORKLOADS, Size, build
from penstock.policies.operators import POLICIES, policies, policy
from penstock.simulator.host import simulate


@pytest.mark.parametrize("label", WORKLOADS)
@pytest.mark.parametrize("name", RANKED)
def test_simpy_finds_the_same_answers_at_the_same_times(name: str, label: str) -> None:
    workload = WORKLOADS[label](800)
    ours = simulate(workload, policy(name))
    theirs = Processor(workload, policy(name))
    theirs.run()
    assert theirs.invocations == ours.invocations
    assert theirs.latencies == pytest.approx(ours.latencies().tolist())
    assert response(theirs.latencies) == pytest.approx(ours.mean_latency)


@pytest.mark.parametrize("label", WORKLOADS)
def test_a_workload_has_fifty_operators_and_gives_answers(label: str) -> None:
    workload = WORKLOADS[label](800)
    assert len(workload.network.operators) == 50
    assert simulate(workload, policy("fifo")).outputs


def test_a_built_workload_is_the_same_workload() -> None:
    workload = WORKLOADS["10 paths of 5"](800)
    built = build(workload)
    assert built.drawn == workload.script()
    assert simulate(built, policy("chain")).outputs == simulate(workload, policy("chain")).outputs


def test_in_a_burst_every_queue_fills_before_much_is_done() -> None:
    workload = WORKLOADS["burst"](800)
    last = max(times[-1] for times in workload.arrivals.values())
    assert simulate(workload, policy("fifo")).finished > 20 * last


def test_every_policy_of_the_catalogue_is_measured() -> None:
    measured = {type(each) for each in policies(", ".join((*RANKED, *LOOKING))).values()}
    assert measured == set(POLICIES.values())


def test_the_benchmark_runs_and_checks_what_it_promises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulator, "QUICK", Size(blocks=300, ours=1, simpy=1))
    monkeypatch.setattr(simulator, "MEASURED", 300)
    report = simulator.run(True, tmp_path, lambda text: None)
    assert len(report.rows) == len(WORKLOADS) * len(POLICIES)
    checks = {check.id: check for check in report.checks}
    assert set(checks) == {"rate", "same", "simpy", "memory"}
    assert checks["same"].holds
