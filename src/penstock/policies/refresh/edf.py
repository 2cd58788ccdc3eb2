"""EDF: every query separately, the one whose deadline is nearest first."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.policies.refresh.base import Policy
from penstock.policies.refresh.model.tasks import QueryGroup, Task, task


@dataclass(frozen=True, slots=True)
class EarliestDeadline(Policy):
    """Earliest deadline first, one query at a time: the algorithm that the others build upon.

    A query that was late gets its whole period again, so periods stretch under overload and no
    query is dropped.

    >>> from penstock.policies.refresh.base import View
    >>> from penstock.policies.refresh.model.tasks import Due, WindowQuery
    >>> group = QueryGroup("g", (WindowQuery("a", 10, 2), WindowQuery("b", 6, 2)))
    >>> a, b = EarliestDeadline().prepare([group])
    >>> EarliestDeadline().choose(View((Due(a, end=5, left=0), Due(b, end=5, left=-1))))
    Decision(tasks=('g b',), reason='g b is 1 pane late')

    Reference: section 4.1 of the aggregates paper, Algorithm 1.
    """

    shares = False

    def divide(self, group: QueryGroup) -> tuple[Task, ...]:
        """Every query is a task."""
        return tuple(task(group, [query], query.period, query.name) for query in group.queries)
