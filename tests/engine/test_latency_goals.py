"""Latencies that were promised: what is late is counted, and told once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.settings import Settings
from penstock.events import Summary, digest
from penstock.events import kinds as ev
from penstock.testing import FakeHost

APPLICATION = """
    CREATE STREAM s (a INT) FROM rate;
    CREATE STREAM t (a INT) FROM rate;
    CREATE QUERY strict WITH (latency = '1500 ms') AS SELECT a FROM s WHERE a = 1;
    CREATE QUERY lax WITH (latency = '1 hour') AS SELECT a FROM s WHERE a = 2;
    CREATE QUERY free AS SELECT a FROM s WHERE a = 3;
    CREATE QUERY both WITH (latency = '2500 ms') AS
        SELECT a FROM s WHERE a = 4 UNION ALL SELECT a FROM t;
"""


def told(host: FakeHost, query: str = "strict") -> list[ev.LatencyMissed]:
    return [e for e in host.record if isinstance(e, ev.LatencyMissed) and e.query == query]


def test_what_is_delivered_within_the_latency_is_no_miss() -> None:
    host = FakeHost.of(APPLICATION)
    host.arrive("s", at=1.0)  # delivered at 2.0
    host.run()
    strict = Summary.of(host.record).queries["strict"]
    assert (strict.missed_blocks, strict.missed_rows) == (0, 0)
    assert told(host) == []


def test_late_blocks_and_their_rows_are_counted_and_the_first_is_told() -> None:
    host = FakeHost.of(APPLICATION)
    host.arrive("s", at=1.0, rows=900)  # delivered at 2.0
    host.arrive("s", at=1.1, rows=10)  # these two at 3.0, after 1.9 and 1.2 seconds
    host.arrive("s", at=1.8, rows=90)
    host.run()
    summary = Summary.of(host.record)
    strict = summary.queries["strict"]
    assert (strict.missed_blocks, strict.missed_rows) == (1, 10)
    assert round(strict.latency.maximum, 6) == round(strict.block_latency.maximum, 6) == 1.9
    (miss,) = told(host)
    assert (miss.at, miss.promised, round(miss.seconds, 6), miss.blocks, miss.rows) == (
        3.0, 1.5, 1.9, 1, 10)
    assert summary.missed() == (1, 10)
    assert summary.accounting() == []


def test_latency_by_rows_and_by_blocks_differ_where_blocks_do() -> None:
    host = FakeHost.of(APPLICATION)
    host.arrive("s", at=1.0, rows=10_000)  # a second
    for at in (1.1, 1.2):
        host.arrive("s", at=at, rows=10)  # about two seconds
    host.run()
    strict = digest(Summary.of(host.record))["queries"][0]
    assert abs(strict["latency"]["p50"] - 1.0) < 0.05
    assert abs(strict["block_latency"]["p50"] - 1.85) < 0.1
    assert strict["latency"]["max"] == strict["block_latency"]["max"]
    assert (strict["missed_blocks"], strict["missed_rows"]) == (2, 20)


def test_a_query_that_was_promised_nothing_misses_nothing() -> None:
    host = FakeHost.of(APPLICATION, cost=lambda run: 100.0)
    host.arrive("s", at=1.0)
    host.run()
    summary = Summary.of(host.record)
    assert summary.queries["free"].missed_blocks == summary.queries["lax"].missed_blocks == 0
    assert summary.queries["strict"].missed_blocks == 1
    assert told(host, "free") == told(host, "lax") == []


def test_a_query_that_is_always_late_is_told_of_at_every_power_of_ten() -> None:
    host = FakeHost.of(APPLICATION, cost=lambda run: 2.0, settings=Settings(quantum=1e-9))
    for n in range(150):
        host.arrive("s", at=2.0 * n)
    host.run()
    assert [miss.blocks for miss in told(host)] == [1, 10, 100]
    assert Summary.of(host.record).queries["strict"].missed_blocks == 150


def test_blocks_from_before_a_query_joined_were_promised_to_nobody() -> None:
    host = FakeHost.of(APPLICATION)
    host.arrive("s", at=1.0)
    host.run()
    host.clock.advance(50.0)
    host.add("CREATE QUERY early WITH (latency = '1500 ms', start = 'earliest') AS "
             "SELECT a FROM s WHERE a = 9", backlog=((0, 0, 0),))
    host.run()
    early = Summary.of(host.record).queries["early"]
    assert (early.rows_in, early.missed_blocks) == (100, 0)
    assert told(host, "early") == []


def test_a_namesake_begins_without_misses() -> None:
    host = FakeHost.of(APPLICATION, cost=lambda run: 2.0)
    host.arrive("s", at=1.0)
    host.run()
    host.handle(ev.QueryDropped(at=host.clock.now(), query="strict"))
    host.handle(host.added("strict"))
    host.arrive("s", at=10.0)
    host.run()
    assert [(miss.at, miss.blocks) for miss in told(host)] == [(3.0, 1), (12.0, 1)]
    assert Summary.of(host.record).accounting() == []


def test_what_a_dropped_query_had_under_way_is_no_miss_of_its_namesake() -> None:
    host = FakeHost.of(APPLICATION, cost=lambda run: 2.0)
    host.arrive("s", at=1.0)
    host.run(until=2.0)
    host.handle(ev.QueryDropped(at=2.0, query="strict"))
    host.handle(host.added("strict"))
    host.run()
    assert told(host) == []
    assert Summary.of(host.record).queries["strict"].missed_blocks == 0


@given(
    st.lists(st.tuples(st.sampled_from("sst"), st.floats(0, 30), st.integers(1, 300)), max_size=30),
    st.floats(0.01, 4.0), st.sets(st.integers(1, 40), max_size=5),
    st.lists(st.tuples(st.floats(0, 40), st.sampled_from(["strict", "both"])), max_size=2),
    st.integers(1, 2),
)
def test_the_core_and_the_deliveries_agree_on_what_is_late(
    arrivals: list[tuple[str, float, int]], cost: float, unlucky: set[int],
    drops: list[tuple[float, str]], slots: int,
) -> None:
    host = FakeHost.of(
        APPLICATION, settings=Settings(until_drained=True, slots=slots), cost=lambda run: cost,
        fails=lambda run: "a fault" if run.number in unlucky else "")
    for stream, at, rows in sorted(arrivals, key=lambda arrival: arrival[1]):
        host.arrive(stream, at=at, rows=rows)
    for at, query in drops:
        host.plan_event(ev.QueryDropped(at=at, query=query))
    host.run()
    summary = Summary.of(host.record)
    assert summary.accounting() == []  # among others, that every miss told is the fold's own count
    for name in ("strict", "both"):
        misses, query = told(host, name), summary.queries[name]
        assert bool(misses) == (query.missed_blocks > 0) or not query.live
        assert [len(str(miss.blocks)) for miss in misses] == sorted(
            {len(str(miss.blocks)) for miss in misses})
