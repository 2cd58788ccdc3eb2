"""Every operator policy drives the core: nothing is lost, nothing runs twice."""

from __future__ import annotations

import pytest

from penstock.engine import SegmentJob
from penstock.policies.operators import POLICIES
from penstock.testing import FakeHost

APPLICATION = """
    CREATE STREAM a (x INT) FROM rate;
    CREATE STREAM b (x INT) FROM rate;
    CREATE QUERY small WITH (latency = '4 seconds') AS SELECT x FROM a WHERE x < 5;
    CREATE QUERY large WITH (priority = 3) AS SELECT x FROM a WHERE x > 50;
    CREATE QUERY other WITH (latency = '9 seconds') AS SELECT x FROM b WHERE x < 5;
"""


def cost(job: SegmentJob) -> float:
    return 0.5 if job.path.startswith("a") else 2.0


def burst(policy: str) -> FakeHost:
    """A burst on both streams, long enough for the statistics to be renewed twice."""
    host = FakeHost.of(APPLICATION, policy, cost=cost)
    for second in range(20):
        host.arrive("a", at=float(second))
        host.arrive("b", at=second + 0.5)
    host.end("a", at=20.0)
    host.end("b", at=20.0)
    host.run()
    return host


@pytest.mark.parametrize("policy", POLICIES)
def test_every_block_runs_once_on_every_path_and_the_run_drains(policy: str) -> None:
    host = burst(policy)
    runs = sorted((run.path, block.number) for run in host.runs for block in run.blocks)
    assert runs == sorted((path.id, n) for path in host.core.plan.paths for n in range(20))
    assert host.finished is not None and host.finished.outcome == "drained"


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_arrivals_give_the_same_decisions(policy: str) -> None:
    assert burst(policy).decisions == burst(policy).decisions


@pytest.mark.parametrize(("policy", "next_path"), [("fifo", "b/fanout"), ("chain", "a/fanout")])
def test_chain_prefers_the_path_that_frees_most_and_fifo_the_oldest(
    policy: str, next_path: str
) -> None:
    host = burst(policy)
    host.finished = None
    at = host.clock.now() + 10.0
    for stream, later in (("b", 0.0), ("b", 0.5), ("a", 1.0)):  # the first b runs for 2 seconds
        host.arrive(stream, at=at + later)
    host.run()
    assert [segment for when, segment, _ in host.decisions if when >= at][1] == next_path


def test_edf_runs_what_is_promised_earlier_before_what_came_earlier() -> None:
    host = FakeHost.of(APPLICATION, "edf", cost=cost)
    host.arrive("b", at=0.0)
    host.arrive("b", at=0.5)
    host.arrive("a", at=1.0)
    host.run(until=5.0)
    assert [segment for _, segment, _ in host.decisions[1:]] == ["a/fanout", "b/fanout"]
