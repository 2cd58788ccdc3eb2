"""Under backlog trains grow until the fixed part of a job is a small share, quantum or not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.engine import SegmentJob
from penstock.engine.settings import Settings
from penstock.events import Summary
from penstock.events import kinds as ev
from penstock.policies.operators import POLICIES
from penstock.testing import FakeHost

ONE = """
    CREATE STREAM s (a INT) FROM rate;
    CREATE QUERY q AS SELECT a FROM s WHERE a > 5;
"""
BESIDE = ONE + """
    CREATE STREAM t (a INT) FROM rate;
    CREATE QUERY cheap AS SELECT a FROM t WHERE a > 5;
"""
BLOCK, EVERY = 2_000, 0.1


def cost(fixed: float, per_row: float, cold: float = 0.0) -> Callable[[SegmentJob], float]:
    """As the demo was recorded on a busy machine; the first job waits for code to be compiled."""
    def seconds(job: SegmentJob) -> float:
        if job.path == "t/fanout":
            return 0.05
        return fixed + per_row * job.rows + (cold if job.number == 1 else 0.0)
    return seconds


def arriving(
    host: FakeHost, seconds: float = 30.0, beside: bool = False
) -> tuple[list[int], list[int]]:
    """Rows of every train, and the blocks that waited when it was decided."""
    for n in range(round(seconds / EVERY)):
        host.arrive("s", at=n * EVERY, rows=BLOCK)
        if beside and n % 20 == 0:
            host.arrive("t", at=n * EVERY, rows=10)
    host.run()
    assert Summary.of(host.record).accounting() == []
    decided = [e for e in host.record if isinstance(e, ev.JobDecided) and e.work.stream == "s"]
    return [e.work.rows for e in decided], [e.waiting for e in decided]


@pytest.mark.parametrize("quantum", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("cold", [0.0, 4.0])
@pytest.mark.parametrize("beside", [False, True])
def test_trains_grow_so_that_the_queue_stays_bounded(
    quantum: float, cold: float, beside: bool
) -> None:
    host = FakeHost.of(BESIDE if beside else ONE, cost=cost(0.5, 5e-6, cold),
                       settings=Settings(quantum=quantum))
    trains, waiting = arriving(host, beside=beside)
    assert trains[0] == BLOCK
    assert max(waiting) <= 10 * (cold + 2), "what comes while the first jobs are under way"
    assert max(waiting[-8:]) <= 8, "what comes in the time of one job"
    assert host.record[-1].at < 32.0


@pytest.mark.parametrize("name", POLICIES)
def test_under_every_policy_the_last_block_is_answered_soon(name: str) -> None:
    host = FakeHost.of(ONE, name, cost=cost(0.5, 5e-6), settings=Settings(quantum=0.2))
    _, waiting = arriving(host)
    assert max(waiting) <= 20
    assert host.record[-1].at < 32.0


def test_the_fixed_part_is_a_quarter_of_a_job_under_a_backlog() -> None:
    host = FakeHost.of(ONE, cost=cost(0.5, 1e-4), settings=Settings(quantum=0.1))
    trains, _ = arriving(host)  # 20,000 rows a second, of which 10,000 can be had
    assert set(trains[len(trains) // 2:-1]) == {14_000}, "0.5 s fixed, 1.5 s for rows"


def test_where_rows_cost_all_the_quantum_still_bounds_a_train() -> None:
    host = FakeHost.of(ONE, cost=cost(0.0, 1e-4), settings=Settings(quantum=1.1))
    trains, _ = arriving(host)
    assert max(trains) <= 20_000, "once, to learn it"
    assert set(trains[len(trains) // 2:-1]) == {10_000}


def test_the_policy_is_told_what_rows_cost_and_not_what_small_jobs_do() -> None:
    host = FakeHost.of(ONE, cost=cost(0.5, 5e-6), settings=Settings(quantum=1.0))
    arriving(host)
    costs = host.core.paths.costs
    assert costs.model("s/fanout", 0).fixed == pytest.approx(0.5, rel=0.01)
    assert costs.model("s/fanout", 0).seconds(BLOCK) == pytest.approx(0.51, rel=0.01)
    (stage,) = costs.tell(host.core.plan)[0].stages
    assert stage.cost == pytest.approx(5e-6, rel=0.2), "a job of one block costs 255 us a row"


@pytest.mark.parametrize(("settings", "first"), [
    (Settings(quantum=1.0, gather=5.0), 5),
    (Settings(gather=5.0), 40),
    (Settings(quantum=1.0, gather=5.0, until_drained=True), 40),
    (Settings(quantum=1.0, gather=5.0, until_drained=True, paced=True), 5),
])
def test_the_first_train_is_short_if_somebody_waits(settings: Settings, first: int) -> None:
    """Forty blocks have come before the first job can begin, as while Spark starts."""
    host = FakeHost.of(ONE, cost=cost(0.1, 5e-6), settings=settings)
    for _ in range(40):
        host.arrive("s", at=0.0, rows=BLOCK)
    host.run()
    trains = [e.work.rows for e in host.record if isinstance(e, ev.JobDecided)]
    assert trains[0] == first * BLOCK
    assert len(trains) <= 3, "they grow at once when the first is through"
