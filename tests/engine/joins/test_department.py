"""Window joins in virtual time: each pair once and in order, whatever policy and blocks are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.engine import Core, ProbeJob
from penstock.engine.joins import outers
from penstock.engine.positions import Positions
from penstock.engine.settings import Settings
from penstock.events import Summary
from penstock.events import kinds as ev
from penstock.planning import plan
from penstock.policies.joins import POLICIES
from penstock.policies.joins import policy as joins_policy
from penstock.testing import FakeHost

EVERY = (*POLICIES, "swf(merge=false)", "mqt(merge=false)")
WINDOWS = {"tiny": 1, "small": 4, "middle": 15, "same": 15, "large": 60}
STREAMS = """
    CREATE STREAM a (ts TIMESTAMP, k INT) FROM rate TIME ts LATENESS 3 SECONDS;
    CREATE STREAM b (ts TIMESTAMP, k INT) FROM rate TIME ts LATENESS 1 SECOND;
"""
QUERIES = "".join(
    f"CREATE QUERY {name} AS SELECT A.k FROM a A, b B WHERE A.k = B.k WINDOW {length} SECONDS;"
    for name, length in WINDOWS.items()
) + """
    CREATE QUERY after AS SELECT A.k FROM a A JOIN b B ON A.k = B.k
        AND B.ts BETWEEN A.ts AND A.ts + INTERVAL 9 SECONDS;
    CREATE QUERY before AS SELECT A.k FROM a A JOIN b B ON A.k = B.k
        AND B.ts BETWEEN A.ts - INTERVAL 20 SECONDS AND A.ts - INTERVAL 2 SECONDS;
"""
BOUNDS = {**{name: (1 - 10**6 * length, 10**6 * length - 1) for name, length in WINDOWS.items()},
          "after": (0, 9_000_000), "before": (-20_000_000, -2_000_000)}
LATENESS = {"a": 3.0, "b": 1.0, "c": 0.0}
"""By stream; the third is for joins of three."""


@dataclass(frozen=True)
class Load:
    """Blocks of streams: when each comes, and the times and keys of its rows."""

    blocks: tuple[tuple[str, float, tuple[float, ...], tuple[int, ...]], ...]

    def timely(self, stream: str) -> list[tuple[int, int, int]]:
        """The rows that are not late: time, key and number."""
        rows, seen, number = [], None, 0
        for name, _, times, keys in sorted(self.blocks, key=lambda block: block[1]):
            if name != stream:
                continue
            cutoff = None if seen is None else seen - LATENESS[stream]
            for time, key in zip(times, keys, strict=True):
                if cutoff is None or time >= cutoff:
                    rows.append((round(time * 1e6), key, number))
                number += 1
            kept = [time for time in times if cutoff is None or time >= cutoff]
            seen = max([*kept, *([] if seen is None else [seen])], default=None)
        return rows


def expected(load: Load, query: str, streams: Sequence[str] = ("a", "b")) -> Counter:
    """What the query's join alone gives: every left row beside every right one."""
    lower, upper = BOUNDS[query]
    return Counter(
        (left[2], right[2]) for left in load.timely(streams[0]) for right in load.timely(streams[1])
        if left[1] == right[1] and lower <= right[0] - left[0] <= upper)


@st.composite
def loads(draw: st.DrawFn) -> Load:
    """Streams of very different rates, with equal times, gaps, late rows and few keys."""
    blocks = []
    for stream in ("a", "b"):
        at, now = draw(st.floats(0, 5)), draw(st.integers(0, 20))
        for _ in range(draw(st.integers(0, 8))):
            count = draw(st.integers(0, 6))
            steps = [draw(st.sampled_from((0, 0, 0.5, 1, 3, -2, -5, 40))) for _ in range(count)]
            times = []
            for step in steps:
                now = max(0, now + step)
                times.append(float(now))
            keys = [draw(st.sampled_from((1, 1, 1, 2, 3))) for _ in range(count)]
            blocks.append((stream, at, tuple(times), tuple(keys)))
            at += draw(st.sampled_from((0.0, 0.25, 2.0, 9.0)))
    # Two blocks never come at one time: which is first would be the script's affair.
    return Load(tuple((s, at + n / 1e6, t, k) for n, (s, at, t, k) in enumerate(blocks)))


def host_of(sql: str, policy: str, **options) -> FakeHost:
    options.setdefault("probing", slow)
    return FakeHost.of(sql, joins=policy, settings=options.pop("settings", None) or Settings(
        until_drained=True), **options)


