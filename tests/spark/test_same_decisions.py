"""The same arrivals at the same costs are decided alike in virtual time and on Spark.

Spark's jobs are real. What they cost, and when blocks come, is put in their place: the host under
test has an inbox on virtual time, which takes what ingest and runs report and hands it on at the
times of the script.
"""

from __future__ import annotations

import heapq
import os
import queue
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.clock import VirtualClock
from penstock.engine import Core, ProbeJob, RefreshJob, SegmentJob
from penstock.engine.joins import department
from penstock.engine.settings import Settings
from penstock.events import kinds as ev
from penstock.policies import FAMILIES, filters, joins, operators, refresh
from penstock.spark.host import TICK
from penstock.testing import FakeHost
from penstock.whatif.replay import shared

FUNCTIONS = """
import penstock, pyarrow.compute as pc

@penstock.predicate
def half(level):
    return pc.less(level, 45)

@penstock.predicate
def fifth(level):
    return pc.less(level, 9)

@penstock.predicate
def even(level):
    return pc.equal(pc.bit_wise_and(level, 1), 0)
"""
APPLICATION = """
    CREATE STREAM s (n INT, level INT) FROM parquet 's' OPTIONS (maxFilesPerTrigger = 1);
    CREATE STREAM t (n INT, level INT) FROM parquet 't' OPTIONS (maxFilesPerTrigger = 1);
    CREATE FUNCTION half FROM 'levels:half';
    CREATE FUNCTION fifth FROM 'levels:fifth';
    CREATE FUNCTION even FROM 'levels:even';
    CREATE QUERY hidden AS SELECT n FROM s WHERE level < 90 AND half(level) AND fifth(level);
    CREATE QUERY plain WITH (latency = '6 seconds') AS SELECT n FROM s WHERE even(level);
    CREATE QUERY cheap AS SELECT n FROM t WHERE level >= 50;
"""
FIGURES = {
    "hidden#0:filter": (0.004, 0.9), "hidden#0:python1": (0.016, 0.5),
    "hidden#0:python2": (0.002, 0.2), "hidden#0:project": (0.1, 1.0),
    "plain#0:python1": (0.005, 0.5), "plain#0:project": (0.004, 1.0),
    "t/fanout:filter": (0.01, 0.5),
}
"""Seconds per row, and the part of the rows that the conditions really keep."""
ROWS, WIDTH = 100, 16
"""Of a block, and bytes of a row: what the test kit's host has."""
ARRIVALS = {
    **{("s", number): at for number, at in enumerate((0.5, 6.0, 6.5, 7.0, 14.0, 16.5))},
    **{("t", number): at for number, at in enumerate((1.0, 6.25, 8.0, 8.25, 15.0))},
}
"""By stream and block: when it comes."""
POLICIES = ("fifo", "greedy", "chain", "chain_flush(latency=9)", "rate_based")
REFRESHES = (*refresh.POLICIES, "hybrid+late", "hybrid+late_pending")
WINDOWS = """
    CREATE STREAM w (ts TIMESTAMP, n INT) FROM parquet 'w' OPTIONS (maxFilesPerTrigger = 1)
      TIME ts LATENESS 1 SECOND;
    CREATE QUERY often AS SELECT COUNT(*) AS rows FROM w [WINDOW 4 SECONDS SLIDE 1 SECOND];
    CREATE QUERY seldom AS SELECT COUNT(*) AS rows FROM w [WINDOW 6 SECONDS SLIDE 2 SECONDS];
    CREATE QUERY exact AS SELECT COUNT(*) AS rows FROM w [WINDOW 9 SECONDS SLIDE EXACTLY 3 SECONDS];
"""
JOINS = """
    CREATE STREAM l (ts TIMESTAMP, n INT) FROM parquet 'l' OPTIONS (maxFilesPerTrigger = 1)
      TIME ts LATENESS 1 SECOND;
    CREATE STREAM r (ts TIMESTAMP, n INT) FROM parquet 'r' OPTIONS (maxFilesPerTrigger = 1)
      TIME ts LATENESS 1 SECOND;
    CREATE QUERY close AS SELECT A.ts AS a, B.ts AS b FROM l A, r B WHERE A.n = B.n WINDOW 1 SECOND;
    CREATE QUERY near AS SELECT A.ts AS a, B.ts AS b FROM l A, r B WHERE A.n = B.n WINDOW 4 SECONDS;
    CREATE QUERY far AS SELECT A.ts AS a, B.ts AS b FROM l A, r B WHERE A.n = B.n WINDOW 20 SECONDS;
    CREATE QUERY latest AS SELECT A.ts AS a, B.ts AS b FROM l A, r B WHERE A.n = B.n WINDOW 4 ROWS;
    CREATE QUERY counts AS SELECT COUNT(*) AS rows FROM l A, r B WHERE A.n = B.n
      WINDOW 6 SECONDS SLIDE EXACTLY 3 SECONDS;
"""
MULTIWAY = "".join(
    f"""CREATE STREAM {name} (ts TIMESTAMP, n INT) FROM parquet '{name}'
      OPTIONS (maxFilesPerTrigger = 1) TIME ts LATENESS 1 SECOND;""" for name in "lrx") + """
    CREATE QUERY every AS SELECT A.ts AS a, B.ts AS b, C.ts AS c FROM l A, r B, x C
      WHERE A.n = B.n AND B.n = C.n WINDOW 2 SECONDS;
"""
SHARING = """
    CREATE STREAM s (n INT, level INT) FROM parquet 's' OPTIONS (maxFilesPerTrigger = 1);
    CREATE FUNCTION half FROM 'levels:half';
    CREATE FUNCTION fifth FROM 'levels:fifth';
    CREATE QUERY one AS SELECT n FROM s WHERE half(level) AND fifth(level);
    CREATE QUERY other AS SELECT n FROM s WHERE fifth(level) AND half(level);
"""
DERIVED = """
    CREATE STREAM s (n INT, level INT) FROM parquet 's' OPTIONS (maxFilesPerTrigger = 1);
    CREATE FUNCTION half FROM 'levels:half';
    CREATE FUNCTION even FROM 'levels:even';
    CREATE STREAM high AS SELECT n, level FROM s WHERE level >= 20;
    CREATE STREAM some AS SELECT n, level FROM high WHERE half(level);
    CREATE QUERY plain AS SELECT n FROM s WHERE even(level);
    CREATE QUERY few AS SELECT n FROM some WHERE even(level);
    CREATE QUERY both AS SELECT n FROM high WHERE even(level) UNION ALL SELECT n FROM some;
"""
DERIVED_FIGURES = {
    "s/fanout:filter": (0.01, 0.8), "some#0:python1": (0.02, 25 / 80),
    "plain#0:python1": (0.006, 0.5), "few#0:python1": (0.05, 13 / 25),
    "both#0:python1": (0.03, 0.5), "some/fanout:project": (0.004, 1.0),
}
DERIVED_WINDOWS = """
    CREATE STREAM w (ts TIMESTAMP, n INT) FROM parquet 'w' OPTIONS (maxFilesPerTrigger = 1)
      TIME ts LATENESS 1 SECOND;
    CREATE STREAM counts TIME window_end LATENESS 1 SECOND AS
      SELECT COUNT(*) AS rows FROM w [WINDOW 2 SECONDS SLIDE EXACTLY 2 SECONDS];
    CREATE QUERY windows AS SELECT COUNT(*) AS rows FROM counts [WINDOW 6 SECONDS SLIDE 2 SECONDS];
    CREATE QUERY often AS SELECT COUNT(*) AS rows FROM w [WINDOW 4 SECONDS SLIDE 1 SECOND];
"""
JOIN_POLICIES = (*joins.POLICIES, "swf(merge=false)", "mqt(merge=false)")
PANES, SCAN = 0.2, 0.3
"""Seconds of a job that makes panes, and of a scan: three queries at once are too much."""


