"""The test kit: the engine core on virtual time, with scripted arrivals and costs of your choice.

It ships with the product so that a policy or an application can be tested as the engine itself is.

>>> host = FakeHost.of('''
...     CREATE STREAM s (a INT) FROM rate;
...     CREATE QUERY small AS SELECT a FROM s WHERE a < 5;
... ''')
>>> host.arrive("s", at=1.0, rows=100)
>>> host.arrive("s", at=1.5, rows=100)
>>> host.run()
>>> host.decisions
[(1.0, 's/fanout', (0,)), (2.0, 's/fanout', (1,))]
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from penstock.clock import VirtualClock
from penstock.engine import Core, Finish, Instruction, Note, Release, Run, Wake
from penstock.engine.core import Settings
from penstock.events import kinds as ev
from penstock.language import bind
from penstock.model import Application, Block
from penstock.planning import plan
from penstock.policies.operators import Policy
from penstock.policies.operators import policy as policy_of

_BYTES_PER_ROW = 16


def one_second(run: Run) -> float:
    """The cost of every run, unless a test says otherwise."""
    return 1.0


def never(run: Run) -> str:
    """Why a run fails: it does not."""
    return ""


@dataclass(slots=True)
class FakeHost:
    """A host without Spark: runs take as long as ``cost`` says and keep every second row."""

    core: Core
    application: Application
    cost: Callable[[Run], float] = one_second
    fails: Callable[[Run], str] = never
    clock: VirtualClock = field(default_factory=VirtualClock)
    record: list[ev.Event] = field(default_factory=list)
    """Every event, the core's own ones too."""
    runs: list[Run] = field(default_factory=list)
    released: list[tuple[str, int]] = field(default_factory=list)
    finished: Finish | None = None
    _agenda: list[tuple[float, int, ev.Event]] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)
    _sequence: int = 0

    @classmethod
    def of(
        cls,
        sql: str,
        policy: str | Policy = "fifo",
        *,
        settings: Settings | None = None,
        cost: Callable[[Run], float] = one_second,
        fails: Callable[[Run], str] = never,
    ) -> FakeHost:
        """A host that runs this application from time 0."""
        application = bind(sql)
        chosen = policy_of(policy) if isinstance(policy, str) else policy
        core = Core(chosen, settings or Settings(until_drained=True))
        core.adopt(plan(application))
        host = cls(core, application, cost, fails)
        streams = tuple(application.streams)
        host.handle(ev.RunStarted(0.0, streams, str(policy), cores=1))
        for name in application.queries:
            host.handle(host.added(name))
        return host

    # --- the script --------------------------------------------------------------------------

    def arrive(self, stream: str, at: float, rows: int = 100, late: int = 0) -> None:
        """A block of a stream will arrive."""
        number = self._numbers.get(stream, -1) + 1
        self._numbers[stream] = number
        block = Block(stream, number, rows, rows * _BYTES_PER_ROW, at)
        self.plan_event(ev.BlockArrived(at, block, read=rows + late, late=late))

    def end(self, stream: str, at: float) -> None:
        """A stream will end."""
        self.plan_event(ev.StreamEnded(at, stream))

    def add(self, sql: str, backlog: tuple[tuple[int, int], ...] = ()) -> None:
        """Add queries now, with blocks of the past that they want to see."""
        before = set(self.application.queries)
        self.application = bind(sql, self.application)
        self.core.adopt(plan(self.application))
        for name in self.application.queries:
            if name not in before:
                self.handle(self.added(name, backlog))
        self.handle(ev.Tick(self.clock.now()))

    def added(self, name: str, backlog: tuple[tuple[int, int], ...] = ()) -> ev.QueryAdded:
        """The event that adds a query of the application."""
        branches = self.application.queries[name].branches
        streams = tuple(branch.stream for branch in branches)
        return ev.QueryAdded(self.clock.now(), name, streams, backlog=backlog)

    def plan_event(self, event: ev.Event) -> None:
        """An event that will happen at its time; of several at one time the first is first."""
        self._sequence += 1
        heapq.heappush(self._agenda, (event.at, self._sequence, event))

    # --- running -----------------------------------------------------------------------------

    def run(self, until: float = float("inf")) -> None:
        """Let everything planned happen, and what follows from it, up to a time."""
        while self._agenda and self._agenda[0][0] <= until:
            at, _, event = heapq.heappop(self._agenda)
            self.clock.advance(at)
            self.handle(event)

    def handle(self, event: ev.Event) -> list[Instruction]:
        """Give the core an event and carry out what it says."""
        self.record.append(event)
        instructions = self.core.handle(event)
        for instruction in instructions:
            self._carry_out(instruction)
        return instructions

    def _carry_out(self, instruction: Instruction) -> None:
        match instruction:
            case Note(event=event):
                self.record.append(event)
            case Run():
                self.runs.append(instruction)
                self.plan_event(self._outcome(instruction))
            case Release(stream=stream, number=number):
                self.released.append((stream, number))
            case Wake(at=at):
                self.plan_event(ev.Tick(max(at, self.clock.now())))
            case Finish():
                self.finished = instruction

    def _outcome(self, run: Run) -> ev.Event:
        seconds = self.cost(run)
        at = self.clock.now() + seconds
        reason = self.fails(run)
        if reason:
            return ev.RunFailed(at, run.run, reason)
        rows = sum(block.rows for block in run.blocks)
        out = {member.query: rows // 2 for member in run.members}
        for block in run.blocks:
            if block.number in run.keep:
                self.plan_event(ev.BlockHot(at, block.stream, block.number, block.bytes))
        return ev.RunFinished(at, run.run, seconds, rows, out)

    # --- what happened -----------------------------------------------------------------------

    @property
    def decisions(self) -> list[tuple[float, str, tuple[int, ...]]]:
        """When what was run on which blocks."""
        return [(e.at, e.segment, e.blocks) for e in self.record if isinstance(e, ev.Decided)]

    @property
    def failures(self) -> dict[str, str]:
        """The queries that stopped, and why."""
        return {e.query: e.reason for e in self.record if isinstance(e, ev.QueryFailed)}


def assert_decisions(
    host: FakeHost, expected: Sequence[tuple[float, str, tuple[int, ...]]]
) -> None:
    """The host decided exactly this, in this order."""
    assert host.decisions == list(expected), "\n".join(map(str, host.decisions))