def slow(job: ProbeJob) -> float:
    """Seconds of a probe: a fixed part, and a part for each row and second that it scans."""
    rows = [sum(block.rows for side in scan.sides for block in side.fresh)
            for scan in job.scans]
    return 0.2 + sum(count * (scan.farthest - scan.nearest) / 8e7
                     for count, scan in zip(rows, job.scans, strict=True))


def play(host: FakeHost, load: Load) -> FakeHost:
    for stream, at, times, keys in load.blocks:
        host.arrive(stream, at=at, times=times, keys=keys)
    last = max((at for _, at, _, _ in load.blocks), default=0.0)
    host.end("a", at=last + 1.0)
    host.end("b", at=last + 2.0)
    host.run()
    return host


def check(host: FakeHost, load: Load, queries: Sequence[str] = tuple(BOUNDS)) -> None:
    for query in queries:
        pairs = [(pair.left.number, pair.right.number) for pair in host.pairs(query)]
        assert Counter(pairs) == expected(load, query), query
    assert in_order(host)
    assert Summary.of(host.record).accounting() == []


def in_order(host: FakeHost) -> bool:
    """Whether every query gets what one outer found before what a later one did."""
    reached: dict[str, tuple[int, int]] = {}
    for job in host.probes:
        if not any(isinstance(e, ev.JobFinished) and e.job == job.number for e in host.record):
            continue
        for scan in job.scans:
            for member in scan.members:
                since, until = reached.get(member.query, (-(1 << 63), -(1 << 63)))
                if scan.since < until and scan.until != until:
                    return False
                reached[member.query] = scan.since, scan.until
    return True


@pytest.mark.parametrize("policy", EVERY)
@settings(max_examples=60, deadline=None)
@given(load=loads())
def test_each_query_gets_the_pairs_of_its_join_alone_once_and_in_order(policy, load):
    host = play(host_of(STREAMS + QUERIES, policy), load)
    check(host, load)
    assert host.finished is not None and host.finished.outcome == "drained"


@settings(max_examples=60, deadline=None)
@given(load=loads(), policy=st.sampled_from(EVERY), most=st.integers(1, 20))
def test_pairs_do_not_depend_on_how_many_rows_probe_together(load, policy, most):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(outers, "MOST_ROWS", most)
        check(play(host_of(STREAMS + QUERIES, policy), load), load)


@settings(max_examples=60, deadline=None)
@given(load=loads(), policy=st.sampled_from(EVERY), gather=st.sampled_from((0.0, 1.0, 30.0)),
       slots=st.integers(1, 2))
def test_pairs_do_not_depend_on_batching_and_slots(load, policy, gather, slots):
    chosen = Settings(until_drained=True, gather=gather, slots=slots)
    check(play(host_of(STREAMS + QUERIES, policy, settings=chosen), load), load)


@settings(max_examples=60, deadline=None)
@given(load=loads(), policy=st.sampled_from(EVERY))
def test_pairs_do_not_depend_on_which_stream_is_read_faster(load, policy):
    """A row expires by the time of the other stream, however long that takes to come."""
    for first, last in (("a", "b"), ("b", "a")):
        at = {first: 0.0, last: 1000.0}
        host = host_of(STREAMS + QUERIES, policy,
                       settings=Settings(until_drained=True, retention=0.0))
        apart = tuple((stream, came + at[stream], *rows) for stream, came, *rows in load.blocks)
        check(play(host, Load(apart)), load)


@settings(max_examples=40, deadline=None)
@given(load=loads(), policy=st.sampled_from(EVERY))
def test_a_stream_is_joined_with_itself(load, policy):
    sql = STREAMS + "CREATE QUERY small AS SELECT A.k FROM a A, a B WHERE A.k = B.k WINDOW 4 s;"
    host = play(host_of(sql, policy), load)
    pairs = Counter((pair.left.number, pair.right.number) for pair in host.pairs("small"))
    assert pairs == expected(load, "small", ("a", "a"))
    assert Summary.of(host.record).accounting() == []


# The half that leaves goes on with rows that come after the failure.
@example(load=Load((("a", 0.0, (0.0, 0.0, 40.0), (1, 1, 1)), ("b", 1e-06, (), ()),
                    ("b", 2e-06, (0.0,) * 4, (1,) * 4), ("b", 9.0, (0.0, 40.0), (1, 1)))),
         policy="swf(merge=false)", fails={9, 10})