@dataclass(frozen=True)
class Change:
    """A policy that decides from some time on."""

    at: float
    family: str
    policy: str


@dataclass(frozen=True)
class Trace:
    """An application, when its blocks come, and which policies decide."""

    application: str
    arrivals: Mapping[tuple[str, int], float]
    """By stream and block."""
    changes: tuple[Change, ...]
    """The first at time 0."""
    times: Mapping[tuple[str, int], Sequence[float]] = field(default_factory=dict)
    """Event times of a block's rows, in seconds, where its stream has such a time."""
    figures: Mapping[str, tuple[float, float]] = field(default_factory=lambda: FIGURES)

    @property
    def first(self) -> Change:
        return self.changes[0]


def one_policy(policy: str) -> Trace:
    return Trace(APPLICATION, ARRIVALS, (Change(0.0, "operators", policy),))


def in_turn(policies: Sequence[str]) -> Trace:
    """The beginning of the trace again and again, each time under another policy."""
    apart = 12.0
    short = {("s", 0): 0.5, ("t", 0): 1.0, ("s", 1): 1.5}
    blocks = {"s": 2, "t": 1}
    arrivals = {(stream, blocks[stream] * turn + number): turn * apart + at
                for turn in range(len(policies))
                for (stream, number), at in short.items()}
    changes = (Change(max(0.0, turn * apart - 0.11), "operators", name)
               for turn, name in enumerate(policies))
    return Trace(APPLICATION, arrivals, tuple(changes))


