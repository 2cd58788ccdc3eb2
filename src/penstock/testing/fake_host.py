"""A host without Spark, on virtual time: what arrives and what jobs cost is a script."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf

from penstock.engine import (
    Core,
    Drain,
    Instruction,
    ProbeJob,
    ReadRelation,
    RefreshJob,
    SegmentJob,
    Trim,
)
from penstock.engine.positions import Intervals, Positions, QueryPosition, SpoolContents
from penstock.engine.settings import Settings
from penstock.events import kinds as ev
from penstock.language import bind
from penstock.model import Application
from penstock.plan import Operator, Plan, members_of
from penstock.planning import plan
from penstock.policies import FAMILIES
from penstock.policies import refresh as refreshes
from penstock.policies.operators import Policy
from penstock.policies.operators import policy as policy_of
from penstock.testing.scripted_costs import (
    Figures,
    a_tenth,
    carried,
    drawn,
    measured,
    never,
    one_second,
)
from penstock.testing.virtual_joins import JoinedRows, JoinRows
from penstock.testing.virtual_panes import Answer, RowCounts, Synopses
from penstock.testing.virtual_spool import BYTES_PER_ROW, VirtualSpool
from penstock.whatif.replay import VirtualHost


@dataclass(slots=True)
class FakeHost(VirtualHost):
    """A host without Spark: jobs take as long as ``cost`` says and keep every second row.

    With ``operators`` each stage costs and keeps what they say of its first operator instead, and
    each job measures its stages, as Python workers do; with ``samples`` only samples do.
    Window aggregates count the rows of their windows, by the times with which blocks `arrive`:

    >>> host = FakeHost.of('''
    ...     CREATE STREAM s (ts TIMESTAMP, a INT) FROM rate TIME ts LATENESS 1 SECOND;
    ...     CREATE QUERY q AS SELECT COUNT(*) FROM s [WINDOW 4 SECONDS SLIDE 2 SECONDS];
    ... ''')
    >>> host.arrive("s", at=1.0, times=(0, 1, 5))
    >>> host.end("s", at=2.0)
    >>> host.run()
    >>> [(answer.end // 1_000_000, answer.rows) for answer in host.answers]
    [(2, 2), (4, 2), (6, 1), (8, 1)]

    Window joins pair rows with equal ``keys``, whatever their predicate is:

    >>> host = FakeHost.of('''
    ...     CREATE STREAM s (ts TIMESTAMP, k INT) FROM rate TIME ts;
    ...     CREATE STREAM t (ts TIMESTAMP, k INT) FROM rate TIME ts;
    ...     CREATE QUERY q AS SELECT A.k FROM s A, t B WHERE A.k = B.k WINDOW 4 SECONDS;
    ... ''')
    >>> host.arrive("s", at=1.0, times=(0, 1, 5), keys=(7, 8, 7))
    >>> host.arrive("t", at=2.0, times=(2, 3), keys=(7, 7))
    >>> host.end("s", at=3.0)
    >>> host.end("t", at=4.0)
    >>> host.run()
    >>> [(pair.left.time // 10**6, pair.right.time // 10**6) for pair in host.pairs("q")]
    [(0, 2), (0, 3), (5, 2), (5, 3)]
    """

    application: Application = field(kw_only=True)
    cost: Callable[[SegmentJob], float] = one_second
    fails: Callable[[SegmentJob], str] = never
    refreshing: Callable[[RefreshJob], float] = a_tenth
    """Seconds that a refresh takes."""
    breaks: Callable[[RefreshJob], str] = never
    """Why a refresh fails."""
    probing: Callable[[ProbeJob], float] = one_second
    """Seconds that a probe takes."""
    stumbles: Callable[[ProbeJob], str] = never
    """Why a probe fails."""
    operators: Figures = field(default_factory=dict)
    drops: Callable[[SegmentJob], Mapping[str, float]] | None = None
    """By pattern, the share of the rows that a job's conjunction drops so; a pattern has a 1 for
    every predicate that drops the row, in the order of the plan."""
    samples: bool = False
    contents: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    """By relation, how many rows it has from which time on; others than before are a change."""
    kept: dict[int, float] = field(default_factory=dict)
    """By job, the rows that it kept between two stages, until another job reads them."""
    spool: VirtualSpool = field(default_factory=VirtualSpool)
    _synopses: Synopses = field(default_factory=Synopses)
    _positions: Positions = field(init=False)
    _log: dict[str, QueryPosition] = field(default_factory=dict)
    """By query, where it began, and up to where it has answered."""
    _pane_jobs: dict[int, tuple[SegmentJob, list[RowCounts]]] = field(default_factory=dict)
    """Active jobs that make panes, and the synopses that they make them for."""
    _refreshed: dict[int, list[Answer]] = field(default_factory=dict)
    """By job, the answers of a refresh."""
    _rows: JoinRows = field(default_factory=JoinRows)
    _paired: dict[int, dict[str, list[JoinedRows]]] = field(default_factory=dict)
    """By job, the pairs that a probe delivers to each query."""
    _paned: dict[int, tuple[RowCounts | None, list[tuple[int, int]]]] = field(default_factory=dict)
    """Active probes that make panes: the synopsis, and the times of the rows of the pairs."""

    def __post_init__(self) -> None:
        """No query has joined yet."""
        self._positions = Positions(self.core, self._log, self._contents)

    @classmethod
    def of(
        cls,
        sql: str,
        policy: str | Policy = "fifo",
        *,
        settings: Settings | None = None,
        cost: Callable[[SegmentJob], float] = one_second,
        fails: Callable[[SegmentJob], str] = never,
        operators: Figures | None = None,
        refresh: str = refreshes.DEFAULT,
        samples: bool = False,
        refreshing: Callable[[RefreshJob], float] = a_tenth,
        breaks: Callable[[RefreshJob], str] = never,
        joins: str = FAMILIES["joins"].default,
        probing: Callable[[ProbeJob], float] = one_second,
        stumbles: Callable[[ProbeJob], str] = never,
        filters: str = FAMILIES["filters"].default,
        drops: Callable[[SegmentJob], Mapping[str, float]] | None = None,
    ) -> FakeHost:
        """A host that runs this application from time 0."""
        application = bind(sql)
        chosen = policy_of(policy) if isinstance(policy, str) else policy
        core = Core({"operators": chosen, "refresh": refreshes.policy(refresh),
                     "joins": FAMILIES["joins"].read(joins),
                     "filters": FAMILIES["filters"].read(filters)},
                    settings or Settings(until_drained=True))
        core.adopt(plan(application))
        host = cls(core, application=application, drops=drops, cost=cost, fails=fails,
                   operators=operators or {}, samples=samples, refreshing=refreshing,
                   breaks=breaks, probing=probing, stumbles=stumbles)
        known = core.settings
        host.handle(ev.EngineStarted(
            at=0.0, streams=tuple(application.streams), cores=1,
            policies={"operators": str(policy), "refresh": refresh, "joins": joins,
                      "filters": filters},
            slots=known.slots, overlap=known.overlap, gather=known.gather, hold=known.hold,
            memory=known.memory, quantum=None if known.quantum == inf else known.quantum,
            until_drained=known.until_drained, paced=known.paced))
        host._join(application.queries)
        return host

    # --- the script --------------------------------------------------------------------------

    def arrive(
        self, stream: str, at: float, rows: int = 100, late: int = 0,
        times: Sequence[float] | None = None, keys: Sequence[int] | None = None,
    ) -> None:
        """A block of a stream will arrive; with ``times`` its rows have these event times.

        They are in seconds. Rows that are late by the stream's LATENESS are in no window. With
        ``keys`` window joins find pairs among the rows.
        """
        block = self.spool.block(self.application.streams[stream], at, rows, late, times)
        if times is not None and keys is not None:
            self._rows.add(block, times, keys)
        self.plan_event(ev.BlockArrived(at=at, block=block, read=block.rows, late=block.late))

    def hold(self, relation: str, at: float, rows: int) -> None:
        """A relation will have this many rows from a time on, which the engine sees by reading."""
        self.contents.setdefault(relation, []).append((at, rows))

    def read(self, order: ReadRelation) -> ev.RelationRead:
        """What a relation holds when it is read, which takes no time."""
        now = self.clock.now()
        rows = [rows for at, rows in self.contents.get(order.relation, ()) if at <= now]
        count = rows[-1] if rows else 0
        return ev.RelationRead(at=now, relation=order.relation, version=order.version,
                               digest=str(count), rows=count)

    def end(self, stream: str, at: float) -> None:
        """A stream will end."""
        self.plan_event(ev.StreamEnded(at=at, stream=stream))

    def add(self, sql: str, backlog: tuple[tuple[int, int, int], ...] = ()) -> None:
        """Add queries now, with blocks of the past that they want to see."""
        before = set(self.application.queries)
        self.application = bind(sql, self.application)
        self.core.adopt(plan(self.application))
        self._join([name for name in self.application.queries if name not in before], backlog)
        self.handle(ev.Tick(at=self.clock.now()))

    def drop(self, query: str) -> None:
        """Drop a query now."""
        self.handle(ev.QueryDropped(at=self.clock.now(), query=query))
        self.application = bind(f"DROP QUERY {query};", self.application)
        self._log.pop(query, None)
        self.core.adopt(plan(self.application))
        self._join(())
        self.handle(ev.Tick(at=self.clock.now()))

    @property
    def planned(self) -> Plan:
        """The plan with all conjunctions as they are written."""
        return self.core.planned

    def rebuild(self, group: str) -> None:
        """The synopsis of a group is lost now, and is rebuilt from the spool."""
        del self._synopses.held[group]
        self._join(())
        self.handle(ev.Tick(at=self.clock.now()))

    def _join(self, names: Iterable[str], backlog: tuple[tuple[int, int, int], ...] = ()) -> None:
        for relation in self.core.relations.unread:
            self.handle(self.read(self.core.relations.order(relation)))
        joining = [self.application.queries[name] for name in names]
        for event in [self.added(query.name, backlog) for query in joining]:
            self.handle(event)
        needs = partial(self._positions.needs, joining=joining)
        for group in self._synopses.adopt(self.core.plan, needs):
            self.handle(self._positions.begun(group, self.clock.now()))

    def added(self, name: str, backlog: tuple[tuple[int, int, int], ...] = ()) -> ev.QueryAdded:
        """The event that adds a query of the application, with these blocks of the past."""
        query, now = self.application.queries[name], self.clock.now()
        self._log.pop(name, None)
        start = self._positions.starts([query], {})[name]
        position = self._log[name] = QueryPosition(start, at=now)
        for member, stream in members_of(query) if backlog else ():
            owed = [number for branch, input, number in backlog
                    if (branch, input) == (member.branch, member.input)]
            position.start[stream] = min(owed, default=start[stream])
            had = position.had[member.branch, member.input] = Intervals()
            for block in self.spool.held(stream):
                if block.number not in owed:
                    had.add(block.number)
        return self._positions.added(query, now)

    def _contents(self, stream: str) -> SpoolContents:
        return self.spool.contents(self.application.streams[stream])

    # --- the host ----------------------------------------------------------------------------

    def handle(self, event: ev.Event) -> list[Instruction]:
        """Keep the spool and the synopses up to date, and go on as every host does."""
        match event:
            case ev.BlockArrived(block=block) | ev.BlockHeld(block=block):
                self.spool.add(block)
            case ev.JobFinished(job=job) if job in self._pane_jobs:
                self._merge(*self._pane_jobs.pop(job))
            case ev.JobFinished(job=job, kind="refresh"):
                for answer in self._refreshed[job]:
                    if answer.query in self._log:
                        self._log[answer.query].end(answer.end)
            case ev.JobFinished(job=job, kind="probe") if job in self._paned:
                synopsis, times = self._paned.pop(job)
                if synopsis is not None:
                    synopsis.add_pairs(times)
            case ev.JobFinished(job=job, kind="probe"):
                self._log_pairs(next(one for one in self.probes if one.number == job))
        if isinstance(event, ev.JobFinished):
            self._derive(event)
        instructions = VirtualHost.handle(self, event)
        for stream, number in self.released:
            self.spool.release(stream, number)
        return instructions

    def drain(self, drain: Drain) -> None:
        """A derived stream ends, or fails with its query."""
        now = self.clock.now()
        self.plan_event(
            ev.StreamFailed(at=now, stream=drain.stream, reason=drain.reason) if drain.reason
            else ev.StreamEnded(at=now, stream=drain.stream))

    def _derive(self, event: ev.JobFinished) -> None:
        """What a job delivers to derived streams becomes a block of theirs, at once."""
        derived = {name for name, stream in self.application.streams.items() if stream.derived}
        for name, rows in event.rows_out.items():
            times = self._times(name, rows, event) if name in derived else ()
            if rows and (times is None or times):
                self.arrive(name, event.at, rows, times=times)

    def _times(self, name: str, rows: int, event: ev.JobFinished) -> Sequence[float] | None:
        """The times of some answers: the ends of their windows, or those of the rows they are.

        A pair has the time of its later row.
        """
        if self.application.streams[name].time is None:
            return None
        if event.kind == "probe":
            return [pair.later / 1e6 for pair in self._paired[event.job].get(name, ())]
        if event.kind == "refresh":
            return [one.end / 1e6 for one in self._refreshed[event.job]
                    if one.query == name and one.rows]
        job = next((one for one in self.runs if one.number == event.job), None)
        times = self.spool.times_of(job.blocks) if job is not None else []
        return [time / 1e6 for time in times[:rows]]

    def _log_pairs(self, probe: ProbeJob) -> None:
        """A probe has delivered: its queries have come so far."""
        for query in {member.query for member in probe.members} & self._log.keys():
            if query in probe.ends:
                self._log[query].end(probe.ends[query])
            if query in probe.partial:
                self._log[query].partial = probe.partial[query]

    def _summarised(
        self, job: SegmentJob, at: float, seconds: float, measured: Mapping[str, ev.StageFigures]
    ) -> ev.JobFinished:
        """The rows go into the panes of the groups that are there when the job begins."""
        riding = {member.query for member in job.members}
        groups = [group for group in self.core.plan.groups_on(job.path)
                  if not riding.isdisjoint(member.query for member in group.members)]
        synopses = [self._synopses.held[g.id] for g in groups if g.id in self._synopses.held]
        self._pane_jobs[job.number] = job, synopses
        times = self.spool.times_of(job.blocks)
        panes = {one.group.id: tuple(sorted({time // one.group.pane for time in times}))
                 for one in synopses}
        return ev.JobFinished(
            at=at, job=job.number, kind="panes", seconds=seconds, result=ev.PanesResult(
                rows_in=job.rows, measured=measured, panes=panes, profile=self._profile(job),
                summarised=dict.fromkeys(riding, len(times)), late=job.late))

    def _merge(self, job: SegmentJob, synopses: Sequence[RowCounts]) -> None:
        for one in synopses:
            one.add(self.spool.times_of(job.blocks))

    def renewal(self, refresh: RefreshJob) -> ev.JobFinished | ev.JobFailed:
        """How a refresh ends: as the script says."""
        at = self.clock.now() + self.refreshing(refresh)
        if reason := self.breaks(refresh):
            return ev.JobFailed(at=at, job=refresh.number, kind="refresh", reason=reason)
        self._refreshed[refresh.number] = self._synopses.answers(refresh, at)
        return ev.JobFinished(
            at=at, job=refresh.number, kind="refresh", seconds=at - self.clock.now(),
            rows_out=refresh.answers,
            result=ev.RefreshResult(answers=refresh.answers, arrived=refresh.arrived))

    def probed(self, probe: ProbeJob) -> ev.JobFinished | ev.JobFailed:
        """How a probe ends: as the script says."""
        at = self.clock.now() + self.probing(probe)
        if reason := self.stumbles(probe):
            return ev.JobFailed(at=at, job=probe.number, kind="probe", reason=reason)
        if probe.group:
            return self._paired_panes(probe, at)
        found = self._paired[probe.number] = self._rows.found(probe, self.core.plan)
        out = {query: len(pairs) for query, pairs in found.items()}
        return ev.JobFinished(
            at=at, job=probe.number, kind="probe", seconds=at - self.clock.now(), rows_out=out,
            result=ev.ProbeResult(through=probe.through, ends=probe.ends, late=probe.late,
                                  added=probe.added(out, {}),
                                  oldest=self._rows.oldest(probe, self.core.plan),
                                  profiles=self._rows.profiles(probe, self.core.plan)))

    def _paired_panes(self, probe: ProbeJob, at: float) -> ev.JobFinished:
        """The pairs go into the panes of the group that is there when the probe begins."""
        held = self._synopses.held.get(probe.group)
        times = self._rows.panes(probe, self.core.plan)
        self._paned[probe.number] = held, times
        panes = {} if held is None else {
            probe.group: tuple(sorted({later // held.group.pane for _, later in times}))}
        summarised = {member.query: len(times) for member in probe.members}
        return ev.JobFinished(
            at=at, job=probe.number, kind="probe", seconds=at - self.clock.now(),
            result=ev.ProbeResult(through=probe.through, late=probe.late, panes=panes,
                                  summarised=summarised, added=probe.added(summarised, {}),
                                  profiles=self._rows.profiles(probe, self.core.plan)))

    def trim(self, trim: Trim) -> None:
        """Forget panes."""
        held = self._synopses.held.get(trim.group)
        if held is not None and trim.settled is not None:
            held.settle(trim.before, trim.settled)
        elif held is not None:
            held.forget(trim.before)

    def outcome(self, job: SegmentJob) -> ev.JobFinished | ev.JobFailed:
        """How a job over blocks ends: as the script says."""
        entering = sum(block.rows for block in job.blocks)
        rows = sum(self.kept[part] for part in job.parts) if job.parts else float(entering)
        seconds, left = self._through(job, rows)
        at = self.clock.now() + seconds
        if reason := self.fails(job):
            return ev.JobFailed(at=at, job=job.number, kind=job.kind, reason=reason)
        for part in job.parts:
            del self.kept[part]
        measured = self._measured(job)
        panes = self.core.plan.path(job.path).end == "panes"
        if panes and job.final:
            return self._summarised(job, at, seconds, measured)
        result: ev.SegmentResult | ev.PanesResult
        out: dict[str, int] = {}
        if not job.final and round(left):
            self.kept[job.number] = left
            result = ev.SegmentResult(rows_in=entering, measured=measured, kept=ev.KeptRows(
                rows=round(left), bytes=round(left) * BYTES_PER_ROW, on_disk=job.on_disk),
                profile=self._profile(job))
        elif panes:
            result = ev.PanesResult(rows_in=entering, measured=measured, late=job.late,
                                    profile=self._profile(job))
        else:
            out = {member.query: round(left) for member in job.members}
            result = ev.SegmentResult(rows_in=entering, measured=measured,
                                      profile=self._profile(job))
        kind: ev.JobKind = "panes" if isinstance(result, ev.PanesResult) else "segment"
        return ev.JobFinished(at=at, job=job.number, kind=kind, seconds=seconds, rows_out=out,
                              result=result)

    def _through(self, job: SegmentJob, rows: float) -> tuple[float, float]:
        """Seconds and rows out of a job."""
        if not self.operators:
            return self.cost(job), rows // 2
        return carried(rows, self._stages(job)[job.first : job.last], self.operators)

    def _stages(self, job: SegmentJob) -> tuple[tuple[Operator, ...], ...]:
        """The stages of a path, its conjunction in the order of the job."""
        return self.planned.path(job.path).in_order(job.evaluation.order).stages

    def _profile(self, job: SegmentJob) -> ev.ConjunctionProfile | None:
        """What the script says that a conjunction drops."""
        path = self.planned.path(job.path)
        first = max(job.first - path.before_python, 0)
        last = len(path.conditions) or min(job.last - path.before_python, path.movable)
        if path.shared:  # it is one stage
            last = path.movable
        if self.drops is None or first >= last:
            return None
        return drawn(self.drops(job), path.conjunction, self.operators, job.evaluation, job.rows,
                     first, last)

    def _measured(self, job: SegmentJob) -> dict[str, ev.StageFigures]:
        """What is measured of the stages of a path, in the job or beside it."""
        stages = self._stages(job)
        if not self.operators or len(stages) == 1:
            return {}
        if self.samples:
            return measured(stages, self.operators, "sample") if job.sample else {}
        return measured(stages[job.first : job.last], self.operators, "worker")

    # --- what happened -----------------------------------------------------------------------

    @property
    def decisions(self) -> list[tuple[float, str, tuple[int, ...]]]:
        """When the core decided for which segment and which blocks."""
        return [(e.at, e.work.segment, e.work.blocks) for e in self.record
                if isinstance(e, ev.JobDecided) and isinstance(e.work, ev.PathWork)]

    @property
    def answers(self) -> list[Answer]:
        """The answers of window aggregates, in order of delivery."""
        return [answer for e in self.record
                if isinstance(e, ev.JobFinished) and e.kind == "refresh"
                for answer in self._refreshed[e.job]]

    def pairs(self, query: str) -> list[JoinedRows]:
        """The pairs of a window join, in order of delivery."""
        return [pair for e in self.record if isinstance(e, ev.JobFinished) and e.kind == "probe"
                for pair in self._paired.get(e.job, {}).get(query, ())]

    @property
    def failures(self) -> dict[str, str]:
        """The queries that stopped, and why."""
        return {e.query: e.reason for e in self.record if isinstance(e, ev.QueryFailed)}
