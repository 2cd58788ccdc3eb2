"""Live window aggregates when event time jumps: bursts, silence, backlogs, and a machine too slow.

The ends of a query's answers are at most a slide apart where windows hold rows. Only a machine that
is late leaves answers out, and says so.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.engine.settings import Settings
from penstock.events import Summary
from penstock.events import kinds as ev
from penstock.policies.refresh import POLICIES
from penstock.testing import Answer, FakeHost
from tests.live import Asked, asked, check_ends, in_time, missing, pane_of, streamed

SECOND = 1_000_000
LATENESS = 5
REFRESH = [*POLICIES, "conservative+late", "hybrid+late", "hybrid+late_pending"]


def hosted(
    queries: Sequence[Asked], refresh: str, cost: float = 0.0, refreshing: float = 0.0,
    scanning: float = 0.0, lateness: int = LATENESS,
) -> FakeHost:
    """A live run; a scan takes some time beside what the refresh takes."""
    text = f"CREATE STREAM s (ts TIMESTAMP, a INT) FROM rate TIME ts LATENESS {lateness} SECONDS;"
    text += "".join(f"CREATE QUERY {one.name} AS SELECT COUNT(*) FROM s {one.sql};"
                    for one in queries)
    return FakeHost.of(text, settings=Settings(), refresh=refresh, cost=lambda run: cost,
                       refreshing=lambda one: refreshing + scanning * len(one.scans))


def play(host: FakeHost, blocks: Sequence[Sequence[float]], every: Sequence[float]) -> None:
    at = 1.0
    for times, pause in zip(blocks, every, strict=False):
        host.arrive("s", at=at, times=tuple(times))
        at += pause
    host.run()
    assert Summary.of(host.record).accounting() == []


def answers(host: FakeHost, name: str) -> list[Answer]:
    return [answer for answer in host.answers if answer.query == name]


def ends(host: FakeHost, name: str) -> list[int]:
    return [answer.end // SECOND for answer in answers(host, name)]


def skipped(host: FakeHost) -> list[ev.AnswersSkipped]:
    return [event for event in host.record if isinstance(event, ev.AnswersSkipped)]


def check_counts(host: FakeHost, rows: Sequence[int]) -> None:
    """Each answer has the rows of its window: by plain Python, row by row."""
    for answer in host.answers:
        assert answer.rows == sum(answer.start <= row * SECOND < answer.end for row in rows), answer
        assert answer.rows, f"{answer} is of no row"


def check_complete(host: FakeHost, queries: Sequence[Asked], rows: Sequence[int]) -> None:
    """Nobody was late, so nothing is missing."""
    assert skipped(host) == []
    pane = pane_of(queries)
    closed = (max(rows) - LATENESS) // pane * pane
    for of in queries:
        check_ends(rows, of, pane, closed, ends(host, of.name))


# --- the streams that were lost --------------------------------------------------------------


@pytest.mark.parametrize("refresh", REFRESH)
def test_every_burst_is_answered_though_ten_seconds_lie_between(refresh: str) -> None:
    of = Asked("q", 2, 2)
    host = hosted([of], refresh, cost=1.0, refreshing=0.1)
    bursts = [tuple(10 * n + k / 10 for k in range(10)) for n in range(6)]
    play(host, bursts, [10.0] * 6)
    assert [(a.end // SECOND, a.rows) for a in host.answers] == [
        (10 * n + 2, 10) for n in range(5)]  # the last burst closes no window of its own
    assert skipped(host) == []


@pytest.mark.parametrize("refresh", REFRESH)
@pytest.mark.parametrize("of", [Asked("q", 60, 60), Asked("q", 600, 120)])
def test_every_window_of_a_file_is_answered(refresh: str, of: Asked) -> None:
    host = hosted([of], refresh, cost=1.0, refreshing=0.1)
    files = [tuple(range(660 * n, 660 * (n + 1), 5)) for n in range(6)]
    play(host, files, [660.0] * 6)
    rows = in_time(files, LATENESS)
    assert len(host.answers) == 3960 // of.slide - 1
    check_complete(host, [of], rows)
    check_counts(host, rows)


def test_a_backlog_is_answered_in_batches_though_more_comes_meanwhile() -> None:
    """An hour at once, then a row each second: 3,600 answers, each 256 of them one refresh."""
    of = Asked("q", 10, 1)
    host = hosted([of], "hybrid+late_pending", cost=0.1, refreshing=0.2)
    blocks = [tuple(range(3600)), *((3600 + n,) for n in range(60))]
    play(host, blocks, [1.0] * 61)
    rows = in_time(blocks, LATENESS)
    check_complete(host, [of], rows)
    check_counts(host, rows)
    assert max(len(refresh.scans) for refresh in host.refreshes) == 256


def test_several_groups_that_wait_for_each_other_skip_nothing_of_a_backlog() -> None:
    """Ten files of an hour, one a second, for four synopses: refreshes and runs take turns."""
    text = "".join(f"CREATE QUERY q{n} AS SELECT COUNT(*) FROM s [WINDOW 1 MIN] WHERE a > {n};"
                   for n in range(4))
    host = FakeHost.of(
        "CREATE STREAM s (ts TIMESTAMP, a INT) FROM rate TIME ts LATENESS 5 SECONDS;" + text,
        settings=Settings(), cost=lambda run: 0.5, refreshing=lambda refresh: 0.5)
    play(host, [tuple(range(3600 * n, 3600 * (n + 1), 20)) for n in range(10)], [1.0] * 10)
    assert skipped(host) == []
    for n in range(4):
        assert ends(host, f"q{n}") == list(range(60, 36_000 - 20, 60))


# --- any stream ------------------------------------------------------------------------------

SEEDS = st.integers(0, 10**6)


@settings(max_examples=80, deadline=None)
@given(seed=SEEDS, refresh=st.sampled_from(REFRESH))
@example(seed=0, refresh="hybrid+late_pending")
@example(seed=116436, refresh="hybrid")  # a period that changed before the first answer
def test_a_machine_in_time_answers_every_stream_without_a_gap(seed: int, refresh: str) -> None:
    chance = random.Random(seed)
    queries, blocks = asked(chance, 3), streamed(chance, 12)
    host = hosted(queries, refresh)
    play(host, blocks, [chance.choice([0.0, 0.0, 0.5, 60.0]) for _ in blocks])
    rows = in_time(blocks, LATENESS)
    check_complete(host, queries, rows)
    check_counts(host, rows)


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, refresh=st.sampled_from(REFRESH), cost=st.sampled_from([0.1, 1.0, 4.0]),
       refreshing=st.sampled_from([0.1, 2.5]), scanning=st.sampled_from([0.0, 0.5]))
def test_what_a_machine_that_is_late_leaves_out_is_counted_and_nothing_else_is(
    seed: int, refresh: str, cost: float, refreshing: float, scanning: float
) -> None:
    chance = random.Random(seed)
    queries, blocks = asked(chance, 3), streamed(chance, 12)
    host = hosted(queries, refresh, cost, refreshing, scanning)
    play(host, blocks, [chance.choice([0.0, 1.0, 10.0]) for _ in blocks])
    rows, pane, told = in_time(blocks, LATENESS), pane_of(queries), skipped(host)
    check_counts(host, rows)
    for of in queries:
        stops = [rows[0] // pane * pane, *ends(host, of.name)]
        for a, b in pairwise(stops):
            noted = sum(event.answers.get(of.name, 0) for event in told
                        if a * SECOND < event.before <= b * SECOND)
            assert missing(rows, of, pane, a, b) <= noted, (of, a, b)


@settings(max_examples=60, deadline=None)
@given(refresh=st.sampled_from(REFRESH), count=st.integers(1, 4),
       refreshing=st.sampled_from([0.1, 1.2, 2.5, 7.0]), data=st.data())
def test_the_skipped_are_the_ends_a_slide_apart_that_are_missing(
    refresh: str, count: int, refreshing: float, data: st.DataObject
) -> None:
    """With a row in every second no window is empty, so the count is exact."""
    windows = st.tuples(st.integers(1, 12), st.integers(1, 6))
    queries = [Asked(f"q{n}", *data.draw(windows)) for n in range(count)]
    host = hosted(queries, refresh, 0.1, refreshing)
    play(host, [(n,) for n in range(60)], [1.0] * 60)
    summary, first = Summary.of(host.record), 0
    for of in queries:
        stops = [first, *ends(host, of.name)]
        gaps = [-((a - b) // of.slide) - 1 for a, b in pairwise(stops)]
        assert summary.queries[of.name].skipped == sum(gaps), of
        assert sum(event.answers.get(of.name, 0) for event in skipped(host)) == sum(gaps)
    if skipped(host):
        assert "late" in skipped(host)[0].reason


def test_a_machine_too_slow_leaves_answers_out_and_stays_near_the_present() -> None:
    """A scan takes longer than a slide: the last answer is as new as the machine can make it."""
    host = hosted([Asked("q", 10, 1)], "hybrid+late_pending", cost=0.1, scanning=2.5)
    play(host, [(n,) for n in range(120)], [1.0] * 120)
    delays = [answer.at - answer.end / SECOND for answer in host.answers]
    assert max(delays) < 15.0
    summary = Summary.of(host.record)
    assert summary.queries["q"].skipped == summary.run.skipped > 50


# --- against DuckDB --------------------------------------------------------------------------


def check_against_duckdb(seed: int) -> int:
    """One stream under a policy; every answer is what DuckDB counts in its window."""
    chance = random.Random(seed)
    queries, blocks = asked(chance, 4), streamed(chance, 15)
    host = hosted(queries, chance.choice(REFRESH))
    play(host, blocks, [chance.choice([0.0, 0.5, 60.0]) for _ in blocks])
    rows = in_time(blocks, LATENESS)
    check_complete(host, queries, rows)
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute("CREATE TABLE r AS SELECT unnest(?::BIGINT[]) * 1000000 AS t", [rows])
        database.execute(
            "CREATE TABLE a AS SELECT unnest(?::BIGINT[]) AS s, unnest(?::BIGINT[]) AS e, "
            "unnest(?::BIGINT[]) AS n", [list(column) for column in zip(*(
                (one.start, one.end, one.rows) for one in host.answers), strict=True)])
        wrong = database.execute(
            "SELECT s, e, n, COUNT(t) FROM a LEFT JOIN r ON s <= t AND t < e "
            "GROUP BY s, e, n HAVING n <> COUNT(t) / (SELECT COUNT(*) FROM a AS o "
            "WHERE (o.s, o.e) = (a.s, a.e))").fetchall()
    assert wrong == []
    return len(host.answers)


@pytest.mark.parametrize("seed", range(12))
def test_live_answers_are_those_of_duckdb(seed: int) -> None:
    assert check_against_duckdb(seed) > 0


@pytest.mark.long
def test_live_answers_are_those_of_duckdb_for_200_streams() -> None:
    for seed in range(1000, 1200):
        check_against_duckdb(seed)