def every_refresh_policy() -> Trace:
    """A stream that is steady at first and then jumps, under one refresh policy after the other."""
    arrivals, times, changes = {}, {}, []
    for turn, name in enumerate(REFRESHES):
        begun = 12.0 * turn
        changes.append(Change(max(0.0, begun - 0.11), "refresh", name))
        for number, second in enumerate((1, 2, 3, 4, 8)):
            block = "w", 5 * turn + number
            arrivals[block] = begun + 1.0 + 1.5 * number
            times[block] = [begun + second + part / 4 for part in range(3)]
    return Trace(WINDOWS, arrivals, tuple(changes), times)


def every_joins_policy() -> Trace:
    """Blocks of two streams in turn, some of them in a burst, under one policy after the other."""
    arrivals, times, changes = {}, {}, []
    for turn, name in enumerate(JOIN_POLICIES):
        begun = 30.0 * turn
        changes.append(Change(max(0.0, begun - 0.11), "joins", name))
        for number, second in enumerate((1, 2, 3, 4, 9)):
            for late, stream in ((0.0, "l"), (0.25, "r")):
                block = stream, 5 * turn + number
                arrivals[block] = begun + 1.0 + 0.5 * number + late
                times[block] = [begun + second + part / 4 + late for part in range(3)]
    return Trace(JOINS, arrivals, tuple(changes), times)


def derived_paths(policy: str) -> Trace:
    """Blocks of a stream, of one that is derived from it, and of one derived from that."""
    arrivals = {("s", number): at for number, at in enumerate((0.53, 4.01, 6.57, 7.13, 22.19))}
    return Trace(DERIVED, arrivals, (Change(0.0, "operators", policy),), figures=DERIVED_FIGURES)


def derived_windows() -> Trace:
    """A stream whose windows are counted, with gaps in which no window has a row."""
    times = {("w", number): [2.0 * number + part / 4 + (6 if number > 5 else 0)
                             for part in range(5)] for number in range(10)}
    arrivals = {block: 1.01 + 1.53 * block[1] for block in times}
    return Trace(DERIVED_WINDOWS, arrivals, (Change(0.0, "refresh", refresh.DEFAULT),), times)


def one_stream_drops() -> Trace:
    """Three streams, one of which has only the first of the others' keys, under each policy.

    That is another stream under every policy, so that all of them have something to learn.
    """
    times: dict[tuple[str, int], Sequence[float]] = {}
    changes = []
    for turn, name in enumerate(filters.POLICIES):
        policy = f"{name}(p=1, window=16, enough=8)"
        changes.append(Change(max(0.0, 8.0 * turn + 0.89), "filters", policy))
        for number in range(8 * turn, 8 * turn + 8):
            for stream in "lrx":
                keys = 1 if stream == "rx"[turn % 2] else 4
                times[stream, number] = [number + part / 4 for part in range(keys)]
    changes[0] = replace(changes[0], at=0.0)
    arrivals = {block: 1.0 + block[1] + "lrx".index(block[0]) / 8 for block in times}
    return Trace(MULTIWAY, arrivals, tuple(changes), times)


