"""What refresh policies are told, and what they make of it: queries, groups, tasks.

Time is counted in panes. A *group* is one synopsis with the queries that read it. A *task* is a set
of a group's queries that are always answered together, after a fixed number of panes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from penstock.policies.refresh.model.coincidences import mean_cost


@dataclass(frozen=True, slots=True)
class WindowQuery:
    """A window aggregate: the window it covers and how often it is to be answered."""

    name: str
    window: int
    """Panes that an answer covers."""
    period: int
    """Panes after which the next answer is due: n of the paper."""
    priority: int = 1
    exactly: bool = False
    """Whether it is answered at the multiples of its period and at no other time."""
    asks: str = ""
    """What it asks besides the window; two queries that ask the same of one window have one answer.
    Empty if no other query is known to ask the same."""
    recent: int = 0
    """If not 0, an answer is due only if one of so many last panes of its window holds a row, as of
    sessions, whose window is how far they may reach back. Such a query is answered exactly."""

    covers: int = 0
    """If not 0, an answer is about so many last panes of the window only, and those before them say
    which groups are known. When no further row comes, answers end with the last row that they are
    about."""

    @property
    def filled(self) -> int:
        """The last panes of the window, one of which must hold a row for an answer."""
        return self.recent or self.window

    @property
    def question(self) -> tuple[str, int]:
        """Queries with the same question share the work after the scan."""
        return self.asks or f"query {self.name}", self.window


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of a refresh of a group, in seconds or in any other unit.

    The defaults are the paper's: a scan of n panes is n - 1 merges.

    >>> Costs().scan(10), Costs(start=5.0, read=0.5, merge=0.0).scan(10)
    (9.0, 10.0)
    """

    start: float = 0.0
    """The fixed cost of a refresh, whatever it reads."""
    read: float = 0.0
    """Reading a pane."""
    merge: float = 1.0
    """Merging a pane into those read before it."""
    answer: float = 0.0
    """Making an answer once its panes are merged: sorting, quantiles, delivery."""

    def scan(self, panes: int) -> float:
        """The cost of one scan of this many panes, without its answers."""
        return self.start + self.read * panes + self.merge * (panes - 1)


@dataclass(frozen=True, slots=True)
class QueryGroup:
    """The queries that read one synopsis: a scan of a long window answers the shorter ones too.

    >>> group = QueryGroup("g", (WindowQuery("a", 10, 2), WindowQuery("b", 6, 2)),
    ...                    costs=Costs(answer=0.5))
    >>> group.cost(group.queries)
    10.0
    """

    id: str
    queries: tuple[WindowQuery, ...]
    pane: int = 1
    """The length of a pane, in microseconds; groups differ in it."""
    costs: Costs = Costs()
    late: bool = False
    """Whether tasks of the group are late, or were recently. Late tasks are out of step, because a
    task gets its whole period again after a late refresh. Tasks of different periods then fall due
    at different times."""

    def cost(self, queries: Sequence[WindowQuery]) -> float:
        """The cost of a joint refresh: one scan of the longest window, and every answer."""
        return self.costs.scan(max(q.window for q in queries)) + self.answering(queries)

    def answering(self, queries: Iterable[WindowQuery]) -> float:
        """The cost of the answers of a joint refresh."""
        return self.costs.answer * len({query.question for query in queries})


@dataclass(frozen=True, slots=True)
class Task:
    """Queries of a group that are answered together, every ``period`` panes or more often."""

    id: str
    group: str
    queries: tuple[WindowQuery, ...]
    period: int
    exactly: bool = False
    priority: int = field(init=False, repr=False, compare=False)
    """The highest priority of its queries; stored, since every choice needs it."""

    def __post_init__(self) -> None:
        """Take the priority from the queries."""
        highest = max((query.priority for query in self.queries), default=1)
        object.__setattr__(self, "priority", highest)

    @property
    def window(self) -> int:
        """The longest window of its queries."""
        return max(query.window for query in self.queries)


@dataclass(frozen=True, slots=True)
class Due:
    """A task that may be refreshed now."""

    task: Task
    end: int
    """The pane before which the windows of its answers would end."""
    left: int
    """Panes until its deadline: d(T) of the paper, negative when it is late."""
    pane: int = 1
    """The length of a pane of its group."""

    @property
    def slack(self) -> int:
        """The time until its deadline, which can be compared between groups of different panes."""
        return self.left * self.pane


def task(group: QueryGroup, queries: Sequence[WindowQuery], period: int, name: str = "") -> Task:
    """A task of these queries."""
    exactly = queries[0].exactly
    every = "exactly" if exactly else "every"
    return Task(f"{group.id} {name or every + ' ' + str(period)}", group.id, tuple(queries),
                period, exactly)


def subgroups(group: QueryGroup, adopting: bool = True) -> tuple[Task, ...]:
    """Queries of one period are one task, the shortest period first.

    With ``adopting``, a query that asks what another asks more often takes the other's answer.

    >>> same = [WindowQuery("a", 10, 2, asks="max"), WindowQuery("b", 10, 6, asks="max"),
    ...         WindowQuery("c", 9, 6)]
    >>> [(t.id, [q.name for q in t.queries]) for t in subgroups(QueryGroup("g", tuple(same)))]
    [('g every 2', ['a', 'b']), ('g every 6', ['c'])]
    """
    parts: dict[tuple[int, bool], list[WindowQuery]] = {}
    for query in adopted(group.queries) if adopting else group.queries:
        parts.setdefault((query.period, query.exactly), []).append(query)
    return tuple(task(group, parts[key], key[0]) for key in sorted(parts))


def adopted(queries: Sequence[WindowQuery]) -> tuple[WindowQuery, ...]:
    """The same queries, each with the shortest period at which its question is answered."""
    shortest: dict[tuple[str, int], int] = {}
    for query in queries:
        if not query.exactly:
            known = shortest.get(query.question, query.period)
            shortest[query.question] = min(known, query.period)
    return tuple(query if query.exactly else replace(query, period=shortest[query.question])
                 for query in queries)


def cost_per_pane(group: QueryGroup, tasks: Sequence[Task], sharing: bool = True) -> float:
    """The cost per pane of a schedule of a group, over time; section 4.3 of the paper.

    Tasks that fall due together are one refresh, as costly as the longest of their windows. While
    the group is late they do not fall due together, and every task pays for its own scans.

    >>> group = QueryGroup("g", (WindowQuery("a", 10, 2), WindowQuery("b", 15, 3),
    ...                          WindowQuery("c", 30, 5)))
    >>> round(cost_per_pane(group, subgroups(group)), 2)
    11.93
    >>> round(cost_per_pane(replace(group, late=True), subgroups(group)), 2)
    14.97
    """
    scans = [(task.period, group.costs.scan(task.window)) for task in tasks]
    if group.late or not sharing:
        return sum(cost / period for period, cost in scans) + _answers(group, tasks)
    return mean_cost(scans) + _answers(group, tasks)


def _answers(group: QueryGroup, tasks: Sequence[Task]) -> float:
    return sum(group.answering(task.queries) / task.period for task in tasks)
