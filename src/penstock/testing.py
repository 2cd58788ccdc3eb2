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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from penstock.engine import Core, Run
from penstock.engine.settings import Settings
from penstock.events import kinds as ev
from penstock.language import bind
from penstock.model import Application, Block
from penstock.planning import plan
from penstock.policies.operators import Policy
from penstock.policies.operators import policy as policy_of
from penstock.simulator.replay import VirtualHost

_BYTES_PER_ROW = 16


def one_second(run: Run) -> float:
    """The cost of every run, unless a test says otherwise."""
    return 1.0


def never(run: Run) -> str:
    """Why a run fails: it does not."""
    return ""


Figures = Mapping[str, tuple[float, float]]
"""By the id of an operator: seconds per row, and rows out per row in."""


@dataclass(slots=True)
class FakeHost(VirtualHost):
    """A host without Spark: runs take as long as ``cost`` says and keep every second row.

    With ``operators`` every stage costs and keeps what they say instead, by its first operator.
    """

    application: Application = field(kw_only=True)
    cost: Callable[[Run], float] = one_second
    fails: Callable[[Run], str] = never
    operators: Figures = field(default_factory=dict)
    kept: dict[int, float] = field(default_factory=dict)
    """Rows that runs have kept between two stages, until they are taken up."""
    _numbers: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        sql: str,
        policy: str | Policy = "fifo",
        *,
        settings: Settings | None = None,
        cost: Callable[[Run], float] = one_second,
        fails: Callable[[Run], str] = never,
        operators: Figures | None = None,
    ) -> FakeHost:
        """A host that runs this application from time 0."""
        application = bind(sql)
        chosen = policy_of(policy) if isinstance(policy, str) else policy
        core = Core(chosen, settings or Settings(until_drained=True))
        core.adopt(plan(application))
        host = cls(core, application=application, cost=cost, fails=fails,
                   operators=operators or {})
        known = core.settings
        host.handle(ev.RunStarted(
            0.0, tuple(application.streams), str(policy), cores=1,
            slots=known.slots, gather=known.gather, hold=known.hold,
            memory=known.memory, quantum=None if known.quantum == inf else known.quantum))
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
        return ev.QueryAdded.of(self.application.queries[name], self.clock.now(), backlog)

    def outcome(self, run: Run) -> ev.RunFinished | ev.RunKept | ev.RunFailed:
        """As the script says."""
        entering = sum(block.rows for block in run.blocks)
        rows = sum(self.kept[part] for part in run.parts) if run.parts else float(entering)
        seconds, left = self._through(run, rows)
        at = self.clock.now() + seconds
        if reason := self.fails(run):
            return ev.RunFailed(at, run.run, reason)
        for part in run.parts:
            del self.kept[part]
        measured = self._measured(run) if run.measure else {}
        if run.final or not round(left):
            out = {member.query: round(left) for member in run.members}
            return ev.RunFinished(at, run.run, seconds, entering, out, measured=measured)
        self.kept[run.run] = left
        return ev.RunKept(at, run.run, seconds, round(left), round(left) * _BYTES_PER_ROW,
                          on_disk=run.on_disk, measured=measured)

    def _through(self, run: Run, rows: float) -> tuple[float, float]:
        """Seconds and rows out of a run."""
        if not self.operators:
            return self.cost(run), rows // 2
        seconds = 0.0
        for stage in self.core.plan.path(run.path).stages[run.first : run.last]:
            cost, kept = self.operators.get(stage[0].id, (0.0, 1.0))
            seconds += rows * cost
            rows *= kept
        return seconds, rows

    def _measured(self, run: Run) -> dict[str, ev.Figure]:
        stages = self.core.plan.path(run.path).stages
        figures = {stage[0].id: self.operators.get(stage[0].id, (0.0, 1.0)) for stage in stages}
        return {id: (100.0, 100.0 * kept, 100.0 * cost, 0.0, 0.0)
                for id, (cost, kept) in figures.items()}

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
