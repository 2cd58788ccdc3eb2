"""Where queries begin that join late, what they owe, and what their groups need."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.aggregates.coverage import EVERYTHING
from penstock.engine.positions import (
    Intervals,
    Positions,
    QueryPosition,
    SpoolContents,
    digests,
)
from penstock.language import bind
from penstock.model import Block, Input, Query
from penstock.plan import EARLIEST, Plan
from penstock.planning import plan

SECOND = 1_000_000
APPLICATION = """
    CREATE STREAM s (ts TIMESTAMP, a INT) FROM rate TIME ts LATENESS 2 SECONDS;
    CREATE STREAM t (ts TIMESTAMP, a INT) FROM rate TIME ts LATENESS 2 SECONDS;
    CREATE QUERY q AS SELECT a, COUNT(*) FROM s [WINDOW 10 SECONDS SLIDE 5 SECONDS] GROUP BY a;
    CREATE QUERY r AS SELECT a, COUNT(*) FROM s [WINDOW 30 SECONDS SLIDE 5 SECONDS] GROUP BY a;
    CREATE QUERY u WITH (start = 'earliest') AS SELECT a FROM s UNION ALL SELECT a FROM t;
"""
APP = bind(APPLICATION)
PLAN = plan(APP)


class Known:
    """A core that knows blocks up to a number, and has these queries alive."""

    def __init__(self, newest: int = 9, alive: tuple[str, ...] = ()) -> None:
        self._newest, self._alive = newest, alive

    @property
    def plan(self) -> Plan:
        return PLAN

    def newest(self, stream: str) -> int:
        return self._newest

    def is_alive(self, query: str) -> bool:
        return query in self._alive


def block(number: int, stream: str = "s") -> Block:
    """Ten seconds of rows."""
    newest = (number + 1) * 10 * SECOND
    cutoff = newest - 12 * SECOND if number else None
    return Block(stream, number, 1, 1, 0.0, cutoff, newest - 2 * SECOND, newest)


def holding(held: range, last: int = 9) -> SpoolContents:
    """A spool that holds some blocks of those that it had."""
    return SpoolContents([block(n) for n in held], block(last), 2 * SECOND)


def positions(
    held: range, core: Known | None = None, **log: QueryPosition
) -> Positions:
    return Positions(core or Known(), log, {"s": holding(held)}.get)


def since(held: range, start: int, answered: int | None = None) -> int | None:
    """For a query that begins with a block, while the spool holds some."""
    begun = QueryPosition(start={"s": start}, answered=answered)
    return positions(held, q=begun).since(APP.queries["q"])


@pytest.mark.parametrize(("held", "start", "expected"), [
    (range(10), 10, 98 * SECOND),  # all is there: from the watermark on
    (range(10), 0, None),  # and from the first row on
    (range(7, 10), 10, 98 * SECOND),  # enough is
    (range(9, 10), 10, 100 * SECOND),  # what came up to 90 s is gone
    (range(9, 10), 9, 100 * SECOND),
    (range(10, 10), 10, 110 * SECOND),  # nothing is there any more
])
def test_a_new_query_begins_with_the_first_window_of_which_every_row_is_there(
    held: range, start: int, expected: int | None
) -> None:
    assert since(held, start) == expected


def test_a_query_that_has_answered_goes_on_from_there() -> None:
    assert since(range(9, 10), 0, answered=55 * SECOND) == 55 * SECOND


def test_a_query_owes_its_own_blocks_that_the_core_knows_and_it_has_not_delivered() -> None:
    had = QueryPosition(start={"s": 2}, had={(0, 0): Intervals([[3, 4]])})
    found = positions(range(10), Known(newest=7), u=had)
    assert found.backlog(APP.queries["u"]) == tuple((0, 0, n) for n in (2, 5, 6, 7))


def test_a_backlog_goes_by_branch_and_input() -> None:
    union = APP.queries["u"]
    joined = replace(union, branches=(
        replace(union.branches[0], inputs=(Input("s"), Input("t"))), union.branches[1]))
    had = QueryPosition(had={
        (0, 0): Intervals([[0, 2]]), (0, 1): Intervals([[1, 1]]), (1, 0): Intervals([[0, 0]])})
    spools = {stream: SpoolContents([block(n, stream) for n in range(3)]) for stream in "st"}
    found = Positions(Known(), {"u": had}, spools.get)
    assert found.backlog(joined) == ((0, 1, 0), (0, 1, 2), (1, 0, 1), (1, 0, 2))


@pytest.mark.parametrize(("start", "held", "expected"), [
    ("now", range(3, 10), {"s": 10}),
    ("earliest", range(3, 10), {"s": 3}),
    ("earliest", range(10, 10), {"s": 0}),
])
def test_a_new_query_begins_now_or_with_the_earliest_block(
    start: str, held: range, expected: dict[str, int]
) -> None:
    query: Query = replace(APP.queries["u"], start=start)  # type: ignore[arg-type]
    found = positions(held).starts([query], digests(APP))
    assert found == {"u": expected}, "t has no spool: it cannot be read"


def test_a_query_that_is_declared_otherwise_begins_anew() -> None:
    texts = digests(APP)
    known = {name: QueryPosition(text=texts[name], had={(0, 0): Intervals([[0, 4]])})
             for name in ("q", "r")}
    known["r"].text = "another"
    found = positions(range(10), **known)
    assert found.starts([APP.queries["q"], APP.queries["r"]], texts) == {"r": {"s": 10}}
    assert list(found.delivered(APP)) == [("s", 4)], "what r has delivered was another's"


def test_a_group_reaches_back_to_the_oldest_row_of_its_next_windows() -> None:
    (group,) = PLAN.groups
    log = {"q": QueryPosition(answered=90 * SECOND), "r": QueryPosition(answered=95 * SECOND)}
    assert positions(range(10), **log).reach(group) == (6, 7, 8, 9)  # 95 s - 30 s is in block 6
    log["r"] = QueryPosition()
    assert positions(range(10), **log).reach(group) == tuple(range(10))


@pytest.mark.parametrize(("alive", "answered", "joining", "expected"), [
    (("q",), 90, ("r",), 90 // 5 + 1 - 6),
    (("q",), 93, ("r",), 93 // 5 + 1 - 6),
    (("q",), None, ("r",), EARLIEST),
    ((), 90, ("r",), EVERYTHING),  # q has taken nothing in meanwhile
    (("q", "r"), 90, (), None),
])
def test_those_who_join_a_group_need_panes_from_their_first_window_on(
    alive: tuple[str, ...], answered: int | None, joining: tuple[str, ...], expected: int | None
) -> None:
    (group,) = PLAN.groups
    assert group.pane == 5 * SECOND
    begun = QueryPosition(answered=None if answered is None else answered * SECOND)
    found = positions(range(10), Known(alive=alive), q=QueryPosition(), r=begun)
    assert found.needs(group, [APP.queries[name] for name in joining]) == expected


def test_the_events_that_a_host_gives_its_core_say_where_a_query_stands() -> None:
    (group,) = PLAN.groups
    log = {"q": QueryPosition(start={"s": 8}, had={(0, 0): Intervals([[8, 8]])}, rows=7, at=3.0,
                              answered=80 * SECOND),
           "r": QueryPosition(answered=80 * SECOND)}
    found = positions(range(10), **log)
    added = found.added(APP.queries["q"], 5.0)
    assert (added.backlog, added.since) == (((0, 0, 9),), 80 * SECOND)
    assert (added.at, added.delivered, added.joined) == (5.0, 7, 3.0)
    assert found.added(APP.queries["q"], 5.0, has_fault=True).backlog == ()
    begun = found.begun(group, 6.0)
    assert (begun.at, begun.group, begun.blocks) == (6.0, group.id, (4, 5, 6, 7, 8, 9))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4))))
def test_ranges_hold_the_numbers_that_were_put_in_and_never_touch(put: list[tuple[int, int]]):
    numbers, wanted = Intervals(), set()
    for low, more in put:
        numbers.add(low, low + more)
        wanted.update(range(low, low + more + 1))
        assert [number for number in range(40) if number in numbers] == sorted(wanted)
        assert all(one[1] + 1 < other[0] for one, other in pairwise(numbers.ranges))
    assert Intervals.of(sorted(wanted)) == numbers
