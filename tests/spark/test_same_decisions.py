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
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.clock import VirtualClock
from penstock.engine.instructions import SegmentJob
from penstock.engine.settings import Settings
from penstock.events import kinds as ev
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

Decision = tuple[float, str, tuple[int, int], tuple[int, ...], int | None, str]


def decisions(events: list[ev.Event]) -> list[Decision]:
    """When what ran, from which stage to which, on which blocks, and why."""
    return [(e.at, e.work.segment, e.work.stages, e.work.blocks, e.work.entering, e.reason)
            for e in events if isinstance(e, ev.JobDecided)]


def simulated(policy: str) -> list[ev.Event]:
    """The trace in virtual time."""
    host = FakeHost.of(APPLICATION, policy, operators=FIGURES, settings=Settings(quantum=1.0))
    for (stream, _), at in ARRIVALS.items():
        host.arrive(stream, at=at, rows=ROWS)
    while host._agenda:  # Spark's host looks at the clock when nothing has happened for so long
        soon = host.clock.now() + TICK
        if host._agenda[0][0] <= soon:
            host.run(until=host._agenda[0][0])
        else:
            host.clock.advance(soon)
            host.handle(ev.Tick(at=soon))
    return host.record


@dataclass
class Inbox:
    """Where a Spark host gets its events: in the order and at the times of the script."""

    clock: VirtualClock
    planned: list[tuple[float, int, ev.Event]] = field(default_factory=list)
    asked: list[Callable[[], None]] = field(default_factory=list)
    expected: dict[int, Any] = field(default_factory=dict)
    """By run under way: how the script says that it ends."""
    arrived: int = 0
    rows: list[tuple[Any, Any]] = field(default_factory=list)
    """What runs kept or delivered, on Spark and by the script."""
    failed: list[ev.JobFailed] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def expect(self, end: Any, overtakes: bool) -> None:
        """A run begins that ends like this; those that it overtakes end later by as much."""
        with self.changed:
            if overtakes:
                through = [p for p in self.planned if not isinstance(p[2], ev.BlockArrived)]
                end, others = shared(self.clock.now(), end, [
                    *self.expected.values(), *(event for _, _, event in through)])
                self.expected = dict(zip(self.expected, others, strict=False))
                self.planned = [p for p in self.planned if isinstance(p[2], ev.BlockArrived)]
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
                    at = ARRIVALS[block.stream, block.number]
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
            order = list(ARRIVALS).index((event.block.stream, event.block.number))
        else:
            order = len(ARRIVALS) + event.job
        heapq.heappush(self.planned, (event.at, order, event))

    def _as_scripted(self, end: Any) -> Any:
        told = self.expected.pop(end.job)
        assert bool(end.kept) == bool(told.kept)
        result = replace(end.result, measured=told.result.measured, sampling=0.0)
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
        return bool(self.arrived == len(ARRIVALS) and not self.expected and self.planned)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    sys.modules.pop("levels", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "levels.py").write_text(FUNCTIONS)
    for stream, number in ARRIVALS:
        (tmp_path / stream).mkdir(exist_ok=True)
        path = tmp_path / stream / f"{number}.parquet"
        levels = pa.array(range(ROWS), pa.int32())
        numbers = pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int32())
        pq.write_table(pa.table({"n": numbers, "level": levels}), path)
        os.utime(path, (1_700_000_000 + number,) * 2)
    return tmp_path


def on_spark(
    policy: str, folder: Path, engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[ev.Event], Inbox]:
    """The trace through Spark's own host, its costs those of the script."""
    from penstock.spark.host import SparkHost

    inbox, events = Inbox(VirtualClock()), []
    delivered, wanted = threading.Event(), sum(2 if s == "s" else 1 for s, _ in ARRIVALS)

    class Scripted(SparkHost):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self._inbox = inbox  # type: ignore[assignment]
            self._script = FakeHost(self._core, inbox.clock, application=self.application,
                                    operators=FIGURES)

        def _carry_out(self, instruction: Any, spent: float) -> None:
            if isinstance(instruction, SegmentJob):
                inbox.expect(self._script.outcome(instruction), instruction.urgent)
            super()._carry_out(instruction, spent)

        def _report_progress(self, at: float) -> None:
            """How far Spark is says nothing about the script's time."""

    def watch(event: ev.Event) -> None:
        events.append(event)
        decided = {e.job: e for e in events if isinstance(e, ev.JobDecided)}
        done = [decided[e.job].work.blocks for e in events
                if isinstance(e, ev.JobFinished) and not e.kept]
        if sum(map(len, done)) == wanted:
            delivered.set()

    monkeypatch.setattr("penstock.api.SparkHost", Scripted)
    with engine(on_event=watch) as e:
        e._clock = inbox.clock
        e.execute(APPLICATION + f"SET operators = '{policy}'; SET quantum = '1 second';",
                  folder=folder)
        e.start()
        assert delivered.wait(240), inbox.failed
        e.stop()
        levels = {name: sorted(e.results(name)["n"].to_pylist())
                  for name in ("hidden", "plain", "cheap")}
    keeps = {"hidden": lambda n: n % 100 < 9, "plain": lambda n: n % 2 == 0,
             "cheap": lambda n: n % 100 >= 50}
    assert levels == {name: [n for n in range(500 if name == "cheap" else 600) if keep(n)]
                      for name, keep in keeps.items()}
    return events, inbox


def test_the_policies_decide_differently_on_this_trace(folder: Path) -> None:
    blocks = [e.block for e in simulated("fifo") if isinstance(e, ev.BlockArrived)]
    assert {(block.rows, block.bytes) for block in blocks} == {(ROWS, ROWS * WIDTH)}
    told = [tuple(d[1:4] for d in decisions(simulated(policy))) for policy in POLICIES]
    assert len(set(told)) == len(POLICIES)


@pytest.mark.spark
@pytest.mark.parametrize("policy", [
    policy if policy in ("fifo", "chain") else pytest.param(policy, marks=pytest.mark.long)
    for policy in POLICIES])
def test_the_same_trace_gives_the_same_decisions_on_both_hosts(
    policy: str, folder: Path, engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    events, inbox = on_spark(policy, folder, engine, monkeypatch)
    assert decisions(events) == decisions(simulated(policy))
    assert all(real == scripted for real, scripted in inbox.rows), "jobs really kept those rows"
