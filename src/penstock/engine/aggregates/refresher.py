"""Which answers of window aggregates are refreshed next: the part of the core that hosts share.

A host reports which panes have closed and what a scan has cost. The refresher says which queries of
which group are answered next, in one joint scan, for which window end, and why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from penstock.engine.aggregates.deadlines import Deadlines
from penstock.engine.instructions import Scan
from penstock.engine.paths.stage_costs import differs
from penstock.engine.statistics import Statistics
from penstock.events import kinds as ev
from penstock.policies.refresh import Costs, Due, Policy, QueryGroup, Task, View, policy


@dataclass(slots=True)
class Refresher:
    """Takes closed panes and finished scans, and returns scans; it reads no clock.

    >>> from penstock.policies.refresh import WindowQuery
    >>> refresher = Refresher(policy("hybrid+late_pending"))
    >>> refresher.adopt(0.0, [QueryGroup("g", (WindowQuery("a", 10, 2), WindowQuery("b", 15, 3)))])
    >>> refresher.close("g", 1)
    >>> refresher.decide(1.0)
    >>> refresher.close("g", 2)
    >>> scan = refresher.decide(2.0)
    >>> scan.end, scan.queries, scan.reason
    (2, (('a', 10), ('b', 15)), 'g every 2 is due now')
    >>> refresher.finished(2.5, scan, seconds=0.1)
    >>> refresher.decide(2.5)

    ``drained`` is for bounded input, where nobody waits for an answer. Every query is then answered
    at the multiples of its slide, as if all were to be answered exactly, and costs are the paper's.
    So the answers depend on the rows alone.
    """

    policy: Policy
    drained: bool = False
    statistics: Statistics = field(default_factory=Statistics)
    _groups: dict[str, Deadlines] = field(default_factory=dict)
    _periods: dict[str, dict[str, int]] = field(default_factory=dict)
    _notes: list[ev.PeriodsChosen] = field(default_factory=list)

    # --- the verbs ---------------------------------------------------------------------------

    def adopt(
        self, at: float, groups: Sequence[QueryGroup], answered: Mapping[str, int] | None = None
    ) -> None:
        """Work with these groups from now on; called again whenever queries come or go.

        ``answered`` has the last window end of queries that were answered before, in this run or an
        earlier one. Queries that stay keep their last end, and so their deadline.
        """
        known = self._groups
        self._groups = {group.id: known.get(group.id) or Deadlines(group) for group in groups}
        self._periods = {id: told for id, told in self._periods.items() if id in self._groups}
        for group in groups:
            deadlines = self._groups[group.id]
            names = {query.name for query in group.queries}
            deadlines.answered |= {name: end for name, end in (answered or {}).items()
                                   if name in names}
            deadlines.group = self._exact(group) if self.drained else replace(
                self._measured(group), late=deadlines.group.late)
            self._prepare(at, deadlines, "the queries are these")

    def use(self, at: float, policy: Policy) -> None:
        """Decide by another policy from now on; each query's deadline follows its last answer."""
        self.policy = policy
        for deadlines in self._groups.values():
            self._prepare(at, deadlines, "another policy decides")

    def close(
        self, group: str, end: int, filled: Sequence[int] | None = None, at: float = -inf
    ) -> None:
        """All panes before ``end`` are closed and in the synopsis; ``filled`` hold rows.

        Without ``filled`` all panes are assumed to hold rows. A query is never answered for a
        window without rows, however long the gap. ``at`` is when the panes closed; it decides which
        tasks are late.
        """
        self._groups[group].close(end, filled, at)

    def conclude(self, group: str) -> None:
        """No further row will come: close every window that has begun."""
        deadlines = self._groups[group]
        if deadlines.last is not None:
            longest = max(query.covers or query.filled for query in deadlines.group.queries)
            deadlines.conclude(deadlines.last + longest)

    def decide(self, at: float, group: str | None = None) -> Scan | None:
        """The next joint scan, of one group if it is given; None while nothing is due."""
        groups = self._groups.values() if group is None else [self._groups[group]]
        due = [one for deadlines in groups for one in self._due(at, deadlines)]
        decision = self.policy.choose(View(tuple(due)))
        if decision is None:
            return None
        chosen = set(decision.tasks)
        first = next(one for one in due if one.task.id in chosen)
        return self._ordered(first.task.group, first.end, decision.tasks, decision.reason,
                             len(due))

    def finished(
        self, at: float, scan: Scan, seconds: float, scanning: float | None = None,
        answering: float = 0.0,
    ) -> None:
        """A scan has delivered after this many seconds, of reading panes and of answering."""
        self.passed(scan)
        self.measured(at, [scan], seconds, scanning, answering)

    def measured(
        self, at: float, scans: Sequence[Scan], seconds: float, scanning: float | None = None,
        answering: float = 0.0,
    ) -> None:
        """Scans of one group that were delivered together have taken this many seconds."""
        known = [scan for scan in scans if scan.group in self._groups and scan.queries]
        if known and not self.drained and self._measure(at, known, seconds, scanning, answering):
            self._prepare(at, self._groups[known[0].group], "costs have changed")

    def passed(self, scan: Scan) -> None:
        """A scan counts as delivered: whoever ordered it takes care of its answers."""
        if scan.group in self._groups:
            self._groups[scan.group].finish([name for name, _ in scan.queries], scan.end)

    def noted(self) -> list[ev.PeriodsChosen]:
        """The periods that were chosen since the last call, for the record."""
        notes, self._notes = self._notes, []
        return notes

    # --- what a host may ask -----------------------------------------------------------------

    @property
    def is_due(self) -> bool:
        """Whether any answer is due."""
        return any(deadlines.is_due for deadlines in self._groups.values())

    def has_due(self, group: str) -> bool:
        """Whether any answer of this group is due."""
        return group in self._groups and self._groups[group].is_due

    def oldest(self, group: str) -> int | None:
        """The first pane of a group that a future answer may read; None while no pane has closed.

        A synopsis keeps the panes from here on. Usually they cover the longest window, and more
        while ends that fell due earlier still wait.
        """
        return self._groups[group].oldest()

    def first_end(self, group: str) -> int | None:
        """The first end that a group may still answer for; None while no pane has closed."""
        return self._groups[group].first_end()

    def periods(self, group: str) -> dict[str, int]:
        """The period of each query of a group, in panes: it is answered at least this often."""
        return dict(self._periods[group])

    # --- inside ------------------------------------------------------------------------------

    def _due(self, at: float, deadlines: Deadlines) -> list[Due]:
        """The due tasks of a group; its tasks are rebuilt when it becomes late or in time again.

        A drain is never late: nobody waits.
        """
        due = deadlines.due(at)
        if not due or self.drained or deadlines.is_late(due) == deadlines.group.late:
            return due
        late = not deadlines.group.late
        deadlines.group = replace(deadlines.group, late=late)
        self._prepare(at, deadlines, "tasks are late, so that different periods share no scan"
                      if late else "tasks are in time again")
        return deadlines.due(at)

    def _exact(self, group: QueryGroup) -> QueryGroup:
        queries = tuple(replace(query, exactly=True) for query in group.queries)
        return replace(group, queries=queries, costs=Costs())

    def _ordered(
        self, group: str, end: int, tasks: Sequence[str], reason: str, waiting: int
    ) -> Scan:
        deadlines = self._groups[group]
        queries = [query for task in tasks for query in deadlines.queries(task, end)]
        skipped = deadlines.skipped(tasks, end)
        scan = Scan(group=group, end=end, queries=tuple((q.name, q.window) for q in queries),
                    reason=reason, waiting=waiting, skipped=skipped,
                    since=min(map(deadlines.since, skipped), default=0))
        deadlines.start(tasks, [query.name for query in queries], end)
        return scan

    def _prepare(self, at: float, deadlines: Deadlines, reason: str) -> None:
        """Have the policy make the group's tasks; note periods that change, and what they cost."""
        group = deadlines.group
        tasks = self.policy.prepare([group])
        deadlines.adopt(tasks)
        periods = {query.name: task.period for task in tasks for query in task.queries}
        if self._periods.get(group.id) != periods:
            self._periods[group.id] = periods
            self._notes.append(ev.PeriodsChosen(at=at, group=group.id, periods=periods,
                                                costs=self._weighed(group, tasks), reason=reason))

    def _weighed(self, group: QueryGroup, tasks: Sequence[Task]) -> dict[str, float]:
        """The cost per pane of the chosen tasks, and of the two extremes."""
        rivals = {name: policy(name) for name in ("conservative", "aggressive")}
        return {"chosen": self.policy.cost(group, tasks)} | {
            name: rival.cost(group, rival.prepare([group])) for name, rival in rivals.items()}

    def _measure(
        self, at: float, scans: Sequence[Scan], seconds: float, scanning: float | None,
        answering: float,
    ) -> bool:
        """Record scans; return True if costs differ materially from those behind the tasks."""
        read = seconds - answering if scanning is None else scanning
        panes = sum(max(window for _, window in scan.queries) for scan in scans)
        answers, group_id = sum(len(scan.queries) for scan in scans), scans[0].group
        renewed = [
            self.statistics.record(f"{group_id} {what}", at, count, count, spent)
            for what, count, spent in (
                ("start", 1, max(0.0, seconds - read - answering)), ("read", panes, read),
                ("answer", answers, answering))]
        deadlines = self._groups[group_id]
        told, group = deadlines.group.costs, self._measured(deadlines.group)
        changed = any(differs(getattr(told, what), getattr(group.costs, what))
                      for what in ("start", "read", "merge", "answer"))
        if not (any(renewed) and changed):
            return False
        deadlines.group = group
        return True

    def _measured(self, group: QueryGroup) -> QueryGroup:
        """The group with the measured costs of its scans, if there are any."""
        if not self.statistics.knows(f"{group.id} read"):
            return group
        start, read, answer = (self.statistics.cost(f"{group.id} {what}")
                               for what in ("start", "read", "answer"))
        return replace(group, costs=Costs(start, read, 0.0, answer))