def every_filters_policy() -> Trace:
    """Blocks whose rows are dropped by one predicate and then by the other, under each policy."""
    arrivals, changes = {}, []
    for turn, name in enumerate(filters.POLICIES):
        begun = 40.0 * turn
        policy = f"{name}(p=1, window=80, enough=30)"
        changes.append(Change(max(0.0, begun - 0.11), "filters", policy))
        for number in range(8):
            arrivals["s", 8 * turn + number] = begun + 1.0 + 4.0 * number
    return Trace(APPLICATION, arrivals, tuple(changes))


def shared_predicates() -> Trace:
    """The same blocks on the path of two queries, which write its predicates in other orders."""
    arrivals = {("s", number): 1.0 + 4.0 * number for number in range(12)}
    change = Change(0.0, "filters", "a_greedy(p=1, window=80, enough=30)")
    figures = dict.fromkeys(("one#0+:python1", "one#0+:python2"), (0.02, 0.09))
    return Trace(SHARING, arrivals, (change,), figures=figures)


def dropped(job: SegmentJob) -> Mapping[str, float]:
    """By pattern, the rows that the two predicates of a query drop, which drifts."""
    return {"10": 0.1, "01": 0.7} if job.blocks[0].number // 4 % 2 else {"10": 0.95, "01": 0.02}


Decision = tuple[object, ...]


def decisions(events: list[ev.Event]) -> list[Decision]:
    """When what ran, on what, and why; and what was left out."""
    return [found for found in map(decision, events) if found]


def decision(event: ev.Event) -> Decision:
    match event:
        case ev.JobDecided(work=ev.PathWork() as work):
            return (event.at, work.segment, work.stages, work.blocks, work.entering, event.reason)
        case ev.JobDecided(work=ev.RefreshWork() as work):
            return (event.at, work.group, work.scans, event.reason)
        case ev.JobDecided(work=ev.ProbeWork() as work):
            return (event.at, work.join, work.outer, work.since, work.until, work.nearest,
                    work.farthest, event.reason)
        case ev.ProbesReordered():
            return (event.at, event.stream, event.order, event.reason)
        case ev.OrderChanged():
            return (event.at, event.path, event.order, event.reason, event.matrix)
        case ev.AnswersSkipped():
            return (event.at, event.answers, event.after, event.before)
    return ()


def refreshing(job: RefreshJob) -> float:
    return SCAN * len(job.scans)


def probing(job: ProbeJob) -> float:
    return 0.1 + sum((scan.farthest - scan.nearest) / 1e7 for scan in job.scans)


def simulated(trace: Trace) -> list[ev.Event]:
    """The trace in virtual time."""
    policies = {"operators": "fifo", "refresh": refresh.DEFAULT, "joins": "mqt",
                "filters": "a_greedy", trace.first.family: trace.first.policy}
    host = FakeHost.of(trace.application, policies["operators"], refresh=policies["refresh"],
                       joins=policies["joins"], probing=probing,
                       filters=policies["filters"], drops=dropped,
                       operators=trace.figures if not trace.times else None,
                       cost=lambda job: PANES,
                       refreshing=refreshing, settings=Settings(quantum=1.0))
    for (stream, number), at in trace.arrivals.items():
        times = trace.times.get((stream, number))
        host.arrive(stream, at=at, rows=ROWS, times=times, keys=range(len(times or ())))
    changes = list(trace.changes[1:])
    while host._agenda:  # Spark's host looks at the clock when nothing has happened for so long
        soon = host.clock.now() + TICK
        if changes and changes[0].at <= min(soon, host._agenda[0][0]):
            host.clock.advance(changes[0].at)
            use(host.core, changes.pop(0))
        elif host._agenda[0][0] <= soon:
            host.run(until=host._agenda[0][0])
        else:
            host.clock.advance(soon)
            host.handle(ev.Tick(at=soon))
    return host.record