@settings(max_examples=60, deadline=None)
@given(load=loads(), policy=st.sampled_from(EVERY), fails=st.sets(st.integers(1, 30)))
def test_a_probe_that_fails_is_tried_again_and_delivers_nothing_twice(load, policy, fails):
    tried = Counter()

    def stumbles(job: ProbeJob) -> str:
        tried[job.outer] += 1  # the second try of the same is let through
        return "no memory" if job.number in fails and tried[job.outer] % 2 else ""

    host = play(host_of(STREAMS + QUERIES, policy, stumbles=stumbles), load)
    check(host, load, [query for query in BOUNDS if query not in host.failures])


def test_a_query_that_always_breaks_its_probes_stops_alone():
    def stumbles(job: ProbeJob) -> str:
        return "broken" if any(m.query == "middle" for m in job.members) else ""

    load = Load((("a", 1.0, (0.0, 1.0, 2.0), (1, 1, 1)), ("b", 1.5, (0.5, 3.0), (1, 1))))
    host = play(host_of(STREAMS + QUERIES, "mqt", stumbles=stumbles), load)
    assert host.failures == {"middle": "broken"}
    check(host, load, [query for query in BOUNDS if query != "middle"])


@settings(max_examples=60, deadline=None)
@given(load=loads(), first=st.sampled_from(EVERY), then=st.sampled_from(EVERY),
       at=st.floats(0.5, 20))
def test_pairs_do_not_depend_on_a_change_of_policy(load, first, then, at):
    host = host_of(STREAMS + QUERIES, first)
    for stream, came, times, keys in load.blocks:
        host.arrive(stream, at=came, times=times, keys=keys)
    host.run(until=at)
    host.core.use("joins", joins_policy(then), max(at, host.clock.now()), then)
    last = max([*(came for _, came, _, _ in load.blocks), host.clock.now()])
    host.end("a", at=last + 1.0)
    host.end("b", at=last + 2.0)
    host.run()
    check(host, load)


@settings(max_examples=60, deadline=None)
@given(load=loads(), policy=st.sampled_from(EVERY), at=st.floats(0.5, 20))
def test_queries_that_come_and_go_change_nothing_for_the_others(load, policy, at):
    host = host_of(STREAMS + QUERIES, policy)
    for stream, came, times, keys in load.blocks:
        host.arrive(stream, at=came, times=times, keys=keys)
    host.run(until=at)
    host.drop("same")
    host.add("CREATE QUERY longer AS SELECT A.k FROM a A, b B WHERE A.k = B.k WINDOW 90 SECONDS;"
             "CREATE QUERY twin WITH (start = 'earliest') AS SELECT A.k FROM a A, b B "
             "WHERE A.k = B.k WINDOW 15 SECONDS;")
    last = max([*(came for _, came, _, _ in load.blocks), host.clock.now()])
    host.end("a", at=last + 1.0)
    host.end("b", at=last + 2.0)
    host.run()
    check(host, load, [query for query in BOUNDS if query != "same"])
    twin = Counter((pair.left.number, pair.right.number) for pair in host.pairs("twin"))
    assert twin == expected(load, "middle")  # nothing had been released yet
    longer = Counter((pair.left.number, pair.right.number) for pair in host.pairs("longer"))
    assert set(longer.values()) <= {1}


def test_the_join_waits_for_the_stream_that_lags():
    host = host_of(STREAMS + QUERIES, "lwo")
    for n in range(5):
        host.arrive("a", at=1.0 + n, times=(10.0 * n,), keys=(1,))
    host.run()
    assert host.probes == []
    host.arrive("b", at=10.0, times=(5.0, 25.0), keys=(1, 1))
    host.run()
    # b's watermark is 24 s, so that only rows before that may be the later ones of pairs.
    assert [(job.scans[0].since, job.scans[0].until) for job in host.probes] == [
        (-(1 << 62), 24_000_000)]
    assert [(pair.left.time, pair.right.time) for pair in host.pairs("middle")] == [
        (0, 5_000_000), (10_000_000, 5_000_000)]


