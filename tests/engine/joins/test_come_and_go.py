"""Joins whose queries come and go while they run: each has exactly what its own join would give.

A query that comes answers with the pairs whose later rows are not before a time that is told when
it joins, whatever the other queries of the join have had by then. One that goes has had the
beginning of its pairs, and nobody else notices.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.settings import Settings
from penstock.events import Summary
from penstock.events import kinds as ev
from penstock.testing import FakeHost
from tests.engine.joins import test_rows as of_rows
from tests.engine.joins.test_aggregates import COUNTS, SECOND, WINDOWS, at_random, count
from tests.engine.joins.test_aggregates import answers as counted
from tests.engine.joins.test_aggregates import drained as closed
from tests.engine.joins.test_aggregates import pairs as of_window
from tests.engine.joins.test_department import (
    BOUNDS,
    EVERY,
    QUERIES,
    STREAMS,
    Load,
    expected,
    host_of,
    in_order,
    loads,
)

PAIRED = {
    "WINDOW 2 SECONDS": (1 - 2 * SECOND, 2 * SECOND - 1),
    "WINDOW 15 SECONDS": (1 - 15 * SECOND, 15 * SECOND - 1),
    "WINDOW 200 SECONDS": (1 - 200 * SECOND, 200 * SECOND - 1),
    "AND B.ts BETWEEN A.ts - INTERVAL 3 SECONDS AND A.ts": (-3 * SECOND, 0),
}
"""How a query may join the streams, and how far the right row may be from the left one."""
BY_ROWS = {"WINDOW 1 ROWS": 1, "WINDOW 5 ROWS": 5, "WINDOW 500 ROWS": 500}
"""The same over windows of rows."""


@dataclass(frozen=True)
class Visit:
    """A query that comes, and perhaps goes again before the end."""

    at: float
    stays: float
    joins: str
    start: str

    def text(self, name: str) -> str:
        return (f"CREATE QUERY {name} WITH (start = '{self.start}') AS SELECT A.k FROM a A, b B "
                f"WHERE A.k = B.k {self.joins};")


def visits(joins: list[str]) -> st.SearchStrategy[list[Visit]]:
    """Up to six of them; some go again at once, others never."""
    return st.lists(st.builds(
        Visit, at=st.floats(0.5, 25), stays=st.sampled_from((0.0, 0.5, 3.0, 12.0, 1e6)),
        joins=st.sampled_from(joins), start=st.sampled_from(("now", "earliest"))), max_size=6)


def play(host: FakeHost, load: Load, coming: list[Visit], gone: dict[str, float]) -> FakeHost:
    """Let blocks arrive while queries come, and go when their time is over."""
    for stream, at, times, keys in load.blocks:
        host.arrive(stream, at=at, times=times, keys=keys)
    steps = [(visit.at, f"v{n}", visit) for n, visit in enumerate(coming)]
    steps += [(visit.at + visit.stays, f"v{n}", None) for n, visit in enumerate(coming)
              if visit.stays < 1e6]
    steps += [(at, name, None) for name, at in gone.items()]
    for at, name, visit in sorted(steps, key=lambda step: step[0]):
        host.run(until=at)
        host.clock.advance(max(at, host.clock.now()))
        if visit is None:
            host.drop(name)
        else:
            host.add(visit.text(name))
    last = max([*(at for _, at, _, _ in load.blocks), host.clock.now()])
    host.end("a", at=last + 1.0)
    host.end("b", at=last + 2.0)
    host.run()
    return host


def begun(host: FakeHost, query: str) -> int:
    """The time before which the later rows of a query's pairs do not lie."""
    since = next(e.since for e in host.record if isinstance(e, ev.QueryAdded) and e.query == query)
    return -(1 << 62) if since is None else since


def found(host: FakeHost, query: str) -> Counter:
    return Counter((pair.left.number, pair.right.number) for pair in host.pairs(query))


def check_visit(host: FakeHost, name: str, visit: Visit, whole: Counter, load: Load) -> None:
    """Whoever stayed has all pairs from its beginning on, whoever left the first of them."""
    lefts = {number: time for time, _, number in load.timely("a")}
    rights = {number: time for time, _, number in load.timely("b")}
    later = {pair: max(lefts[pair[0]], rights[pair[1]]) for pair in whole}
    mine = Counter({pair: n for pair, n in whole.items() if later[pair] >= begun(host, name)})
    had = found(host, name)
    if visit.stays == 1e6:
        assert had == mine, (name, visit)
    else:
        assert had <= mine, (name, visit)


@settings(max_examples=60, deadline=None)
@given(load=loads(), policy=st.sampled_from(EVERY), coming=visits(list(PAIRED)),
       gone=st.dictionaries(st.sampled_from(("same", "large", "after")), st.floats(0.5, 25)),
       retention=st.sampled_from((0.0, 5.0, 1e9)))
def test_joins_by_time(load, policy, coming, gone, retention):
    host = host_of(STREAMS + QUERIES, policy,
                   settings=Settings(until_drained=True, retention=retention))
    play(host, load, coming, gone)
    for query in BOUNDS:
        had, whole = found(host, query), expected(load, query)
        assert had <= whole if query in gone else had == whole, query
    for number, visit in enumerate(coming):
        with pytest.MonkeyPatch.context() as patched:
            patched.setitem(BOUNDS, "visit", PAIRED[visit.joins])
            check_visit(host, f"v{number}", visit, expected(load, "visit"), load)
    assert in_order(host)
    assert Summary.of(host.record).accounting() == []


