"""The order of a conjunction: who decides it when, and what becomes of rows that were kept."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.engine import SegmentJob
from penstock.engine.paths.filter_orders import FilterOrders
from penstock.engine.settings import Settings
from penstock.errors import PolicyError
from penstock.events import JobDecided, OrderChanged, Summary
from penstock.events.kinds import ConjunctionProfile
from penstock.events.lines import decode, encode
from penstock.language import bind
from penstock.planning import plan
from penstock.policies.filters import POLICIES
from penstock.testing import FakeHost

MODULE = """
import penstock

@penstock.predicate
def one(a): ...

@penstock.predicate
def two(a): ...

@penstock.predicate
def three(a): ...

@penstock.predicate(deterministic=False)
def stays(a): ...
"""
STREAM = """
    CREATE STREAM s (ts TIMESTAMP, a INT) FROM rate TIME ts;
    CREATE FUNCTION one FROM 'ordered:one';
    CREATE FUNCTION two FROM 'ordered:two';
    CREATE FUNCTION three FROM 'ordered:three';
    CREATE FUNCTION stays FROM 'ordered:stays';
"""
APPLICATION = STREAM + "CREATE QUERY q AS SELECT a FROM s WHERE one(a) AND two(a) AND three(a);"
COSTS = {"q#0+:python1": (4e-3, 0.5), "q#0:python1": (4e-3, 0.5), "q#0:python2": (1e-3, 0.9),
         "q#0:python3": (1e-3, 0.2)}
DROPS = {"100": 0.2, "001": 0.5, "101": 0.2, "010": 0.05}
FAST = "a_greedy(p=0.1, enough=20)"


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "ordered.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("ordered", None)


def host(
    policy: str = "fifo", filters: str = FAST, drops: Callable[[SegmentJob], dict[str, float]]
    | None = None, sql: str = APPLICATION, settings: Settings | None = None,
) -> FakeHost:
    return FakeHost.of(sql, policy, filters=filters, operators=COSTS, settings=settings,
                       drops=drops or (lambda job: DROPS))


def feed(host: FakeHost, blocks: int = 6, rows: int = 1000) -> FakeHost:
    for number in range(blocks):
        host.arrive("s", at=100.0 * number, rows=rows)
    host.end("s", at=100.0 * blocks)
    host.run()
    return host


def orders(host: FakeHost) -> list[tuple[int, ...]]:
    return [job.evaluation.order for job in host.runs]


def changes(host: FakeHost) -> list[OrderChanged]:
    return [event for event in host.record if isinstance(event, OrderChanged)]


def test_the_first_block_is_evaluated_as_written_and_the_next_one_in_the_order_found() -> None:
    played = feed(host(), blocks=3)
    assert orders(played) == [(0, 1, 2), (2, 0, 1), (2, 0, 1)]
    (change,) = changes(played)
    assert change.order == ("three(a)", "one(a)", "two(a)")
    assert change.stages == ("q#0:python3", "q#0:python1", "q#0:python2")
    assert change.after < change.before
    assert change.matrix[0] == (40, 5, 70)
    assert "three(a) before one(a): drops" in change.reason
    assert Summary.of(played.record).accounting() == []


def test_a_change_is_recorded_and_read_again() -> None:
    (change,) = changes(feed(host(), blocks=2))
    assert decode(encode(change)) == change


def test_the_summary_has_the_present_order_and_the_reason() -> None:
    summary = Summary.of(feed(host()).record)
    found = summary.conjunctions["q#0"]
    assert (found.order, found.changes) == (("three(a)", "one(a)", "two(a)"), 1)
    assert found.reason and summary.profiling.rows > 100


def test_after_a_drift_the_order_is_renewed_within_three_blocks() -> None:
    drifted = {"010": 0.6, "110": 0.2, "001": 0.05}
    played = host(drops=lambda job: DROPS if job.blocks[0].number < 10 else drifted)
    feed(played, blocks=16, rows=10_000)
    late = [job.evaluation.order[0] for job in played.runs if job.blocks[0].number >= 13]
    assert set(late) == {1}, "the second predicate drops most now"


def test_static_greedy_keeps_its_first_order() -> None:
    drifted = {"010": 0.6, "110": 0.2, "001": 0.05}
    played = host(filters="static_greedy(p=0.1, enough=20)",
                  drops=lambda job: DROPS if job.blocks[0].number < 4 else drifted)
    assert len(changes(feed(played, blocks=12))) == 1


@pytest.mark.parametrize("filters", POLICIES)
def test_every_policy_leads_to_a_better_order(filters: str) -> None:
    played = feed(host(filters=f"{filters}(p=1, enough=20, window=500)"), blocks=12)
    assert orders(played)[-1][0] == 2
    assert all(change.after < change.before for change in changes(played))


def test_another_policy_goes_on_with_the_present_order() -> None:
    played = host()
    for number in range(4):
        played.arrive("s", at=100.0 * number, rows=1000)
    played.run(until=250.0)
    played.core.use("filters", POLICIES["sweep"](), 250.0, "sweep")
    played.run()
    assert orders(played)[-1] == (2, 0, 1)
    assert Summary.of(played.record).run.policies["filters"] == "sweep"


def test_what_must_stay_stays_behind_what_may_move() -> None:
    sql = STREAM + """
        CREATE QUERY q AS SELECT a FROM s WHERE one(a) AND two(a) AND stays(a) AND three(a)"""
    played = feed(host(sql=sql, drops=lambda job: {"10": 0.1, "01": 0.7}))
    assert orders(played)[-1] == (1, 0)
    texts = [operator.text for operator in played.planned.paths[0].operators[:4]]
    assert texts == ["one(a)", "two(a)", "stays(a)", "three(a)"]


def test_a_query_with_one_predicate_has_nothing_to_order() -> None:
    played = feed(host(sql=STREAM + "CREATE QUERY q AS SELECT a FROM s WHERE one(a)"))
    assert set(orders(played)) == {()} and not changes(played)


def test_a_query_of_the_same_name_with_other_predicates_begins_as_written() -> None:
    played = host()
    for number in range(3):
        played.arrive("s", at=100.0 * number, rows=1000)
    played.run(until=250.0)
    assert orders(played)[-1] == (2, 0, 1)
    played.drop("q")
    played.add("CREATE QUERY q AS SELECT a FROM s WHERE two(a) AND one(a) AND three(a)")
    played.arrive("s", at=400.0, rows=1000)
    played.run()
    assert orders(played)[-1] == (0, 1, 2)


def test_predicates_are_profiled_in_a_small_part_of_the_time() -> None:
    """If it took a large part of the last job that did it, the others have to make up for that."""
    made = FilterOrders(POLICIES["a_greedy"]())
    made.adopt(plan(bind(STREAM + "CREATE QUERY q AS SELECT a FROM s WHERE one(a) AND two(a)")))
    told = ConjunctionProfile(version=0, patterns={"01": 300}, seconds=(1e-6,) * 2, sampling=0.2,
                              cores=2)

    def profiles(seconds: float, profile: ConjunctionProfile | None = told) -> bool:
        made.take("q#0", profile, at=1.0, seconds=seconds)
        return made.evaluation("q#0", (), 1000, 1).rate > 0

    assert made.evaluation("q#0", (), 1000, 1).rate > 0
    assert profiles(0.5), "at first tasks look ahead, which says nothing of later jobs"
    assert profiles(2.0) and profiles(2.0), "0.1 s is a small part of the job"
    assert not profiles(0.5), "it is a fifth of the job: 0.4 s of 5 s, and 0.1 s would follow"
    assert not profiles(14.9, None) and profiles(0.2, None)
    assert not profiles(0.5)
    made.use(POLICIES["a_greedy"](per_partition=0.1))
    assert profiles(0.5), "partitions find their orders so"


@pytest.mark.parametrize(("policy", "looks"), [
    ("a_greedy", True), ("static_greedy", True), ("independent", True), ("sweep", False),
    ("local_swaps", False)])
def test_tasks_look_ahead_until_something_is_known(policy: str, looks: bool) -> None:
    """A policy that evaluates few predicates on a profiled row would not have all of them on it."""
    made = FilterOrders(POLICIES[policy]())
    made.adopt(plan(bind(STREAM + "CREATE QUERY q AS SELECT a FROM s "
                         "WHERE one(a) AND two(a) AND three(a)")))
    for job in (1, 2):
        assert (made.evaluation("q#0", (), 1000, job).lookahead > 0) == looks
    told = ConjunctionProfile(version=0, patterns={"011": 3}, seconds=(1e-6,) * 3)
    made.take("q#0", told, at=1.0)
    assert made.evaluation("q#0", (), 1000, 3).lookahead == 0


SQL = STREAM + "CREATE QUERY q AS SELECT a FROM s WHERE a <> 7 AND a * 3 > 5 AND a < 9;"
SQL_COSTS = {f"s/fanout:condition{number}": (1e-6, 0.5) for number in (1, 2, 3)}


def test_sql_conditions_of_a_query_are_ordered_by_what_they_drop() -> None:
    played = feed(FakeHost.of(SQL, filters=FAST, operators=SQL_COSTS, drops=lambda job: DROPS))
    assert orders(played)[0] == (0, 1, 2) and orders(played)[-1][0] == 2
    assert {change.order[0] for change in changes(played)} == {"(a * 3) > 5"}
    assert all(change.stages == () for change in changes(played)), "they are not measured alone"


def test_sql_conditions_beside_those_of_other_queries_have_no_order_of_their_own() -> None:
    more = SQL + "CREATE QUERY r AS SELECT a FROM s WHERE a > 1 AND a < 3;"
    played = feed(FakeHost.of(more, filters=FAST, operators=SQL_COSTS, drops=lambda job: DROPS))
    assert set(orders(played)) == {()} and not changes(played)


def test_sql_conditions_are_profiled_in_a_small_part_of_the_time() -> None:
    made = FilterOrders(POLICIES["a_greedy"]())
    made.adopt(plan(bind(SQL)))
    told = ConjunctionProfile(version=0, patterns={"001": 300}, seconds=(1e-6,) * 3, sampling=0.1)
    assert made.evaluation("s/fanout", (), 1000, 1).rate > 0, "nothing was profiled so far"
    made.take("s/fanout", told, at=1.0, seconds=1.0)
    assert made.evaluation("s/fanout", (), 1000, 2).rate == 0
    assert made.evaluation("s/fanout", (), 1000, 2).order == (2, 0, 1)
    made.take("s/fanout", None, at=11.0, seconds=10.0)
    assert made.evaluation("s/fanout", (), 1000, 3).rate > 0


def test_another_query_leaves_the_order_as_it_is() -> None:
    played = host(drops=lambda job: DROPS if job.path == "q#0" else {"10": 0.2})
    for number in range(2):
        played.arrive("s", at=100.0 * number, rows=1000)
    played.run(until=150.0)
    played.add("CREATE QUERY other AS SELECT a FROM s WHERE one(a) AND two(a) AND stays(a)")
    played.arrive("s", at=400.0, rows=1000)
    played.run()
    assert [job.evaluation.order for job in played.runs if job.path == "q#0"][-1] == (2, 0, 1)


def test_queries_with_common_predicates_have_one_order() -> None:
    sql = APPLICATION + "CREATE QUERY more AS SELECT a FROM s WHERE three(a) AND one(a);"
    played = feed(host("chain", sql=sql))
    assert {job.path for job in played.runs} == {"q#0+"}
    assert {(job.first, job.last) for job in played.runs} == {(0, 1)}, "it is not cut"
    (change,) = changes(played)
    assert change.order[0] == "three(a)"
    assert Summary.of(played.record).accounting() == []


def test_a_query_that_joins_in_the_middle_shares_what_waits() -> None:
    played = host("chain")
    for number in range(8):
        played.arrive("s", at=0.5 * number, rows=1000)
    played.run(until=6.0)
    played.add("CREATE QUERY more AS SELECT a FROM s WHERE three(a) AND one(a)")
    played.arrive("s", at=10.0, rows=1000)
    played.end("s", at=11.0)
    played.run()
    summary = Summary.of(played.record)
    assert summary.accounting() == []
    assert summary.queries["q"].rows_in == 9000 and summary.queries["more"].rows_in == 1000


# --- cuts within the conjunction ---------------------------------------------------------------


def test_rows_kept_between_predicates_meet_the_others_whatever_the_order_is_now() -> None:
    """Chain cuts the conjunction; every row meets each predicate exactly once."""
    drifted = {"010": 0.8, "011": 0.1}
    played = host("chain", filters="a_greedy(p=0.1, enough=10, window=80)",
                  drops=lambda job: DROPS if job.blocks[0].number < 6 else drifted,
                  settings=Settings(until_drained=True, paced=True, quantum=1.0))
    for number in range(6):
        played.arrive("s", at=10.0 * number, rows=1000)
    for number in range(6):  # as fast as the first segment is, so that rows wait for the second
        played.arrive("s", at=60 + 1.0 * number, rows=1000)
    played.end("s", at=110.0)
    played.run()
    assert len(changes(played)) == 2
    met: dict[int, list[int]] = {}
    past: dict[int, set[int]] = {}
    apart = 0
    for job in played.runs:
        ran = list(job.evaluation.order[job.first:min(job.last, 3)])
        for part in job.parts:
            assert past[part] == set(job.evaluation.order[:job.first])
        apart += bool(job.parts and not job.evaluation.rate)
        past[job.number] = set(job.evaluation.order[:job.last])
        for block in job.blocks:
            met.setdefault(block.number, []).extend(ran)
    assert all(sorted(predicates) == [0, 1, 2] for predicates in met.values())
    assert apart, "the order changed while rows waited between two predicates"
    assert Summary.of(played.record).accounting() == []


def test_the_operator_policy_cuts_the_order_that_was_decided() -> None:
    played = feed(host("chain"), blocks=8)
    cuts = [event.work.stages for event in played.record if isinstance(event, JobDecided)]
    assert cuts
    assert played.core.plan.path("q#0").conjunction[0].id == "q#0:python3"
    told = [stage.operator for stage in played.core.paths.costs.told["q#0"].stages]
    assert told[0] == "q#0:python3"


def test_a_partition_may_have_an_order_of_its_own_if_the_policy_says_so() -> None:
    played = feed(host(filters="a_greedy(p=0.1, enough=20, per_partition=0.2)"), blocks=1)
    assert [(job.evaluation.per_partition, job.evaluation.enough) for job in played.runs] == [
        (0.2, 20)]
    for policy in ("sweep", "local_swaps"):
        with pytest.raises(PolicyError, match="profiles all predicates"):
            host(filters=f"{policy}(per_partition=0.2)")


def test_of_a_large_block_no_more_rows_are_profiled_than_the_window_holds() -> None:
    small, large = host(), host()
    feed(small, blocks=1, rows=1000), feed(large, blocks=1, rows=1_000_000)
    assert [job.evaluation.rate for played in (small, large) for job in played.runs] == [
        0.1, 0.001]


def test_a_job_over_a_conjunction_has_at_most_a_million_rows_so_that_its_order_is_renewed() -> None:
    played = host()
    for _ in range(6):
        played.arrive("s", at=0.0, rows=400_000)
    played.arrive("s", at=0.0, rows=3_000_000)
    played.end("s", at=1.0)
    played.run()
    assert [job.rows for job in played.runs][-1] == 3_000_000, "a block is not divided"
    assert max(job.rows for job in played.runs[:-1]) == 800_000