def test_blocks_stay_in_the_spool_until_the_other_stream_has_passed_them_by_the_largest_window():
    host = host_of(STREAMS + QUERIES, "lwo", settings=Settings(retention=0.0))
    for n in range(12):
        host.arrive("a", at=1.0 + 20 * n, times=(20.0 * n,), keys=(1,))
    host.run()
    assert host.released == []  # b has not begun
    host.arrive("b", at=400.0, times=(201.0,), keys=(1,))
    host.handle(ev.Tick(at=500.0)) if host.run() else None
    host.clock.advance(600.0)
    host.handle(ev.Tick(at=600.0))
    # Rows before 200 - 60 s cannot be in a pair any more; the block at 140 s may.
    assert max(number for stream, number in host.released if stream == "a") == 6


def test_small_windows_do_not_wait_for_large_ones_under_swf_and_mqt_but_do_under_lwo():
    """A block a second, and many seconds to scan the largest window: outers pile up."""
    def responses(policy: str) -> dict[str, float]:
        host = host_of(STREAMS + QUERIES, policy)
        for n in range(20):
            host.arrive("a", at=100.0 + n, times=(100.0 + n, 100.2 + n), keys=(1, 1))
            host.arrive("b", at=100.5 + n, times=(100.1 + n, 100.3 + n), keys=(1, 1))
        host.end("a", at=200.0)
        host.end("b", at=201.0)
        host.run()
        assert Summary.of(host.record).accounting() == []
        assert in_order(host)
        waits: dict[str, list[float]] = {query: [] for query in BOUNDS}
        for event in host.record:
            if isinstance(event, ev.JobFinished):
                for query, pairs in host._paired[event.job].items():
                    waits[query] += [event.at - pair.later / 1e6 for pair in pairs
                                     if pair.later < 116_200_000]  # the rest waits for the end
        return {query: sum(some) / len(some) for query, some in waits.items()}

    lwo = responses("lwo")
    for policy in ("swf(merge=false)", "mqt(merge=false)"):
        found = responses(policy)
        assert found["tiny"] < 0.7 * lwo["tiny"], policy
        assert found["tiny"] < found["small"] < found["large"], policy
    assert responses("mqt")["tiny"] < lwo["tiny"]  # slices that are not worth a job are merged


def slices(host: FakeHost) -> list[str]:
    """What the probes have scanned, as their reasons tell it."""
    told = [e.reason for e in host.record if isinstance(e, ev.JobDecided)]
    return [reason.partition(" scans ")[2].partition(":")[0] for reason in told]


def test_slices_and_throughput_are_renewed_when_a_query_comes_or_goes():
    sql = STREAMS + "".join(
        f"CREATE QUERY w{length} AS SELECT A.k FROM a A, b B WHERE A.k = B.k "
        f"WINDOW {length} SECONDS;" for length in (4, 60))
    host = host_of(sql, "mqt(merge=false)", settings=Settings())
    found = []
    for step, change in enumerate((None, "comes", "goes")):
        if change == "comes":
            host.add("CREATE QUERY guest AS SELECT A.k FROM a A, b B WHERE A.k = B.k "
                     "WINDOW 15 SECONDS;")
        elif change == "goes":
            host.drop("guest")
        before = len(slices(host))
        for part, stream in enumerate("ab"):
            host.arrive(stream, at=100.0 * step + part, keys=(1, 1),
                        times=(100.0 * step + 50, 100.0 * step + 90))
        host.run()
        found.append(set(slices(host)[before:]))
    assert found == [{"0 to 4", "4 to 60"}, {"0 to 4", "4 to 15", "15 to 60"},
                     {"0 to 4", "4 to 60"}]


def test_late_rows_are_left_aside_and_counted_for_every_join():
    host = host_of(STREAMS + QUERIES, "mqt")
    host.arrive("a", at=1.0, times=(50.0,), keys=(1,))
    host.arrive("a", at=2.0, times=(10.0, 49.0, 20.0), keys=(1, 1, 1))
    host.arrive("b", at=3.0, times=(10.0, 50.0), keys=(1, 1))
    host.end("a", at=4.0)
    host.end("b", at=5.0)
    host.run()
    summary = Summary.of(host.record)
    assert {query.late for query in summary.queries.values()} == {2}
    assert len(host.pairs("small")) == 2
    assert summary.accounting() == []


