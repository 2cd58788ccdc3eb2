"""Relations that change: when they are read, from which block on a change holds, what is kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.settings import Settings
from penstock.events import kinds as ev
from penstock.testing import FakeHost

CHANGING = """
    CREATE STREAM s (a INT) FROM rate;
    CREATE STREAM t (a INT) FROM rate;
    CREATE RELATION users (id INT, name STRING) FROM csv 'users' REFRESH {refresh};
    CREATE QUERY q AS SELECT s.a, u.name FROM s JOIN users u ON s.a = u.id;
    CREATE QUERY r AS SELECT a FROM t;
"""
LIVE = Settings(until_drained=False, retention=0.0)


def host_of(refresh: str, settings: Settings = LIVE, **script: object) -> FakeHost:
    """A host on which the relation begins with one row."""
    host = FakeHost.of(CHANGING.format(refresh=refresh), settings=settings, **script)  # type: ignore[arg-type]
    return host


def changes(host: FakeHost) -> list[tuple[float, int, dict[str, int]]]:
    return [(e.at, e.version, dict(e.since)) for e in host.record
            if isinstance(e, ev.RelationChanged)]


def reads(host: FakeHost) -> list[float]:
    return [e.at for e in host.record if isinstance(e, ev.RelationRead)]


def test_a_relation_is_read_before_its_query_joins_and_then_every_period() -> None:
    host = host_of("EVERY 10 SECONDS")
    kinds = [type(e).__name__ for e in host.record]
    assert kinds.index("RelationRead") < kinds.index("QueryAdded")
    host.run(until=35.0)
    assert reads(host) == [0.0, 10.0, 20.0, 30.0]
    assert changes(host) == [(0.0, 1, {})], "the same rows are no change"


def test_a_change_holds_from_the_next_block_of_every_stream_on() -> None:
    host = host_of("EVERY 10 SECONDS")
    host.hold("users", at=5.0, rows=3)
    host.hold("users", at=15.0, rows=4)
    for at in (1.0, 6.0, 12.0, 22.0):
        host.arrive("s", at=at)
    host.arrive("t", at=7.0)
    host.run(until=25.0)
    assert changes(host) == [(0.0, 1, {}), (10.0, 2, {"s": 2, "t": 1}),
                             (20.0, 3, {"s": 3, "t": 1})]


def test_blocks_that_see_different_versions_ride_in_different_jobs() -> None:
    host = host_of("EVERY 10 SECONDS", cost=lambda job: 30.0 if job.number == 1 else 1.0)
    host.hold("users", at=5.0, rows=3)
    for at in (1.0, 2.0, 3.0, 11.0, 12.0):
        host.arrive("s", at=at)
    host.run(until=40.0)
    trains = [tuple(b.number for b in job.blocks) for job in host.runs if job.path != "t/fanout"]
    assert trains == [(0,), (1, 2), (3, 4)]


def test_without_the_change_they_would_ride_together() -> None:
    host = host_of("EVERY 10 SECONDS", cost=lambda job: 30.0 if job.number == 1 else 1.0)
    for at in (1.0, 2.0, 3.0, 11.0, 12.0):
        host.arrive("s", at=at)
    host.run(until=40.0)
    assert [tuple(b.number for b in job.blocks) for job in host.runs] == [(0,), (1, 2, 3, 4)]


def test_on_demand_it_is_read_when_somebody_asks() -> None:
    host = host_of("ON DEMAND")
    host.hold("users", at=5.0, rows=3)
    host.plan_event(ev.RelationAsked(at=20.0, relation="users"))
    host.plan_event(ev.RelationAsked(at=21.0, relation="nobody"))
    host.run(until=100.0)
    assert reads(host) == [0.0, 20.0]
    assert [version for _, version, _ in changes(host)] == [1, 2]


def test_who_asks_while_it_is_read_gets_another_read() -> None:
    host = host_of("ON DEMAND")
    order = host.core.relations.order("users")
    host.plan_event(ev.RelationAsked(at=1.0, relation="users"))
    host.run(until=1.5)
    assert reads(host) == [0.0]
    host.plan_event(ev.RelationRead(at=2.0, relation="users", version=order.version, digest="0"))
    host.run(until=3.0)
    assert reads(host) == [0.0, 2.0, 2.0]


def test_a_relation_that_cannot_be_read_keeps_its_version_and_is_tried_again() -> None:
    host = host_of("EVERY 10 SECONDS")
    order = host.core.relations.order("users")
    host.plan_event(ev.RelationRead(at=9.0, relation="users", version=order.version,
                                    reason="no such file"))
    host.run(until=20.0)
    assert reads(host) == [0.0, 9.0, 19.0] and len(changes(host)) == 1
    (warned,) = [e for e in host.record if isinstance(e, ev.Warned)]
    assert warned.text == "it cannot be read: no such file; its version 1 goes on"


def test_a_version_is_dropped_when_its_last_block_has_left_the_spool() -> None:
    host = host_of("EVERY 10 SECONDS", Settings(until_drained=False, retention=30.0))
    host.hold("users", at=5.0, rows=3)
    for at in (1.0, 12.0, 33.0):
        host.arrive("s", at=at)
    host.run(until=30.0)
    assert [one.number for one in host.core.relations.history.versions["users"]] == [1, 2]
    host.run(until=40.0)
    assert ("s", 0) in host.released
    assert [one.number for one in host.core.relations.history.versions["users"]] == [2]


def test_an_earlier_run_has_decided_what_its_blocks_see() -> None:
    host = host_of("ON DEMAND")
    before = host.core.relations.history
    again = FakeHost.of(CHANGING.format(refresh="ON DEMAND").split("CREATE QUERY q")[0]
                        + "CREATE QUERY r AS SELECT a FROM t;", settings=LIVE)
    for name, versions in before.versions.items():
        for one in versions:
            again.handle(ev.RelationChanged(
                at=0.0, relation=name, version=one.number, digest=one.digest, rows=one.rows,
                since=one.since, earlier=True))
    assert again.core.relations.history == before
    again.add("CREATE QUERY q AS SELECT s.a, u.name FROM s JOIN users u ON s.a = u.id;")
    assert again.core.relations.history == before, "it has the same rows still"


def test_a_relation_that_nobody_looks_up_is_not_read() -> None:
    host = host_of("EVERY 10 SECONDS")
    host.drop("q")
    host.run(until=50.0)
    assert reads(host) == [0.0]
    host.add("CREATE QUERY again AS SELECT s.a FROM s JOIN users u ON s.a = u.id;")
    assert reads(host) == [0.0, host.clock.now()]


@given(st.lists(st.tuples(st.sampled_from(("s", "t", "change", "ask")),
                          st.floats(0.01, 3.0)), max_size=40),
       st.sampled_from(("EVERY 2 SECONDS", "ON DEMAND")))
def test_every_block_sees_the_version_that_was_decided_when_it_came(script, refresh) -> None:
    host, at, rows, come = host_of(refresh), 0.0, 0, dict.fromkeys("st", 0)
    for what, pause in script:
        at += pause
        if what in "st":
            host.arrive(what, at=at)
            come[what] += 1
        elif what == "change":
            rows += 1
            host.hold("users", at=at, rows=rows)
        else:
            host.plan_event(ev.RelationAsked(at=at, relation="users"))
    host.run(until=at + 100.0)
    version, seen = 0, {}
    for event in host.record:
        if isinstance(event, ev.RelationChanged):
            version = event.version
        elif isinstance(event, ev.BlockArrived):
            seen[event.block.stream, event.block.number] = version
    notes = [e for e in host.record if isinstance(e, ev.RelationChanged)]
    for (stream, number), expected in seen.items():
        told = max(e.version for e in notes if e.since.get(stream, 0) <= number)
        assert told == expected
    for job in host.runs:
        assert len({seen[b.stream, b.number] for b in job.blocks}) == 1 or job.path == "t/fanout"
    assert len(host.core.relations.history.versions["users"]) == 1, "no block is left"
