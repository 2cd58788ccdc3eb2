"""Streams made of the answers of queries: they bring blocks, end after those upstream, and fail."""

from __future__ import annotations

import pytest

from penstock.engine.settings import Settings
from penstock.events import Summary
from penstock.events import kinds as ev
from penstock.testing import FakeHost

SOURCE = "CREATE STREAM s (ts TIMESTAMP, a INT) FROM rate TIME ts LATENESS 1 SECOND;"
COUNTS = """CREATE STREAM counts TIME window_end AS
  SELECT COUNT(*) AS n FROM s [WINDOW 2 SECONDS SLIDE EXACTLY 2 SECONDS];"""
TOTALS = """CREATE STREAM totals TIME window_end AS
  SELECT SUM(n) AS n FROM counts [WINDOW 4 SECONDS SLIDE EXACTLY 4 SECONDS];"""
LAST = "CREATE QUERY last AS SELECT MAX(n) AS n FROM totals [WINDOW 1 MIN];"


def ends(host: FakeHost) -> list[str]:
    return [event.stream for event in host.record if isinstance(event, ev.StreamEnded)]


def test_the_answers_of_a_query_are_the_rows_of_its_stream():
    host = FakeHost.of(SOURCE + COUNTS + "CREATE QUERY q AS SELECT COUNT(*) FROM counts "
                       "[WINDOW 4 SECONDS SLIDE EXACTLY 4 SECONDS];")
    host.arrive("s", at=1.0, times=(0.5, 1.5, 2.5, 5.0, 9.5))
    host.end("s", at=2.0)
    host.run()
    assert [(a.end // 10**6, a.rows) for a in host.answers if a.query == "counts"] == [
        (2, 2), (4, 1), (6, 1), (10, 1)]
    # A window's end is the time of its answer, and is in the window that begins there.
    assert [(a.end // 10**6, a.rows) for a in host.answers if a.query == "q"] == [
        (4, 1), (8, 2), (12, 1)]
    assert host.finished is not None and host.finished.outcome == "drained"


def test_derived_streams_end_one_after_the_other_when_nothing_can_come_any_more():
    host = FakeHost.of(SOURCE + COUNTS + TOTALS + LAST)
    host.arrive("s", at=1.0, times=(0.5, 1.5, 2.5, 5.0, 9.5))
    host.end("s", at=20.0)
    host.run()
    assert ends(host) == ["s", "counts", "totals"]
    blocks = [event.block.stream for event in host.record if isinstance(event, ev.BlockArrived)]
    assert blocks.index("counts") < blocks.index("totals")
    last = {event.block.stream: place for place, event in enumerate(host.record)
            if isinstance(event, ev.BlockArrived)}
    ended = {event.stream: place for place, event in enumerate(host.record)
             if isinstance(event, ev.StreamEnded)}
    assert all(last[name] < ended[name] for name in ("counts", "totals"))
    assert [a.rows for a in host.answers if a.query == "last"]
    assert host.finished is not None and host.finished.outcome == "drained"


@pytest.mark.parametrize("policy", ["fifo", "chain", "rate_based"])
def test_a_union_of_a_stream_and_one_derived_from_it_is_drained(policy):
    host = FakeHost.of(SOURCE + """
        CREATE STREAM few TIME ts AS SELECT ts, a FROM s WHERE a > 1;
        CREATE QUERY both AS SELECT a FROM s UNION ALL SELECT a FROM few;
    """, policy)
    for number in range(4):
        host.arrive("s", at=1.0 + number, times=[number + part / 10 for part in range(10)])
    host.end("s", at=5.0)
    host.run()
    assert ends(host) == ["s", "few"]
    blocks = {name: [e.block.rows for e in host.record
                     if isinstance(e, ev.BlockArrived) and e.block.stream == name]
              for name in ("s", "few")}
    assert sum(blocks["few"]) == sum(blocks["s"]) // 2, "the kit's jobs keep every second row"
    assert host.finished is not None and host.finished.outcome == "drained"


def test_a_live_run_does_not_end_a_derived_stream():
    host = FakeHost.of(SOURCE + COUNTS + TOTALS + LAST, settings=Settings(until_drained=False))
    host.arrive("s", at=1.0, times=(0.5, 1.5, 2.5, 5.0, 9.5))
    host.run(until=100.0)
    assert ends(host) == [] and host.finished is None
    assert any(isinstance(e, ev.BlockArrived) and e.block.stream == "counts" for e in host.record)


def test_a_stream_whose_query_fails_fails_with_its_readers_and_names_it():
    host = FakeHost.of(SOURCE + """
        CREATE STREAM few AS SELECT a FROM s;
        CREATE QUERY reads AS SELECT a FROM few;
        CREATE QUERY other AS SELECT a + 1 AS a FROM s;
    """, settings=Settings(until_drained=True))
    host.handle(ev.QueryFailed(at=0.5, query="few", reason="it cannot"))
    host.arrive("s", at=1.0)
    host.end("s", at=2.0)
    host.run()
    assert host.failures["reads"] == "stream few failed: its query failed: it cannot"
    assert "other" not in host.failures
    assert host.finished is not None and host.finished.outcome == "drained"


def test_what_was_delivered_before_a_failure_is_read_by_those_downstream():
    host = FakeHost.of(SOURCE + """
        CREATE STREAM few AS SELECT a FROM s;
        CREATE STREAM fewer AS SELECT a FROM few;
        CREATE QUERY reads AS SELECT a FROM fewer;
    """)
    host.arrive("s", at=1.0)
    host.plan_event(ev.StreamFailed(at=2.0, stream="s", reason="the disk"))
    host.run()
    arrived = [e.block.stream for e in host.record if isinstance(e, ev.BlockArrived)]
    assert arrived == ["s", "few", "fewer"]
    assert host.failures["reads"].endswith("stream few failed: its query failed: "
                                           "stream s failed: the disk")
    assert host.finished is not None and host.finished.outcome == "failed"


@pytest.mark.parametrize("drained", [True, False])
def test_a_derived_stream_whose_query_leaves_ends_in_a_run_that_drains(drained):
    host = FakeHost.of(SOURCE + """
        CREATE STREAM few AS SELECT a FROM s;
        CREATE QUERY other AS SELECT a + 1 AS a FROM s;
    """, settings=Settings(until_drained=drained))
    host.arrive("s", at=1.0)
    host.run(until=5.0)
    host.handle(ev.QueryDropped(at=5.0, query="few"))
    host.end("s", at=6.0)
    host.run(until=10.0)
    assert ends(host) == (["few", "s"] if drained else ["s"])
    assert (host.finished is not None) == drained


def test_what_is_derived_during_a_run_that_drains_is_drained_too():
    """Its query and its reader join when `s` has ended, and when it still brings rows."""
    host = FakeHost.of(SOURCE + "CREATE STREAM t (ts TIMESTAMP, a INT) FROM rate TIME ts;"
                       "CREATE QUERY other AS SELECT a FROM t;"
                       "CREATE QUERY more AS SELECT a FROM s;")
    host.arrive("s", at=1.0, times=(0.5, 1.5, 2.5, 5.0, 9.5))
    host.end("s", at=7.0)
    host.end("t", at=20.0)
    host.run(until=5.0)
    host.add(COUNTS)
    host.arrive("s", at=6.0, times=(9.6, 11.0, 12.5))
    host.run(until=10.0)
    assert ends(host) == ["s", "counts"]
    host.add(TOTALS + LAST + "CREATE STREAM few AS SELECT a FROM t;")
    host.arrive("t", at=12.0, times=(1.0, 1.5))
    host.run()
    assert ends(host) == ["s", "counts", "totals", "t", "few"]
    counted = [(a.end // 10**6, a.rows) for a in host.answers if a.query == "counts"]
    assert counted[-3:] == [(10, 2), (12, 1), (14, 1)]
    arrived = [event.block for event in host.record if isinstance(event, ev.BlockArrived)]
    assert sum(b.rows for b in arrived if b.stream == "counts") == len(counted)
    assert [a.rows for a in host.answers if a.query == "last"], "windows over it are answered"
    assert [block.stream for block in arrived][-1] == "few"
    assert host.finished is not None and host.finished.outcome == "drained"


def test_a_stream_that_comes_during_a_run_that_drains_is_read_to_its_end():
    host = FakeHost.of(SOURCE + "CREATE QUERY q AS SELECT a FROM s;")
    host.arrive("s", at=1.0)
    host.end("s", at=20.0)
    host.run(until=5.0)
    host.add("CREATE STREAM t (ts TIMESTAMP, a INT) FROM rate TIME ts; "
             "CREATE QUERY r AS SELECT COUNT(*) AS n FROM t [WINDOW 2 SECONDS];")
    host.run(until=30.0)
    assert host.finished is None, "t may bring rows"
    host.arrive("t", at=31.0, times=(1.0, 1.5))
    host.end("t", at=32.0)
    host.run()
    assert [a.rows for a in host.answers if a.query == "r"] == [2]
    assert host.finished is not None and host.finished.outcome == "drained"


def test_an_operator_policy_schedules_what_comes_out_of_a_join_that_is_a_stream():
    module = "penstock.demo.detectors"
    host = FakeHost.of(f"""
        CREATE STREAM l (ts TIMESTAMP, k INT, a INT) FROM rate TIME ts LATENESS 1 SECOND;
        CREATE STREAM r (ts TIMESTAMP, k INT, b INT) FROM rate TIME ts LATENESS 1 SECOND;
        CREATE STREAM pairs TIME ts LATENESS 1 MINUTE AS SELECT l.ts, l.a, r.b FROM l, r
          WHERE l.k = r.k WINDOW 5 SECONDS;
        CREATE FUNCTION f FROM '{module}:looks_like_a_scan';
        CREATE FUNCTION g FROM '{module}:looks_like_a_scan';
        CREATE QUERY q AS SELECT ts FROM pairs WHERE f(a, b) AND g(b, a);
    """, "chain", operators={"q#0:python1": (0.1, 0.1), "q#0:python2": (2.0, 1.0),
                             "q#0:project": (0.001, 1.0)})
    for number in range(12):
        for stream in "lr":
            host.arrive(stream, at=1.0 + number, keys=[1] * 10,
                        times=[number + part / 10 for part in range(10)])
    host.end("l", at=14.0)
    host.end("r", at=14.0)
    host.run()
    jobs = [e.work for e in host.record if isinstance(e, ev.JobDecided) and e.kind == "segment"]
    assert {work.stream for work in jobs} == {"pairs"}
    (cut,) = [e for e in host.record if isinstance(e, ev.PathCut)][-1:]
    assert [len(segment) for segment in cut.segments] == [1, 2], "behind the selective predicate"
    assert {(0, 1), (1, 3)} <= {work.stages for work in jobs}
    assert host.finished is not None and host.finished.outcome == "drained"
    assert Summary.of(host.record).accounting() == []
