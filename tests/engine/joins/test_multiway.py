"""Multiway joins in virtual time: each result once, whatever policy, blocks and orders are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine import ProbeJob
from penstock.engine.joins import department
from penstock.engine.joins.probe_orders import ProbeOrders
from penstock.engine.settings import Settings
from penstock.events import Summary
from penstock.events import kinds as ev
from penstock.language import bind
from penstock.planning import plan
from penstock.policies import filters
from penstock.policies.joins import POLICIES
from penstock.testing import FakeHost
from tests.engine.joins.test_department import LATENESS, Load

STREAMS = "".join(
    f"CREATE STREAM {name} (ts TIMESTAMP, k INT) FROM rate TIME ts LATENESS {late:g} SECONDS;\n"
    for name, late in LATENESS.items())
WINDOWS = {"tiny": 1, "small": 4, "large": 15}
QUERIES = "".join(
    f"CREATE QUERY {name} AS SELECT A.k FROM a A, b B, c C WHERE A.k = B.k AND B.k = C.k "
    f"WINDOW {length} SECONDS;\n" for name, length in WINDOWS.items())


@st.composite
def loads(draw: st.DrawFn) -> Load:
    """Streams of different rates, with equal times, gaps, late rows and few keys."""
    blocks = []
    for stream in LATENESS:
        at, now = draw(st.floats(0, 5)), draw(st.integers(0, 20))
        for _ in range(draw(st.integers(0, 5))):
            steps = draw(st.lists(st.sampled_from((0, 0, 0.5, 1, 3, -2, -5, 40)), max_size=5))
            times = []
            for step in steps:
                now = max(0, now + step)
                times.append(float(now))
            keys = [draw(st.sampled_from((1, 1, 2, 3))) for _ in steps]
            blocks.append((stream, at, tuple(times), tuple(keys)))
            at += draw(st.sampled_from((0.0, 0.25, 2.0, 9.0)))
    return Load(tuple((s, at + n / 1e6, t, k) for n, (s, at, t, k) in enumerate(blocks)))


def expected(load: Load, seconds: int, names: Sequence[str] = "abc") -> Counter:
    """Every row beside those of the others with its key, all less than the window apart."""
    return Counter(
        tuple(row[2] for row in rows) for rows in product(*map(load.timely, names))
        if len({row[1] for row in rows}) == 1
        and max(row[0] for row in rows) - min(row[0] for row in rows) < seconds * 10**6)


def play(sql: str, load: Load, joins: str = "mqt", **options) -> FakeHost:
    host = FakeHost.of(sql, joins=joins, settings=Settings(until_drained=True), **options)
    for stream, at, times, keys in load.blocks:
        host.arrive(stream, at=at, times=times, keys=keys)
    last = max((at for _, at, _, _ in load.blocks), default=0.0)
    for number, stream in enumerate(LATENESS, 1):
        host.end(stream, at=last + number)
    host.run()
    assert host.finished is not None and host.finished.outcome == "drained"
    assert Summary.of(host.record).accounting() == []
    return host


def numbers(host: FakeHost, query: str) -> Counter:
    return Counter(tuple(row.number for row in found.rows) for found in host.pairs(query))


@pytest.mark.parametrize("policy", [*POLICIES, "mqt(merge=false)"])
@settings(max_examples=40, deadline=None)
@given(load=loads())
def test_each_query_gets_the_results_of_its_join_alone_once(policy, load):
    host = play(STREAMS + QUERIES, load, policy)
    for query, seconds in WINDOWS.items():
        assert numbers(host, query) == expected(load, seconds), query


@settings(max_examples=40, deadline=None)
@given(load=loads())
def test_a_stream_may_be_joined_with_itself(load):
    sql = STREAMS + ("CREATE QUERY q AS SELECT A.k FROM a A, b B, a C WHERE A.k = B.k "
                     "AND A.k = C.k WINDOW 6 SECONDS;")
    assert numbers(play(sql, load), "q") == expected(load, 6, "aba")


@settings(max_examples=30, deadline=None)
@given(load=loads())
def test_an_aggregate_counts_the_results_whose_rows_all_lie_in_its_window(load):
    sql = STREAMS + ("CREATE QUERY q AS SELECT COUNT(*) FROM a A, b B, c C WHERE A.k = B.k "
                     "AND A.k = C.k WINDOW 8 SECONDS SLIDE EXACTLY 4 SECONDS;")
    found = {answer.end: answer.rows for answer in play(sql, load).answers}
    results = [rows for rows in product(*map(load.timely, "abc"))
               if len({row[1] for row in rows}) == 1]
    for end, count in found.items():
        assert count == sum(all(end - 8 * 10**6 <= row[0] < end for row in rows)
                            for rows in results)
    reached = {-(-(time + 1) // (4 * 10**6)) * 4 * 10**6 for rows in results
               if max(row[0] for row in rows) - min(row[0] for row in rows) < 4 * 10**6
               for time in [max(row[0] for row in rows)]}
    assert reached - found.keys() <= {
        end for end in reached if not any(
            all(end - 8 * 10**6 <= row[0] < end for row in rows) for rows in results)}


@settings(max_examples=30, deadline=None)
@given(load=loads(), failing=st.sets(st.sampled_from((1, 3, 5, 7))))
def test_a_probe_that_fails_is_repeated_and_finds_each_result_once(load, failing):
    def stumbles(job: ProbeJob) -> str:
        return "a worker is gone" if job.number in failing else ""

    host = play(STREAMS + QUERIES, load, stumbles=stumbles)
    for query, seconds in WINDOWS.items():
        if query not in host.failures:
            assert numbers(host, query) == expected(load, seconds), query


# --- the orders of probes ------------------------------------------------------------------------

FOUR = "".join(f"CREATE STREAM {name} (ts TIMESTAMP, k INT, m INT) FROM rate TIME ts;"
               for name in "abcd")


def orders(condition: str, policy: str = "a_greedy(enough=10)") -> ProbeOrders:
    sql = f"CREATE QUERY q AS SELECT a.k FROM a, b, c, d WHERE {condition} WINDOW 1 MIN;"
    (join,) = plan(bind(FOUR + sql)).joins
    return ProbeOrders(filters.policy(policy), join)


def profile(stream: int, order: Sequence[int], dropped: dict[int, int], left: int = 0,
            seconds: Sequence[float] = (1.0, 1.0, 1.0), version: int = 0) -> ev.ProbeProfile:
    count = sum(dropped.values()) + left
    return ev.ProbeProfile(
        stream=stream, version=version, order=tuple(order), probed=(count,) * 3, left=left,
        seconds=tuple(seconds), dropped=tuple(sorted(dropped.items())))


def test_the_stream_that_drops_the_most_is_probed_first_and_the_numbers_say_why():
    known = orders("a.k = b.k AND b.k = c.k AND c.k = d.k")
    assert [one.order for one in known.orders] == [(1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2)]
    # Of stream a's keys d, the third of the others, drops 40 and b drops 4.
    (changed,) = known.take(5.0, [profile(0, (1, 2, 3), {0b100: 40, 0b001: 4})])
    assert (changed.stream, changed.order) == ("a", ("d", "b", "c"))
    assert changed.before > changed.after > 0 and "d before b" in changed.reason
    assert [one.order for one in known.orders] == [(3, 1, 2), (0, 2, 3), (0, 1, 3), (0, 1, 2)]


def test_each_stream_has_an_order_of_its_own():
    known = orders("a.k = b.k AND b.k = c.k AND c.k = d.k")
    changed = list(known.take(5.0, [profile(0, (1, 2, 3), {0b010: 40}),
                                    profile(3, (0, 1, 2), {0b100: 40})]))
    assert [(one.stream, one.order) for one in changed] == [
        ("a", ("c", "b", "d")), ("d", ("c", "a", "b"))]


def test_a_stream_is_not_probed_before_the_one_that_leads_to_it():
    known = orders("a.k = b.k AND b.m = c.m AND c.k = d.m")
    assert known.orders[3].order == (2, 1, 0), "d reaches a through c and b"
    (changed,) = known.take(5.0, [profile(1, (0, 2, 3), {0b100: 40, 0b001: 4})])
    assert changed.order == ("c", "d", "a"), "d drops the most, and c leads to it"


def test_seconds_count_as_the_policy_weighs_them():
    known = orders("a.k = b.k AND b.k = c.k AND c.k = d.k")
    dropped = {0b001: 20, 0b100: 30}
    (changed,) = known.take(5.0, [profile(0, (1, 2, 3), dropped, seconds=(1.0, 1.0, 9.0))])
    assert changed.order == ("b", "d", "c"), "d drops more, and takes nine times as long"


@pytest.mark.parametrize("rows, probed", [(20, True), (19, False)])
def test_windows_of_few_rows_are_joined_without_asking_for_keys(rows, probed, monkeypatch):
    monkeypatch.setattr(department, "WORTH_PROBING", 60)
    monkeypatch.setattr(department, "MOST_FRESH", 1.0)
    host = FakeHost.of(STREAMS + QUERIES, settings=Settings(until_drained=True))
    for number, stream in enumerate(LATENESS, 1):
        host.arrive(stream, at=float(number), times=[0.0] * rows, keys=range(rows))
        host.end(stream, at=10.0 + number)
    host.run()
    assert {bool(job.orders) for job in host.probes if job.scans} == {probed}


@pytest.mark.parametrize("share, probed", [(1.0, True), (0.9, False)])
def test_windows_of_hardly_more_rows_than_the_outer_are_joined_without_asking_for_keys(
    share, probed, monkeypatch
):
    monkeypatch.setattr(department, "WORTH_PROBING", 0)
    monkeypatch.setattr(department, "MOST_FRESH", share)
    host = FakeHost.of(STREAMS + QUERIES, settings=Settings(until_drained=True))
    for number, stream in enumerate(LATENESS, 1):
        host.arrive(stream, at=float(number), times=[0.0] * 20, keys=range(20))
        host.end(stream, at=10.0 + number)
    host.run()
    first = next(job for job in host.probes if job.scans)  # the others bring what came later
    assert bool(first.orders) == probed


@pytest.mark.parametrize("policy", filters.POLICIES)
def test_every_filters_policy_changes_the_jobs_that_follow_and_tells_it(policy, monkeypatch):
    monkeypatch.setattr(department, "WORTH_PROBING", 0)
    monkeypatch.setattr(department, "MOST_FRESH", 1.0)
    sql = STREAMS + QUERIES
    blocks: list[tuple[str, float, tuple[float, ...], tuple[int, ...]]] = []
    for number in range(30):
        times = tuple(float(10 * number + n) for n in range(10))
        keys = tuple(range(100 * number, 100 * number + 10))
        # Every key is in a and b, and only one in ten is in c.
        blocks += [("a", number + 0.1, times, keys), ("b", number + 0.2, times, keys),
                   ("c", number + 0.3, times, (keys[0], *range(-9, 0)))]
    host = FakeHost.of(sql, settings=Settings(until_drained=False),
                       filters=f"{policy}(window=80, enough=20)")
    for stream, at, times, keys in blocks:
        host.arrive(stream, at=at, times=times, keys=keys)
    for number, stream in enumerate(LATENESS, 1):
        host.end(stream, at=30.0 + number)
    host.run(until=20.0)
    host.core.use("filters", filters.policy("sweep"), 20.0, "sweep")  # it keeps the order
    host.run()
    told = [e for e in host.record if isinstance(e, ev.ProbesReordered)]
    assert told[0].stream == "a" and told[0].order == ("c", "b") and told[0].after < told[0].before
    assert told[0].rows >= 20 and len(told[0].matrix) == 2
    known = Summary.of(host.record).probes[told[0].join]["a"]
    assert (known.order, known.reason) == (told[0].order, told[0].reason)
    used = [job.orders[0].order for job in host.probes]
    assert used[0] == (1, 2) and used[-1] == (2, 1)


def test_a_policy_decides_the_same_on_the_same_profiles():
    profiles = [profile(0, (1, 2, 3), {0b100: 15, 0b011: 7, 0b010: 5}, left=3),
                profile(2, (0, 1, 3), {0b110: 9, 0b001: 12})]
    for policy in ("a_greedy(enough=5)", "sweep(enough=5)", "independent(enough=5)",
                   "local_swaps(enough=5)", "static_greedy(enough=5)"):
        one, other = (orders("a.k = b.k AND b.k = c.k AND c.k = d.k", policy) for _ in range(2))
        for _ in range(4):
            assert list(one.take(1.0, profiles)) == list(other.take(1.0, profiles))
        assert one.orders == other.orders
