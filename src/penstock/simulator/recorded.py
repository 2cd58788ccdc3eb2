"""A recorded run as a model: what came from outside, who rode on which path, what runs cost.

What came from outside (blocks, queries, time) happens again as it was recorded, in the same order.
What the core decided and what jobs took is left out of the script: the core decides anew, and jobs
take what the model says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import inf, nextafter
from typing import TypeVar

from penstock.engine import Core, Run
from penstock.engine.settings import Settings
from penstock.errors import CheckpointError
from penstock.events import kinds as ev
from penstock.model import Branch, Query, Sink
from penstock.plan import Member, Path, Plan
from penstock.policies.operators import Policy
from penstock.simulator.costs import Cost, fit
from penstock.simulator.replay import VirtualHost

_OUTSIDE = (ev.BlockHeld, ev.BlockArrived, ev.StreamEnded, ev.StreamFailed, ev.QueryAdded,
            ev.QueryDropped, ev.QueryFailed, ev.Tick)
_JOINING = (ev.QueryAdded, ev.QueryFailed)
_E = TypeVar("_E", bound=ev.Event)


@dataclass(frozen=True, slots=True)
class Step:
    """Something from outside, and the plan that the core works by from then on, if it changes."""

    event: ev.Event
    plan: Plan | None = None


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything a replay needs, but the policy."""

    started: ev.RunStarted
    script: tuple[Step, ...]
    costs: Mapping[str, Cost]
    """Per segment; a path is one segment as long as it is one job."""
    kept: Mapping[tuple[str, str], float]
    """Rows out per row in, by segment and query."""
    runs: Mapping[str, int]
    """How many runs of each segment finished."""
    failed: int
    """Runs that failed: nobody knows what they would have cost elsewhere, so they are left out."""
    unknown: tuple[str, ...]
    """Queries that never had a finished run: nothing is known of their cost, so they wait."""

    @classmethod
    def of(cls, events: Iterable[ev.Event]) -> Recording:
        """The model of a record, which may end before the run did.

        >>> from penstock.testing import FakeHost
        >>> host = FakeHost.of('''
        ...     CREATE STREAM s (a INT) FROM rate;
        ...     CREATE QUERY q AS SELECT a FROM s;
        ... ''', cost=lambda run: 0.25 + 0.01 * sum(block.rows for block in run.blocks))
        >>> for at, rows in ((1.0, 100), (5.0, 300)):
        ...     host.arrive("s", at, rows)
        >>> host.run()
        >>> recording = Recording.of(host.record)
        >>> recording.costs["s/fanout"].seconds(200, earlier=9), recording.kept
        (2.25, {('s/fanout', 'q'): 0.5})
        """
        reading = _Reading()
        for event in events:
            reading.take(event)
        if reading.started is None:
            raise CheckpointError("the record is empty: the run had not begun")
        if not reading.finished:
            raise CheckpointError("no run finished in this record, so nothing is known of costs")
        costs = reading.costs()
        return cls(
            reading.started, tuple(reading.script(costs)), costs, reading.kept(),
            {segment: len(runs) for segment, runs in reading.runs().items()}, reading.failed,
            tuple(joined.event.query for joined in reading.joins
                  if not any(path in costs for path in joined.paths.values())))


@dataclass(slots=True)
class _Joined:
    """A query from when it joined until it left; a namesake that joins later is another."""

    event: ev.QueryAdded
    paths: dict[int, str] = field(default_factory=dict)
    """Per branch the path that it was seen on."""

    @property
    def query(self) -> Query:
        event = self.event
        kind, _, target = event.sink.partition(" ")
        branches = tuple(Branch(stream, ()) for stream in event.streams)
        return Query(event.query, branches, Sink(kind, target or None), event.latency,
                     event.priority, event.lifetime)

    def outlived(self, at: float) -> bool:
        """Whether its lifetime is over: then it was the core that dropped it, and will again."""
        event = self.event
        since = event.at if event.joined is None else event.joined
        return event.lifetime is not None and at >= since + event.lifetime


