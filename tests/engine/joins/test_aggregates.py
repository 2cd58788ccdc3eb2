"""Window aggregates over joins in virtual time: an answer covers the pairs that lie in its window.

Answers count pairs, so that a test sees one that is missing, came twice, or came too early.
"""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine import Core, ProbeJob
from penstock.engine.joins import outers
from penstock.engine.positions import Positions
from penstock.engine.settings import Settings
from penstock.events import Summary
from penstock.events import kinds as ev
from penstock.planning import plan
from penstock.policies import refresh as refreshes
from penstock.policies.joins import policy as joins_policy
from penstock.testing import FakeHost
from tests.engine.joins.test_department import (
    EVERY,
    LATENESS,
    STREAMS,
    Load,
    host_of,
    in_order,
    loads,
    play,
)

SECOND = 1_000_000
WINDOWS = {"whole": (12, 4), "fine": (10, 1), "odd": (14, 3), "rare": (5, 9), "after": (20, 5)}
AFTER = " AND B.ts BETWEEN A.ts AND A.ts + INTERVAL 9 SECONDS"
COUNTS = "".join(
    f"CREATE QUERY {name} AS SELECT COUNT(*) FROM a A, b B WHERE A.k = B.k"
    f"{AFTER if name == 'after' else ''} WINDOW {length} SECONDS SLIDE {slide} SECONDS;"
    for name, (length, slide) in WINDOWS.items())


def pairs(load: Load, query: str) -> list[tuple[int, int]]:
    """The times of the rows of each pair, the earlier one first."""
    found = [(left[0], right[0]) for left in load.timely("a") for right in load.timely("b")
             if left[1] == right[1]]
    if query == "after":
        found = [(left, right) for left, right in found if 0 <= right - left <= 9 * SECOND]
    return [(min(pair), max(pair)) for pair in found]


def count(found: list[tuple[int, int]], end: int, length: int) -> int:
    return sum(end - length <= earlier and later < end for earlier, later in found)


def drained(load: Load, query: str) -> dict[int, int]:
    """By end, the pairs of each window that holds some: the ends are multiples of the slide."""
    length, slide = (SECOND * each for each in WINDOWS[query])
    found = pairs(load, query)
    last = max((later for _, later in found), default=0) + length + slide
    ends = range(0, last + slide, slide)
    return {end: n for end in ends if (n := count(found, end, length))}


def answers(host: FakeHost, query: str) -> dict[int, int]:
    found = [(one.end, one.rows) for one in host.answers if one.query == query]
    assert [end for end, _ in found] == sorted({end for end, _ in found}), query
    return {end: rows for end, rows in found if rows}


def check(host: FakeHost, load: Load, queries: tuple[str, ...] = tuple(WINDOWS)) -> None:
    for query in queries:
        assert answers(host, query) == drained(load, query), query
    assert Summary.of(host.record).accounting() == []
    assert host.failures == {}


def at_random(job: ProbeJob) -> float:
    return 0.3 * (1 + job.number % 7)


@pytest.mark.parametrize("policy", EVERY)
@settings(max_examples=40, deadline=None)
@given(load=loads())
def test_a_drained_query_answers_for_the_pairs_of_every_window(policy, load):
    host = play(host_of(STREAMS + COUNTS, policy), load)
    check(host, load)
    assert host.finished is not None and host.finished.outcome == "drained"


@settings(max_examples=40, deadline=None)
@given(load=loads(), most=st.sampled_from((1, 3, 500_000)), slots=st.sampled_from((1, 2, 3)))
def test_blocks_outers_and_slots_make_no_difference(load, most, slots):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(outers, "MOST_ROWS", most)
        host = host_of(STREAMS + COUNTS, "mqt", probing=at_random,
                       settings=Settings(until_drained=True, slots=slots))
        check(play(host, load), load)


@pytest.mark.parametrize("refresh", refreshes.POLICIES)
@settings(max_examples=30, deadline=None)
@given(load=loads())
def test_whatever_is_answered_live_is_the_count_of_its_window(refresh, load):
    host = FakeHost.of(STREAMS + COUNTS, joins="mqt", refresh=refresh, probing=at_random,
                       refreshing=lambda job: 0.4, settings=Settings(until_drained=False))
    play(host, load)
    for one in host.answers:
        assert one.rows == count(pairs(load, one.query), one.end, one.end - one.start)
    assert Summary.of(host.record).accounting() == []


