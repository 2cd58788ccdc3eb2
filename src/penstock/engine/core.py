"""The engine core passes events to departments, keeps the lives of queries and knows the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from typing import Any

from penstock.engine.aggregates.department import AggregatesDepartment
from penstock.engine.dispatch import Dispatcher
from penstock.engine.instructions import Cancel, Drain, Finish, Instruction, Note, Release, Wake
from penstock.engine.joins.department import JoinsDepartment
from penstock.engine.latency_goals import LatencyGoals
from penstock.engine.lifetimes import Lifetimes
from penstock.engine.paths.department import PathsDepartment
from penstock.engine.paths.filter_orders import FilterOrders
from penstock.engine.relation_versions import ChangingRelations
from penstock.engine.retries import Retries
from penstock.engine.settings import Settings
from penstock.engine.spool_limit import SpoolLimit
from penstock.engine.state import EngineState
from penstock.engine.timeouts import Timeouts
from penstock.engine.work import Department
from penstock.events import kinds as ev
from penstock.plan import Plan
from penstock.policies import FAMILIES

_JOINING = (ev.QueryAdded, ev.SynopsisBegun)


@dataclass(slots=True)
class Core:
    """Takes events, returns instructions; the same object serves every host.

    The host adopts a plan (again whenever queries come or go), reports every event through
    `handle`, and carries out the instructions in order.
    """

    policies: InitVar[Mapping[str, object]]
    """By family, the policy that decides; a family that is missing has its default."""
    initial: InitVar[Settings] = Settings()
    state: EngineState = field(init=False)
    paths: PathsDepartment = field(init=False)
    aggregates: AggregatesDepartment = field(init=False)
    joins: JoinsDepartment = field(init=False)
    _departments: dict[str, Department[Any]] = field(init=False)
    """By the family of policies that each asks; ties go to the first."""
    _dispatcher: Dispatcher = field(init=False)
    _timeouts: Timeouts = field(init=False)
    _goals: LatencyGoals = field(default_factory=LatencyGoals)
    _spool: SpoolLimit = field(init=False)
    _lifetimes: Lifetimes = field(default_factory=Lifetimes)
    _ending: dict[str, str] = field(default_factory=dict)
    """Queries that stop once they have had everything that waits for them, and why."""
    _failures: dict[str, str] = field(default_factory=dict)
    _pending: list[Instruction] = field(default_factory=list)
    _drained: set[str] = field(default_factory=set)
    """Derived streams to which nothing more is delivered."""
    _finished: bool = False

    def __post_init__(self, policies: Mapping[str, object], initial: Settings) -> None:
        """Begin without a plan."""
        self.state = EngineState(initial)
        self._timeouts = Timeouts(initial.timeout)
        self._spool = SpoolLimit(initial.spool)
        retries = Retries(self._timeouts)
        chosen = {name: family.among(policies) for name, family in FAMILIES.items()}
        orders = FilterOrders(chosen["filters"])
        self.paths = PathsDepartment(
            self.state, chosen["operators"], orders, self._goals, retries)
        self.joins = JoinsDepartment(
            self.state, chosen["joins"], chosen["filters"], self._goals,
            self.paths.queues.riders, retries, self.paths.rejections)
        self.aggregates = AggregatesDepartment(
            self.state, chosen["refresh"], self.paths, self.joins, retries)
        self._departments = {"operators": self.paths, "refresh": self.aggregates,
                             "joins": self.joins}
        self._dispatcher = Dispatcher(
            self.state, tuple(self._departments.values()), self._timeouts)

    # --- the verbs ---------------------------------------------------------------------------

    def adopt(self, plan: Plan, first_job: int | None = None) -> None:
        """Work by this plan from now on; waiting blocks move to the paths that now carry them."""
        self.state.plan = plan
        self.state.relations.adopt(plan.changing)
        self._goals.adopt(plan)
        for department in self._departments.values():
            department.adopt()
        if first_job is not None:
            self._dispatcher.last_job = first_job

    def use(self, family: str, policy: object, at: float, name: str) -> None:
        """Let another policy of a family decide from now on; queues stay as they are."""
        chosen = FAMILIES[family].among({family: policy})
        self._pending.append(Note(event=ev.PolicyChanged(at=at, policies={family: name})))
        if family == "filters":  # an order within a path or a probe is no work of its own
            self.paths.order_by(chosen)
            self.joins.order_by(chosen)
        else:
            self._departments[family].use(chosen, at, name)

    def allow(self, seconds: float) -> None:
        """Jobs that begin from now on may take this many seconds."""
        self._timeouts.allowed = seconds

    def handle(self, event: ev.Event) -> list[Instruction]:
        """Take an event, and return what the host is to do."""
        at, departments = event.at, self._departments.values()
        out: list[Instruction] = []
        self._take(event, out)
        self._end_lifetimes(at, out)
        out.extend(Cancel(job=job, limit=limit) for job, limit in self._timeouts.over(at))
        if not self._finished:
            out.extend(self.state.relations.due(at))
        if not isinstance(event, _JOINING):  # others may join with it, and need what it shares
            for department in departments:
                out.extend(department.tidy(at))
            out.extend(self._dispatcher.fill(at))
            self._stop_ending(at, out)
            out.extend(self._make_room(at))
        if self._timeouts.next is not None:
            out.append(Wake(at=self._timeouts.next))
        if self.state.relations.next is not None and not self._finished:
            out.append(Wake(at=self.state.relations.next))
        out.extend(self._pending)
        self._pending.clear()
        for department in departments:
            out.extend(department.notes())
        out.extend(self.paths.queues.memory.news(at, self.state.blocks.hot_bytes))
        if not isinstance(event, _JOINING):
            self._drain_derived(out)
            self._finish(at, out)
        return out

    # --- what a host may ask -----------------------------------------------------------------

    @property
    def plan(self) -> Plan:
        """The plan in force."""
        return self.state.plan

    @property
    def planned(self) -> Plan:
        """The same with conjunctions as planned: a job says in which order it evaluates them."""
        return self.paths.orders.planned

    @property
    def settings(self) -> Settings:
        """What `SET` and the host have decided about this run."""
        return self.state.settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self.state.settings = settings

    @property
    def preempts(self) -> bool:
        """Whether a job may begin before an active one has ended."""
        return any(department.preempts for department in self._departments.values())

    @property
    def last_job(self) -> int:
        """The highest number given to a job so far."""
        return self._dispatcher.last_job

    @property
    def under_way(self) -> tuple[int, ...]:
        """The numbers of the active jobs."""
        return self._dispatcher.under_way

    @property
    def failures(self) -> dict[str, str]:
        """Queries that stopped, and why."""
        return dict(self._failures)

    def newest(self, stream: str) -> int:
        """The highest number among the stream's blocks so far; -1 when there was none."""
        return self.state.blocks.newest(stream)

    @property
    def relations(self) -> ChangingRelations:
        """The relations that change, and their versions."""
        return self.state.relations

    def is_alive(self, query: str) -> bool:
        """Whether a query takes the blocks that come."""
        return self.state.is_alive(query)

    # --- events ------------------------------------------------------------------------------

    def _take(self, event: ev.Event, out: list[Instruction]) -> None:
        """Keep what all must know, then pass the event on."""
        state = self.state
        match event:
            case ev.EngineStarted(streams=streams):
                state.open = dict.fromkeys(streams)
            case ev.BlockHeld(block=block):
                state.blocks.hold(block, earlier=True)
            case ev.BlockArrived(block=block):
                state.blocks.hold(block)
            case ev.QueryAdded():
                self._add_query(event)
            case ev.StreamEnded(stream=stream):
                state.open.pop(stream, None)
                state.ended[stream] = None
            case ev.StreamFailed(stream=stream, reason=reason):
                state.open.pop(stream, None)
                state.broken[stream] = reason
                self._end_readers(stream)
            case ev.BlockHot(stream=stream, number=number):
                state.blocks.warm(stream, number)
            case ev.RelationAsked() | ev.RelationRead() | ev.RelationChanged():
                out.extend(state.relations.take(event))
                return
            case ev.Tick():
                state.blocks.settle_earlier()
            case ev.JobFinished() | ev.JobFailed():
                self._end_job(event, out)
                return
        for department in self._departments.values():
            department.take(event)
        match event:
            case ev.QueryAdded(query=query):
                self._end_if_broken(query)
            case ev.QueryDropped(query=query):
                self._remove_query(query)
                if self.settings.until_drained:  # a live run may declare it again
                    self._drain(query, out)
            case ev.QueryFailed(query=query, reason=reason):
                self._failures[query] = reason
                self._remove_query(query)
                self._drain(query, out, f"its query failed: {reason}")

    def _end_job(self, event: ev.JobFinished | ev.JobFailed, out: list[Instruction]) -> None:
        """A job has ended: do what its department asks for, then what holds for every kind."""
        ended = self._dispatcher.end(event)
        for department in self._departments.values():
            department.take(event, ended.job)
        if isinstance(event, ev.JobFinished):
            out.extend(self._goals.check(event, ended.oldest, ended.deliveries))
        for query, reason in ended.stops.items():
            self._fail_query(event.at, query, reason, out)
        for query, text in ended.rejecting:
            self._tell_rejects(event.at, query, text, out)

    # --- the lives of queries ----------------------------------------------------------------

    def _add_query(self, event: ev.QueryAdded) -> None:
        self._failures.pop(event.query, None)
        for member, stream in event.members:
            self.state.readers.setdefault(stream, {})[member] = None
            self._goals.join(member, event.owed(member))
        query = self.plan.query(event.query)
        self.state.expect((*query.streams, *([query.name] if query.derives else [])))
        lifetime = query.lifetime
        if lifetime is not None:
            joined = event.at if event.joined is None else event.joined
            self._lifetimes.begin(event.query, joined + lifetime)

    def _end_if_broken(self, query: str) -> None:
        for stream in self.plan.query(query).streams:
            if stream in self.state.broken:
                self._end_readers(stream)

    def _end_readers(self, stream: str) -> None:
        """A stream is broken: its queries take no new block, and stop after those that wait."""
        reason = f"stream {stream} failed: {self.state.broken[stream]}"
        for query in {member.query: None for member in self.state.readers.get(stream, ())}:
            self._ending.setdefault(query, reason)
            self.state.retire(query)

    def _stop_ending(self, at: float, out: list[Instruction]) -> None:
        """Stop the queries of broken streams for which nothing waits any more."""
        for query, reason in list(self._ending.items()):
            if not any(department.owes(query) for department in self._departments.values()):
                del self._ending[query]
                self._fail_query(at, query, reason, out)

    def _end_lifetimes(self, at: float, out: list[Instruction]) -> None:
        """A query whose time is over takes no new block; blocks that wait for it are delivered."""
        for name in self._lifetimes.over(at):
            self._remove_query(name, at_once=False)
            out.append(Note(event=ev.QueryDropped(at=at, query=name,
                                                  reason="its lifetime is over")))
        if self._lifetimes.next is not None:
            out.append(Wake(at=self._lifetimes.next))

    def _remove_query(self, name: str, at_once: bool = True) -> None:
        self._ending.pop(name, None)
        self._timeouts.clear(self.state.retire(name))
        for department in reversed(self._departments.values()):  # panes depend on what waits
            department.leave(name, at_once)

    def _fail_query(self, at: float, query: str, reason: str, out: list[Instruction]) -> None:
        if query not in self._failures:
            self._failures[query] = reason
            self._remove_query(query)
            out.append(Note(event=ev.QueryFailed(at=at, query=query, reason=reason)))
            self._drain(query, out, f"its query failed: {reason}")

    def _tell_rejects(self, at: float, query: str, text: str, out: list[Instruction]) -> None:
        """A function rejects every row: warn, or stop its query if it says so."""
        known = {known.name: known for known in self.plan.queries}
        if query in known and known[query].rejects == "fail":
            self._fail_query(at, query, text, out)
        else:
            out.append(Note(event=ev.Warned(at=at, subject=f"query {query}", text=text)))

    # --- room, and the end -------------------------------------------------------------------

    def _make_room(self, at: float) -> list[Instruction]:
        """Release blocks that nobody needs, and keep the spool below its bound."""
        needed: dict[str, int] = {}
        for department in self._departments.values():
            for stream, since in department.needed().items():
                needed[stream] = min(since, needed.get(stream, since))
        room = list(self.paths.queues.make_room(
            at, self.settings.memory, needed, self._spool.most))
        if any(isinstance(one, Release) for one in room):
            room += self.state.relations.released()
        return [*room, *self._spool.look(at, self.state.blocks.stored, self._is_idle)]

    def _drain_derived(self, out: list[Instruction]) -> None:
        """End the derived streams for which nothing can come any more, those upstream first.

        A query is through when all its streams have ended and nothing is left to do: then its
        windows are closed, and their answers are delivered.
        """
        if not self.settings.until_drained or not self._is_idle:
            return
        for query in self.plan.queries:
            if query.name in self.state.open and not any(
                    stream in self.state.open for stream in query.streams):
                self._drain(query.name, out)

    def _drain(self, query: str, out: list[Instruction], reason: str = "") -> None:
        """End the stream of a query that delivers no more, after what was delivered to it."""
        derives = any(known.name == query and known.derives for known in self.plan.queries)
        if derives and query not in self._drained:
            self._drained.add(query)
            out.append(Drain(stream=query, reason=reason))

    @property
    def _is_idle(self) -> bool:
        return all(department.idle for department in self._departments.values())

    def _finish(self, at: float, out: list[Instruction]) -> None:
        if self._finished or not self._is_idle:
            return
        drained = self.settings.until_drained and not self.state.open
        if drained:
            for query, text in list(self.paths.rejections.rest()):
                self._tell_rejects(at, query, text, out)
        if self._failures and not any(self.state.readers.values()):
            reason = "; ".join(f"{query}: {why}" for query, why in self._failures.items())
            self._finished = True
            out.append(Finish(outcome="failed", reason=f"no query is left ({reason})"))
        elif drained:
            self._finished = True
            out.append(Finish(outcome="drained"))
