"""Window aggregates inside the core: which panes are closed, and what is answered from them.

Blocks become panes on the paths of the plan like any other work. A pane closes when no further row
can come to it: when the synopsis has every block that might hold one. The refresher then decides
which answers to refresh.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from penstock.engine.aggregates.refresher import Refresher
from penstock.engine.instructions import RefreshJob, Scan, Trim
from penstock.engine.joins.department import PairsReached
from penstock.engine.retries import Retries
from penstock.events import kinds as ev
from penstock.model import Block, Query
from penstock.plan import EARLIEST, Group, Plan
from penstock.policies import refresh as refreshing

MOST_SCANS = 256
"""The most window ends that one refresh answers when many are due: delivery has a fixed cost."""


@dataclass(slots=True)
class _Panes:
    """What is known of a group's synopsis."""

    name: str
    """The refresher's name for it: a rebuilt synopsis has a new name."""
    group: Group
    open: set[int] = field(default_factory=set)
    """The panes that hold rows and are not closed."""
    closed: int | None = None
    arrived: float = 0.0
    """When the rows arrived that closed the latest pane."""
    trimmed: int | None = None
    came: list[tuple[int, float]] = field(default_factory=list)
    """For each block whose panes are not closed yet: up to where it lets panes close, and when it
    arrived."""
    asked: Callable[[float], None] | None = None
    """A `close` that came while a refresh still read the previous synopsis; it is called again when
    that refresh ends."""

    def see(self, watermark: int | None, at: float) -> None:
        """No row before this time can come: queries wait from now on for panes that may close."""
        if watermark is not None:
            end, known = watermark // self.group.pane, self.closed
            if self.came:
                known = self.came[-1][0]
            if known is None or end > known:
                self.came.append((end, at))


