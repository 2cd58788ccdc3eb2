"""A recorded run as a model: what came from outside, who rode on which path, what jobs cost.

What came from outside (blocks, queries, time) happens again as it was recorded, in the same order.
The core's decisions and the durations of jobs are not replayed: the core decides again, and jobs
take what the model says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import inf, nextafter
from statistics import median
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from penstock.engine import Core, ProbeJob, SegmentJob
from penstock.engine.settings import Settings
from penstock.errors import CheckpointError
from penstock.events import kinds as ev
from penstock.model import Branch, Input, Query, Sink, WindowJoin
from penstock.plan import Member, Operator, Path, Plan
from penstock.policies import FAMILIES, joins
from penstock.policies.operators import Policy
from penstock.simulator.outcomes import Floats
from penstock.whatif.join_models import (
    JoiningQuery,
    JoinModel,
    RecordedProbe,
    join_models,
    probed,
    shared_joins,
)
from penstock.whatif.path_models import PathModel, RecordedJob, Told
from penstock.whatif.replay import VirtualHost

SAMPLE_ROWS = 10_000.0
"""Rows of a sample in a replay; it takes as long as the recorded samples did, whatever its size."""
_OUTSIDE = (ev.BlockHeld, ev.BlockArrived, ev.StreamEnded, ev.StreamFailed, ev.QueryAdded,
            ev.QueryDropped, ev.QueryFailed, ev.Tick)
_JOINING = (ev.QueryAdded, ev.QueryFailed)
_E = TypeVar("_E", bound=ev.Event)


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """Something from outside, and the plan that the core follows from then on, if it changes."""

    event: ev.Event
    plan: Plan | None = None


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything that a replay needs except the policy."""

    started: ev.EngineStarted
    script: tuple[RecordedStep, ...]
    paths: Mapping[str, PathModel]
    """By path, what its stages cost and keep."""
    joins: Mapping[str, JoinModel]
    """By shared join, what its probes cost and find."""
    kept: Mapping[tuple[str, str], float]
    """Rows out per row of a block in, by path and query."""
    failed: int
    """Jobs that failed: what they would have cost is unknown, so they are left out."""
    sampling: float
    """Seconds that a sample takes, beside a job."""
    unknown: tuple[str, ...]
    """Queries that never had a finished job: their cost is unknown, so they wait."""

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
        >>> recording.paths["s/fanout"].cost.seconds(200, earlier=9), recording.kept
        (2.25, {('s/fanout', 'q'): 0.5})
        """
        reading = _RecordReader()
        for event in events:
            reading.take(event)
        if reading.started is None:
            raise CheckpointError("the record is empty: the run had not begun")
        if not reading.finished and not reading.probes:
            raise CheckpointError("no job finished in this record, so nothing is known of costs")
        models, joined = reading.models()
        return cls(
            reading.started, tuple(reading.script(models, joined)), models, joined,
            reading.kept(), reading.failed, reading.sampling(),
            tuple(one.event.query for one in reading.joins if one.join not in joined
                  and not any(path in models for path in one.paths.values())))


@dataclass(slots=True)
class _Joined:
    """A query from when it joined until it left; a later query of its name is another one."""

    event: ev.QueryAdded
    paths: dict[Member, str] = field(default_factory=dict)
    """By member, the path that it was seen on."""
    join: str = ""
    """The window join that it was seen in; empty for any other query."""

    @property
    def query(self) -> Query:
        event = self.event
        bounds = None if event.join is None else WindowJoin((), *event.join, rows=event.join_rows)
        branches = tuple(Branch(tuple(map(Input, names)), (), join=bounds)
                         for names in event.inputs)
        told = (sink.partition(" ") for sink in (event.sink, *event.also))
        sink, *also = [Sink(kind, target or None) for kind, _, target in told]
        return Query(event.query, branches, sink, event.latency, event.priority, event.lifetime,
                     also=tuple(also))

    def outlived(self, at: float) -> bool:
        """Whether its lifetime is over: then the core dropped it, and will do so again."""
        event = self.event
        since = event.at if event.joined is None else event.joined
        return event.lifetime is not None and at >= since + event.lifetime


@dataclass(slots=True)
class _RecordReader:
    """A record while it is read."""

    started: ev.EngineStarted | None = None
    outside: list[ev.Event] = field(default_factory=list)
    joins: list[_Joined] = field(default_factory=list)
    present: dict[str, _Joined] = field(default_factory=dict)
    members: dict[str, tuple[_Joined, Member]] = field(default_factory=dict)
    """By the name that groups use: the query, and which of its members it is."""
    riders: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """By group, the queries that ride in it."""
    decided: dict[int, ev.JobDecided] = field(default_factory=dict)
    finished: list[RecordedJob] = field(default_factory=list)
    probes: list[RecordedProbe] = field(default_factory=list)
    seated: dict[int, tuple[_Joined, ...]] = field(default_factory=dict)
    """By group, its queries as they were when it was formed."""
    told: Told = field(default_factory=Told)
    homes: dict[int, str] = field(default_factory=dict)
    """By group, the path that it rides on."""
    failed: int = 0
    _now: float = 0.0

    def take(self, event: ev.Event) -> None:
        match event:
            case ev.EngineStarted():
                self.started, self._now = event, event.at
            case ev.QueryAdded():
                self._join(event)
            case ev.QueryDropped(query=query, at=at):
                gone = self.present.get(query)
                if gone is None or gone.outlived(at):
                    return
            case ev.RidersFormed(riders=group, path=path, members=members, stages=stages):
                self._seat(group, path, members)
                self.homes[group] = path
                if stages:
                    self.told.names[path] = stages
            case ev.OrderChanged(path=path, stages=stages):
                self.told.reorder(path, stages)
            case ev.JobDecided(job=job):
                self.decided[job] = event
            case ev.JobFinished(job=job, result=ev.PathResult() as result) if job in self.decided:
                decided = self.decided.pop(job)
                assert isinstance(decided.work, ev.PathWork)
                stages = self.told.stages(self._home_of(decided.work))
                self.finished.append(RecordedJob(decided, decided.work, event, result, stages))
                self.told.take(event.at, result)
            case ev.JobFinished(job=job, result=ev.ProbeResult() as found) if job in self.decided:
                decided = self.decided.pop(job)
                assert isinstance(decided.work, ev.ProbeWork)
                for joined in self.seated.get(decided.work.riders, ()):
                    joined.join = decided.work.join
                self.probes.append(RecordedProbe(decided, decided.work, event, found))
            case ev.JobFailed(kind="segment" | "panes" | "probe"):
                self.failed += 1
        if isinstance(event, _OUTSIDE):
            self.outside.append(self._in_order(event))

    def _in_order(self, event: _E) -> _E:
        """Threads stamp events before they queue up: the order of the queue is what counts."""
        self._now = max(self._now, event.at)
        return event if event.at == self._now else replace(event, at=self._now)

    def _join(self, event: ev.QueryAdded) -> None:
        joined = self.present[event.query] = _Joined(event)
        self.joins.append(joined)
        for member, _ in event.members:
            self.members[str(member)] = joined, member

    def _seat(self, group: int, path: str, members: tuple[str, ...]) -> None:
        queries: dict[str, _Joined] = {}
        for joined, member in (self.members[name] for name in members if name in self.members):
            joined.paths[member] = path
            queries[joined.event.query] = joined
        self.riders[group], self.seated[group] = tuple(queries), tuple(queries.values())

    # --- what it amounts to ------------------------------------------------------------------

    def _home(self, job: RecordedJob) -> str:
        return self._home_of(job.work)

    def _home_of(self, work: ev.PathWork) -> str:
        return self.homes.get(work.riders, work.segment)

    @property
    def _overlaps(self) -> bool:
        return self.started is not None and self.started.overlap

    def models(self) -> tuple[dict[str, PathModel], dict[str, JoinModel]]:
        """What paths cost and keep, and what probes of windows cost and find."""
        jobs: dict[str, list[tuple[RecordedJob, float]]] = {}
        own = _own([*self.finished, *self.probes], self._overlaps)
        for job, took in zip(self.finished, own, strict=False):
            jobs.setdefault(self._home(job), []).append((job, took))
        probes = zip(self.probes, own[len(self.finished):], strict=True)
        return (self.told.models(jobs) if jobs else {}), join_models(probes, min(own))

    def sampling(self) -> float:
        """The duration of samples, except the first, which was cold."""
        taken = [job.result.sampling for job in self.finished if job.result.sampling]
        return median(taken[1:] or taken or [0.0])

    def kept(self) -> dict[tuple[str, str], float]:
        """Rows out per row of a block, of the jobs that delivered."""
        rows_in: dict[tuple[str, str], int] = {}
        rows_out: dict[tuple[str, str], int] = {}
        for job in self.finished:
            if job.ended.kept is not None:
                continue
            for query in self.riders.get(job.work.riders, ()):
                key = self._home(job), query
                rows_in[key] = rows_in.get(key, 0) + job.work.rows
                rows_out[key] = rows_out.get(key, 0) + job.ended.rows_out.get(query, 0)
        return {key: rows_out[key] / rows for key, rows in rows_in.items() if rows}

    def script(
        self, known: Mapping[str, PathModel], joins: Mapping[str, JoinModel]
    ) -> Iterator[RecordedStep]:
        """What came from outside, with the plan of the queries that have joined by then."""
        assert self.started is not None
        yield RecordedStep(self.started, Plan((), ()))
        coming, present, changed = iter(self.joins), dict[str, _Joined](), False
        # A host plans for all queries that join together, and then adds them one by one.
        for joining, group in groupby(self.outside, lambda event: isinstance(event, _JOINING)):
            events = list(group)
            if joining:
                fresh = [next(coming) for event in events if isinstance(event, ev.QueryAdded)]
                present.update((joined.event.query, joined) for joined in fresh)
                changed = changed or bool(fresh)
                events.sort(key=_begins_late)
            for event in events:
                yield RecordedStep(
                    _over_pairs(event),
                    _plan(present.values(), known, joins) if changed else None)
                changed = isinstance(event, ev.QueryDropped)
                if isinstance(event, ev.QueryDropped):
                    present.pop(event.query, None)


def _begins_late(event: ev.Event) -> bool:
    """Whether it adds a query whose join begins with its synopsis, after all that joined then."""
    return isinstance(event, ev.QueryAdded) and None not in (event.join, event.window)


def _over_pairs(event: ev.Event) -> ev.Event:
    """A window aggregate over a join wants all pairs of its first window."""
    if isinstance(event, ev.QueryAdded) and event.join and event.window and event.since is not None:
        return replace(event, since=event.since - event.window[0])
    return event


def _own(jobs: Sequence[RecordedJob | RecordedProbe], overlap: bool) -> list[float]:
    """What each job took itself: from the decision to its end, less its sample.

    Half of the time in which it preempted another job, or was preempted, is its own, as in the core
    (`penstock.engine.paths.active_job`). The time for which it waited for an earlier job is not,
    except for as long as the shortest job takes: meanwhile it was planned.
    """
    begun = np.array([job.decided.at for job in jobs])
    ended = np.array([job.ended.at for job in jobs])
    urgent = np.array([job.urgent for job in jobs])
    shared = np.zeros(len(jobs))
    for one in np.flatnonzero(urgent):
        both = np.maximum(np.minimum(ended, ended[one]) - np.maximum(begun, begun[one]), 0.0)
        both[one] = 0.0
        shared[one] += both.sum()
        shared += np.where(urgent, 0.0, both)
    apart = np.array([job.sampling for job in jobs])
    own = ended - begun - np.minimum(shared, ended - begun) / 2 - apart
    if overlap and len(jobs):
        own -= _waited(begun, ended, urgent)
    return np.maximum(own, 0.0).tolist()  # type: ignore[no-any-return]


def _waited(begun: Floats, ended: Floats, urgent: npt.NDArray[np.bool_]) -> Floats:
    """How long jobs that began beside an earlier one waited for its end, after they were planned.

    >>> _waited(np.array([0.0, 0.5]), np.array([1.0, 1.25]), np.array([False, False])).tolist()
    [0.0, 0.0]
    >>> _waited(np.array([0.0, 0.5]), np.array([1.75, 2.0]), np.array([False, True])).tolist()
    [0.0, 0.0]
    >>> _waited(np.array([0.0, 0.5, 3.0]), np.array([1.75, 2.0, 3.5]), np.full(3, False)).tolist()
    [0.0, 0.75, 0.0]
    """
    planning = (ended - begun).min()
    waited = np.zeros(len(begun))
    busy = -np.inf
    for job in np.argsort(begun, kind="stable"):
        if not urgent[job]:
            waited[job] = max(min(busy, ended[job]) - begun[job] - planning, 0.0)
            busy = max(busy, ended[job])
    return waited


def _plan(
    present: Iterable[_Joined], known: Mapping[str, PathModel], joins: Mapping[str, JoinModel]
) -> Plan:
    """The plan, as far as a schedule depends on it: who rides on which path, in order."""
    present = list(present)
    queries = {joined.event.query: joined.query for joined in present}
    shared = list(shared_joins((JoiningQuery(joined.query, joined.join) for joined in present),
                               joins))
    queries.update((query.name, query) for _, members in shared for query in members)
    riders: dict[tuple[str, str], list[Member]] = {}
    for joined in present:
        for member, stream in joined.event.members:
            path = joined.paths.get(member)
            if path is not None and path in known:
                riders.setdefault((path, stream), []).append(member)
    paths = (_path(path, stream, tuple(members), known[path])
             for (path, stream), members in riders.items())
    return Plan(tuple(queries.values()), tuple(paths), joins=tuple(join for join, _ in shared))


def _path(id: str, stream: str, members: tuple[Member, ...], model: PathModel) -> Path:
    operators = tuple(Operator(stage.name, "stage", "") for stage in model.stages)
    if len(operators) == 1:
        return Path(id, stream, (), members, operators)
    written = Operator(f"{id}:sink", "sink", "")  # the last stage has two operators
    return Path(id, stream, (), members, (*operators, written), expensive=True)


# --- playing it again ---------------------------------------------------------------------------


@dataclass(slots=True)
class _Replay(VirtualHost):
    """Jobs cost and keep what the model says."""

    recording: Recording = field(kw_only=True)
    _made: Counter[str] = field(default_factory=Counter)
    _parts: dict[int, tuple[float, float]] = field(default_factory=dict)
    """By job, the rows that it kept, and their bytes per row."""

    def outcome(self, job: SegmentJob) -> ev.JobFinished:
        model = self.recording.paths[job.path]
        rows, row_bytes = self._entering(job)
        _, left = model.through(job.first, job.last, rows)
        seconds = model.seconds(job.first, job.last, rows, self._made[job.path])
        self._made[job.path] += 1
        if self.recording.started.overlap and not job.urgent:
            seconds += self.busy_after(model.cost.fixed)
        sampling = self.recording.sampling if job.sample else 0.0
        at = self.clock.now() + seconds + sampling
        came = sum(block.rows for block in job.blocks)
        result = ev.SegmentResult(
            rows_in=came, sampling=sampling,
            measured=self._measured(model, job, rows, row_bytes))
        done = ev.JobFinished(at=at, job=job.number, kind="segment", seconds=seconds,
                              result=result)
        if job.final:
            queries = dict.fromkeys(member.query for member in job.members)
            kept = self.recording.kept
            return replace(done, rows_out={
                query: round(came * kept.get((job.path, query), 0.0)) for query in queries})
        row_bytes *= model.width(job.first, job.last)
        self._parts[job.number] = left, row_bytes
        rest = ev.KeptRows(rows=round(left), bytes=round(left * row_bytes), on_disk=job.on_disk)
        return replace(done, result=replace(result, kept=rest))

    def probed(self, probe: ProbeJob) -> ev.JobFinished:
        decided = self.record[-1]
        assert isinstance(decided, ev.JobDecided) and isinstance(decided.work, ev.ProbeWork)
        model = self.recording.joins[probe.join]
        seconds = model.seconds(decided.work.size, self._made[probe.join])
        self._made[probe.join] += 1
        if self.recording.started.overlap:
            seconds += self.busy_after(model.cost.fixed)
        at = self.clock.now() + seconds
        return probed(probe, decided.work, model, at, seconds)

    def _entering(self, job: SegmentJob) -> tuple[float, float]:
        """Rows, and bytes per row, that a job begins with."""
        if job.parts:
            parts = [self._parts.pop(part) for part in job.parts]
            return sum(rows for rows, _ in parts), parts[0][1]
        rows = sum(block.rows for block in job.blocks)
        return float(rows), sum(block.bytes for block in job.blocks) / max(rows, 1)

    def _measured(
        self, model: PathModel, job: SegmentJob, rows: float, row_bytes: float
    ) -> dict[str, ev.StageFigures]:
        """What the job, and a sample beside it, show about its stages."""
        sampled = model.sampled(SAMPLE_ROWS, row_bytes) if job.sample else {}
        return {**model.measured(job.first, job.last, rows),
                **{name: told for name, told in sampled.items() if name in job.sample}}


def replay(
    recording: Recording, policy: Policy, joining: joins.Policy | None = None
) -> list[ev.Event]:
    """The record of the same run under a policy, up to the last answer.

    Without a joins policy, that of the recorded run decides on window joins.
    """
    started = recording.started
    ran = started.policies.get("joins", FAMILIES["joins"].default)
    settings = Settings(slots=started.slots, overlap=started.overlap, gather=started.gather,
                        hold=started.hold, memory=started.memory, keep_from=started.keep_from,
                        quantum=started.quantum or inf, until_drained=started.until_drained,
                        paced=started.paced)
    policies = {"operators": policy, "joins": joining or joins.policy(ran)}
    host = _Replay(Core(policies, settings), recording=recording)
    for step in recording.script:
        host.run(until=nextafter(step.event.at, -inf))  # events from outside come first then
        host.clock.advance(step.event.at)
        if step.plan is not None:
            host.core.adopt(step.plan)
        host.handle(step.event)
    host.run()
    return host.record