@dataclass(slots=True)
class _Reading:
    """A record as it is read."""

    started: ev.RunStarted | None = None
    outside: list[ev.Event] = field(default_factory=list)
    joins: list[_Joined] = field(default_factory=list)
    present: dict[str, _Joined] = field(default_factory=dict)
    members: dict[str, tuple[_Joined, int]] = field(default_factory=dict)
    """By the name that groups use: whose branch it is, and which."""
    riders: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Per group the queries that ride in it."""
    decided: dict[int, ev.Decided] = field(default_factory=dict)
    finished: list[tuple[ev.Decided, ev.RunFinished]] = field(default_factory=list)
    failed: int = 0
    _now: float = 0.0

    def take(self, event: ev.Event) -> None:
        match event:
            case ev.RunStarted():
                self.started, self._now = event, event.at
            case ev.QueryAdded():
                self._join(event)
            case ev.QueryDropped(query=query, at=at):
                gone = self.present.get(query)
                if gone is None or gone.outlived(at):
                    return
            case ev.GroupFormed(group=group, path=path, members=members):
                self._seat(group, path, members)
            case ev.Decided(run=run):
                self.decided[run] = event
            case ev.RunFinished(run=run) if run in self.decided:
                self.finished.append((self.decided.pop(run), event))
            case ev.RunFailed():
                self.failed += 1
        if isinstance(event, _OUTSIDE):
            self.outside.append(self._in_order(event))

    def _in_order(self, event: _E) -> _E:
        """Threads stamp events before they stand in line: the line is the order that counts."""
        self._now = max(self._now, event.at)
        return event if event.at == self._now else replace(event, at=self._now)

    def _join(self, event: ev.QueryAdded) -> None:
        joined = self.present[event.query] = _Joined(event)
        self.joins.append(joined)
        for branch in range(len(event.streams)):
            self.members[str(Member(event.query, branch))] = joined, branch

    def _seat(self, group: int, path: str, members: tuple[str, ...]) -> None:
        queries: dict[str, None] = {}
        for joined, branch in (self.members[name] for name in members if name in self.members):
            joined.paths[branch] = path
            queries[joined.event.query] = None
        self.riders[group] = tuple(queries)

    # --- what it amounts to ------------------------------------------------------------------

    def runs(self) -> dict[str, list[tuple[int, float]]]:
        """Per segment rows and seconds of every run; it took from the decision to the answers."""
        runs: dict[str, list[tuple[int, float]]] = {}
        for decided, finished in self.finished:
            seconds = max(finished.at - decided.at, 0.0)
            runs.setdefault(decided.segment, []).append((decided.rows, seconds))
        return runs

    def costs(self) -> dict[str, Cost]:
        runs = self.runs()
        cheapest = min(seconds for made in runs.values() for _, seconds in made)
        return {segment: fit(made, cheapest) for segment, made in runs.items()}

    def kept(self) -> dict[tuple[str, str], float]:
        rows_in: dict[tuple[str, str], int] = {}
        rows_out: dict[tuple[str, str], int] = {}
        for decided, finished in self.finished:
            for query in self.riders.get(decided.group, ()):
                key = decided.segment, query
                rows_in[key] = rows_in.get(key, 0) + decided.rows
                rows_out[key] = rows_out.get(key, 0) + finished.rows_out.get(query, 0)
        return {key: rows_out[key] / rows for key, rows in rows_in.items() if rows}

    def script(self, known: Container[str]) -> Iterator[Step]:
        """What came from outside, with the plan of those who have joined by then."""
        assert self.started is not None
        yield Step(self.started, Plan((), ()))
        coming, present, changed = iter(self.joins), dict[str, _Joined](), False
        # A host plans for all queries that join together, then adds one after the other.
        for joining, group in groupby(self.outside, lambda event: isinstance(event, _JOINING)):
            events = list(group)
            if joining:
                fresh = [next(coming) for event in events if isinstance(event, ev.QueryAdded)]
                present.update((joined.event.query, joined) for joined in fresh)
                changed = changed or bool(fresh)
            for event in events:
                yield Step(event, _plan(present.values(), known) if changed else None)
                changed = isinstance(event, ev.QueryDropped)
                if isinstance(event, ev.QueryDropped):
                    present.pop(event.query, None)


def _plan(present: Iterable[_Joined], known: Container[str]) -> Plan:
    """The plan as far as a schedule depends on it: who rides on which path, in order."""
    queries = [joined.query for joined in present]
    riders: dict[tuple[str, str], list[Member]] = {}
    for joined, query in zip(present, queries, strict=True):
        for branch, path in sorted(joined.paths.items()):
            if path in known:
                stream = query.branches[branch].stream
                riders.setdefault((path, stream), []).append(Member(query.name, branch))
    paths = (Path(path, stream, (), tuple(members), ())
             for (path, stream), members in riders.items())
    return Plan(tuple(queries), tuple(paths))


# --- playing it again ---------------------------------------------------------------------------


@dataclass(slots=True)
class _Replay(VirtualHost):
    """Runs cost and keep what the model says."""

    recording: Recording = field(kw_only=True)
    _made: Counter[str] = field(default_factory=Counter)

    def outcome(self, run: Run) -> ev.RunFinished:
        rows = sum(block.rows for block in run.blocks)
        seconds = self.recording.costs[run.segment].seconds(rows, self._made[run.segment])
        self._made[run.segment] += 1
        queries = dict.fromkeys(member.query for member in run.members)
        kept = self.recording.kept
        out = {query: round(rows * kept.get((run.segment, query), 0.0)) for query in queries}
        return ev.RunFinished(self.clock.now() + seconds, run.run, seconds, rows, out)


def replay(recording: Recording, policy: Policy) -> list[ev.Event]:
    """The record of the same run under a policy, to the last answer."""
    started = recording.started
    settings = Settings(slots=started.slots, gather=started.gather, hold=started.hold)
    host = _Replay(Core(policy, settings), recording=recording)
    for step in recording.script:
        host.run(until=nextafter(step.event.at, -inf))  # at one time what is from outside is first
        host.clock.advance(step.event.at)
        if step.plan is not None:
            host.core.adopt(step.plan)
        host.handle(step.event)
    host.run()
    return host.record
