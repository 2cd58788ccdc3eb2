"""The core as lists of events and exact decisions, on virtual time."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine import SegmentJob
from penstock.engine.paths.queue_entries import TRAIN_BLOCKS
from penstock.engine.settings import Settings
from penstock.events import Summary
from penstock.events import kinds as ev
from penstock.testing import FakeHost, assert_decisions

ONE = """
    CREATE STREAM s (a INT, b INT) FROM rate;
    CREATE QUERY q1 AS SELECT a FROM s WHERE a = 1;
    CREATE QUERY q2 AS SELECT a FROM s WHERE a = 2;
"""
TWO = ONE + """
    CREATE STREAM t (a INT) FROM rate;
    CREATE QUERY q3 AS SELECT a FROM t WHERE a > 3;
    CREATE QUERY both AS SELECT a FROM s WHERE b > 1 UNION ALL SELECT a FROM t;
"""


def test_queries_on_one_stream_ride_in_one_run() -> None:
    host = FakeHost.of(ONE)
    host.arrive("s", at=1.0)
    host.run()
    assert_decisions(host, [(1.0, "s/fanout", (0,))])
    assert [member.query for member in host.runs[0].members] == ["q1", "q2"]


def test_blocks_that_wait_ride_in_one_train() -> None:
    host = FakeHost.of(ONE)
    for at in (1.0, 1.1, 1.2, 1.3):
        host.arrive("s", at=at)
    host.run()
    assert_decisions(host, [(1.0, "s/fanout", (0,)), (2.0, "s/fanout", (1, 2, 3))])


def test_a_train_is_bounded() -> None:
    host = FakeHost.of(ONE)
    for _ in range(TRAIN_BLOCKS + 5):
        host.arrive("s", at=1.0)
    host.run()
    assert [len(blocks) for _, _, blocks in host.decisions] == [1, TRAIN_BLOCKS, 4]


def test_the_oldest_block_runs_first_whatever_its_stream() -> None:
    host = FakeHost.of(TWO)
    host.arrive("t", at=1.0)
    host.arrive("s", at=1.2)
    host.arrive("t", at=1.4)
    host.run()
    assert_decisions(host, [(1.0, "t/fanout", (0,)), (2.0, "s/fanout", (0,)),
                            (3.0, "t/fanout", (1,))])


def test_every_decision_has_a_reason() -> None:
    host = FakeHost.of(TWO)
    host.arrive("s", at=1.0)
    host.run()
    assert all(e.reason for e in host.record if isinstance(e, ev.JobDecided))


def test_a_block_without_rows_runs_nothing() -> None:
    host = FakeHost.of(ONE)
    host.arrive("s", at=1.0, rows=0)
    host.run()
    assert_decisions(host, [])


def test_a_new_query_sees_only_what_arrives_after_it() -> None:
    host = FakeHost.of(ONE)
    host.arrive("s", at=1.0)
    host.arrive("s", at=1.1)
    host.run(until=1.2)
    host.add("CREATE QUERY late AS SELECT a FROM s WHERE a = 9;")
    host.arrive("s", at=1.3)
    host.run()
    seen = {block.number for run in host.runs for block in run.blocks
            if "late" in {member.query for member in run.members}}
    assert seen == {2}


def test_an_earliest_query_sees_the_backlog_and_rides_with_the_others_afterwards() -> None:
    host = FakeHost.of(ONE)
    host.arrive("s", at=1.0)
    host.arrive("s", at=1.1)
    host.run()
    host.add("CREATE QUERY early WITH (start = 'earliest') AS SELECT a FROM s WHERE a = 9;",
             backlog=((0, 0, 0), (0, 0, 1)))
    host.arrive("s", at=9.0)
    host.run()
    alone, together = host.runs[-2:]
    assert [m.query for m in alone.members] == ["early"]
    assert [b.number for b in alone.blocks] == [0, 1]
    assert [m.query for m in together.members] == ["q1", "q2", "early"]


def test_recovered_queries_with_the_same_backlog_share_their_runs() -> None:
    host = FakeHost.of("CREATE STREAM s (a INT) FROM rate; CREATE QUERY x AS SELECT a FROM s;")
    host.arrive("s", at=1.0)
    host.run()
    host.add("CREATE QUERY y AS SELECT a FROM s WHERE a = 1; "
             "CREATE QUERY z AS SELECT a FROM s WHERE a = 2;", backlog=((0, 0, 0),))
    host.run()
    assert [[m.query for m in run.members] for run in host.runs] == [["x"], ["y", "z"]]


def test_a_dropped_query_leaves_the_queues_at_once() -> None:
    host = FakeHost.of(ONE)
    host.arrive("s", at=1.0)
    host.arrive("s", at=1.1)
    host.run(until=1.5)
    host.handle(ev.QueryDropped(at=1.5, query="q2"))
    host.run()
    assert [[m.query for m in run.members] for run in host.runs] == [["q1", "q2"], ["q1"]]


def test_a_lifetime_ends_a_query_but_what_waits_is_delivered() -> None:
    host = FakeHost.of("""
        CREATE STREAM s (a INT) FROM rate;
        CREATE QUERY short WITH (lifetime = '2 seconds') AS SELECT a FROM s;
        CREATE QUERY long AS SELECT a FROM s WHERE a > 1;
    """)
    host.arrive("s", at=1.0)
    host.arrive("s", at=1.9)
    host.arrive("s", at=2.5)
    host.run()
    seen = [(m.query, b.number) for run in host.runs for b in run.blocks for m in run.members]
    assert {number for query, number in seen if query == "short"} == {0, 1}
    assert {number for query, number in seen if query == "long"} == {0, 1, 2}


def test_a_query_that_fails_is_found_and_stopped_alone() -> None:
    sql = "CREATE STREAM s (a INT) FROM rate;" + "".join(
        f"CREATE QUERY q{n} AS SELECT a FROM s WHERE a = {n};" for n in range(8))

    def fails(job: SegmentJob) -> str:
        return "boom" if any(m.query == "q5" for m in job.members) else ""

    host = FakeHost.of(sql, fails=fails)
    for at in (1.0, 1.1, 30.0):
        host.arrive("s", at=at)
    host.run()
    assert host.failures == {"q5": "boom"}
    delivered = [(m.query, b.number) for run in host.runs if not fails(run)
                 for b in run.blocks for m in run.members]
    assert sorted(delivered) == sorted((f"q{n}", b) for n in range(8) if n != 5 for b in range(3))
    assert [m.query for m in host.runs[-1].members] == [f"q{n}" for n in range(8) if n != 5]


def test_a_run_that_fails_once_is_tried_again() -> None:
    tries: list[int] = []

    def fails(job: SegmentJob) -> str:
        tries.append(job.number)
        return "a passing fault" if len(tries) == 1 else ""

    host = FakeHost.of(ONE, fails=fails)
    host.arrive("s", at=1.0)
    host.run()
    assert host.failures == {}
    assert len(host.runs) == 2


def test_a_failed_stream_stops_its_queries_and_no_others() -> None:
    host = FakeHost.of(TWO)
    host.handle(ev.StreamFailed(at=0.5, stream="t", reason="no such folder"))
    host.arrive("s", at=1.0)
    host.end("s", at=2.0)
    host.run()
    assert set(host.failures) == {"q3", "both"}
    assert host.finished is not None and host.finished.outcome == "drained"


def test_drained_when_all_streams_have_ended_and_all_is_delivered() -> None:
    host = FakeHost.of(TWO)
    host.arrive("s", at=1.0)
    host.end("s", at=1.1)
    host.end("t", at=1.2)
    host.run(until=1.5)
    assert host.finished is None
    host.run()
    assert host.finished is not None and host.finished.outcome == "drained"


def test_the_run_ends_as_failed_when_no_query_is_left() -> None:
    host = FakeHost.of(ONE, fails=lambda run: "bad disk")
    host.arrive("s", at=1.0)
    host.run()
    assert host.finished is not None and host.finished.outcome == "failed"
    assert "bad disk" in host.finished.reason


def test_blocks_are_released_after_their_retention_once_all_have_read_them() -> None:
    host = FakeHost.of(ONE, settings=Settings(retention=5.0))
    host.arrive("s", at=1.0)
    host.arrive("s", at=3.0)
    host.run()
    host.handle(ev.Tick(at=5.9))
    assert host.released == []
    host.handle(ev.Tick(at=6.5))
    assert host.released == [("s", 0)]


def test_own_folders_gather_blocks_within_the_latency() -> None:
    host = FakeHost.of("""
        CREATE STREAM s (a INT) FROM rate;
        CREATE QUERY q INTO parquet 'out' WITH (latency = '4 seconds') AS SELECT a FROM s;
    """)
    for at in (1.0, 1.5, 2.5):
        host.arrive("s", at=at)
    host.run()
    assert_decisions(host, [(3.0, "s/fanout", (0, 1, 2))])


def test_a_drain_gathers_blocks_into_few_runs() -> None:
    host = FakeHost.of(ONE, settings=Settings(until_drained=True, gather=1.0))
    for at in (1.0, 1.4, 1.8, 2.2):
        host.arrive("s", at=at)
    host.end("s", at=2.3)
    host.run()
    assert_decisions(host, [(2.0, "s/fanout", (0, 1, 2)), (3.0, "s/fanout", (3,))])


def test_a_block_that_many_still_have_to_read_is_kept_hot_within_the_budget() -> None:
    sql = "CREATE STREAM s (a INT) FROM rate; CREATE RELATION r (a INT) FROM csv 'r';" \
          "CREATE RELATION r2 (a INT) FROM csv 'r2';" \
          "CREATE QUERY plain AS SELECT a FROM s;" \
          "CREATE QUERY one AS SELECT s.a FROM s JOIN r ON s.a = r.a;" \
          "CREATE QUERY two AS SELECT s.a FROM s JOIN r2 ON s.a = r2.a;"
    host = FakeHost.of(sql, settings=Settings(memory=2000))
    host.arrive("s", at=1.0)
    host.run()
    assert [run.keep for run in host.runs] == [(0,), (), ()]
    small = FakeHost.of(sql, settings=Settings(memory=2000, keep_from=1700))
    small.arrive("s", at=1.0)
    small.run()
    assert [run.keep for run in small.runs] == [(), (), ()], "it is read again sooner"
    tight = FakeHost.of(sql, settings=Settings(memory=1000))
    tight.arrive("s", at=1.0)
    tight.run()
    assert [run.keep for run in tight.runs] == [(), (), ()]


@given(st.lists(st.tuples(st.sampled_from("st"), st.floats(0, 50), st.integers(0, 500)),
                max_size=40),
       st.sets(st.integers(0, 60), max_size=4), st.integers(1, 3))
def test_every_block_reaches_every_query_once_whatever_fails_now_and_then(
    arrivals: list[tuple[str, float, int]], unlucky: set[int], slots: int
) -> None:
    tried: set[tuple[tuple[int, ...], str]] = set()

    def fails(job: SegmentJob) -> str:
        key = (tuple(b.number for b in job.blocks), job.segment)
        if job.number in unlucky and key not in tried:
            tried.add(key)
            return "a passing fault"
        return ""

    host = FakeHost.of(TWO, settings=Settings(until_drained=True, slots=slots), fails=fails)
    for stream, at, rows in sorted(arrivals, key=lambda a: a[1]):
        host.arrive(stream, at=at, rows=rows)
    host.end("s", at=51.0)
    host.end("t", at=51.0)
    host.run()
    summary = Summary.of(host.record)
    assert summary.accounting() == []
    assert host.finished is not None and host.finished.outcome == "drained"
    rows = {name: sum(r for s, _, r in arrivals if s == name) for name in "st"}
    assert summary.queries["q1"].rows_in == rows["s"]
    assert summary.queries["both"].rows_in == rows["s"] + rows["t"]


# --- what does not end ---------------------------------------------------------------------------


def stuck(*queries: str) -> Callable[[SegmentJob], float]:
    """A cost without end for runs in which one of these rides."""
    return lambda run: inf if any(m.query in queries for m in run.members) else 1.0


EIGHT = "CREATE STREAM s (a INT) FROM rate;" + "".join(
    f"CREATE QUERY q{n} AS SELECT a FROM s WHERE a = {n};" for n in range(8))


def test_a_stuck_query_is_cancelled_found_and_stopped_alone() -> None:
    host = FakeHost.of(EIGHT, cost=stuck("q5"),
                       settings=Settings(until_drained=True, timeout=300.0))
    for at in (1.0, 1.1, 30.0):
        host.arrive("s", at=at)
    host.end("s", at=40.0)
    host.run()
    assert host.failures == {"q5": "its job did not finish within 5 min, nor within 30 s when it "
                                   "was tried again; SET timeout gives jobs more"}
    finished = {e.job for e in host.record if isinstance(e, ev.JobFinished) and not e.kept}
    delivered = [(m.query, b.number) for run in host.runs if run.number in finished
                 for b in run.blocks for m in run.members]
    assert sorted(delivered) == sorted((f"q{n}", b) for n in range(8) if n != 5 for b in range(3))
    assert host.finished is not None and host.finished.outcome == "drained"
    (stopped,) = (e.at for e in host.record if isinstance(e, ev.QueryFailed))
    assert stopped < 300 + 3 * 30 + 60, "only the first job has had the whole time"


def test_other_queries_get_on_once_a_stuck_one_was_cancelled() -> None:
    host = FakeHost.of(TWO, cost=stuck("q1"), settings=Settings(timeout=300.0))
    host.arrive("s", at=1.0)
    for at in (2.0, 3.0, 600.0):
        host.arrive("t", at=at)
    host.run()
    assert set(host.failures) == {"q1"}
    seen = [(e.at, e.work.blocks) for e in host.record if isinstance(e, ev.JobDecided)
            and e.work.segment == "t/fanout"]
    assert seen[0][0] < 400 and {b for _, blocks in seen for b in blocks} == {0, 1, 2}


def test_a_job_may_take_longer_if_jobs_like_it_did() -> None:
    costs = iter([100.0, 900.0, 5000.0, 1.0, 1.0, 1.0])
    host = FakeHost.of("CREATE STREAM s (a INT) FROM rate; CREATE QUERY q AS SELECT a FROM s;",
                       cost=lambda run: next(costs), settings=Settings(timeout=200.0))
    host.arrive("s", at=1.0, rows=100)
    host.arrive("s", at=500.0, rows=100)
    host.run()
    assert host.failures == {} and len(host.runs) == 2, "ten times a hundred seconds"
    expected = host.core.paths.costs.expected(10, "s/fanout", 0)
    assert expected == pytest.approx(140, rel=0.01), "the cheapest job, and a tenth of the rows"
    host.arrive("s", at=5000.0, rows=10)
    host.run()
    (failed,) = [e.at for e in host.record if isinstance(e, ev.JobFailed)]
    assert failed == pytest.approx(5000.0 + 10 * expected)
    assert host.failures == {}, "what was cancelled is tried again"


def test_a_query_that_is_stuck_once_goes_on() -> None:
    costs = iter([inf, *[1.0] * 9])
    host = FakeHost.of(ONE, cost=lambda run: next(costs), settings=Settings(timeout=60.0))
    for at in (1.0, 100.0, 200.0):
        host.arrive("s", at=at)
    host.run()
    assert host.failures == {}
    assert [m.query for m in host.runs[-1].members] == ["q1", "q2"], "they ride together again"


def test_refreshes_that_do_not_end_are_cancelled_and_stop_the_query_alone() -> None:
    host = FakeHost.of("""
        CREATE STREAM s (ts TIMESTAMP, a INT) FROM rate TIME ts;
        CREATE QUERY good AS SELECT COUNT(*) FROM s [WINDOW 2 SECONDS SLIDE EXACTLY 2 SECONDS];
        CREATE QUERY bad AS SELECT SUM(a) FROM s [WINDOW 4 SECONDS SLIDE EXACTLY 2 SECONDS];
    """, settings=Settings(until_drained=True, timeout=100.0),
        refreshing=lambda r: inf if "bad" in {m.query for m in r.members} else 0.1)
    host.arrive("s", at=1.0, times=(0, 1, 3, 5, 9))
    host.end("s", at=2.0)
    host.run()
    assert set(host.failures) == {"bad"}
    assert {a.end // 1_000_000 for a in host.answers if a.query == "good"} == {2, 4, 6, 10}
    assert host.finished is not None and host.finished.outcome == "drained"