def use(core: Core, change: Change) -> None:
    family = FAMILIES[change.family]
    core.use(change.family, family.read(change.policy), change.at, change.policy)


@dataclass
class Inbox:
    """Where a Spark host gets its events: in the order and at the times of the script."""

    clock: VirtualClock
    trace: Trace
    planned: list[tuple[float, int, Any]] = field(default_factory=list)
    """Events, and changes of policy, in the order of their times."""
    asked: list[Callable[[], None]] = field(default_factory=list)
    expected: dict[int, Any] = field(default_factory=dict)
    """By run under way: how the script says that it ends."""
    arrived: int = 0
    derived: int = 0
    """Blocks of derived streams that come when the job ends that delivers their rows."""
    rows: list[tuple[Any, Any]] = field(default_factory=list)
    """What runs kept or delivered, on Spark and by the script."""
    failed: list[ev.JobFailed] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def expect(self, end: Any, preempts: bool) -> None:
        """A job begins that ends like this; those that it preempts end later by as much."""
        with self.changed:
            if preempts:
                through = [p for p in self.planned if isinstance(p[2], ev.JobFinished)]
                end, others = shared(self.clock.now(), end, [
                    *self.expected.values(), *(event for _, _, event in through)])
                self.expected = dict(zip(self.expected, others, strict=False))
                self.planned = [p for p in self.planned if not isinstance(p[2], ev.JobFinished)]
                self.planned += [(later.at, order, later) for (_, order, _), later in zip(
                    through, others[len(self.expected):], strict=True)]
                heapq.heapify(self.planned)
            self.expected[end.job] = end

    def put(self, item: Any) -> None:
        """Take a report in; its time and its cost are the script's."""
        with self.changed:
            match item:
                case ev.BlockArrived(block=block):
                    self.arrived += 1
                    at = self.trace.arrivals.get((block.stream, block.number), self.clock.now())
                    block = replace(block, arrived=at, bytes=WIDTH * block.rows)
                    self._plan(replace(item, at=at, block=block))
                case ev.JobFinished():
                    self._plan(self._as_scripted(item))
                case ev.JobFailed():
                    self.failed.append(item)
                case _:
                    self.asked.append(item)
            self.changed.notify_all()

    def _plan(self, event: Any) -> None:
        if isinstance(event, ev.BlockArrived):
            place = event.block.stream, event.block.number
            known = list(self.trace.arrivals)
            order = known.index(place) if place in known else 1_000_000 + self.arrived
        else:
            order = len(self.trace.arrivals) + event.job
        heapq.heappush(self.planned, (event.at, order, event))

    def _as_scripted(self, end: Any) -> Any:
        told = self.expected.pop(end.job)
        if end.kind == "refresh":
            result = replace(end.result, scanning=None, answering=0.0)
            return replace(end, at=told.at, seconds=told.seconds, result=result)
        if end.kind == "probe":
            profiles = tuple(replace(one, seconds=(1.0,) * len(one.seconds))
                             for one in end.result.profiles)
            return replace(end, at=told.at, seconds=told.seconds,
                           result=replace(end.result, profiles=profiles))
        if end.kind == "panes":
            return replace(end, at=told.at, seconds=told.seconds)
        assert bool(end.kept) == bool(told.kept)
        result = replace(end.result, measured=told.result.measured, sampling=0.0,
                         profile=told.result.profile)
        if end.kept:
            self.rows.append((end.kept.rows, told.kept.rows))
            result = replace(result, kept=replace(end.kept, bytes=told.kept.bytes))
        else:
            self.rows.append((end.rows_out, told.rows_out))
        return replace(end, at=told.at, seconds=told.seconds, result=result)

    def get(self, timeout: float) -> Any:
        """The next event, if its time comes within the timeout; time passes only here."""
        with self.changed:
            self.changed.wait_for(lambda: self.asked or self._knows_what_is_next(), 240)
            if self.asked:
                return self.asked.pop(0)
            at = self.planned[0][0]
            soon = self.clock.now() + timeout
            self.clock.advance(min(at, soon))
            if at > soon:
                raise queue.Empty
            return heapq.heappop(self.planned)[2]

    def _knows_what_is_next(self) -> bool:
        return bool(self.arrived == len(self.trace.arrivals) + self.derived
                    and not self.expected and self.planned)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    sys.modules.pop("levels", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "levels.py").write_text(FUNCTIONS)
    return tmp_path


