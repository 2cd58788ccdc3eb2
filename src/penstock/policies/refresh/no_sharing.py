"""No sharing: queries of one period are a task, and every task is refreshed by itself."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.policies.refresh.base import Policy
from penstock.policies.refresh.model.tasks import QueryGroup, Task, subgroups


@dataclass(frozen=True, slots=True)
class NoSharing(Policy):
    """The paper's baseline: two tasks of a group scan the synopsis twice, even if due together.

    >>> from penstock.policies.refresh.base import View
    >>> from penstock.policies.refresh.model.tasks import Due, WindowQuery
    >>> group = QueryGroup("g", (WindowQuery("a", 10, 2), WindowQuery("b", 6, 2),
    ...                          WindowQuery("c", 15, 3)))
    >>> tasks = NoSharing().prepare([group])
    >>> NoSharing().choose(View(tuple(Due(task, end=6, left=0) for task in tasks))).tasks
    ('g every 2',)

    Reference: section 5.1 of the aggregates paper.
    """

    shares = False

    def divide(self, group: QueryGroup) -> tuple[Task, ...]:
        """One task for each period; nobody takes another's answer."""
        return subgroups(group, adopting=False)
