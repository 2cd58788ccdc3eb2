"""The department of window joins: outers that wait, and probes of the windows of shared joins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from penstock.engine.instructions import Instruction, Note, ProbeJob, ProbeOrder
from penstock.engine.joins import outers
from penstock.engine.joins.join_run import JoinMember, JoinRun, ProbeTurn
from penstock.engine.joins.outers import LATEST, frontier, newest
from penstock.engine.joins.probe_orders import ProbeOrders
from penstock.engine.latency_goals import LatencyGoals
from penstock.engine.paths.active_job import ActiveJob
from penstock.engine.paths.bisection import Riders
from penstock.engine.rejections import Rejections
from penstock.engine.retries import Retries
from penstock.engine.state import EngineState
from penstock.engine.work import Begun, Ended
from penstock.events import kinds as ev
from penstock.model import Block
from penstock.plan import EARLIEST, Member, SharedJoin
from penstock.policies.filters import Policy as FiltersPolicy
from penstock.policies.joins import Policy

WORTH_PROBING = 20_000
"""A multiway join of fewer rows takes less time than to ask which of them are needed."""
MOST_FRESH = 0.25
"""Keys are asked for if no larger part of the rows in the windows is fresh. To bring the keys of
most rows to the driver and back takes longer than to join the rows."""
IN_DRIVER = 20_000
"""If the last probe found no more pairs than this, the driver writes those of the next."""


@dataclass(frozen=True, slots=True)
class ProbeOffer:
    """The turn that the policy chose."""

    run: JoinRun
    turn: ProbeTurn


@dataclass(slots=True)
class _ActiveProbe:
    run: JoinRun
    turn: ProbeTurn
    job: ProbeJob
    through: Mapping[Member, tuple[Block, ...]]
    span: int
    """The span of the join when the probe began."""
    needed: tuple[int, ...]
    """By side, the time of the earliest row that it may read, even if its queries leave."""
    left: set[str] = field(default_factory=set)
    """Queries that left meanwhile."""


@dataclass(frozen=True, slots=True)
class PairsReached:
    """Up to where the pairs of a join are in panes."""

    until: int | None
    """All pairs whose later rows are before this time are; None while that is unknown."""
    arrived: float
    """When the rows arrived that brought the last of them."""
    ended: bool
    """Whether no other pair will come."""


@dataclass(slots=True)
class JoinsDepartment:
    """Probes of windows. One job at a time for each join, in the order that the policy wants.

    The pairs of window aggregates go into panes. Then the whole group is one member of the run.
    """

    state: EngineState
    policy: Policy
    filters: FiltersPolicy
    """It orders the probes of multiway joins."""
    goals: LatencyGoals
    riders: Riders
    retries: Retries
    rejections: Rejections
    _runs: list[JoinRun] = field(default_factory=list)
    _owed: dict[Member, dict[int, Block]] = field(default_factory=dict)
    """By member, the blocks that are not through for it."""
    _active: dict[int, _ActiveProbe] = field(default_factory=dict)
    _pairs: dict[str, int] = field(default_factory=dict)
    """By join, the pairs that its last probe delivered."""
    _orders: dict[str, ProbeOrders] = field(default_factory=dict)
    """By multiway join, in which order each of its streams probes the others."""
    _reordered: list[ev.Event] = field(default_factory=list)
    _answered: dict[str, int | None] = field(default_factory=dict)
    """By window aggregate over a join, the time after which its windows end."""
    _wake: float | None = None

    # --- plan and policy ---------------------------------------------------------------------

    def adopt(self) -> None:
        """Go on with the joins of the plan; new ones begin when their queries come."""
        plan = self.state.plan
        joins = {join.id: join for join in plan.joins}
        for run in self._runs:
            run.adopt(joins.get(run.join.id, run.join))

    def use(self, policy: Policy, at: float, name: str) -> None:
        """Let another policy decide from now on."""
        self.policy = policy
        for run in self._runs:
            run.policy, run.stale = policy, True

    def order_by(self, policy: FiltersPolicy) -> None:
        """Order the probes of multiway joins by another policy from now on."""
        self.filters = policy
        for orders in self._orders.values():
            orders.use(policy)

    # --- what is asked of it -----------------------------------------------------------------

    @property
    def slots(self) -> int:
        """Every probe takes one."""
        return len(self._active)

    @property
    def preempts(self) -> bool:
        """A probe waits for a free slot."""
        return False

    @property
    def goes_first(self) -> bool:
        """It takes its turn."""
        return False

    @property
    def idle(self) -> bool:
        """Whether no outer waits, none could be formed, and no probe is active."""
        return not self._active and not any(
            run.outers or run.waiting(self.state, self._owes_blocks(run)) for run in self._runs)

    @property
    def wake_at(self) -> float | None:
        """When rows have waited long enough for others to probe with them."""
        return self._wake

    def owes(self, query: str) -> bool:
        """Whether an outer waits for a query, or probes for it."""
        return any(run.wants(query) or query in _queries(run.join) and run.wants(run.join.id)
                   for run in self._runs)

    def reached(self, join: str) -> PairsReached:
        """Up to where the pairs of a join are in panes."""
        run = self._run(join)
        if run is None:
            return PairsReached(None, 0.0, False)
        waits = run.outers or run.waiting(self.state, self._owes_blocks(run))
        ends = frontier(self.state, run.join.streams)
        until = run.begins if waits or ends in (None, LATEST) else ends
        known = until if run.formed is not None and until != EARLIEST else None
        return PairsReached(known, run.arrived, ends == LATEST and not waits)

    def _run(self, join: str) -> JoinRun | None:
        return next((run for run in self._runs if run.join.id == join), None)

    def needed(self) -> Mapping[str, int]:
        """The windows of what still has to probe, and of all that comes later."""
        needed: dict[str, int] = {}
        rows = [(run.join, run.needed) for run in self._runs]
        rows += [(active.run.join, active.needed) for active in self._active.values()]
        for join, times in rows:
            for stream, since in zip(join.streams, times, strict=True):
                needed[stream] = min(since, needed.get(stream, since))
        return needed

    def tidy(self, at: float) -> Iterable[Instruction]:
        """Nothing that waits is given up."""
        return ()

    def notes(self) -> Iterable[Instruction]:
        """The orders of probes that have changed; all else is told with its jobs."""
        told, self._reordered = self._reordered, []
        return [Note(event=event) for event in told]

    # --- events ------------------------------------------------------------------------------

    def take(self, event: ev.Event, job: ActiveJob | None = None) -> None:
        """Blocks come, and queries join."""
        match event:
            case ev.QueryAdded():
                self._add(event)
            case ev.BlockArrived(block=block) if block.rows and self._owed:
                for member in self.state.readers.get(block.stream, ()):
                    if member in self._owed:
                        self._owed[member][block.number] = block
            case ev.SynopsisBegun(group=group):
                self._begin_panes(group)

    def _add(self, event: ev.QueryAdded) -> None:
        join = self.state.plan.join_of(event.query)
        if join is None:
            return
        for member, stream in event.members:
            found = (self.state.blocks.find(stream, number) for number in event.owed(member))
            self._owed[member] = {block.number: block for block in found if block and block.rows}
        if join.path.end == "panes":
            self._answered[event.query] = event.since
            return
        member = next(member for member in join.members if member.query == event.query)
        bounds = self.state.plan.branch(member).join
        assert bounds is not None
        run = self._run(join.id)
        if run is None:
            run = JoinRun(join, self.policy)
            self._runs.append(run)
        since = EARLIEST if event.since is None else event.since
        run.add(self.state, member, JoinMember(bounds.reach, since, event.partial))

    def _begin_panes(self, id: str) -> None:
        """A synopsis is empty: its pairs are found from the earliest window on that it answers."""
        group = self.state.plan.group(id)
        if not group.paired:
            return
        before = self._run(group.reads)
        run = JoinRun(self.state.plan.join(group.reads), self.policy)
        if before is not None:
            self._runs.remove(before)
            run.number_after(before)
        self._runs.append(run)
        joined = [m.query for m in group.members if m.query in self._answered]
        since = min((self._reaches(query) for query in joined), default=EARLIEST)
        run.add(self.state, Member(group.reads, 0), JoinMember(run.join.span, since))

    def _reaches(self, query: str) -> int:
        """The start of a window aggregate's next window at the earliest."""
        window, answered = self.state.plan.query(query).branches[0].window, self._answered[query]
        return EARLIEST if window is None or answered is None else answered - window.length

    def leave(self, query: str, at_once: bool) -> None:
        """A query takes no more outers; with ``at_once`` not even those that wait for it.

        A group goes on for the queries that stay.
        """
        self._answered.pop(query, None)
        for run in self._runs:
            queries = _queries(run.join)
            run.remove(query, at_once)
            if query in queries and not any(one in self._answered for one in queries):
                run.remove(run.join.id, at_once)
        if at_once:
            for active in self._active.values():
                active.left.add(query)
            for member in [member for member in self._owed if member.query == query]:
                del self._owed[member]
        self._forget()

    def _forget(self) -> None:
        """Forget the joins that no query takes part in any more."""
        self._runs = [run for run in self._runs if run.active or run.outers
                      or any(known.open for known in run.members.values())]
        used = {run.join.id for run in self._runs}
        self._orders = {id: orders for id, orders in self._orders.items() if id in used}

    # --- probes begin ------------------------------------------------------------------------

    def offer(self, at: float, preempting: bool) -> ProbeOffer | None:
        """Of the joins' next probes, the one whose rows came first."""
        self._wake = None
        found: list[ProbeOffer] = []
        for run in self._runs:
            if run.active:
                continue
            if self._is_ready(run, at):
                run.form(self.state, self._owes_blocks(run))
            turn = run.next(self.state)
            if turn is not None:
                found.append(ProbeOffer(run, turn))
        if preempting or not found:
            return None
        return min(found, key=lambda offer: offer.turn.outer.arrived)

    def _is_ready(self, run: JoinRun, at: float) -> bool:
        """Whether rows may probe now, or wait for others where nobody waits for an answer."""
        waiting = run.waiting(self.state, self._owes_blocks(run))
        if waiting is None:
            return False
        rows, came = waiting
        due = came + self.state.settings.gather
        closed = not any(stream in self.state.open for stream in run.join.streams)
        if closed or rows >= outers.MOST_ROWS or due <= at:
            return True
        self._wake = due if self._wake is None else min(due, self._wake)
        return False

    def _owes_blocks(self, run: JoinRun) -> bool:
        """Whether some blocks are not through for members of a join."""
        members = run.join.members if run.join.path.end == "panes" else run.members
        return any(self._owed.get(replace(member, input=input))
                   for member in members for input in range(len(run.join.streams)))

    def begin(self, at: float, job: int, offer: ProbeOffer) -> Begun:
        """Order the probe."""
        run, turn = offer.run, offer.turn
        run.active = True
        path, until = run.join.path.id, turn.outer.until
        paned = run.join.path.end == "panes"
        members = self._paned(run) if paned else turn.members
        riders, formed = self.riders.group(path, members)
        through = self._through(turn, {member.query for member in members} if paned else {
            member.query for member in turn.done})
        expected, fixed = run.expected(turn)
        order = ProbeJob(
            number=job, join=run.join.id, riders=riders, members=members, scans=turn.scans,
            outer=turn.outer.number,
            ends={} if paned else {member.query: until for member in turn.done},
            partial={} if paned else {
                member.query: (outer.until, had) for outer, member, had in turn.had},
            through=tuple(_told(through)), late=_by_query(through, lambda block: block.late),
            passed=_by_query(through, lambda block: block.rows), expected=expected,
            group=run.join.id if paned else "", orders=self._orders_of(run.join, turn),
            in_driver=not paned and self._pairs.get(run.join.id, IN_DRIVER + 1) <= IN_DRIVER
            and not run.retried)
        self._active[job] = _ActiveProbe(run, turn, order, through, run.join.span, run.needed)
        notes = [] if not formed else [Note(event=ev.RidersFormed(
            at=at, riders=riders, path=path, members=tuple(map(str, members))))]
        decided = ev.JobDecided(
            at=at, job=job, kind="probe", reason=turn.probe.reason,
            waiting=sum(len(one.outers) for one in self._runs),
            work=_work(order, turn))
        return Begun(instructions=[*notes, Note(event=decided), order], riders=members,
                     expected=expected, fixed=fixed)

    def _orders_of(self, join: SharedJoin, turn: ProbeTurn) -> tuple[ProbeOrder, ...]:
        """In which order each stream of a multiway join probes the others now.

        None if its windows have so few rows that they are joined as they are, or hardly more than
        the outer itself.
        """
        rows = sum(block.rows for scan in turn.scans for side in scan.sides
                   for block in side.window)
        few = rows < WORTH_PROBING or turn.outer.rows > MOST_FRESH * rows
        if len(join.streams) < 3 or few:
            return ()
        if join.id not in self._orders:
            self._orders[join.id] = ProbeOrders(self.filters, join)
        return self._orders[join.id].orders

    def _paned(self, run: JoinRun) -> tuple[Member, ...]:
        """The window aggregates whose panes a run makes, and that have not left."""
        members = run.join.members
        staying = tuple(one for one in members if one.query in self._answered or one in self._owed)
        return staying or members

    def _through(self, turn: ProbeTurn, done: set[str]) -> dict[Member, tuple[Block, ...]]:
        """By input of a query: the blocks that it is done with when a probe is through."""
        return {
            member: tuple(block for block in owed.values()
                          if newest(block) < turn.outer.until)
            for member, owed in self._owed.items() if member.query in done}

    # --- probes end --------------------------------------------------------------------------

    def end(self, event: ev.JobFinished | ev.JobFailed) -> Ended:
        """Its pairs are delivered, or it is retried."""
        active = self._active.pop(event.job)
        run = active.run
        run.active = False
        if isinstance(event, ev.JobFailed):
            return self._fail(event, active)
        run.retried, run.arrived = False, max(run.arrived, active.turn.outer.arrived)
        result = event.result
        assert isinstance(result, ev.ProbeResult)
        if run.join.id in self._orders:
            self._reordered += self._orders[run.join.id].take(event.at, result.profiles)
        if result.oldest and active.span == run.join.span:
            run.reach_back(active.job.scans[0].until, result.oldest)
        run.finish(active.turn, event.seconds)
        self._pairs[run.join.id] = sum(event.rows_out.values())
        for member, blocks in active.through.items():
            for block in blocks if member in self._owed else ():
                self._owed[member].pop(block.number, None)
        self._forget()
        passed = {(through.stream, number)
                  for through in result.through for number in through.blocks}
        return Ended(stops=event.failed, rejecting=list(self.rejections.take(
                         event, result, run.join.path.operators, max(len(passed), 1))),
                     oldest=active.turn.outer.arrived, deliveries=list(self._deliveries(active)))

    def _deliveries(self, active: _ActiveProbe) -> Iterator[tuple[str, list[tuple[float, int]]]]:
        """By query with a latency goal: the blocks that are through."""
        for member, blocks in active.through.items():
            if member.query not in active.left and not active.job.group:
                yield member.query, self.goals.timed(member, blocks)

    def _fail(self, event: ev.JobFailed, active: _ActiveProbe) -> Ended:
        """Probe again, for all members or for two halves of them."""
        run, group = active.run, active.job.group
        members = [m for m in active.job.members if m.query not in active.left]
        judged = self.retries.judge(
            event, members, lambda member: group or member.query, run.retried)
        run.retried = True
        if judged.first:
            self._runs.append(run.split(judged.first))
        self._forget()
        return Ended(stops=judged.stops)