def test_the_synopsis_forgets_pairs_that_no_window_needs():
    host = host_of(STREAMS + COUNTS, "lwo", settings=Settings(until_drained=False, retention=5.0))
    blocks = tuple((stream, 10.0 * n + part, tuple(float(10 * n + i) for i in range(10)), (1,) * 10)
                   for n in range(30) for stream, part in (("a", 0.0), ("b", 0.5)))
    play(host, Load(blocks))
    assert len([one for one in host.answers if one.query == "whole"]) > 40
    for synopsis in host._synopses.held.values():
        assert min(earlier for earlier, _ in synopsis.pairs) * synopsis.group.pane > 200 * SECOND
    assert len(host.released) > 30


@settings(max_examples=40, deadline=None)
@given(load=loads(), at=st.floats(0, 30), length=st.sampled_from((3, 12, 40)))
def test_a_query_that_joins_is_answered_like_the_others(load, at, length):
    host = host_of(STREAMS + COUNTS, "mqt", settings=Settings(until_drained=True, retention=1e9))
    for stream, came, times, keys in load.blocks:
        host.arrive(stream, at=came, times=times, keys=keys)
    host.run(until=at)
    host.add("CREATE QUERY late WITH (start = 'earliest') AS SELECT COUNT(*) FROM a A, b B "
             f"WHERE A.k = B.k WINDOW {length} SECONDS SLIDE 2 SECONDS;",
             tuple((0, number, block.number) for number, stream in enumerate("ab")
                   for block in host.spool.held(stream)))
    last = max((came for _, came, _, _ in load.blocks), default=0.0)
    host.end("a", at=max(last, at) + 1.0)
    host.end("b", at=max(last, at) + 2.0)
    host.run()
    check(host, load)
    found = pairs(load, "late")
    for one in host.answers:
        if one.query == "late":
            assert one.rows == count(found, one.end, length * SECOND)


@settings(max_examples=30, deadline=None)
@given(load=loads(), at=st.floats(0, 30))
def test_a_query_that_leaves_changes_no_answer_of_the_others(load, at):
    host = host_of(STREAMS + COUNTS, "mqt")
    for stream, came, times, keys in load.blocks:
        host.arrive(stream, at=came, times=times, keys=keys)
    host.run(until=at)
    host.drop("fine")
    last = max((came for _, came, _, _ in load.blocks), default=0.0)
    host.end("a", at=max(last, at) + 1.0)
    host.end("b", at=max(last, at) + 2.0)
    host.run()
    check(host, load, ("whole", "odd", "rare", "after"))


@settings(max_examples=30, deadline=None)
@given(load=loads(), at=st.floats(0, 30))
def test_a_synopsis_that_is_lost_is_rebuilt_from_the_spool(load, at):
    host = host_of(STREAMS + COUNTS, "swf", settings=Settings(until_drained=True))
    for stream, came, times, keys in load.blocks:
        host.arrive(stream, at=came, times=times, keys=keys)
    host.run(until=at)
    host.rebuild(plan(host.application).groups[0].id)
    last = max((came for _, came, _, _ in load.blocks), default=0.0)
    host.end("a", at=max(last, at) + 1.0)
    host.end("b", at=max(last, at) + 2.0)
    host.run()
    check(host, load)


@settings(max_examples=25, deadline=None)
@given(load=loads(), failing=st.sets(st.integers(1, 12)))
def test_a_probe_that_fails_is_tried_again(load, failing):
    seen: set[tuple[str, int]] = set()

    def once(job: ProbeJob) -> str:
        known = (job.join, job.outer) in seen
        seen.add((job.join, job.outer))
        return "" if known or job.number not in failing else "it broke"

    check(play(host_of(STREAMS + COUNTS, "mqt", stumbles=once), load), load)


