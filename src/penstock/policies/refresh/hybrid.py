"""Hybrid: shorten periods where answering together costs less than answering separately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import factorial

from penstock.policies.refresh.aggressive import Aggressive
from penstock.policies.refresh.base import Policy
from penstock.policies.refresh.model.coincidences import alone
from penstock.policies.refresh.model.out_of_step import SubGroup, cheapest_apart
from penstock.policies.refresh.model.tasks import (
    QueryGroup,
    Task,
    WindowQuery,
    cost_per_pane,
    subgroups,
    task,
)

KEPT = 64
"""The search keeps this many partial schedules at each step. For up to six periods in a group these
are all of them; for more, the cheapest ones."""
SETTLED = 64
"""With at most this many periods, the schedule of a late group is found exactly. With 45 of them
that takes a tenth of a second, and the time grows with the cube of their number."""


@dataclass(frozen=True, slots=True)
class Hybrid(Policy):
    """The schedule of the least relative cost among all ways of shortening periods.

    A sub-group may take the period of a more frequent one and always be answered with it. The scan
    of the longest window is paid once for both. The price: the long window is read more often.

    >>> a, b, c = WindowQuery("a", 10, 2), WindowQuery("b", 15, 3), WindowQuery("c", 30, 5)
    >>> group = QueryGroup("g", (a, b, c))
    >>> tasks = Hybrid().prepare([group])
    >>> [one.id for one in tasks], round(cost_per_pane(group, tasks), 2)
    (['g every 2', 'g every 5'], 11.4)

    Tasks that fall due together share a scan, and the model counts on it. Late tasks are out of
    step and share nothing. So the schedules of a late group are weighed without that credit, and
    more periods are shortened:

    >>> from dataclasses import replace
    >>> from penstock.policies.refresh.model.tasks import Costs
    >>> group = QueryGroup("g", (WindowQuery("a", 10, 2), WindowQuery("b", 12, 4)),
    ...                    costs=Costs(answer=1.0))
    >>> [[one.id for one in Hybrid().prepare([replace(group, late=late)])]
    ...  for late in (False, True)]
    [['g every 2', 'g every 4'], ['g every 2']]

    Reference: section 4.3 of the aggregates paper. The paper says that dynamic programming finds
    the optimum in polynomial time and leaves the rest open. Ours takes the sub-groups from the
    most costly scan to the cheapest. A task of a given period, once it is there, carries every
    later sub-group for nothing but its answers. So all that matters of the past is *which periods
    are there*, and of the schedules that have the same ones the cheapest goes on. What a new task
    adds is its scan at those multiples of its period at which no task of a more costly scan is due,
    which is known exactly. Answers count too: a task that is refreshed more often has more of them.

    Where we deviate: the paper weighs schedules as if no task were ever late, also under overload.
    docs/reports/experiments.md has what that costs.
    """

    def divide(self, group: QueryGroup) -> tuple[Task, ...]:
        """The cheapest schedule found; it never costs more than either of the two extremes."""
        apart = subgroups(group)
        extremes = [apart, Aggressive().divide(group)]
        if group.late and len(apart) <= SETTLED:
            periods = _out_of_step(group, apart)
        else:
            limit = min(cost_per_pane(group, tasks) for tasks in extremes)
            periods = cheapest(group, apart, limit)
        found = [_merged(group, apart, periods)] if periods else []
        return min([*found, *extremes], key=lambda tasks: cost_per_pane(group, tasks))


@dataclass(frozen=True, slots=True)
class _Partial:
    """A schedule of the sub-groups seen so far."""

    cost: float
    taken: tuple[int, ...]
    """The period that each of them got."""


def cheapest(group: QueryGroup, apart: Sequence[Task], limit: float) -> dict[int, int]:
    """The period that every sub-group should get, by its own; empty if none is within the limit.

    >>> group = QueryGroup("g", (WindowQuery("a", 10, 2), WindowQuery("b", 15, 3),
    ...                          WindowQuery("c", 30, 5)))
    >>> cheapest(group, subgroups(group), limit=12.0)
    {5: 5, 3: 2, 2: 2}
    """
    scans = {part.id: group.costs.scan(part.window) for part in apart}
    order = sorted(apart, key=lambda part: (-scans[part.id], part.period))
    free = [part for part in order if not part.exactly]
    fixed: list[int] = []  # periods of exact tasks: due anyway, but carrying no other task
    partial: dict[frozenset[int], _Partial] = {frozenset(): _Partial(0.0, ())}
    last = min(free, key=lambda part: part.period, default=None)
    for part in order:
        if part.exactly:
            partial = {there: _Partial(so_far.cost + scans[part.id] * alone(
                part.period, [*there, *fixed]), so_far.taken)
                for there, so_far in partial.items()}
            fixed.append(part.period)
            continue
        offered = [other.period for other in free[free.index(part):]]
        partial = _step(partial, part, offered, scans[part.id], group.answering(part.queries),
                        fixed)
        assert last is not None
        partial = _pruned(partial, last.period, scans[last.id], fixed, limit)
    best = min(partial.values(), key=lambda found: (found.cost, found.taken), default=None)
    if best is None:
        return {}
    return {part.period: period for part, period in zip(free, best.taken, strict=True)}


def _out_of_step(group: QueryGroup, apart: Sequence[Task]) -> dict[int, int]:
    """The same if no two tasks share a scan: then exact tasks do not affect the others."""
    return cheapest_apart([
        SubGroup(part.period, group.costs.scan(part.window), group.answering(part.queries))
        for part in apart if not part.exactly])


def ways(group: QueryGroup, most: int = 120) -> list[tuple[dict[int, int], float]]:
    """Every way to shorten periods with its cost per pane, cheapest first; none if too many.

    A way is the period that the sub-group of each period gets. It is for people to read: the policy
    itself does not list them.

    >>> group = QueryGroup("g", (WindowQuery("a", 10, 2), WindowQuery("b", 15, 3),
    ...                          WindowQuery("c", 30, 5)))
    >>> [(way, round(cost, 2)) for way, cost in ways(group)][:2]
    [({2: 2, 3: 2, 5: 5}, 11.4), ({2: 2, 3: 3, 5: 5}, 11.93)]
    """
    apart = subgroups(group)
    own = sorted(part.period for part in apart if not part.exactly)
    if factorial(len(own)) > most:
        return []
    offered = [[shorter for shorter in own if shorter <= period] for period in own]
    all_ways = [dict(zip(own, taken, strict=True)) for taken in product(*offered)]
    costed = [(way, cost_per_pane(group, _merged(group, apart, way))) for way in all_ways]
    return sorted(costed, key=lambda way: way[1])


def _step(
    partial: dict[frozenset[int], _Partial], part: Task, offered: Sequence[int], scan: float,
    answering: float, fixed: Sequence[int],
) -> dict[frozenset[int], _Partial]:
    """Every way to add one more sub-group: it rides on an existing task, or gets a new one."""
    after: dict[frozenset[int], _Partial] = {}
    for there, so_far in partial.items():
        carrying = max((period for period in there if period <= part.period), default=0)
        if carrying:  # its scan costs more: riding is free except for the answers
            _offer(after, there, so_far, carrying, answering / carrying)
        for period in offered:
            if carrying < period <= part.period:
                more = scan * alone(period, [*there, *fixed]) + answering / period
                _offer(after, there | {period}, so_far, period, more)
    return after


def _offer(
    after: dict[frozenset[int], _Partial], there: frozenset[int], so_far: _Partial, period: int,
    more: float,
) -> None:
    found = _Partial(so_far.cost + more, (*so_far.taken, period))
    known = after.get(there)
    if known is None or (found.cost, found.taken) < (known.cost, known.taken):
        after[there] = found


def _pruned(
    partial: dict[frozenset[int], _Partial], shortest: int, scan: float, fixed: Sequence[int],
    limit: float,
) -> dict[frozenset[int], _Partial]:
    """The cheapest schedules, by the least that each of them will still cost.

    Whatever is added, some task is due at the multiples of the shortest period.
    """
    bounds = {there: so_far.cost + scan * alone(shortest, [*there, *fixed])
              for there, so_far in partial.items()}
    order = sorted((there for there in partial if bounds[there] <= limit * (1 + 1e-9)),
                   key=lambda there: (bounds[there], sorted(there)))
    return {there: partial[there] for there in order[:KEPT]}


def _merged(group: QueryGroup, apart: Sequence[Task], periods: dict[int, int]) -> tuple[Task, ...]:
    """The tasks after periods were shortened."""
    together: dict[int, list[WindowQuery]] = {}
    for part in apart:
        if not part.exactly:
            together.setdefault(periods[part.period], []).extend(part.queries)
    free = tuple(task(group, together[period], period) for period in sorted(together))
    return free + tuple(part for part in apart if part.exactly)