def _queries(join: SharedJoin) -> list[str]:
    """The window aggregates whose panes its pairs make; none if they are delivered."""
    return [member.query for member in join.members] if join.path.end == "panes" else []


def _told(through: Mapping[Member, tuple[Block, ...]]) -> Iterator[ev.Through]:
    """What is through for the record: members with the same blocks in one."""
    alike: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for member, blocks in through.items():
        if blocks:
            key = blocks[0].stream, tuple(block.number for block in blocks)
            alike.setdefault(key, []).append(str(member))
    for (stream, numbers), members in alike.items():
        yield ev.Through(stream=stream, blocks=numbers, members=tuple(members))


def _by_query(
    through: Mapping[Member, tuple[Block, ...]], count: Callable[[Block], int]
) -> dict[str, int]:
    """By query the rows, all or some, of the blocks that are through, if there are any."""
    found: dict[str, int] = {}
    for member, blocks in through.items():
        if rows := sum(map(count, blocks)):
            found[member.query] = found.get(member.query, 0) + rows
    return found


def _work(job: ProbeJob, turn: ProbeTurn) -> ev.ProbeWork:
    """A job for the record."""
    return ev.ProbeWork(
        join=job.join, riders=job.riders, outer=turn.outer.number, since=turn.outer.since,
        until=turn.outer.until, rows=turn.outer.rows,
        nearest=min((scan.nearest for scan in turn.scans), default=0),
        farthest=max((scan.farthest for scan in turn.scans), default=0), size=turn.size)
