"""One shared join at work: its outers, who still wants what of them, and which probe is next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from penstock.engine.cost_model import RecentJobs
from penstock.engine.instructions import JoinSide, ProbeScan
from penstock.engine.joins import outers
from penstock.engine.joins.outers import (
    LATEST,
    Outer,
    cut,
    frontier,
    newest,
    reaching,
    rows_within,
    side,
)
from penstock.engine.joins.probe_schedule import Probe, ProbeSchedule
from penstock.engine.paths.stage_costs import FIXED_SHARE, differs
from penstock.engine.state import EngineState
from penstock.model import Block
from penstock.plan import EARLIEST, Member, SharedJoin
from penstock.policies.joins import JoinWindow, Policy, ScanCost

UNKNOWN_COST = ScanCost(fixed=1.0, per_length=0.0)
"""Before anything was measured a job is taken to cost the same however long its scan is."""
TRIED = 4
"""If the fixed part of a job is not known yet, a window is scanned in so many slices at most."""
LEAST_COST = 1e-6
"""Seconds of a job at least, so that what it serves per second is a number."""
SMOOTHED = 0.3
"""How much the rows of one more outer count for the rows of a usual one."""


@dataclass(slots=True)
class JoinMember:
    """A query that takes part in a join."""

    reach: int
    """Its pairs are less than this far apart, in microseconds."""
    since: int
    """It wants pairs whose later rows are not before this time."""
    partial: tuple[int, int] | None = None
    """Of an earlier run: it has had pairs whose later rows are before the first, and which are less
    than the second apart."""
    open: bool = True
    """Whether it takes outers that are still to come."""


@dataclass(frozen=True, slots=True)
class ProbeTurn:
    """The next probe of a join."""

    probe: Probe
    outer: Outer
    scans: tuple[ProbeScan, ...]
    had: tuple[tuple[Outer, Member, int], ...]
    """Who then has had pairs of which outer, and how far apart."""
    done: tuple[Member, ...]
    """Those that then have all pairs of the outer that probes."""

    @property
    def members(self) -> tuple[Member, ...]:
        """Those that get pairs, or know that there are none."""
        return tuple(dict.fromkeys((*self.done, *(member for _, member, _ in self.had))))

    @property
    def size(self) -> float:
        """What its cost goes by: rows of the outer times the seconds that it scans."""
        return sum(self.outer.rows * (scan.farthest - scan.nearest) / 1e6 for scan in self.scans)


@dataclass(slots=True)
class JoinRun:
    """The state of one shared join, or of one part of its members after a failure."""

    join: SharedJoin
    policy: Policy
    members: dict[Member, JoinMember] = field(default_factory=dict)
    outers: deque[Outer] = field(default_factory=deque)
    formed: int | None = None
    """The time up to which there are outers; None before the first."""
    retried: bool = False
    """Whether its last job failed."""
    active: bool = False
    arrived: float = 0.0
    """When the rows arrived that its last probe was for."""
    oldest: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    """Over windows of rows: for later rows from the first time on, the times of the oldest rows of
    both streams that they can meet."""
    stale: bool = True
    """Whether queries, policy or costs have changed since the schedule was made."""
    _schedule: ProbeSchedule = field(init=False)
    _served: dict[tuple[int, int], list[Member]] = field(default_factory=dict)
    """By scan and level of the schedule: the members whose windows end there."""
    _jobs: RecentJobs = field(default_factory=RecentJobs)
    _told: ScanCost = UNKNOWN_COST
    """The cost that the schedule rests on."""
    _cheapest: float = 0.0
    _usual_rows: float = 0.0
    _numbered: int = 0

    def __post_init__(self) -> None:
        """Nothing waits yet."""
        self._schedule = ProbeSchedule(self.policy, ())

    # --- queries -----------------------------------------------------------------------------

    def adopt(self, join: SharedJoin) -> None:
        """Queries have come or gone."""
        if join.span > self.join.span:
            self.oldest.clear()  # later rows meet more rows than it says
        self.join = join

    def add(self, state: EngineState, member: Member, joining: JoinMember) -> None:
        """A query takes part; what was formed before it came is an outer for it alone."""
        self.members[member] = joining
        self.stale = True
        if self.formed is not None and joining.since < self.formed:
            self._form(state, joining.since, self.formed, [member])

    def remove(self, query: str, at_once: bool = True) -> None:
        """A query takes no more outers, and with ``at_once`` not even those that wait."""
        for member in [member for member in self.members if member.query == query]:
            self.members[member].open = False
            if at_once:
                del self.members[member]
                for outer in self.outers:
                    outer.rest.pop(member, None)
        self._tidy()
        self.stale = True

    def split(self, first: frozenset[str]) -> JoinRun:
        """Leave the queries of the ``first`` half here, and give the others to another run."""
        others = {m: replace(known) for m, known in self.members.items() if m.query not in first}
        other = JoinRun(self.join, self.policy, others, formed=self.formed, retried=True)
        other._numbered, other.oldest = self._numbered, self.oldest.copy()
        for outer in self.outers:
            rest = {m: had for m, had in outer.rest.items() if m in others}
            other.outers.append(replace(outer, rest=rest, whole=set(outer.whole)))
        other._tidy()
        for query in {member.query for member in others}:
            self.remove(query)
        return other

    def number_after(self, other: JoinRun) -> None:
        """Number outers after those of a run whose place this one takes."""
        self._numbered = other._numbered

    def wants(self, query: str) -> bool:
        """Whether something waits for a query."""
        return any(member.query == query for outer in self.outers for member in outer.rest)

    # --- outers ------------------------------------------------------------------------------

    def waiting(self, state: EngineState, owed: bool) -> tuple[int, float] | None:
        """The rows that could form outers now, and when the first of their blocks came.

        ``owed``: some blocks are not through for all members.
        """
        ends, begins = self._ends(state, owed), self._begins()
        if ends is None or ends <= begins or not any(m.open for m in self.members.values()):
            return None
        blocks = reaching(self._blocks(state), begins, ends)
        if not blocks and not self._flushes(state, owed):
            return None
        return (sum(block.rows for block in blocks),
                min((block.arrived for block in blocks), default=0.0))

    def _ends(self, state: EngineState, owed: bool) -> int | None:
        """The time up to which outers can be formed now.

        At the end of both streams that is just after their last row, so that a later run goes on
        from there. Blocks whose rows are all too early still get an outer.
        """
        ends = frontier(state, self.join.streams)
        if ends != LATEST:
            return ends
        last = max(map(newest, self._blocks(state)), default=EARLIEST) + 1
        return max(last, self._begins() + 1) if self._flushes(state, owed) else last

    def _flushes(self, state: EngineState, owed: bool) -> bool:
        """Whether blocks are left over at the end that no outer waits for."""
        return (owed and not self.outers and not self.active
                and frontier(state, self.join.streams) == LATEST)

    def form(self, state: EngineState, owed: bool = False) -> None:
        """Make outers of the time that both streams have passed."""
        ends, flushes = self._ends(state, owed), self._flushes(state, owed)
        takers = [member for member, known in self.members.items() if known.open]
        if ends is None or not takers:
            return
        begins = self._begins()
        while begins < ends:
            bound = min((known.partial[0] for known in self.members.values()
                         if known.partial is not None and known.partial[0] > begins), default=ends)
            if bound > ends:
                return  # the outer of an earlier run ends there
            until = cut(self._blocks(state), begins, bound, self._most_rows(state))
            last = until == ends
            if not self._form(state, begins, until, takers, flushes and last) and last:
                return  # the outer that comes next begins here
            begins = self.formed = until

    def _most_rows(self, state: EngineState) -> float:
        """The most rows of an outer.

        Where answers are waited for, the scan of its largest slice should not take longer than the
        quantum, so that decisions stay frequent. But fixed parts must not become most of the work.
        """
        slices = [scan.reach(level) - scan.reach(level - 1) for scan in self._schedule.scans
                  for level in range(1, scan.levels + 1)]
        if state.settings.only_the_end_counts or not slices or not self._cheapest:
            return outers.MOST_ROWS
        cost, longest = self._jobs.cost(self._cheapest), max(slices)
        if not cost.per_row:
            return outers.MOST_ROWS
        worth = (1 / FIXED_SHARE - 1) * cost.fixed / cost.per_row
        within = max(cost.rows_in(state.settings.quantum), worth)
        return min(within / longest, outers.MOST_ROWS)

    def _begins(self) -> int:
        if self.formed is not None:
            return self.formed
        return min((known.since for known in self.members.values() if known.open),
                   default=EARLIEST)

    def _form(
        self, state: EngineState, since: int, until: int, takers: Sequence[Member],
        empty: bool = False,
    ) -> bool:
        """Add an outer for these members; False if no row lies in it, unless it may be empty."""
        fresh = reaching(self._blocks(state), since, until)
        if not fresh and not empty:
            return False
        outer = Outer(self._numbered, since, until, rows_within(fresh, since, until),
                      min((block.arrived for block in fresh), default=0.0))
        for member in takers:
            known = self.members[member]
            if known.since < until:
                outer.rest[member] = self._had(known, until)
                outer.whole |= {member} if known.partial is not None else set()
        if outer.rest:
            self._numbered += 1
            weight = SMOOTHED if self._usual_rows else 1.0
            self._usual_rows += weight * (outer.rows - self._usual_rows)
            self.outers.append(outer)
            if not self.stale:
                self._schedule.arrive(outer.number)
        return True

    def _had(self, known: JoinMember, until: int) -> int:
        """How far apart the pairs are that a member has had of an outer, in an earlier run.

        No outer reaches beyond the end of such a one, but it may be in several outers now.
        """
        if known.partial is None:
            return 0
        had, ends = known.partial[1], known.partial[0]
        known.partial = None if until >= ends else known.partial
        return had

    def _blocks(self, state: EngineState) -> list[Block]:
        streams = dict.fromkeys(self.join.streams)
        return [block for stream in streams for block in state.blocks.of(stream)]

    def _tidy(self) -> None:
        """Forget the outers that nobody wants, and the members that want nothing any more."""
        self.outers = deque(outer for outer in self.outers if outer.rest)
        wanting = {member for outer in self.outers for member in outer.rest}
        gone = [m for m, known in self.members.items() if not known.open and m not in wanting]
        for member in gone:
            del self.members[member]
        self.stale = self.stale or bool(gone)

    @property
    def begins(self) -> int:
        """The earliest time of a later row that is still to be paired."""
        return min([outer.since for outer in self.outers], default=self._begins())

    @property
    def needed(self) -> tuple[int, ...]:
        """By side, the time of the earliest row that may still be in a pair."""
        if self.join.rows:
            return self._oldest_at(self.begins)
        return (max(self.begins - self.join.span, EARLIEST),) * len(self.join.streams)

    def reach_back(self, until: int, oldest: Sequence[int]) -> None:
        """Later rows from a time on meet no rows before these times."""
        begins = self.begins
        known = dict([*self.oldest, (until, tuple(oldest))])
        past = max((time for time in known if time <= begins), default=begins)
        self.oldest = sorted((time, rows) for time, rows in known.items() if time >= past)

    def _oldest_at(self, since: int) -> tuple[int, ...]:
        found = [rows for time, rows in self.oldest if time <= since]
        return found[-1] if found else (EARLIEST,) * len(self.join.streams)

    # --- probes ------------------------------------------------------------------------------

    def next(self, state: EngineState) -> ProbeTurn | None:
        """What the policy has probed next; None while nothing waits."""
        if self.stale:
            self._plan()
        while (probe := self._schedule.decide()) is not None:
            turn = self._turn(state, probe)
            if turn is not None:
                return turn
            self._schedule.finish(probe)  # those who wanted it have left
        return None

    def finish(self, turn: ProbeTurn, seconds: float) -> None:
        """A probe has delivered."""
        self._schedule.finish(turn.probe)
        for outer, member, had in turn.had:
            if member in outer.rest:
                outer.rest[member] = had
        for member in turn.done:
            turn.outer.rest.pop(member, None)
            if member in self.members:
                self.members[member].since = max(self.members[member].since, turn.outer.until)
        self._tidy()
        if turn.size:
            self._jobs.add(turn.size, seconds)
            self._cheapest = min(seconds, self._cheapest or seconds)
        self._weigh()

    def expected(self, turn: ProbeTurn) -> tuple[float, float]:
        """Seconds that a probe takes, and the fixed part of them; 0 while unknown."""
        if not self._usual_rows or not self._cheapest:
            return 0.0, 0.0
        cost = self._jobs.cost(self._cheapest)
        return cost.seconds(turn.size), cost.fixed

    @property
    def cost(self) -> ScanCost:
        """What a scan of the window takes for a usual outer."""
        if not self._cheapest:
            return UNKNOWN_COST
        cost, span = self._jobs.cost(self._cheapest), self.join.span / 1e6
        if not cost.distinct:  # scans of several lengths will tell the two parts apart
            whole = cost.seconds(self._usual_rows * span)
            fixed = max(whole / (1 + TRIED), LEAST_COST)
            return ScanCost(fixed, fixed * TRIED / span)
        return ScanCost(max(cost.fixed, LEAST_COST), cost.per_row * self._usual_rows)

    @property
    def _windows(self) -> list[JoinWindow]:
        """Their lengths in seconds.

        Those of a multiway join are one. To find results that span a slice between two windows, all
        of the larger window would have to be joined again.
        """
        if len(self.join.streams) > 2:
            return [JoinWindow(self.join.span / 1e6) for _ in self.members]
        return [JoinWindow(known.reach / 1e6) for known in self.members.values()]

    def _weigh(self) -> None:
        """Weigh scans by what is known of costs now; if other slices are worth a job, cut again."""
        cost, told = self.cost, self._told
        if self.stale or not (differs(cost.fixed, told.fixed)
                              or differs(cost.per_length, told.per_length)):
            return
        self._told = cost
        scans = self.policy.prepare(self._windows, cost)
        if [scan.windows for scan in scans] != [scan.windows for scan in self._schedule.scans]:
            self.stale = True
        else:
            self._schedule.weigh(cost)

    def _plan(self) -> None:
        """A schedule for the present windows, policy and costs; what waits goes on in it."""
        self.stale, self._told = False, self.cost
        self._schedule = ProbeSchedule(self.policy, self._windows, self._told)
        ordered = deque(sorted(self.members, key=lambda member: self.members[member].reach))
        self._served = {
            (number, level): [ordered.popleft() for _ in range(window.queries)]
            for number, scan in enumerate(self._schedule.scans)
            for level, window in enumerate(scan.windows, 1)}
        for outer in self.outers:
            # Whom the policy serves in scans of their own may be further on than others.
            alone = len(self._schedule.scans) > 1
            self._schedule.arrive(outer.number, 0.0 if alone else outer.reach / 1e6)

    def _turn(self, state: EngineState, probe: Probe) -> ProbeTurn | None:
        """What a probe means for the members; None if it means nothing to any of them."""
        scan = self._schedule.scans[probe.scan]
        known = {outer.number: outer for outer in self.outers}
        groups: dict[tuple[int, int, int, int], list[Member]] = {}
        had: list[tuple[Outer, Member, int]] = []
        done = [member for level in range(probe.first + 1, probe.last + 1)
                for member in self._served[probe.scan, level]
                if probe.outer in known and member in known[probe.outer].rest]
        for pairs in self._schedule.leaving(probe):
            outer = known.get(pairs.outer)
            # Pairs beyond a member's own window are not its own, so all may be scanned as far.
            own = pairs.outer == probe.outer
            reach = round(1e6 * scan.reach(probe.last if own else pairs.last))
            for member in self._served[probe.scan, pairs.window]:
                if outer is None or member not in outer.rest:
                    continue
                nearest, ends = outer.rest[member], own and member in done
                if not ends and member in outer.whole:
                    continue
                if not ends:
                    had.append((outer, member, max(reach, nearest)))
                if nearest < min(reach, self.members[member].reach):
                    since = max(outer.since, self.members[member].since)
                    groups.setdefault((outer.number, since, nearest, reach), []).append(member)
        if not done and not groups:
            return None
        scans = (self._scan(state, known[number], since, nearest, reach, members)
                 for (number, since, nearest, reach), members in groups.items())
        # Those who wanted the outer itself may have left, but a later one has waited for it.
        first = known.get(probe.outer) or known[next(iter(groups))[0]]
        return ProbeTurn(probe, first, tuple(one for one in scans if one is not None), tuple(had),
                    tuple(done))

    def _scan(
        self, state: EngineState, outer: Outer, since: int, nearest: int, farthest: int,
        members: Iterable[Member],
    ) -> ProbeScan | None:
        """What a host is to scan; None if the blocks show that there are no pairs."""
        rank = {member: number for number, member in enumerate(self.join.members)}
        scan = ProbeScan(
            since=since, until=outer.until, nearest=nearest, farthest=farthest,
            sides=self._sides(state, outer, since, nearest, farthest),
            members=tuple(sorted(members, key=lambda m: rank.get(m, len(rank)))))
        return scan if scan.may_find else None

    def _sides(
        self, state: EngineState, outer: Outer, since: int, nearest: int, farthest: int
    ) -> tuple[JoinSide, ...]:
        """The blocks of all streams that a scan reads."""
        blocks = [state.blocks.of(stream) for stream in self.join.streams]
        if not self.join.rows:
            return tuple(side(some, since, outer.until, nearest, farthest) for some in blocks)
        # A row's number is known only together with all rows between it and the later one.
        return tuple(JoinSide(fresh=reaching(some, since, outer.until),
                              window=reaching(some, oldest, outer.until))
                     for some, oldest in zip(blocks, self._oldest_at(since), strict=True))
