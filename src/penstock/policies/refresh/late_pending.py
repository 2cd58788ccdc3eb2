"""Late-pending sharing: under overload the late tasks of a group take along those due now."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.policies.refresh.late import Late
from penstock.policies.refresh.model.tasks import Due


@dataclass(frozen=True, slots=True)
class LatePending(Late):
    """Modifies a policy that shares: a task that is due now will not be late at the next pane.

    >>> from penstock.policies.refresh.base import View
    >>> from penstock.policies.refresh.conservative import Conservative
    >>> from penstock.policies.refresh.model.tasks import QueryGroup, WindowQuery
    >>> policy = LatePending(Conservative())
    >>> two, three, five = policy.prepare([QueryGroup("g", (
    ...     WindowQuery("a", 10, 2), WindowQuery("b", 15, 3), WindowQuery("c", 30, 5)))])
    >>> due = Due(two, end=5, left=-2), Due(three, end=5, left=-1), Due(five, end=5, left=0)
    >>> policy.choose(View(due)).tasks
    ('g every 2', 'g every 3', 'g every 5')

    Reference: section 4.4 of the aggregates paper, Algorithm 3.
    """

    def joins(self, first: Due, other: Due) -> bool:
        """While the first task is late, all tasks that are late or due now ride with it."""
        return other.left <= 0 if first.left < 0 else self.of.joins(first, other)