@dataclass(slots=True)
class WindowAggregates:
    """All groups of window aggregates of a plan."""

    refresher: Refresher
    _plan: Plan = field(default_factory=lambda: Plan((), ()))
    _panes: dict[str, _Panes] = field(default_factory=dict)
    """By the id of the group."""
    _answered: dict[str, int | None] = field(default_factory=dict)
    """Queries to answer, each with the end of its last window, in microseconds."""
    _under_way: dict[int, RefreshJob] = field(default_factory=dict)
    _reads: dict[int, tuple[str, int]] = field(default_factory=dict)
    """By active refresh: the synopsis that it reads, and its first pane."""
    _again: list[RefreshJob] = field(default_factory=list)
    """Failed refreshes, or halves of them, to be retried before anything else."""
    _known: dict[str, set[str]] = field(default_factory=dict)
    """The queries that the refresher knows, by the names of their synopses."""
    _begun: int = 0
    _told: bool = True

    # --- queries -----------------------------------------------------------------------------

    def adopt(self, plan: Plan) -> None:
        """Answer the queries of this plan from now on.

        A group whose panes have a new length waits until its synopsis is rebuilt.
        """
        self._plan, self._told = plan, False
        known = {group.id: group for group in plan.groups}
        for id in list(self._panes):
            if id not in known or known[id].pane != self._panes[id].group.pane:
                self._give_up(id)
            else:
                self._panes[id].group = known[id]

    def add(self, query: str, since: int | None) -> None:
        """A query is to be answered, for windows that end after ``since``."""
        self._answered[query], self._told = since, False

    def remove(self, query: str) -> None:
        """A query is no longer answered."""
        if self._answered.pop(query, self) is self:
            return
        self._told = False
        self._under_way = {run: _without(refresh, query)
                           for run, refresh in self._under_way.items()}
        staying = [_only(one, {member.query for member in one.members} - {query})
                   for one in self._again]
        self._again = [refresh for refresh in staying if refresh.scans]

    def use(self, policy: refreshing.Policy, at: float) -> None:
        """Let another policy decide from now on."""
        self._tell(at)
        self.refresher.use(at, policy)

    def begin(self, group: str) -> None:
        """A group's synopsis is empty, and is built from blocks from now on."""
        self._give_up(group)
        self._begun += 1
        self._panes[group] = _Panes(f"{group}#{self._begun}", self._plan.group(group))
        self._told = False

    def _give_up(self, group: str) -> None:
        """A synopsis is gone; the answers that it still owed will be due again."""
        panes = self._panes.pop(group, None)
        if panes is not None:
            self._again = [refresh for refresh in self._again if refresh.group != group]
            self._told = False

    # --- panes -------------------------------------------------------------------------------

    def fill(self, filled: Mapping[str, Iterable[int]]) -> None:
        """These panes of these groups have rows."""
        for id, panes in filled.items():
            if id in self._panes:
                self._panes[id].open.update(panes)

    def close(
        self, at: float, group: str, unfinished: Iterable[Block], newest: Block | None, ended: bool
    ) -> None:
        """Close the panes of a group for which no row can come; ``unfinished`` blocks may hold one.

        With ``ended`` the stream brings no more, and every window that has begun is closed.
        """
        panes = self._panes.get(group)
        if panes is None or newest is None:
            return
        waiting = list(unfinished)
        panes.see(newest.watermark, at)
        if self._is_held_up(group):
            panes.asked = lambda at: self.close(at, group, waiting, newest, ended)
            return
        bounds = [block.cutoff for block in waiting] or [newest.watermark]
        if ended and not waiting:
            self._conclude(at, panes, newest.arrived)
        elif None not in bounds:
            end = min(bound for bound in bounds if bound is not None) // panes.group.pane
            self._close(at, panes, end, newest.arrived)

    def close_pairs(
        self, at: float, group: str, watermark: int | None, reached: PairsReached
    ) -> None:
        """Close the panes of a group over pairs; ``watermark`` is what both streams have passed."""
        panes = self._panes.get(group)
        if panes is None:
            return
        panes.see(watermark, at)
        if self._is_held_up(group):
            panes.asked = lambda at: self.close_pairs(at, group, watermark, reached)
        elif reached.ended:
            self._conclude(at, panes, reached.arrived)
        elif reached.until is not None:
            self._close(at, panes, reached.until // panes.group.pane, reached.arrived)

    def _close(self, at: float, panes: _Panes, end: int, arrived: float) -> None:
        if panes.closed is not None and end <= panes.closed:
            return
        self._tell(at)
        filled = sorted(pane for pane in panes.open if pane < end)
        panes.open.difference_update(filled)
        steps = self._steps(at, panes, end)
        panes.closed, panes.arrived = end, arrived
        for step, came in steps if panes.name in self._known else ():
            until = bisect_left(filled, step)
            self.refresher.close(panes.name, step, filled[:until], came)
            filled = filled[until:]

    def _steps(self, at: float, panes: _Panes, end: int) -> list[tuple[int, float]]:
        """How the panes up to an end would have closed if each block had been merged on arrival.

        So the refresher sees that it is late, although blocks wait for the same machine and then
        let many panes close at once. A new synopsis owes nothing yet.
        """
        steps = {min(step, end): came for step, came in reversed(panes.came)}
        panes.came = [one for one in panes.came if one[0] > end]
        if panes.closed is None:
            return [(end, at)]
        return sorted((step, came) for step, came in {end: at, **steps}.items()
                      if step > panes.closed)

    def _conclude(self, at: float, panes: _Panes, arrived: float) -> None:
        if panes.open:
            self._close(at, panes, max(panes.open) + 1, arrived)
        self._tell(at)
        if panes.name in self._known:
            self.refresher.conclude(panes.name)

    # --- refreshes ---------------------------------------------------------------------------

    def next(self, at: float) -> RefreshJob | None:
        """The next refresh, without a number; None while nothing is due.

        Only one refresh is active at a time. If a later end were delivered before a failed one is
        retried, a query's answers would be out of order.
        """
        if self._under_way:
            return None
        self._tell(at)
        return self._again.pop(0) if self._again else self._chosen(at)

    def begin_refresh(self, at: float, job: RefreshJob) -> list[ev.Event]:
        """A refresh begins under its number; return the notes on it."""
        self._under_way[job.number] = job
        self._reads = {job.number: (job.scans[0].group, min(
            scan.end - length for scan in job.scans for _, length in scan.queries))}
        return _told(at, job)

    def _chosen(self, at: float) -> RefreshJob | None:
        scans = self._scans(at)
        if not scans:
            return None
        panes = self._called(scans[0].group)
        return RefreshJob(number=0, group=panes.group.id, pane=panes.group.pane,
                          scans=tuple(scans), arrived=panes.arrived)

    def _scans(self, at: float) -> list[Scan]:
        """One joint scan, and more of its group while there are ends before the newest to answer.

        If nobody waits for a first answer, it takes everything in the group that is due.
        """
        scan = self.refresher.decide(at)
        scans: list[Scan] = []
        while scan is not None:
            self.refresher.passed(scan)  # this class retries failures, not the refresher
            scans.append(scan)
            behind = self.refresher.drained or scan.end != self._called(scan.group).closed
            more = behind and len(scans) < MOST_SCANS
            scan = self.refresher.decide(at, scan.group) if more else None
        return scans

    def noted(self) -> list[ev.PeriodsChosen]:
        """The periods that were chosen since the last call, for the record."""
        return [replace(note, group=note.group.rpartition("#")[0])
                for note in self.refresher.noted()]

    def finish(self, event: ev.JobFinished, result: ev.RefreshResult) -> None:
        """A refresh has been delivered."""
        done = self._under_way.pop(event.job)
        if not done.retried:
            self.refresher.measured(
                event.at, done.scans, event.seconds, result.scanning, result.answering)
        for query, end in done.ends.items():
            self._answered[query] = end
        self._go_on(event.at, done)

    def fail(self, event: ev.JobFailed, retries: Retries) -> dict[str, str]:
        """A refresh failed, and is retried, whole or in halves.

        The queries that stop are returned, and why.
        """
        broken = self._under_way.pop(event.job)
        queries = [member.query for member in broken.members]
        judged = retries.judge(event, queries, unit=str, retried=broken.retried)
        if not self._is_current(broken):  # its queries will be due again, from the next synopsis
            self._go_on(event.at, broken)
            return {}
        halves = (judged.first, set(queries) - judged.first) if judged.first else (set(queries),)
        if queries and not judged.stops:
            self._again[:0] = [replace(_only(broken, half), retried=True) for half in halves]
        return judged.stops

    def _is_held_up(self, group: str) -> bool:
        """Whether a refresh of an earlier synopsis is active: its ends must be known first."""
        return any(refresh.group == group and not self._is_current(refresh)
                   for refresh in self._under_way.values())

    def _go_on(self, at: float, refresh: RefreshJob) -> None:
        """A refresh has ended; a synopsis that waited for it can be answered from now on."""
        panes = self._panes.get(refresh.group)
        if self._is_current(refresh) or panes is None:
            return
        self._told = False
        asked, panes.asked = panes.asked, None
        if asked is not None:
            asked(at)

    def _is_current(self, refresh: RefreshJob) -> bool:
        """Whether it reads the synopsis that its group has now."""
        panes = self._panes.get(refresh.group)
        return panes is not None and panes.name == refresh.scans[0].group

    @property
    def idle(self) -> bool:
        """Whether no answer is due and no refresh is active."""
        return not self._under_way and not self._is_due

    def is_done_with(self, group: str) -> bool:
        """Whether no answer of a group is due and no refresh of it is active."""
        if any(one.group == group for one in (*self._under_way.values(), *self._again)):
            return False
        panes = self._panes.get(group)
        return panes is None or not self.refresher.has_due(panes.name)

    @property
    def slots(self) -> int:
        """The slots that refreshes take.

        If nobody waits for a first answer they take none: the driver makes the answers while the
        executors make the next panes. But while more is due no further job begins, so that few
        panes are held.
        """
        return len(self._under_way) if self._is_due or not self.refresher.drained else 0

    @property
    def _is_due(self) -> bool:
        return bool(self._again or self.refresher.is_due)

    # --- what may go -------------------------------------------------------------------------

    def trims(self, at: float) -> Iterator[Trim]:
        """Panes that no coming answer reads; active refreshes count as answered."""
        self._tell(at)
        busy = {refresh.group for refresh in (*self._under_way.values(), *self._again)}
        for id, panes in self._panes.items():
            if id not in busy and panes.name in self._known and panes.group.paired:
                yield from self._settles(panes)
            elif id not in busy and panes.name in self._known:
                oldest = self.refresher.oldest(panes.name)
                if oldest is not None:
                    oldest = min([oldest, *self._reading(panes.name)])
                if oldest is not None and oldest != panes.trimmed:
                    panes.trimmed = oldest
                    yield Trim(group=id, before=oldest)

    def _settles(self, panes: _Panes) -> Iterator[Trim]:
        """What a group over pairs keeps: a coming window begins a span before its end at most."""
        settled = self.refresher.first_end(panes.name)
        oldest = None if settled is None else settled - panes.group.span
        if oldest is not None and oldest != panes.trimmed:
            panes.trimmed = oldest
            yield Trim(group=panes.group.id, before=oldest, settled=settled)

    def _reading(self, name: str) -> Iterator[int]:
        """The first panes that active refreshes read, also for queries that have left."""
        return (first for run, (synopsis, first) in self._reads.items()
                if synopsis == name and run in self._under_way)

    def needed(self) -> dict[str, int]:
        """The time from which on rows of each stream may be needed again, in microseconds.

        A synopsis that is lost, or has to grow, is rebuilt from the blocks that hold these rows.
        """
        times: dict[str, int] = {}
        for group in self._plan.groups:
            if any(member.query in self._answered for member in group.members):
                panes = self._panes.get(group.id)
                trimmed = panes.trimmed if panes is not None else None
                since = EARLIEST if trimmed is None else trimmed * group.pane
                times[group.reads] = min(since, times.get(group.reads, since))
        return times

    # --- what the refresher knows ------------------------------------------------------------

    def _tell(self, at: float) -> None:
        """Tell the refresher of queries that came or went."""
        if self._told:
            return
        self._told = True
        groups: list[refreshing.QueryGroup] = []
        answered: dict[str, int] = {}
        known: dict[str, set[str]] = {}
        for id, panes in self._panes.items():
            asking = [member.query for member in panes.group.members
                      if member.query in self._answered]
            if asking and not self._is_held_up(id):
                groups.append(self._asked(panes, asking))
                known[panes.name] = set(asking)
                answered |= {query: end // panes.group.pane for query in asking
                             if query not in self._known.get(panes.name, ())
                             and (end := self._answered[query]) is not None}
        self.refresher.adopt(at, groups, answered)
        self._known = known

    def _asked(self, panes: _Panes, queries: Iterable[str]) -> refreshing.QueryGroup:
        return refreshing.QueryGroup(
            panes.name, tuple(asked(self._plan.query(name), panes.group.pane) for name in queries),
            pane=panes.group.pane)

    def _called(self, name: str) -> _Panes:
        return next(panes for panes in self._panes.values() if panes.name == name)


def _told(at: float, job: RefreshJob) -> list[ev.Event]:
    """The decision, and the answers that it skips; a retry does not repeat the latter."""
    scans = tuple(ev.ScanWork(end=scan.end, queries=tuple(name for name, _ in scan.queries),
                              reason=scan.reason) for scan in job.scans)
    again = ", tried again" if job.retried else ""
    decided = ev.JobDecided(
        at=at, job=job.number, kind="refresh", reason=scans[0].reason + again,
        waiting=job.scans[0].waiting, work=ev.RefreshWork(group=job.group, scans=scans))
    return [decided, *(
        ev.AnswersSkipped(at=at, job=job.number, group=job.group, answers=scan.skipped,
                          after=scan.since * job.pane, before=scan.end * job.pane,
                          reason=scan.reason)
        for scan in job.scans if scan.skipped and not job.retried)]


def _without(refresh: RefreshJob, query: str) -> RefreshJob:
    """An active refresh that no longer concerns a query."""
    return replace(refresh, scans=tuple(
        replace(scan, queries=tuple(one for one in scan.queries if one[0] != query))
        for scan in refresh.scans))


def _only(refresh: RefreshJob, queries: Container[str]) -> RefreshJob:
    """The part of a refresh that concerns some queries."""
    scans = (replace(scan, queries=tuple(one for one in scan.queries if one[0] in queries))
             for scan in refresh.scans)
    return replace(refresh, scans=tuple(scan for scan in scans if scan.queries))


def asked(query: Query, pane: int) -> refreshing.WindowQuery:
    """A window aggregate as refresh policies know it, over panes of this length."""
    branch = query.branches[0]
    window = branch.window
    assert branch.grouping is not None and window is not None
    asks = repr((branch.select, branch.grouping.aggregates, branch.grouping.having, window.kept))
    return refreshing.WindowQuery(query.name, window.length // pane, window.slide // pane,
                                  query.priority, window.exactly, asks,
                                  window.recent // pane,
                                  window.covered // pane if window.kept else 0)
