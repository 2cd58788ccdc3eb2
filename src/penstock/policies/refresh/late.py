"""Late sharing: under overload all late tasks of a group are refreshed together."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import PolicyError
from penstock.policies.refresh.base import Policy
from penstock.policies.refresh.model.tasks import Due, QueryGroup, Task


@dataclass(frozen=True, slots=True)
class Late(Policy):
    """Modifies a policy that shares: late tasks ride together, however late each of them is.

    Without it only tasks that are equally late ride together, and the others scan the same panes
    again soon after.

    >>> from penstock.policies.refresh.base import View
    >>> from penstock.policies.refresh.conservative import Conservative
    >>> from penstock.policies.refresh.model.tasks import WindowQuery
    >>> late = Late(Conservative())
    >>> two, three, five = late.prepare([QueryGroup("g", (
    ...     WindowQuery("a", 10, 2), WindowQuery("b", 15, 3), WindowQuery("c", 30, 5)))])
    >>> due = Due(two, end=5, left=-2), Due(three, end=5, left=-1), Due(five, end=5, left=0)
    >>> late.choose(View(due)).tasks
    ('g every 2', 'g every 3')

    Reference: section 4.4 of the aggregates paper.
    """

    of: Policy

    def __post_init__(self) -> None:
        """Refuse a policy that shares no scans."""
        if not self.of.shares:
            raise PolicyError("late and late_pending say what runs together; this policy runs "
                              "every task by itself")

    def divide(self, group: QueryGroup) -> tuple[Task, ...]:
        """The tasks of the modified policy."""
        return self.of.divide(group)

    def joins(self, first: Due, other: Due) -> bool:
        """While the first task is late, all late tasks ride with it."""
        return other.left < 0 if first.left < 0 else self.of.joins(first, other)
