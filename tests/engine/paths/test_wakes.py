"""Queues wake the scheduler when they change: an event does not cost a look at every path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from penstock.engine.paths.department import PathsDepartment
from penstock.engine.paths.scheduler import Scheduler
from penstock.engine.settings import Settings
from penstock.events import Summary
from penstock.policies.operators import POLICIES, Route, Segment, policy
from penstock.policies.operators.chain import Chain
from penstock.testing import FakeHost

RANKED = [text for text in (*POLICIES, "chain_flush(latency=9)") if not policy(text).sees_all]
FUNCTION = "CREATE FUNCTION f FROM 'penstock.demo.detectors:looks_like_a_scan';"


def host(paths: int, name: str, **settings: float) -> FakeHost:
    """One query of stream s and so many of stream t, each with a path of its own."""
    others = "".join(f"CREATE QUERY t{n} WITH (latency = '4 seconds') AS "
                     f"SELECT a FROM t WHERE f(a, b + {n});" for n in range(paths))
    return FakeHost.of(f"""
        CREATE STREAM s (a INT, b INT) FROM rate;
        CREATE STREAM t (a INT, b INT) FROM rate;
        {FUNCTION} {others}
        CREATE QUERY q AS SELECT a FROM s WHERE a > 5 AND f(a, b);
    """, name, cost=lambda run: 0.25, settings=Settings(**settings))  # type: ignore[arg-type]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the scheduler was told of a queue, and a queue was shown to a policy."""
    counted: Counter[str] = Counter()

    def counting(kind: type, verb: str) -> None:
        original = getattr(kind, verb)

        def counted_verb(self: object, *args: object, **named: object) -> object:
            counted[verb] += 1
            return original(self, *args, **named)

        monkeypatch.setattr(kind, verb, counted_verb)

    counting(Scheduler, "wake")
    counting(Scheduler, "sleep")
    counting(PathsDepartment, "_look")
    return counted


@pytest.mark.parametrize("name", RANKED)
def test_paths_on_which_nothing_happens_are_not_looked_at(
    name: str, looks: Counter[str]
) -> None:
    found = []
    for paths in (1, 40):
        run = host(paths, name)
        looks.clear()
        for number in range(20):
            run.arrive("s", at=number / 8)
        run.run()
        assert Summary.of(run.record).queries["q"].rows_in == 2000
        found.append(dict(looks))
    assert found[0] == found[1]
    assert found[0]["wake"] >= 5
    assert "_look" not in found[0]


@pytest.mark.parametrize("name", RANKED)
def test_of_many_paths_at_work_a_job_looks_at_its_own(name: str, looks: Counter[str]) -> None:
    per_job = []
    for paths in (5, 50):
        run = host(paths, name)
        run.arrive("t", at=0.0)
        run.run()
        looks.clear()
        before = len(run.runs)
        for number in range(3):
            run.arrive("t", at=run.clock.now() + 1.0 + number / 8)
        run.run()
        per_job.append(sum(looks.values()) / (len(run.runs) - before))
    assert per_job[1] <= 1.2 * per_job[0] <= 20


def test_queues_that_gather_are_looked_at_when_they_have(looks: Counter[str]) -> None:
    """A tick between wakes nobody; the host is told of the first that is due."""
    run = host(30, "fifo", gather=5.0)
    run.arrive("t", at=1.0)
    run.run(until=1.0)
    looks.clear()
    run.arrive("s", at=2.0)
    run.run(until=5.5)
    assert looks["sleep"] <= 4, "of s alone, whose two stages have changed"
    assert not run.runs
    run.run()
    assert [job.blocks[0].stream for job in run.runs] == [*["t"] * 30, "s"]
    assert min(at for at, _, _ in run.decisions) == 6.0


class Asked(Chain):
    """Chain, and how many routes it was asked about each time."""

    asked: list[int]

    def prepare(self, routes: Sequence[Route]) -> tuple[Segment, ...]:
        self.asked.append(len(routes))
        return Chain.prepare(self, routes)


def test_a_path_whose_costs_change_is_prepared_alone() -> None:
    run = host(30, "chain")
    Asked.asked = []
    run.core.use("operators", Asked(), 0.0, "chain")
    run.arrive("t", at=0.0)
    run.run()
    assert Asked.asked[0] == 31
    assert Asked.asked.count(1) >= 30
    assert set(Asked.asked) == {1, 31}
