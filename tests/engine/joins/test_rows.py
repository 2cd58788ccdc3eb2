"""Joins over windows of rows in virtual time: a row meets the latest rows of the other stream."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.joins import outers
from penstock.engine.settings import Settings
from penstock.events import Summary
from penstock.testing import FakeHost
from tests.engine.joins.test_department import (
    EVERY,
    STREAMS,
    Load,
    host_of,
    in_order,
    loads,
    play,
    restarted,
)

ROWS = {"last": 1, "few": 3, "again": 3, "many": 8, "all": 1000}
QUERIES = "".join(
    f"CREATE QUERY {name} AS SELECT A.k FROM a A, b B WHERE A.k = B.k WINDOW {rows} ROWS;"
    for name, rows in ROWS.items())
TIMED = "CREATE QUERY timed AS SELECT A.k FROM a A, b B WHERE A.k = B.k WINDOW 4 SECONDS;"


def expected(load: Load, rows: int, streams: tuple[str, str] = ("a", "b")) -> Counter:
    """Each row of one stream beside the latest of the other that are not later than it."""
    sides = [sorted(((time, number, key) for time, key, number in load.timely(stream)))
             for stream in streams]
    times = [[time for time, _, _ in side] for side in sides]
    found: set[tuple[int, int]] = set()
    for mine, other in ((0, 1), (1, 0)):
        for time, number, key in sides[mine]:
            end = bisect_right(times[other], time)
            for _, theirs, their_key in sides[other][max(0, end - rows) : end]:
                if key == their_key:
                    found.add((number, theirs) if mine == 0 else (theirs, number))
    return Counter(found)


def pairs(host: FakeHost, query: str) -> Counter:
    return Counter((pair.left.number, pair.right.number) for pair in host.pairs(query))


def check(host: FakeHost, load: Load, queries: tuple[str, ...] = tuple(ROWS)) -> None:
    for query in queries:
        assert pairs(host, query) == expected(load, ROWS[query]), query
    assert in_order(host)
    assert Summary.of(host.record).accounting() == []


@pytest.mark.parametrize("policy", EVERY)
@settings(max_examples=50, deadline=None)
@given(load=loads())
def test_a_row_meets_the_latest_rows_of_the_other_stream(policy, load):
    host = play(host_of(STREAMS + QUERIES + TIMED, policy), load)
    check(host, load)
    assert host.finished is not None and host.finished.outcome == "drained"


@settings(max_examples=60, deadline=None)
@given(load=loads(), policy=st.sampled_from(EVERY), most=st.sampled_from((1, 3, 500_000)),
       slots=st.sampled_from((1, 3)))
def test_blocks_outers_and_slots_make_no_difference(load, policy, most, slots):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(outers, "MOST_ROWS", most)
        host = host_of(STREAMS + QUERIES, policy,
                       settings=Settings(until_drained=True, slots=slots, retention=0.0))
        check(play(host, load), load)


def test_rows_that_no_later_row_can_meet_leave_the_spool():
    sql = STREAMS + ("CREATE QUERY few AS SELECT A.k FROM a A, b B WHERE A.k = B.k WINDOW 3 ROWS;")
    host = host_of(sql, "mqt", settings=Settings(until_drained=False, retention=5.0))
    blocks = tuple((stream, 10.0 * n + part, tuple(float(10 * n + i) for i in range(10)), (1,) * 10)
                   for n in range(20) for stream, part in (("a", 0.0), ("b", 0.5)))
    load = Load(blocks)
    play(host, load)
    assert len(host.released) > 25
    found, whole = pairs(host, "few"), expected(load, 3)
    assert found <= whole
    assert sum(found.values()) > 0.9 * sum(whole.values())


@settings(max_examples=50, deadline=None)
@given(load=loads(), policy=st.sampled_from(EVERY), at=st.floats(0.5, 20))
def test_queries_that_come_and_go_change_nothing_for_the_others(load, policy, at):
    host = host_of(STREAMS + QUERIES, policy)
    for stream, came, times, keys in load.blocks:
        host.arrive(stream, at=came, times=times, keys=keys)
    host.run(until=at)
    host.drop("all")
    host.add("CREATE QUERY twin WITH (start = 'earliest') AS SELECT A.k FROM a A, b B "
             "WHERE A.k = B.k WINDOW 3 ROWS;"
             "CREATE QUERY more AS SELECT A.k FROM a A, b B WHERE A.k = B.k WINDOW 2000 ROWS;")
    last = max([*(came for _, came, _, _ in load.blocks), host.clock.now()])
    host.end("a", at=last + 1.0)
    host.end("b", at=last + 2.0)
    host.run()
    check(host, load, ("last", "few", "again", "many"))
    assert pairs(host, "twin") == expected(load, 3)  # nothing had been released yet
    assert pairs(host, "more") <= expected(load, 2000)


@settings(max_examples=80, deadline=None)
@given(load=loads(), policies=st.lists(st.sampled_from(EVERY), min_size=2, max_size=4),
       kills=st.lists(st.floats(0.1, 8), min_size=3, max_size=3))
def test_runs_that_are_killed_and_begun_again_lose_no_pair_and_repeat_none(load, policies, kills):
    host = host_of(STREAMS + QUERIES, policies[0],
                   settings=Settings(until_drained=True, retention=0.0))
    for stream, at, times, keys in load.blocks:
        host.arrive(stream, at=at, times=times, keys=keys)
    last = max((at for _, at, _, _ in load.blocks), default=0.0)
    host.end("a", at=last + 30.0)
    host.end("b", at=last + 31.0)
    runs, until = [host], 0.0
    for policy, after in zip(policies[1:], kills, strict=False):
        until += after
        runs[-1].run(until=until)
        if runs[-1].finished is not None:
            break
        runs.append(restarted(runs[-1], policy))
    runs[-1].run()
    for query, rows in ROWS.items():
        assert sum((pairs(run, query) for run in runs), Counter()) == expected(load, rows), query


@settings(max_examples=40, deadline=None)
@given(load=loads())
def test_a_stream_is_joined_with_itself(load):
    sql = STREAMS + "CREATE QUERY few AS SELECT A.k FROM a A, a B WHERE A.k = B.k WINDOW 3 ROWS;"
    host = play(host_of(sql, "mqt"), load)
    assert pairs(host, "few") == expected(load, 3, ("a", "a"))


def test_a_stream_that_lags_holds_the_join_up_and_equal_times_meet_once():
    host = host_of(STREAMS + QUERIES, "lwo")
    for n in range(5):
        host.arrive("a", at=1.0 + n, times=(10.0 * n, 10.0 * n), keys=(1, 1))
    host.run()
    assert host.probes == []
    host.arrive("b", at=10.0, times=(10.0, 25.0), keys=(1, 1))
    host.run()
    found = [(pair.left.number, pair.right.number) for pair in host.pairs("last")]
    # The watermark of b is 24 s. Both rows of a at 10 s meet b's, and b's meets the later of them.
    assert sorted(found) == [(2, 0), (3, 0), (4, 0), (5, 0)]
