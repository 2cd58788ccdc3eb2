"""What a run amounts to, and whether its books balance."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.events import (
    BlockArrived,
    BlockCold,
    BlockHeld,
    BlockHot,
    BlockReleased,
    EngineStarted,
    EngineStopped,
    Event,
    FileSetAside,
    Histogram,
    JobDecided,
    JobFailed,
    JobFinished,
    LatencyMissed,
    Memory,
    PanesResult,
    PathWork,
    QueryAdded,
    QueryDropped,
    QueryFailed,
    Queued,
    QueueLevel,
    RidersFormed,
    SegmentResult,
    StartupStep,
    StreamEnded,
    StreamFailed,
    Summary,
    Tick,
    WatermarkMoved,
    digest,
    ledger,
    summary,
)
from penstock.events.histogram import SLOT, RollingHistogram, bucket
from penstock.model import Block


def arrived(number: int, rows: int = 10, at: float = 1.0, stream: str = "s") -> BlockArrived:
    block = Block(stream, number, rows, rows * 100, at)
    return BlockArrived(at=at, block=block, read=rows, progress=(number + 1) * rows)


def level(entries: int, size: int, hot: int) -> QueueLevel:
    return QueueLevel(entries=entries, bytes=size, hot=hot)


def decided(
    run: int, *blocks: int, rows: int = 10, group: int = 1, stream: str = "s"
) -> JobDecided:
    return JobDecided(at=1.0, job=run, kind="segment", reason="oldest", seconds=0.01, work=PathWork(
        segment="p", riders=group, stream=stream, blocks=blocks, rows=rows * len(blocks)))


def finished(run: int, rows_in: int = 10, at: float = 2.0, **rows_out: int) -> JobFinished:
    return JobFinished(at=at, job=run, kind="segment", seconds=0.5, rows_out=rows_out, spark_jobs=1,
                       result=SegmentResult(rows_in=rows_in))


START: tuple[Event, ...] = (
    EngineStarted(at=0.0, streams=("s",), policies={"operators": "fifo"}, cores=2,
                  totals={"s": 100}, unit={"s": "rows"}),
    QueryAdded(at=0.0, query="q", inputs=(("s",),)),
    RidersFormed(at=0.0, riders=1, path="p", members=("q",)),
)


def faults(*events: Event, start: Iterable[Event] = START) -> list[str]:
    return Summary.of([*start, *events]).accounting()


# --- latency, lag and the last minute -----------------------------------------------------------

moments = st.lists(st.tuples(st.floats(0, 400), st.floats(1e-3, 100), st.integers(1, 50)))


@given(moments, st.floats(0, 100))
def test_the_last_minute_has_all_of_sixty_seconds_and_nothing_of_eighty(
    waits: list[tuple[float, float, int]], later: float
) -> None:
    rolling = RollingHistogram()
    waits = sorted(waits)
    for at, seconds, weight in waits:
        rolling.add_bucket(int(at) // SLOT, bucket(seconds), seconds, weight)
    now = (waits[-1][0] if waits else 0.0) + later
    found = rolling.last_minute(now)
    surely = [wait for wait in waits if wait[0] > now - 60]
    perhaps = [wait for wait in waits if wait[0] > now - 60 - SLOT - 1]
    assert sum(wait[2] for wait in surely) <= found.weight <= sum(wait[2] for wait in perhaps)
    for part, told in ((waits, rolling.whole()), *([(surely, found)] if surely == perhaps else [])):
        plain = Histogram()
        for _, seconds, weight in part:
            plain.add(seconds, weight)
        assert (told.buckets, told.weight, told.maximum) == (
            plain.buckets, plain.weight, plain.maximum)


def newest(event: float | None, at: float) -> BlockArrived:
    """A block that arrives half a second before it is delivered."""
    block = Block("s", 0, 10, 1000, at - 0.5,
                  newest=None if event is None else round(event * 1e6))
    return BlockArrived(at=at - 0.5, block=block, read=10)


@pytest.mark.parametrize(("event", "lag"), [
    (1000.0, 3.0),      # the newest row is three seconds old when it is answered
    (1003.5, 0.0),      # the source's clock is ahead
    (-9000.0, None),    # a replay of old rows
    (2000.0, None),     # a clock that is wrong
    (None, None),       # no row has a time
])
def test_lag_is_the_age_of_the_newest_row_where_the_stream_follows_the_clock(
    event: float | None, lag: float | None
) -> None:
    result = Summary.of([*START, newest(event, 1003.0), decided(1, 0), finished(1, at=1003.0, q=3)])
    query = result.queries["q"]
    assert query.latency.maximum == pytest.approx(0.5)
    assert (query.lag.weight, query.lag.maximum) == ((0, 0.0) if lag is None else (10, lag))
    told = digest(result)["queries"][0]
    assert told["lag"]["max"] == told["recent_lag"]["max"] == lag


def test_what_was_slow_an_hour_ago_is_in_the_run_and_not_in_the_last_minute() -> None:
    events = [*START, arrived(0, at=1.0), decided(1, 0), finished(1, at=9.0, q=3),
              arrived(1, at=3600.0), decided(2, 1), finished(2, at=3600.5, q=3)]
    result = Summary.of(events)
    assert result.latency().percentile(0.99) == pytest.approx(8.0, rel=0.05)
    assert result.recent_latency().percentile(0.99) == pytest.approx(0.5, rel=0.05)
    result.apply(Tick(at=3700.0))
    assert digest(result)["run"]["recent_latency"]["p50"] is None


def test_a_run_says_what_it_waits_for_until_its_first_answer() -> None:
    result, seen = Summary(), []
    steps: list[Event] = [
        StartupStep(at=100.0, step="starting Spark"), *START,
        StartupStep(at=104.0, step="compiling 2 paths"), StartupStep(at=105.0, step=""),
        arrived(0, at=106.0), decided(1, 0), finished(1, at=107.5, q=3)]
    for event in steps:
        result.apply(event)
        if not seen or seen[-1] != result.waits_for():
            seen.append(result.waits_for())
    assert seen == ["starting Spark", "waiting for rows", "compiling 2 paths", "waiting for rows",
                    "computing the first answers", ""]
    assert result.run.seconds_to_answer == 7.5
    assert result.accounting() == []


# --- what a run amounts to ----------------------------------------------------------------------


def test_rows_of_a_query_are_those_of_its_delivered_blocks() -> None:
    result = Summary.of([*START, arrived(0), arrived(1), arrived(2), decided(1, 0, 1),
                         finished(1, 20, q=3)])
    query = result.queries["q"]
    assert (query.rows_in, query.rows_out, query.filtered, query.rejected) == (20, 3, 17, 0)
    assert query.last_delivery == 2.0
    assert len(result.streams["s"].queue.waiting) == 1
    assert result.accounting() == []


def test_rows_added_by_joins_and_rejected_rows_are_accounted_for() -> None:
    end = JobFinished(at=2.0, job=1, kind="segment", seconds=0.5, rows_out={"q": 14},
                      result=SegmentResult(rows_in=10, rejected={"q": 2}, added={"q": 9}))
    result = Summary.of([*START, arrived(0), decided(1, 0), end])
    assert result.queries["q"].filtered == 3
    assert result.accounting() == []


def test_each_branch_of_a_union_counts_its_own_blocks() -> None:
    result = Summary.of([
        QueryAdded(at=0.0, query="u", inputs=(("s",), ("t",), ("s",))),
        RidersFormed(at=0.0, riders=1, path="p", members=("u", "u#2")),
        RidersFormed(at=0.0, riders=2, path="p2", members=("u#1",)),
        arrived(0), arrived(0, 7, stream="t"),
        decided(1, 0), finished(1, 10, u=20),
        decided(2, 0, rows=7, group=2, stream="t"), finished(2, 7, u=1),
        EngineStopped(at=3.0, outcome="drained"),
    ])  # fmt: skip
    assert (result.queries["u"].rows_in, result.queries["u"].rows_out) == (27, 21)
    assert result.accounting() == []


def test_each_input_of_a_branch_counts_its_own_blocks() -> None:
    start = [BlockHeld(at=0.0, block=arrived(4, stream="t").block),
             QueryAdded(at=0.0, query="j", inputs=(("s", "t"),), backlog=((0, 1, 4),)),
             RidersFormed(at=0.0, riders=1, path="p", members=("j",)),
             RidersFormed(at=0.0, riders=2, path="p2", members=("j#0.1",))]
    ended = EngineStopped(at=3.0, outcome="drained")
    events = [arrived(0), decided(1, 0), finished(1), decided(2, 4, group=2, stream="t"),
              finished(2)]
    assert faults(*events, ended, start=start) == []
    assert "j#0.1: the run drained, but 1 blocks of t" in faults(
        *events[:3], ended, start=start)[0]
    assert "j#0.1 was given blocks of s" in faults(
        arrived(0), decided(1, 0, group=2), finished(1), start=start)[0]


def test_latency_is_from_arrival_to_delivery_weighted_by_rows() -> None:
    events = [*START, arrived(0, 90, at=1.0), arrived(1, 10, at=1.5),
              decided(1, 0, rows=90), finished(1, 90, at=1.1),
              decided(2, 1), finished(2, at=9.5)]  # fmt: skip
    latency = Summary.of(events).queries["q"].latency
    assert latency.percentile(0.5) == pytest.approx(0.1, rel=0.045)
    assert latency.percentile(0.99) == pytest.approx(8.0, rel=0.045)
    assert latency.maximum == 8.0


def test_misses_told_by_the_core_that_the_deliveries_do_not_show_are_a_fault() -> None:
    start = [START[0], QueryAdded(at=0.0, query="q", inputs=(("s",),), latency=0.5), START[2]]
    late = [arrived(0), decided(1, 0), finished(1)]
    assert faults(*late,
    LatencyMissed(at=2.0, query="q", promised=0.5, seconds=1.0, blocks=1,
                  rows=10), start=start) == []
    (fault,) = faults(*late,
    LatencyMissed(at=2.0, query="q", promised=0.5, seconds=1.0, blocks=2, rows=20), start=start)
    assert "2 blocks of 20 rows late by the core's account, (1, 10) by the deliveries" in fault


def test_queues_are_folded_from_their_changes() -> None:
    result = Summary.of([
        Queued(at=1.0, blocks=3, bytes=300, hot=100, queues={"p": level(3, 300, 100)}),
        Queued(at=2.0, blocks=3, bytes=250, hot=50,
               queues={"p": level(2, 200, 0), "p@1": level(1, 50, 50)}),
    ])
    told = {queue["name"]: queue for queue in digest(result)["queues"]}
    assert told["p"] == {"name": "p", "entries": 2, "bytes": 200, "hot_bytes": 0,
                         "cold_bytes": 200, "bytes_peak": 300}
    assert told["p@1"]["hot_bytes"] == 50
    run = digest(result)["run"]
    assert (run["waiting_bytes_peak"], run["hot_bytes_peak"]) == (300, 100)


def test_queues_of_long_ago_are_forgotten_and_those_in_use_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(summary, "QUEUES_KEPT", 2)
    events = [Queued(at=1.0, blocks=1, bytes=10, hot=0, queues={"busy": level(1, 10, 0)})]
    for name in "abc":
        events += [Queued(at=1.0, blocks=2, bytes=20, hot=0, queues={name: level(1, 10, 0)}),
                   Queued(at=2.0, blocks=1, bytes=10, hot=0, queues={name: level(0, 0, 0)})]
    assert list(Summary.of(events).queues) == ["busy", "c"]


def test_a_backlog_has_no_latency_but_is_delivered_once() -> None:
    start = [BlockHeld(at=100.0, block=Block("s", 4, 10, 1000, 1.0)), *START[:1],
             QueryAdded(at=100.0, query="q", inputs=(("s",),), backlog=((0, 0, 4),),
                        delivered=60), START[2]]
    result = Summary.of([*start, decided(1, 4), finished(1, at=101.0, q=1)])
    query = result.queries["q"]
    assert (query.rows_in, query.latency.weight, query.delivered_before) == (10, 0, 60)
    assert result.accounting() == []
    assert faults(decided(1, 4), finished(1), decided(2, 4), finished(2), start=start)


def test_a_query_added_later_waits_for_later_blocks_only() -> None:
    assert faults(arrived(0),
    QueryAdded(at=1.5, query="r", inputs=(("s",),)),
    RidersFormed(at=1.5, riders=2, path="p", members=("q", "r")),
                  arrived(1), decided(1, 0), finished(1), decided(2, 1, group=2), finished(2),
                  EngineStopped(at=3.0, outcome="drained")) == []


def test_an_empty_block_is_waited_for_by_nobody() -> None:
    result = Summary.of([*START, arrived(0, 0), arrived(1), decided(1, 1), finished(1),
                         EngineStopped(at=3.0, outcome="drained")])
    assert result.streams["s"].blocks == 2
    assert result.accounting() == []


def test_a_stream_says_its_rate_its_queue_and_its_progress() -> None:
    result = Summary.of([*START, *(arrived(n, at=float(n)) for n in range(10)), Tick(at=10.0)])
    stream = result.streams["s"]
    assert result.rate("s") == 40 / 5  # the blocks of the seconds 6 to 9
    assert (len(stream.queue.waiting), stream.queue.rows, stream.queue.bytes) == (10, 100, 10_000)
    assert stream.fraction == 1.0
    result.apply(Tick(at=99.0))
    assert result.rate("s") == 0


def test_hot_bytes_rise_and_fall_and_their_peak_stays() -> None:
    events = [BlockHot(at=1.0, stream="s", number=0, bytes=500),
    BlockHot(at=1.0, stream="s", number=1, bytes=300),
    BlockHot(at=1.1, stream="s", number=1, bytes=400),
              BlockCold(at=2.0, stream="s", number=0),
              BlockReleased(at=3.0, stream="s", number=1), BlockCold(at=3.0, stream="s", number=1)]
    stream = Summary.of(events).streams["s"]
    assert (stream.hot_bytes, stream.hot_peak) == (0, 900)


def test_states_of_streams_and_queries() -> None:
    result = Summary.of([
        *START,
        QueryAdded(at=0.0, query="bad", inputs=(("s",),)),
        QueryAdded(at=0.0, query="gone", inputs=(("s",),)),
        QueryFailed(at=1.0, query="bad", reason="no room"), QueryDropped(at=1.0, query="gone"),
        WatermarkMoved(at=1.0, stream="s", time=0.5),
        StreamEnded(at=2.0, stream="s"), StreamFailed(at=2.0, stream="t", reason="no path"),
        Memory(at=2.0, driver=100, jvm=200),
        Memory(at=2.5, driver=50), EngineStopped(at=3.0, outcome="drained"),
    ])  # fmt: skip
    states = {name: (query.state, query.reason) for name, query in result.queries.items()}
    assert states == {"q": ("done", ""), "bad": ("failed", "no room"),
                      "gone": ("dropped", "dropped")}
    assert [s.state for s in result.streams.values()] == ["ended", "failed"]
    assert (result.run.driver_peak, result.run.jvm_peak, result.run.state) == (100, 200, "drained")


def test_a_stopped_run_leaves_its_queue_standing() -> None:
    result = Summary.of([*START, arrived(0), EngineStopped(at=2.0, outcome="stopped")])
    assert result.queries["q"].state == "stopped"
    assert len(result.streams["s"].queue.waiting) == 1
    assert result.accounting() == []


def test_a_refused_sink_fails_its_query_and_counts_nothing_for_it() -> None:
    end = JobFinished(at=2.0, job=1, kind="segment", seconds=0.5, rows_out={"q": 4, "r": 2},
                      failed={"q": "no permission"}, result=SegmentResult(rows_in=10))
    result = Summary.of([*START,
    QueryAdded(at=0.0, query="r", inputs=(("s",),)),
    RidersFormed(at=0.0, riders=2, path="p", members=("q", "r")),
                         arrived(0), decided(1, 0, group=2), end])
    assert (result.queries["q"].state, result.queries["q"].rows_in) == ("failed", 0)
    assert (result.queries["r"].rows_out, result.queries["r"].rows_in) == (2, 10)
    assert result.accounting() == []


def test_a_failed_run_delivers_nothing_and_may_be_tried_again() -> None:
    assert faults(arrived(0), decided(1, 0),
    JobFailed(at=1.5, job=1, kind="segment", reason="lost executor"), decided(2, 0),
                  finished(2), EngineStopped(at=3.0, outcome="drained")) == []


def test_a_query_that_left_during_a_run_is_no_fault() -> None:
    assert faults(arrived(0), decided(1, 0),
    QueryDropped(at=1.5, query="q"), finished(1, q=1)) == []
    assert faults(arrived(0),
    QueryDropped(at=1.5, query="q", reason="its lifetime is over"), decided(1, 0),
                  finished(1, q=1)) == []


def test_a_query_of_the_same_name_starts_from_nothing() -> None:
    result = Summary.of([*START, arrived(0), decided(1, 0), QueryDropped(at=1.5, query="q"),
                         QueryAdded(at=1.6, query="q", inputs=(("s",),)), finished(1, q=5)])
    assert result.queries["q"].rows_out == 0
    assert result.accounting() == []


def test_the_digest_holds_the_verdict() -> None:
    result = digest(Summary.of([*START, arrived(0), decided(1, 0), finished(1, q=4)]))
    assert result["accounting"] == {"balanced": True, "faults": []}
    assert result["queries"][0]["rows_out"] == 4
    assert result["streams"][0]["waiting_blocks"] == 0
    assert result["run"]["seconds_deciding"] == 0.01


# --- every kind of fault ------------------------------------------------------------------------


def test_a_file_that_was_set_aside_is_counted_with_its_rows_and_warned_of() -> None:
    summary = Summary.of([arrived(0),
    FileSetAside(at=1.0, stream="s", file="in/a.csv", reason="it is UTF-16 text"),
                          FileSetAside(at=2.0, stream="s", file="in/b.parquet",
                                       reason="no column 'n'", rows=5)])
    stream = summary.streams["s"]
    assert (stream.files_rejected, stream.read, stream.kept, stream.rejected) == (2, 15, 10, 5)
    assert [warning.text for warning in summary.warnings] == [
        "in/a.csv is set aside: it is UTF-16 text", "in/b.parquet is set aside: no column 'n'"]
    assert summary.accounting() == []
    assert digest(summary)["streams"][0]["files_rejected"] == 2


def test_rows_read_must_be_kept_or_rejected() -> None:
    block = BlockArrived(at=1.0, block=Block("s", 0, 10, 1000, 1.0), read=14, late=2, rejected=1)
    assert faults(block) == [
        "stream s, block 0: 14 rows read, but 10 kept + 1 rejected",
        "stream s: 14 rows read, but 10 kept + 1 rejected",
    ]


def test_late_rows_are_among_those_kept_and_counted_for_window_aggregates_alone() -> None:
    added = QueryAdded(at=0.0, query="w", inputs=(("s",),), window=(10, 5))
    grouped = RidersFormed(at=0.0, riders=7, path="p", members=("q", "w"))
    block = BlockArrived(at=1.0, block=Block("s", 0, 10, 1000, 1.0, late=3), read=11, late=3,
                         rejected=1)
    done = JobFinished(at=2.0, job=1, kind="panes", seconds=0.5, rows_out={"q": 9},
                       result=PanesResult(rows_in=10, summarised={"w": 5}, late={"w": 4}))
    result = Summary.of([*START, added, grouped, block, decided(1, 0, group=7), done])
    assert result.accounting() == []
    assert (result.streams["s"].kept, result.streams["s"].late) == (10, 3)
    row_by_row, windows = result.queries["q"], result.queries["w"]
    assert (row_by_row.filtered, row_by_row.late) == (1, 0)
    assert (windows.rows_in, windows.summarised, windows.late, windows.filtered) == (10, 5, 4, 1)
    assert digest(result)["queries"][1]["late"] == 4


FAULTS: dict[str, tuple[Event, ...]] = {
    "block 0 of s was delivered, but it had it before": (
        arrived(0), arrived(1), decided(1, 0), finished(1), decided(2, 0), finished(2)),
    "block 7 of s was delivered": (arrived(0), decided(1, 7), finished(1)),
    "block 0 of s was released before it was delivered": (
        arrived(0), arrived(1),
        BlockReleased(at=1.0, stream="s", number=0), decided(1, 1), finished(1)),
    "the run drained, but 1 blocks of s were not delivered, from block 0 on": (
        arrived(
            0), arrived(1), decided(1, 1), finished(1), EngineStopped(at=3.0, outcome="drained")),
    "block 0 arrived twice": (arrived(0), arrived(0)),
    "10 rows in + 0 added, but 9 out + 0 late + 2 rejected": (
        arrived(0), decided(1, 0),
        JobFinished(at=2.0, job=1, kind="segment", seconds=0.5, rows_out={"q": 9},
                    result=SegmentResult(rows_in=10, rejected={"q": 2}))),
    "stream s, block 0: 11 of 10 rows are late": (
        BlockArrived(at=1.0, block=Block("s", 0, 10, 1000, 1.0), read=10, late=11),),
    "10 rows in + 0 added, but 6 summarised + 5 late + 0 rejected": (
        QueryAdded(at=0.0, query="w", inputs=(("s",),), window=(10, 5)),
        RidersFormed(at=0.0, riders=7, path="p", members=("w",)),
        arrived(0), decided(1, 0, group=7),
        JobFinished(at=2.0, job=1, kind="panes", seconds=0.5, result=PanesResult(
            rows_in=10, summarised={"w": 6}, late={"w": 5}))),
    "blocks of 10 rows, decided for 11, 10 read": (
        arrived(0), decided(1, 0, rows=11), finished(1)),
    "blocks of 10 rows, decided for 10, 9 read": (arrived(0), decided(1, 0), finished(1, 9)),
    "job 5 finished, but nobody had decided it": (finished(5),),
    "nobody knows riders 9": (arrived(0), decided(1, 0, group=9)),
    "nobody knows query z": (RidersFormed(at=0.0, riders=2, path="p", members=("z",)),),
    "rows of r, which did not ride": (arrived(0), decided(1, 0), finished(1, r=1)),
    "query q was given blocks of t": (
        arrived(0, stream="t"), decided(1, 0, stream="t"), finished(1)),
    "block 3 of s is not held": (
        QueryAdded(at=0.0, query="r", inputs=(("s",),), backlog=((0, 0, 3),)),),
}  # fmt: skip


@pytest.mark.parametrize("text", FAULTS)
def test_each_fault_is_found_and_named(text: str) -> None:
    found = faults(*FAULTS[text])
    assert [fault for fault in found if text in fault], found


def test_an_undisturbed_twin_of_a_fault_balances() -> None:
    assert faults(arrived(0), arrived(1), decided(1, 0), finished(1), decided(2, 1), finished(2),
                  BlockReleased(at=3.0, stream="s", number=0),
                  EngineStopped(at=3.0, outcome="drained")) == []


def test_many_faults_are_counted_rather_than_listed() -> None:
    found = faults(*(finished(run) for run in range(1000)))
    assert len(found) == summary.FAULTS_KEPT + 1
    assert found[-1] == "and 900 more faults like these"


# --- endless runs -------------------------------------------------------------------------------


def test_memory_does_not_grow_with_the_length_of_a_run() -> None:
    result = Summary.of(START)
    sizes = []
    for number in range(3000):
        at = float(number)
        result.apply(arrived(number, at=at))
        result.apply(decided(number, number))
        result.apply(finished(number, at=at + 0.1, q=1))
        if number >= 10:
            result.apply(BlockReleased(at=at, stream="s", number=number - 10))
        if number in (100, 2999):
            sizes.append(footprint(result))
    assert sizes[0] == sizes[1]
    assert result.accounting() == []


def footprint(result: Summary) -> list[int]:
    stream, query = result.streams["s"], result.queries["q"]
    ledger = query.members["q"]
    parts = [stream.queue.waiting, stream.queue.spool, stream.recent, stream.hot, ledger.ahead,
             ledger.owed, result._flights, result._groups]
    assert len(query.latency.whole().buckets) < 10
    assert len(query.latency._slots) <= 7
    return [len(part) for part in parts]  # type: ignore[arg-type]


def test_ended_queries_and_old_groups_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "ENDED_KEPT", 5)
    monkeypatch.setattr(summary, "MEMBERS_KEPT", 5)
    result = Summary()
    for number in range(20):
        result.apply(QueryAdded(at=0.0, query=f"q{number}", inputs=(("s",),)))
        result.apply(RidersFormed(at=0.0, riders=number, path="p", members=(f"q{number}",)))
        result.apply(QueryFailed(at=0.0, query=f"q{number}", reason="no"))
    assert (len(result.queries), result.forgotten, len(result._groups)) == (5, 15, 5)


@given(st.permutations(range(8)), st.integers(0, 8))
def test_any_order_of_delivery_balances_and_leaves_nothing(order: list[int], late: int) -> None:
    result = Summary.of([*START, *(arrived(n) for n in range(8))])
    for run, number in enumerate(order[:late]):
        result.apply(decided(run, number))
        result.apply(finished(run))
    ledger = result.queries["q"].members["q"]
    assert {waiting.block.number for waiting in ledger.waiting()} == set(order[late:])
    assert len(result.streams["s"].queue.waiting) == 8 - late
    assert result.accounting() == []


# --- percentiles --------------------------------------------------------------------------------


@st.composite
def trains(draw: st.DrawFn) -> list[Event]:
    """Queries that join at any time, and jobs of any blocks and members in any order."""
    events: list[Event] = [EngineStarted(at=0.0, streams=("s",), policies={}, cores=2)]
    blocks, joined = 0, 0
    for job in range(draw(st.integers(1, 8))):
        for _ in range(draw(st.integers(0, 2))):
            backlog = draw(st.sampled_from([(), ((0, 0, max(blocks - 1, 0)),)])) if blocks else ()
            events.append(QueryAdded(
                at=float(job), query=f"q{joined}", inputs=(("s",),), backlog=backlog,
                latency=draw(st.sampled_from([None, 0.0, 1.5, 9.0])),
                window=draw(st.sampled_from([None, None, (5, 5)]))))
            joined += 1
        for _ in range(draw(st.integers(0, 4))):
            rows = draw(st.sampled_from([0, 10, 20]))
            event = draw(st.sampled_from([None, (job - 2) * 1_000_000]))
            block = Block("s", blocks, rows, rows, float(job), newest=event)
            events.append(BlockArrived(at=float(job), block=block, read=rows))
            blocks += 1
        if not joined or not blocks:
            continue
        riders = draw(st.lists(st.integers(0, joined - 1), min_size=1, unique=True))
        first, last = sorted(draw(st.tuples(*[st.integers(0, blocks - 1)] * 2)))
        given = draw(st.permutations(range(first, last + 1)) | st.just(range(first, last + 1)))
        events += [
            RidersFormed(at=float(job), riders=job, path="p",
                         members=tuple(f"q{number}" for number in riders)),
            decided(job, *given, group=job)]
        if draw(st.integers(0, 4)) == 0:
            events.append(QueryDropped(at=float(job), query=f"q{riders[0]}"))
        events.append(finished(job, 10 * len(given), at=job + draw(st.floats(0.0, 9.0))))
    return events


@given(trains())
def test_a_train_is_taken_in_as_its_blocks_are_one_by_one(events: list[Event]) -> None:
    at_once = Summary.of(events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger.Ledger, "deliver_row", lambda self, row: False)
        one_by_one = Summary.of(events)
    assert at_once.accounting() == one_by_one.accounting()
    for name, query in at_once.queries.items():
        other = one_by_one.queries[name]
        assert (query.rows_in, query.missed_blocks, query.missed_rows) == (
            other.rows_in, other.missed_blocks, other.missed_rows)
        for one, twin in ((query.latency.whole(), other.latency.whole()),
                          (query.lag.whole(), other.lag.whole()),
                          (query.block_latency, other.block_latency)):
            assert (one.buckets, one.weight, one.maximum) == (
                twin.buckets, twin.weight, twin.maximum)
        for key, member in query.members.items():
            twin_member = other.members[key]
            assert (member.frontier, member.ahead, member.owed) == (
                twin_member.frontier, twin_member.ahead, twin_member.owed)
    waiting, others = (
        {number: block.members for number, block in one.stream("s").queue.waiting.items()}
        for one in (at_once, one_by_one))
    assert waiting == others


@given(st.lists(st.tuples(st.floats(1e-6, 1e5), st.integers(1, 50)), min_size=1, max_size=60),
       st.floats(0.01, 1.0))
def test_a_percentile_is_within_half_a_bucket(pairs: list[tuple[float, int]], share: float) -> None:
    histogram = Histogram()
    for seconds, weight in pairs:
        histogram.add(seconds, weight)
    ordered = sorted(seconds for seconds, weight in pairs for _ in range(weight))
    goal = share * len(ordered)
    exact = next(s for place, s in enumerate(ordered, start=1) if place >= goal)
    measured = histogram.percentile(share)
    assert measured is not None
    assert measured == pytest.approx(exact, rel=0.0443)
    assert histogram.maximum == ordered[-1]


def test_a_histogram_takes_any_duration() -> None:
    histogram = Histogram()
    for seconds in (-1.0, 0.0, 1e-9, sys.float_info.max):
        histogram.add(seconds)
    histogram.add(1.0, weight=0)
    assert histogram.weight == 4
    assert Histogram().percentile(0.5) is None
    assert Histogram.merged([histogram, histogram]).weight == 8