def test_a_probe_that_fails_for_good_stops_the_queries_of_its_group_alone():
    load = Load((("a", 1.0, (0.0, 1.0), (1, 1)), ("b", 2.0, (0.5, 30.0), (1, 1))))
    broken = plan(host_of(STREAMS + COUNTS, "mqt").application).groups[0]
    host = play(host_of(STREAMS + COUNTS, "mqt",
                        stumbles=lambda job: "bad" if job.group == broken.id else ""), load)
    assert set(host.failures) == {member.query for member in broken.members}
    (staying,) = set(WINDOWS) - set(host.failures)
    assert answers(host, staying) == drained(load, staying)


def test_pairs_and_aggregates_of_the_same_streams_run_side_by_side():
    sql = STREAMS + COUNTS + ("CREATE QUERY tiny AS SELECT A.k FROM a A, b B WHERE A.k = B.k "
                              "WINDOW 1 SECOND;")
    load = Load((("a", 1.0, (0.0, 1.0, 4.0), (1, 1, 2)), ("b", 2.0, (0.5, 3.5), (1, 2))))
    host = play(host_of(sql, "mqt"), load)
    check(host, load)
    assert len(host.pairs("tiny")) == 3
    assert in_order(host)


def test_late_rows_are_in_no_pair_and_are_counted():
    load = Load((("a", 1.0, (50.0,), (1,)), ("a", 2.0, (1.0, 50.5), (1, 1)),
                 ("b", 3.0, (51.0,), (1,))))
    host = play(host_of(STREAMS + COUNTS, "mqt"), load)
    check(host, load)
    assert LATENESS["a"] < 49
    assert {query.late for query in Summary.of(host.record).queries.values()} == {1}
    finished = [e for e in host.record if isinstance(e, ev.JobFinished) and e.kind == "probe"]
    assert sum(e.result.summarised.get("fine", 0) for e in finished) == 2


def restarted(before: FakeHost) -> FakeHost:
    """A second run on the log and the spool that a run left when it was killed."""
    core = Core({"joins": joins_policy("mqt")}, Settings(until_drained=True))
    core.adopt(plan(before.application))
    host = FakeHost(core, application=before.application, probing=at_random)
    host.spool, host._rows, host._log = before.spool, before._rows, before._log
    host._positions = Positions(core, host._log, host._contents)
    now = before.clock.now()
    host.clock.advance(now)
    host.handle(ev.EngineStarted(at=now, streams=tuple(before.application.streams), cores=1,
                                 policies={"operators": "fifo", "refresh": "", "joins": "mqt"}))
    for stream in before.application.streams:
        for block in before.spool.held(stream):
            host.handle(ev.BlockHeld(at=now, block=block))
    joining = list(before.application.queries.values())
    for query in joining:
        host.handle(host._positions.added(query, now))
    needs = partial(host._positions.needs, joining=joining)
    for group in host._synopses.adopt(core.plan, needs):
        host.handle(host._positions.begun(group, now))
    host.handle(ev.Tick(at=now))
    for _, _, event in sorted(before._agenda, key=lambda planned: planned[:2]):
        if isinstance(event, ev.BlockArrived | ev.StreamEnded):
            host.plan_event(event)
    return host


@settings(max_examples=80, deadline=None)
@given(load=loads(), kills=st.lists(st.floats(0.1, 8), min_size=3, max_size=3))
def test_runs_that_are_killed_and_begun_again_answer_every_window_once(load, kills):
    host = host_of(STREAMS + COUNTS, "mqt",
                   settings=Settings(until_drained=True, retention=0.0), probing=at_random)
    for stream, at, times, keys in load.blocks:
        host.arrive(stream, at=at, times=times, keys=keys)
    last = max((at for _, at, _, _ in load.blocks), default=0.0)
    host.end("a", at=last + 30.0)
    host.end("b", at=last + 31.0)
    runs, until = [host], 0.0
    for after in kills:
        until += after
        runs[-1].run(until=until)
        if runs[-1].finished is not None:
            break
        runs.append(restarted(runs[-1]))
    runs[-1].run()
    for query in WINDOWS:
        found = [(one.end, one.rows) for run in runs for one in run.answers
                 if one.query == query and one.rows]
        assert len(found) == len(dict(found)), query
        assert dict(found) == drained(load, query), query
    assert Summary.of(runs[-1].record).accounting() == []
