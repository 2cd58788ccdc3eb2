"""Paths that call Python are run stage by stage, as the policy cuts them."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.paths.active_job import ActiveJob
from penstock.engine.paths.stage_costs import SAMPLING_SHARE, StageCosts
from penstock.engine.settings import Settings
from penstock.events import Summary
from penstock.events import kinds as ev
from penstock.plan import Path
from penstock.policies.operators import POLICIES, policy
from penstock.testing import FakeHost

MODULE = "penstock.demo.detectors"
APPLICATION = f"""
    CREATE STREAM s (length INT, src INT, dst INT, port INT) FROM rate;
    CREATE FUNCTION f FROM '{MODULE}:looks_like_a_scan';
    CREATE FUNCTION g FROM '{MODULE}:looks_like_a_scan';
    CREATE QUERY q AS SELECT src FROM s WHERE length > 5 AND f(port, length) AND g(dst, src);
"""
HIDDEN = {"q#0:filter": (0.004, 0.9), "q#0:python1": (0.016, 0.98), "q#0:python2": (0.002, 0.1),
          "q#0:project": (0.2, 1.0)}
"""The four-operator chart of the chain paper, in seconds per row: a selective operator behind a
slow one."""


def host(name: str = "chain", **settings: float) -> FakeHost:
    return FakeHost.of(APPLICATION, name, operators=HIDDEN,
                       settings=Settings(until_drained=True, **settings))  # type: ignore[arg-type]


def stages(run: FakeHost) -> list[tuple[int, int]]:
    return [e.work.stages for e in run.record if isinstance(e, ev.JobDecided)]


def test_fifo_runs_a_path_as_one_job() -> None:
    run = host("fifo")
    run.arrive("s", at=0.0)
    run.run()
    assert stages(run) == [(0, 4)]


def test_chain_cuts_a_path_by_its_envelope_once_the_stages_have_been_measured() -> None:
    run = host("chain")
    for at in (0.0, 100.0):
        run.arrive("s", at=at)
    run.run()
    assert stages(run) == [(0, 4), (0, 3), (3, 4)]
    (cut,) = [e for e in run.record if isinstance(e, ev.PathCut)]
    assert [len(segment) for segment in cut.segments] == [3, 1]
    assert cut.reason == "q#0:filter costs 4e+03 us a row, 0 us before"


@pytest.mark.parametrize("name", ["greedy", "round_robin", "rate_based"])
def test_the_others_run_one_operator_at_a_time(name: str) -> None:
    run = host(name)
    run.arrive("s", at=0.0)
    run.run()
    assert stages(run) == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_what_waits_between_stages_is_what_is_left_of_the_blocks() -> None:
    run = host("chain")
    run.arrive("s", at=0.0)
    for second in range(3):
        run.arrive("s", at=100.0 + second)
    run.run()
    kept = [e for e in run.record if isinstance(e, ev.JobFinished) and e.kept]
    assert [e.kept.rows for e in kept] == [9, 18], "8.82 of 100 rows, and a train of two blocks"
    last = [e for e in run.record if isinstance(e, ev.JobDecided)][-1]
    assert (last.work.rows, last.work.entering, last.work.blocks) == (300, 27, (1, 2, 3))


@pytest.mark.parametrize("name", POLICIES)
def test_every_block_is_delivered_once_and_the_books_balance(name: str) -> None:
    run = host(name, quantum=0.5)
    for n in range(20):
        run.arrive("s", at=n * 0.7)
    run.end("s", at=15.0)
    run.run()
    summary = Summary.of(run.record)
    assert run.finished is not None and run.finished.outcome == "drained"
    assert summary.queries["q"].rows_in == 2000
    assert summary.accounting() == []
    assert run.kept == {}


def test_a_query_that_leaves_lets_go_of_what_was_kept_for_it() -> None:
    run = host("greedy")
    run.arrive("s", at=0.0)
    run.run(until=0.5)
    assert run.kept
    run.handle(ev.QueryDropped(at=0.6, query="q"))
    run.run()
    assert run.kept and set(run.kept) == set(run.forgotten)
    assert not [e for e in run.record if isinstance(e, ev.JobFinished) and not e.kept]


def test_a_run_that_fails_between_stages_takes_up_the_same_rows_again() -> None:
    run = host("greedy")
    failing = iter([False, True, False, False, False])
    run.fails = lambda r: "no luck" if next(failing) else ""
    run.arrive("s", at=0.0)
    run.run()
    assert stages(run) == [(0, 1), (1, 2), (1, 2), (2, 3), (3, 4)]
    assert Summary.of(run.record).accounting() == []


def test_the_cuts_may_change_while_rows_wait_between_stages() -> None:
    """What waits where no segment begins any more goes on with the rest of its segment."""
    run = host("greedy")
    run.arrive("s", at=0.0)
    run.run(until=0.5)  # the first stage is through
    run.core.use("operators", policy("fifo"), 0.5, "fifo")
    run.run()
    assert stages(run)[-1][1] == 4
    assert Summary.of(run.record).queries["q"].rows_in == 100


def test_beyond_the_memory_budget_rows_are_kept_on_disk() -> None:
    run = host("greedy", memory=1000)
    for at in (0.0, *(100 + n * 0.1 for n in range(6))):  # after the first what is kept is known
        run.arrive("s", at=at)
    run.run()
    kept = [e.kept.on_disk for e in run.record if isinstance(e, ev.JobFinished) and e.kept]
    assert any(kept) and not all(kept)


def test_a_train_is_no_longer_than_a_quantum() -> None:
    run = host("fifo", quantum=60.0)
    for n in range(30):
        run.arrive("s", at=float(n))
    run.run()
    decided = {e.job: e for e in run.record if isinstance(e, ev.JobDecided)}
    ended = [e for e in run.record if isinstance(e, ev.JobFinished) and not e.kept]
    assert max(e.seconds for e in ended) <= 60.0
    assert max(len(decided[e.job].work.blocks) for e in ended) > 1


@pytest.mark.parametrize("name", ["round_robin", "greedy", "chain", "rate_based"])
def test_nor_is_any_run_with_what_is_left_of_it(name: str) -> None:
    costs = HIDDEN | {"q#0:filter": (0.0004, 0.9), "q#0:project": (2.0, 1.0)}
    run = FakeHost.of(APPLICATION, name, operators=costs,
                      settings=Settings(until_drained=True, quantum=60.0))
    for at in (0.0, 100.0, 200.0, *(300.0,) * 12):
        run.arrive("s", at=at)
    run.run()
    trains = [len(e.work.blocks) for e in run.record
              if isinstance(e, ev.JobDecided) and e.at >= 300.0]
    took = [e.seconds for e in run.record
            if isinstance(e, ev.JobFinished) and e.at >= 300.0]
    assert max(took) <= 60.0, "a block's last stage takes 18 s"
    assert max(trains) == 3


def beside(name: str, quantum: float = 0.2) -> FakeHost:
    """An expensive query under way when a block for a cheap one arrives."""
    run = FakeHost.of(APPLICATION + """
        CREATE STREAM t (length INT) FROM rate;
        CREATE QUERY cheap AS SELECT length FROM t WHERE length > 5;
    """, name, operators={**HIDDEN, "t/fanout:filter": (0.001, 0.5)},
        settings=Settings(quantum=quantum))
    run.arrive("s", at=0.0)
    run.arrive("t", at=0.0)
    run.run()  # now everybody's costs are known
    run.arrive("s", at=100.0)
    run.arrive("t", at=100.1)
    run.run()
    return run


def answered(run: FakeHost) -> float:
    """When the cheap query had its second answer."""
    cheap = {e.job for e in run.record if isinstance(e, ev.JobDecided) and e.work.stream == "t"}
    return [e.at for e in run.record
            if isinstance(e, ev.JobFinished) and not e.kept and e.job in cheap][-1]


def test_a_cheap_block_overtakes_an_expensive_run_and_that_one_goes_on_afterwards() -> None:
    run = beside("preemptive_rate_based")
    assert answered(run) == pytest.approx(100.3), "a tenth of a second, on half of the cores"
    decided = [e for e in run.record if isinstance(e, ev.JobDecided)]
    assert [e.reason.endswith("preempting") for e in decided if e.at == 100.1] == [True]
    assert answered(beside("rate_based")) > answered(run)
    assert answered(beside("preemptive_rate_based", quantum=1.0)) > answered(run), "soon over"
    assert Summary.of(run.record).accounting() == []


def test_the_time_for_which_a_run_was_overtaken_is_not_its_own() -> None:
    run = beside("preemptive_rate_based")
    ended = {e.job: e for e in run.record if isinstance(e, ev.JobFinished)}
    overtaken = [e for e in run.record if isinstance(e, ev.JobDecided) and e.at == 100.0][0]
    took = ended[overtaken.job].seconds
    assert took == pytest.approx(ended[overtaken.job].at - overtaken.at)
    expected = run.core.paths.costs.expected(100.0, "q#0", overtaken.work.stages[0])
    assert expected == pytest.approx(took - 0.1), "the cheap block had as much of the cores"
    (cheap,) = [e for e in run.record if isinstance(e, ev.JobDecided) and e.work.urgent]
    assert ended[cheap.job].seconds == pytest.approx(0.2)
    assert run.core.paths.costs.expected(100.0, "t/fanout", 0) == pytest.approx(0.1)
    alone = ActiveJob(run.core.plan.path("q#0"), run.core.paths.scheduler.segments[0], [], False)
    alone.shared = 3.0
    assert [alone.own(4.0), alone.own(10.0), alone.own(2.0)] == [2.5, 8.5, 1.0]


@pytest.mark.parametrize(("done", "overtaken"), [(0.0, True), (0.999, False)])
def test_a_run_is_overtaken_only_while_more_is_left_of_it(done: float, overtaken: bool) -> None:
    run = beside("preemptive_rate_based")
    run.arrive("s", at=200.0)
    run.run(until=202.1)
    (under_way,) = run.core.paths.active
    assert run.runs[-1].final, "the last stage, of 1.8 seconds"
    run.handle(ev.JobProgressed(at=202.1, job=under_way, done=done))
    run.arrive("t", at=202.2)
    run.run(until=202.2)
    assert (len(run.core.paths.active) == 2) == overtaken


def test_a_run_whose_query_has_left_is_overtaken_by_anything() -> None:
    run = beside("preemptive_rate_based")
    run.arrive("s", at=200.0)
    run.run(until=202.1)
    assert run.core.paths.active
    run.drop("q")  # its path is gone, and nothing is known of its costs
    run.arrive("t", at=202.2)
    run.run(until=202.2)
    assert len(run.core.paths.active) == 2


def test_what_is_due_is_carried_to_the_output_at_one_go() -> None:
    run = host("chain_flush(latency=60, exact=true)")
    run.arrive("s", at=0.0, rows=50)
    for at in (100.0, 101.0, 102.0):
        run.arrive("s", at=at, rows=1000)
    run.run()
    late = [e for e in run.record if isinstance(e, ev.JobDecided) and "tight" in e.reason]
    assert [(e.work.stages, e.work.blocks) for e in late] == [((3, 4), (1,)), ((0, 4), (2, 3))]


def expensive_block(name: str) -> float:
    """Seconds that an expensive block takes among cheap ones that rank better."""
    run = beside(name)
    run.arrive("s", at=200.0)
    for number in range(80):
        run.arrive("t", at=200.0 + 0.15 * number)
    run.run()
    of = {e.job for e in run.record if isinstance(e, ev.JobDecided) and e.work.stream == "s"}
    return [e.at for e in run.record
            if isinstance(e, ev.JobFinished) and not e.kept and e.job in of][-1] - 200.0


@pytest.mark.parametrize("name", ["chain_flush(latency=6, exact=true)", "mixed(latency=6)"])
def test_a_run_under_way_is_not_overtaken_beyond_its_deadline(name: str) -> None:
    assert expensive_block("chain") > 9.0, "all cheap ones overtake it"
    assert expensive_block(name) < 6.5


RAN = ev.StageFigures(rows_in=1.0, rows_out=1.0, seconds=1.0)
"""A row, in a second."""
WORKED = replace(RAN, how="worker")


def test_samples_take_no_more_than_their_share_of_the_time() -> None:
    costs = StageCosts()
    paths = [replace(host().core.plan.path("q#0"), id=f"q{n}#0") for n in range(3)]

    def is_due(path: int, at: float) -> bool:
        return bool(costs.to_sample(paths[path], at, every=60.0, idle=True))

    assert not is_due(0, at=0.0), "nothing has been spent on jobs yet"
    assert not is_due(0, at=49.0)
    assert is_due(0, at=50.0), "2 % of it are the second that a first sample is expected to take"
    assert not is_due(0, at=51.0), "one was ordered a second ago"
    costs.record(53.0, paths[0], 0, 4, RAN, {}, sampling=3.0)
    assert not is_due(1, at=199.0), "3 s of samples, and 1 s to come, are too much"
    assert is_due(1, at=200.0)
    costs.record(201.0, paths[1], 0, 4, RAN, {}, sampling=0.5)
    assert not is_due(0, at=324.0), "its samples take 3 s"
    assert is_due(2, at=225.0)


@given(st.lists(st.tuples(st.floats(0, 30), st.booleans(), st.floats(0.01, 4)), max_size=60))
def test_samples_never_begin_beyond_their_share(steps: list[tuple[float, bool, float]]) -> None:
    costs, path = StageCosts(), host().core.plan.path("q#0")
    at = spent = longest = 0.0
    for pause, idle, takes in steps:
        at += pause
        if costs.to_sample(path, at, every=60.0, idle=idle):
            assert idle and spent <= SAMPLING_SHARE * (at - 0.0)
            spent += takes
            longest = max(longest, takes)
            costs.record(at, path, 0, 4, RAN, {}, sampling=takes)
    assert spent <= SAMPLING_SHARE * at + longest


def test_nothing_is_sampled_while_anything_waits() -> None:
    costs, path = StageCosts(), host().core.plan.path("q#0")
    assert not any(costs.to_sample(path, float(at), every=60.0, idle=False) for at in range(5000))
    assert costs.to_sample(path, 5000.0, every=60.0, idle=True)


def test_in_a_burst_others_would_wait_for_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def to_sample(
        _: StageCosts, path: Path, at: float, every: float, idle: bool
    ) -> tuple[str, ...]:
        asked.append(idle)
        return ()

    monkeypatch.setattr(StageCosts, "to_sample", to_sample)
    run = host("fifo", quantum=0.1)
    for at in (0.0, 100.0, 100.5, 101.0):
        run.arrive("s", at=at)
    run.run()
    assert asked == [True, True, False, False], "the last one has waited for long"


def test_stages_are_sampled_again_soon_and_then_seldom() -> None:
    costs, path, due = StageCosts(), host().core.plan.path("q#0"), []
    for at in range(300):
        if costs.to_sample(path, float(at), every=60.0, idle=True):
            due.append(at)
            costs.record(float(at), path, 0, 4, RAN, {}, sampling=0.01)
    assert due == [50, 52, 54, 114, 174, 234, 294]


def test_stages_that_every_job_measures_are_not_sampled() -> None:
    costs, path = StageCosts(), host().core.plan.path("q#0")
    *measured, last = (stage[0].id for stage in path.stages)
    costs.to_sample(path, 0.0, every=60.0, idle=True)
    costs.record(1.0, path, 0, 4, RAN, {name: WORKED for name in measured[1:]})
    assert costs.to_sample(path, 100.0, every=60.0, idle=True) == ("q#0:filter",), "plain SQL"
    costs.record(101.0, path, 0, 4, RAN, {name: WORKED for name in measured})
    assert not costs.to_sample(path, 200.0, every=60.0, idle=True), f"{last} writes"


def test_what_a_job_costs_is_not_counted_for_every_block_of_a_train() -> None:
    costs, path = StageCosts(), host().core.plan.path("q#0")
    measured = {stage[0].id: ev.StageFigures(rows_in=100.0, rows_out=100.0, seconds=0.1)
                for stage in path.stages[:-1]}
    assert costs.rows_within(2.0, path.id, 0) == inf, "nothing is known"
    ran = ev.StageFigures(rows_in=100.0, rows_out=100.0, seconds=0.8)
    costs.record(0.0, path, 0, 4, ran, measured)
    assert costs.rows_within(2.0, path.id, 0) == pytest.approx(500.0), "0.5 s, and 3 ms a row"
    assert costs.rows_within(0.4, path.id, 0) == pytest.approx(200.0), "twice the largest job"
    costs.record(1.0, path, 0, 4, replace(ran, rows_in=400.0, rows_out=400.0, seconds=1.7),
                 measured)
    assert costs.rows_within(0.4, path.id, 0) == pytest.approx(500.0), "a quarter is fixed"


def test_what_rows_cost_beyond_the_measured_stages_is_shared_by_the_others() -> None:
    costs, path = StageCosts(), host().core.plan.path("q#0")
    worked = ev.StageFigures(rows_in=100.0, rows_out=50.0, seconds=1.0, how="worker")
    measured = {stage[0].id: worked for stage in path.stages[:-1]}
    ran = ev.StageFigures(rows_in=80.0, rows_out=10.0, seconds=3.0)
    for scale in (1.0, 2.0, 4.0):  # 0.2 s of each job are fixed
        costs.record(0.0, path, 0, 4, replace(
            ran, rows_in=80.0 * scale, rows_out=10.0 * scale, seconds=0.2 + 2.8 * scale), measured)
    # of 80, 40 and 20 rows at 10 ms each come 1.4 s of the 2.8; ten rows reach the last stage
    assert costs.statistics.cost("q#0:project") == pytest.approx(0.14)
    assert costs.statistics.selectivity("q#0:project") == 1.0
    assert costs.statistics.cost("q#0:python1") == pytest.approx(0.01)


# --- slots ---------------------------------------------------------------------------------------


def overlapping(run: FakeHost) -> list[tuple[ev.JobDecided, ev.JobDecided]]:
    """Pairs of runs that were under way at once."""
    ended = {e.job: e.at for e in run.record if isinstance(e, ev.JobFinished)}
    decided = [e for e in run.record if isinstance(e, ev.JobDecided)]
    return [(a, b) for a in decided for b in decided
            if a.job < b.job and b.at < ended[a.job]]


@pytest.mark.parametrize("name", POLICIES)
def test_with_two_slots_runs_overlap_but_never_two_on_one_stage(name: str) -> None:
    run = FakeHost.of(APPLICATION + """
        CREATE STREAM t (length INT) FROM rate;
        CREATE QUERY cheap AS SELECT length FROM t WHERE length > 5;
    """, name, operators={**HIDDEN, "t/fanout:filter": (0.03, 0.5)},
        settings=Settings(slots=2, quantum=2.0))
    for n in range(12):
        run.arrive("s", at=n * 1.1)
        run.arrive("t", at=n * 1.3)
    run.run()
    pairs = overlapping(run)
    assert pairs
    for a, b in pairs:
        (first, last), (other, end) = a.work.stages, b.work.stages
        assert a.work.stream != b.work.stream or last <= other or end <= first
    assert Summary.of(run.record).accounting() == []


@given(st.integers(1, 4), st.sampled_from(["fifo", "round_robin", "rate_based"]),
       st.lists(st.tuples(st.floats(0, 30), st.integers(1, 200)), min_size=2, max_size=25))
def test_a_query_gets_its_blocks_in_the_order_of_their_arrival_whatever_the_slots(
    slots: int, name: str, arrivals: list[tuple[float, int]]
) -> None:
    """Small blocks are quick, so two at once would change places.

    A block of which nothing is left on its way is through at once: it has no answers to put last.
    """
    run = FakeHost.of(APPLICATION, name, operators=HIDDEN,
                      settings=Settings(slots=slots, quantum=0.1))
    for at, rows in sorted(arrivals):
        run.arrive("s", at=at, rows=rows)
    run.run()
    decided = {e.job: e for e in run.record if isinstance(e, ev.JobDecided)}
    delivered = [block for e in run.record
                 if isinstance(e, ev.JobFinished) and not e.kept
                 and decided[e.job].work.stages[1] == 4
                 for block in decided[e.job].work.blocks]
    assert delivered == sorted(delivered)
    assert Summary.of(run.record).queries["q"].rows_in == sum(rows for _, rows in arrivals)


def test_only_a_run_that_may_be_overtaken_yields_and_all_are_expected_to_take_as_long_as_before(
) -> None:
    for name in ("rate_based", "preemptive_rate_based"):
        run = host(name, quantum=0.1)
        for at in (0.0, 100.0):
            run.arrive("s", at=at)
        run.run()
        best = min(cut.rank for cut in run.core.paths.scheduler.segments)
        outranked = [best < 2 * cut.rank for cut in run.core.paths.scheduler.segments]
        assert True in outranked and False in outranked
        yielding = [name == "preemptive_rate_based" and better for better in outranked]
        assert [one.yields for one in run.runs[4:]] == yielding
        assert [one.expected for one in run.runs[:4]] == [0.0] * 4, "nothing is known yet"
        assert [one.expected for one in run.runs[4:]] == pytest.approx(
            [e.seconds for e in run.record if isinstance(e, ev.JobFinished)][:4])
