"""The spool has a bound, and a stream that breaks leaves its queries what the spool holds."""

from __future__ import annotations

import pytest

from penstock.engine import Pause
from penstock.engine.settings import Settings
from penstock.events import Summary
from penstock.events import kinds as ev
from penstock.model import Block
from penstock.testing import FakeHost

ONE = "CREATE STREAM s (a INT) FROM rate; CREATE QUERY q AS SELECT a FROM s;"
WINDOWED = """
    CREATE STREAM s (ts TIMESTAMP, a INT) FROM rate TIME ts;
    CREATE QUERY w AS SELECT COUNT(*) FROM s [WINDOW 1 HOUR SLIDE EXACTLY 1 HOUR];
"""


def arrive(host: FakeHost, number: int, at: float, newest: int | None = None) -> list[object]:
    """A block that takes 100 bytes of the spool."""
    host.clock.advance(at)
    block = Block("s", number, 10, 160, at, newest, newest, newest, stored=100)
    return list(host.handle(ev.BlockArrived(at=at, block=block, read=10)))


def test_streams_wait_while_the_spool_is_full_and_go_on_when_blocks_have_left() -> None:
    host = FakeHost.of(ONE, settings=Settings(spool=250))
    assert not [i for n in range(2) for i in arrive(host, n, 1.0 + n / 10) if isinstance(i, Pause)]
    assert Pause() in arrive(host, 2, 1.2)
    assert host.paused
    host.run()
    assert not host.paused, "what all have read goes before its retention is over"
    full, freed = (e for e in host.record if isinstance(e, ev.SpoolFull | ev.SpoolFreed))
    assert (full.bytes, full.bound) == (300, 250)
    assert freed.bytes < 250 * 0.9 and freed.seconds == freed.at - full.at
    summary = Summary.of(host.record)
    assert summary.run.waited == pytest.approx(freed.seconds) and freed.seconds > 0
    assert [w.subject for w in summary.warnings] == ["spool"]
    assert summary.accounting() == []


def test_without_a_bound_blocks_stay_for_their_retention() -> None:
    host = FakeHost.of(ONE, settings=Settings(retention=1000.0))
    for n in range(5):
        arrive(host, n, 1.0)
    host.run()
    assert host.released == [] and not host.paused


def test_a_bound_that_cannot_be_kept_is_a_warning() -> None:
    host = FakeHost.of(WINDOWED, settings=Settings(spool=250))
    for n in range(3):
        arrive(host, n, 1.0 + n, newest=n * 1_000_000)
        host.run()
    assert host.paused
    told = [e.text for e in host.record if isinstance(e, ev.Warned)]
    assert len(told) == 1 and "rows that windows may still need" in told[0]


def test_queries_of_a_broken_stream_have_what_the_spool_holds_first() -> None:
    host = FakeHost.of("""
        CREATE STREAM s (a INT) FROM rate;
        CREATE STREAM t (a INT) FROM rate;
        CREATE QUERY one AS SELECT a FROM s;
        CREATE QUERY both AS SELECT a FROM s UNION ALL SELECT a FROM t;
        CREATE QUERY other AS SELECT a FROM t WHERE a > 1;
    """)
    for at in (1.0, 1.1, 1.2):
        host.arrive("s", at=at)
    host.arrive("t", at=1.3)
    host.plan_event(ev.StreamFailed(at=1.4, stream="s", reason="the disk is full"))
    host.arrive("t", at=5.0)
    host.end("t", at=6.0)
    host.run()
    assert host.failures == {name: "stream s failed: the disk is full" for name in ("one", "both")}
    summary = Summary.of(host.record)
    assert summary.queries["one"].rows_in == 300, "all that had come"
    assert summary.queries["both"].rows_in == 400, "and of the other stream what had come then"
    assert summary.queries["other"].rows_in == 200
    assert host.finished is not None and host.finished.outcome == "drained"


def test_windows_that_are_due_are_answered_before_their_query_stops() -> None:
    host = FakeHost.of("""
        CREATE STREAM s (ts TIMESTAMP, a INT) FROM rate TIME ts;
        CREATE QUERY w AS SELECT COUNT(*) FROM s [WINDOW 2 SECONDS SLIDE EXACTLY 2 SECONDS];
    """)
    host.arrive("s", at=1.0, times=(0, 1, 3, 5))
    host.plan_event(ev.StreamFailed(at=1.1, stream="s", reason="gone"))
    host.run()
    assert [a.end // 1_000_000 for a in host.answers] == [2, 4], "but not the one that is open"
    assert host.failures == {"w": "stream s failed: gone"}
    assert host.finished is not None and host.finished.outcome == "failed"


def test_a_stream_that_is_tried_again_is_told_of_once_per_reason() -> None:
    retried = [ev.StreamRetried(at=float(n), stream="s", reason=reason, pause=1.0)
               for n, reason in enumerate(["full", "full", "gone"])]
    summary = Summary.of([*retried,
    ev.BlockArrived(at=9.0, block=Block("s", 0, 1, 1, 9.0), read=1)])
    assert [w.text for w in summary.warnings] == [
        "failed and is tried again: full", "failed and is tried again: gone"]
    assert (summary.streams["s"].retries, summary.streams["s"].state) == (3, "reading")
    assert summary.failures() == []