def test_rows_that_were_late_before_a_query_came_are_not_counted_for_it():
    host = host_of(STREAMS + QUERIES, "mqt")
    host.arrive("a", at=1.0, times=(50.0,), keys=(1,))
    host.arrive("a", at=2.0, times=(10.0, 51.0), keys=(1, 1))
    host.arrive("b", at=3.0, times=(50.0, 52.0), keys=(1, 1))
    host.run(until=5.0)
    host.add("CREATE QUERY guest AS SELECT A.k FROM a A, b B WHERE A.k = B.k WINDOW 15 SECONDS;")
    host.arrive("b", at=6.0, times=(20.0, 60.0, 21.0), keys=(1, 1, 1))
    host.arrive("a", at=7.0, times=(60.0,), keys=(1,))
    host.end("a", at=8.0)
    host.end("b", at=9.0)
    host.run()
    summary = Summary.of(host.record)
    late = {name: query.late for name, query in summary.queries.items()}
    assert late.pop("guest") == 2
    assert set(late.values()) == {3}
    assert summary.accounting() == []


def test_a_query_whose_lifetime_is_over_gets_what_waits_and_no_more():
    sql = STREAMS + ("CREATE QUERY brief WITH (lifetime = '10 seconds') AS SELECT A.k "
                     "FROM a A, b B "
                     "WHERE A.k = B.k WINDOW 4 SECONDS;") + QUERIES
    host = host_of(sql, "mqt")
    for n in range(4):
        host.arrive("a", at=1.0 + 6 * n, times=(10.0 * n,), keys=(1,))
        host.arrive("b", at=1.5 + 6 * n, times=(10.0 * n + 1,), keys=(1,))
    host.end("a", at=60.0)
    host.end("b", at=61.0)
    host.run()
    assert len(host.pairs("small")) == 4
    assert 0 < len(host.pairs("brief")) < 4
    assert Summary.of(host.record).accounting() == []


def test_a_broken_stream_stops_its_joins_after_what_waits():
    host = host_of(STREAMS + QUERIES, "mqt")
    host.arrive("a", at=1.0, times=(0.0, 30.0), keys=(1, 1))
    host.arrive("b", at=2.0, times=(1.0, 30.0), keys=(1, 1))
    host.plan_event(ev.StreamFailed(at=3.0, stream="b", reason="gone"))
    host.run()
    assert set(host.failures) == set(BOUNDS)
    assert len(host.pairs("small")) == 1


def test_probes_are_told_with_their_reason():
    host = host_of(STREAMS + QUERIES, "lwo")
    host.arrive("a", at=1.0, times=(0.0, 30.0), keys=(1, 1))
    host.arrive("b", at=2.0, times=(1.0, 30.0), keys=(1, 1))
    host.run()
    decided = [e for e in host.record if isinstance(e, ev.JobDecided)]
    assert [(e.kind, e.reason) for e in decided] == [
        ("probe", "outer 0 scans 0 to 60: it came first")]
    order = [job.outer for job in host.probes]
    assert all(one <= other for one, other in pairwise(order))


def restarted(before: FakeHost, policy: str) -> FakeHost:
    """A second run on the log and the spool that a run left when it was killed."""
    core = Core({"joins": joins_policy(policy)}, Settings(until_drained=True))
    core.adopt(plan(before.application))
    host = FakeHost(core, application=before.application, probing=slow)
    host.spool, host._rows, host._log = before.spool, before._rows, before._log
    host._positions = Positions(core, host._log, host._contents)
    now = before.clock.now()
    host.clock.advance(now)
    host.handle(ev.EngineStarted(at=now, streams=tuple(before.application.streams), cores=1,
                                 policies={"operators": "fifo", "refresh": "", "joins": policy}))
    for stream in before.application.streams:
        for block in before.spool.held(stream):
            host.handle(ev.BlockHeld(at=now, block=block))
    for query in before.application.queries.values():
        host.handle(host._positions.added(query, now))
    host.handle(ev.Tick(at=now))
    for _, _, event in sorted(before._agenda, key=lambda planned: planned[:2]):
        if isinstance(event, ev.BlockArrived | ev.StreamEnded):
            host.plan_event(event)
    return host


@settings(max_examples=150, deadline=None)
@given(load=loads(), policies=st.lists(st.sampled_from(EVERY), min_size=2, max_size=4),
       kills=st.lists(st.floats(0.1, 8), min_size=3, max_size=3))
def test_runs_that_are_killed_and_begun_again_lose_no_pair_and_repeat_none(load, policies, kills):
    host = host_of(STREAMS + QUERIES, policies[0])
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
    for query in BOUNDS:
        pairs = Counter((pair.left.number, pair.right.number)
                        for one in runs for pair in one.pairs(query))
        assert pairs == expected(load, query), query
    assert Summary.of(runs[-1].record).accounting() == []