def write(trace: Trace, folder: Path) -> None:
    """The blocks of a trace, a file each."""
    for stream, number in trace.arrivals:
        (folder / stream).mkdir(exist_ok=True)
        path = folder / stream / f"{number:03}.parquet"
        if times := trace.times.get((stream, number)):
            since = [round(time * 1e6) for time in times]
            table = pa.table({"ts": pa.array(since, pa.timestamp("us", "UTC")),
                              "n": pa.array(range(len(times)), pa.int32())})
        else:
            table = pa.table({
                "n": pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int32()),
                "level": pa.array(range(ROWS), pa.int32())})
        pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + number,) * 2)


def on_spark(
    trace: Trace, folder: Path, engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch,
    jobs: int,
) -> tuple[list[ev.Event], Inbox, dict[str, pa.Table]]:
    """The trace through Spark's own host, until so many jobs are through; costs are the script's.

    What happened, the inbox with what jobs really kept, and the answers of all queries.
    """
    from penstock.spark.host import SparkHost

    write(trace, folder)
    inbox, events, through = Inbox(VirtualClock(), trace), [], threading.Event()

    class Scripted(SparkHost):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self._inbox = inbox  # type: ignore[assignment]
            self._script = FakeHost(self._core, inbox.clock, application=self.application,
                                    operators=trace.figures, drops=dropped)
            for number, change in enumerate(trace.changes[1:]):
                act = partial(use, self._core, change)
                heapq.heappush(inbox.planned, (change.at, -len(trace.changes) + number, act))

        def _carry_out(self, instruction: Any, spent: float) -> None:
            if isinstance(instruction, RefreshJob):
                inbox.expect(ends(instruction, refreshing(instruction)), False)
            elif isinstance(instruction, ProbeJob):
                inbox.expect(ends(instruction, probing(instruction)), False)
            elif isinstance(instruction, SegmentJob):
                scripted = (ends(instruction, PANES) if instruction.kind == "panes"
                            else self._script.outcome(instruction))
                inbox.expect(scripted, instruction.urgent)
            super()._carry_out(instruction, spent)

        def _feed(self, event: ev.JobFinished) -> None:
            inbox.derived += sum(rows > 0 and name in self.application.streams
                                 for name, rows in event.rows_out.items())
            super()._feed(event)

        def _report_progress(self, at: float) -> None:
            """How far Spark is says nothing about the script's time."""

    def ends(job: Any, seconds: float) -> ev.JobFinished:
        return ev.JobFinished(at=inbox.clock.now() + seconds, job=job.number, kind=job.kind,
                              seconds=seconds, result=ev.SegmentResult(rows_in=0))

    def watch(event: ev.Event) -> None:
        events.append(event)
        if sum(isinstance(e, ev.JobFinished) for e in events) == jobs:
            through.set()

    monkeypatch.setattr("penstock.spark.host.SparkHost", Scripted)
    with engine(on_event=watch) as e:
        e._clock = inbox.clock
        e.execute(f"{trace.application} SET {trace.first.family} = '{trace.first.policy}';"
                  " SET quantum = '1 second'; SET slots = 1;", folder=folder)
        e.start()
        assert through.wait(240), (inbox.failed, decisions(events)[-3:])
        e.stop()
        answers = {name: e.results(name) for name, query in e.application.queries.items()
                   if not query.derives}
    return events, inbox, answers