@settings(max_examples=60, deadline=None)
@given(load=loads(), policy=st.sampled_from(EVERY), coming=visits(list(BY_ROWS)),
       gone=st.dictionaries(st.sampled_from(("again", "all")), st.floats(0.5, 25)),
       retention=st.sampled_from((0.0, 5.0, 1e9)))
def test_joins_by_rows(load, policy, coming, gone, retention):
    host = host_of(STREAMS + of_rows.QUERIES, policy,
                   settings=Settings(until_drained=True, retention=retention))
    play(host, load, coming, gone)
    for query, rows in of_rows.ROWS.items():
        had, whole = found(host, query), of_rows.expected(load, rows)
        assert had <= whole if query in gone else had == whole, query
    for number, visit in enumerate(coming):
        # Its first windows hold what the spool still has: the latest of the rows, without gaps.
        had, whole = found(host, f"v{number}"), of_rows.expected(load, BY_ROWS[visit.joins])
        assert had <= whole
        if retention == 1e9:
            check_visit(host, f"v{number}", visit, whole, load)
    assert in_order(host)
    assert Summary.of(host.record).accounting() == []


@settings(max_examples=50, deadline=None)
@given(load=loads(), policy=st.sampled_from(EVERY), data=st.data(),
       gone=st.dictionaries(st.sampled_from(("fine", "rare", "after")), st.floats(0.5, 25)),
       retention=st.sampled_from((0.0, 1e9)))
def test_aggregates_over_joins(load, policy, data, gone, retention):
    lengths = {f"WINDOW {length} SECONDS SLIDE {slide} SECONDS": (length, slide)
               for length, slide in ((3, 1), (12, 4), (40, 5))}
    coming = data.draw(visits(list(lengths)))
    host = host_of(STREAMS + COUNTS, policy, probing=at_random,
                   settings=Settings(until_drained=True, retention=retention))
    counting = [_Counting(visit.at, visit.stays, visit.joins, visit.start) for visit in coming]
    play(host, load, counting, gone)
    for query in WINDOWS:
        had, whole = counted(host, query), closed(load, query)
        assert had.items() <= whole.items() if query in gone else had == whole, query
    for number, visit in enumerate(coming):
        name, (length, slide) = f"v{number}", lengths[visit.joins]
        pairs, had = of_window(load, name), counted(host, name)
        since = begun(host, name)
        mine = {end: n for end in ends(pairs, length, slide)
                if end > since and (n := count(pairs, end, length * SECOND))}
        assert had == mine if visit.stays == 1e6 else had.items() <= mine.items(), (name, visit)
    assert Summary.of(host.record).accounting() == []
    assert host.failures == {}


def test_blocks_stay_until_those_who_come_have_said_what_they_need():
    """A query comes, and then its group begins anew: what that reads again is not gone by then."""
    load = Load((("a", 0.0, (0.0,) * 5, (1,) * 5), ("a", 1e-6, (0.0,) * 4 + (40.0,), (1,) * 5),
                 ("b", 2e-6, (0.0,) * 4, (1,) * 4), ("b", 3e-6, (0.0, 40.0), (1, 1))))
    host = host_of(STREAMS + COUNTS, "isolated", probing=at_random,
                   settings=Settings(until_drained=True, retention=0.0))
    play(host, load, [_Counting(10.0, 1e6, "WINDOW 3 SECONDS SLIDE 1 SECONDS", "earliest")], {})
    assert counted(host, "v0") == {
        **{end * SECOND: 45 for end in (1, 2, 3)}, **{end * SECOND: 1 for end in (41, 42, 43)}}


class _Counting(Visit):
    """A visit of a query that counts pairs."""

    def text(self, name: str) -> str:
        return Visit.text(self, name).replace("SELECT A.k", "SELECT COUNT(*)")


def ends(pairs: list[tuple[int, int]], length: int, slide: int) -> range:
    """The multiples of a slide at which a window of this length may hold pairs."""
    last = max((later for _, later in pairs), default=0) + (length + 2 * slide) * SECOND
    return range(0, last, slide * SECOND)


def test_a_query_that_comes_again_is_another_one():
    """The same name, with a larger window: it begins anew, and the first one's pairs stay."""
    host = host_of(STREAMS + QUERIES, "swf(merge=false)")
    load = Load(tuple((stream, 1.0 + 4 * n + part, (10.0 * n, 10.0 * n + 5), (1, 1))
                      for n in range(6) for stream, part in (("a", 0.0), ("b", 0.5))))
    first = Visit(2.0, 8.0, "WINDOW 2 SECONDS", "earliest")
    for stream, at, times, keys in load.blocks:
        host.arrive(stream, at=at, times=times, keys=keys)
    host.run(until=first.at)
    host.add(first.text("guest"))
    host.run(until=11.0)
    before = found(host, "guest")
    assert 0 < before.total() < expected(load, "small").total()
    host.drop("guest")
    host.add(Visit(11.0, 1e6, "WINDOW 15 SECONDS", "earliest").text("guest"))
    host.end("a", at=60.0)
    host.end("b", at=61.0)
    host.run()
    assert found(host, "guest") - before == expected(load, "middle")
    assert Summary.of(host.record).accounting() == []