def check_rows(trace: Trace, answers: dict[str, pa.Table]) -> None:
    """Every query got the rows that its conditions keep."""
    blocks = Counter(stream for stream, _ in trace.arrivals)
    keeps = {"hidden": ("s", lambda n: n % 100 < 9), "plain": ("s", lambda n: n % 2 == 0),
             "cheap": ("t", lambda n: n % 100 >= 50)}
    for name, (stream, keep) in keeps.items():
        wanted = [n for n in range(ROWS * blocks[stream]) if keep(n)]
        assert sorted(answers[name]["n"].to_pylist()) == wanted


def test_the_policies_decide_differently_on_this_trace(folder: Path) -> None:
    blocks = [e.block for e in simulated(one_policy("fifo")) if isinstance(e, ev.BlockArrived)]
    assert {(block.rows, block.bytes) for block in blocks} == {(ROWS, ROWS * WIDTH)}
    told = [tuple(d[1:4] for d in decisions(simulated(one_policy(policy)))) for policy in POLICIES]
    assert len(set(told)) == len(POLICIES)


def same_on_both_hosts(
    trace: Trace, folder: Path, engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> dict[str, pa.Table]:
    """Hold both hosts against each other; what the queries answered on Spark."""
    record = simulated(trace)
    jobs = sum(isinstance(event, ev.JobFinished) for event in record)
    events, inbox, answers = on_spark(trace, folder, engine, monkeypatch, jobs)
    assert decisions(events) == decisions(record)
    assert all(real == scripted for real, scripted in inbox.rows), "jobs really kept those rows"
    return answers


@pytest.mark.spark
@pytest.mark.parametrize("policy", [
    policy if policy in ("fifo", "chain") else pytest.param(policy, marks=pytest.mark.long)
    for policy in POLICIES])
def test_the_same_trace_gives_the_same_decisions_on_both_hosts(
    policy: str, folder: Path, engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = one_policy(policy)
    check_rows(trace, same_on_both_hosts(trace, folder, engine, monkeypatch))


@pytest.mark.spark
@pytest.mark.parametrize("part", range(3))
def test_every_operator_policy_in_turn_decides_alike_on_both_hosts(
    part: int, folder: Path, engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = in_turn(list(operators.POLICIES)[part::3])
    check_rows(trace, same_on_both_hosts(trace, folder, engine, monkeypatch))


@pytest.mark.spark
def test_every_refresh_policy_in_turn_decides_alike_on_both_hosts(
    folder: Path, engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = every_refresh_policy()
    answers = same_on_both_hosts(trace, folder, engine, monkeypatch)
    times = [time for some in trace.times.values() for time in some]
    for name, table in answers.items():
        assert table.num_rows
        for row in table.to_pylist():
            start, end = (row[at].timestamp() for at in ("window_start", "window_end"))
            assert row["rows"] == sum(start <= time < end for time in times), (name, row)


@pytest.mark.spark
def test_every_filters_policy_in_turn_decides_alike_on_both_hosts(
    folder: Path, engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = every_filters_policy()
    assert sum(isinstance(event, ev.OrderChanged) for event in simulated(trace)) >= 4
    for stream in ("t",):  # nothing comes there
        (folder / stream).mkdir()
    answers = same_on_both_hosts(trace, folder, engine, monkeypatch)
    rows = ROWS * len(trace.arrivals)
    assert sorted(answers["hidden"]["n"].to_pylist()) == [n for n in range(rows) if n % 100 < 9]


@pytest.mark.spark
def test_predicates_that_queries_share_are_ordered_alike_on_both_hosts(
    folder: Path, engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = shared_predicates()
    told = [event for event in simulated(trace) if isinstance(event, ev.OrderChanged)]
    assert len({one.order for one in told}) == 2 and {one.path for one in told} == {"one#0+"}
    answers = same_on_both_hosts(trace, folder, engine, monkeypatch)
    for found in answers.values():
        rows = range(ROWS * len(trace.arrivals))
        assert sorted(found["n"].to_pylist()) == [n for n in rows if n % 100 < 9]


@pytest.mark.spark
def test_every_joins_policy_in_turn_decides_alike_on_both_hosts(
    folder: Path, engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = every_joins_policy()
    answers = same_on_both_hosts(trace, folder, engine, monkeypatch)
    rows = {stream: [(time, n) for (name, _), some in trace.times.items() if name == stream
                     for n, time in enumerate(some)] for stream in ("l", "r")}
    passed = max(time for time, _ in rows["l"]) - 1.0
    for name, window in (("close", 1), ("near", 4), ("far", 20)):
        wanted = sorted((a, b) for a, n in rows["l"] for b, m in rows["r"]
                        if n == m and abs(a - b) < window and max(a, b) < passed)
        found = [(row["a"].timestamp(), row["b"].timestamp()) for row in answers[name].to_pylist()]
        assert sorted(found) == wanted, name
    assert 0 < answers["latest"].num_rows < answers["far"].num_rows
    pairs = [(a, b) for a, n in rows["l"] for b, m in rows["r"] if n == m]
    assert answers["counts"].num_rows > 10
    for row in answers["counts"].to_pylist():
        start, end = (row[at].timestamp() for at in ("window_start", "window_end"))
        assert row["rows"] == sum(start <= min(pair) and max(pair) < end for pair in pairs), row


@pytest.mark.spark
def test_probes_of_a_multiway_join_are_ordered_alike_on_both_hosts(
    folder: Path, engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(department, "WORTH_PROBING", 0)
    monkeypatch.setattr(department, "MOST_FRESH", float("inf"))
    trace = one_stream_drops()
    told = [e for e in simulated(trace) if isinstance(e, ev.ProbesReordered)]
    assert {int((one.at - 0.9) // 8) for one in told} == set(range(len(filters.POLICIES)))
    assert {one.order for one in told if one.stream == "l"} == {("x", "r"), ("r", "x")}
    answers = same_on_both_hosts(trace, folder, engine, monkeypatch)
    rows = {stream: [(time, n) for (name, _), some in trace.times.items() if name == stream
                     for n, time in enumerate(some)] for stream in "lrx"}
    passed = min(max(time for time, _ in some) for some in rows.values()) - 1.0
    wanted = sorted(
        (a, b, c) for a, n in rows["l"] for b, m in rows["r"] for c, o in rows["x"]
        if n == m == o and max(a, b, c) - min(a, b, c) < 2 and max(a, b, c) < passed)
    found = sorted(tuple(row[name].timestamp() for name in "abc")
                   for row in answers["every"].to_pylist())
    assert wanted and found == wanted


@pytest.mark.spark
@pytest.mark.parametrize("policy", ["chain", pytest.param("fifo", marks=pytest.mark.long)])
def test_derived_streams_are_decided_alike_on_both_hosts(
    policy: str, folder: Path, engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = derived_paths(policy)
    arrived = Counter(event.block.stream for event in simulated(trace)
                      if isinstance(event, ev.BlockArrived))
    assert arrived["high"] and arrived["some"]
    answers = same_on_both_hosts(trace, folder, engine, monkeypatch)
    high = [n for n in range(ROWS * len(trace.arrivals)) if n % 100 >= 20]
    some = [n for n in high if n % 100 < 45]
    keeps = {"few": [n for n in some if n % 2 == 0],
             "both": [*(n for n in high if n % 2 == 0), *some]}
    for name, wanted in keeps.items():
        assert sorted(answers[name]["n"].to_pylist()) == sorted(wanted), name


@pytest.mark.spark
def test_a_derived_stream_of_windows_is_decided_alike_on_both_hosts(
    folder: Path, engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = derived_windows()
    answers = same_on_both_hosts(trace, folder, engine, monkeypatch)
    ends = {int(time) // 2 * 2 + 2 for some in trace.times.values() for time in some}
    assert answers["windows"].num_rows > 3
    for row in answers["windows"].to_pylist():
        start, end = (row[at].timestamp() for at in ("window_start", "window_end"))
        assert row["rows"] == sum(start <= time < end for time in ends), row
