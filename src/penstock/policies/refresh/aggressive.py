"""Aggressive: all queries of a group together, as often as the most frequent of them."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.policies.refresh.base import Policy
from penstock.policies.refresh.model.tasks import QueryGroup, Task, subgroups, task


@dataclass(frozen=True, slots=True)
class Aggressive(Policy):
    """Shares every scan, and answers long windows far more often than their queries ask.

    >>> from penstock.policies.refresh.model.tasks import WindowQuery
    >>> group = QueryGroup("g", (WindowQuery("a", 10, 2), WindowQuery("b", 30, 5),
    ...                          WindowQuery("c", 30, 5, exactly=True)))
    >>> [(one.id, len(one.queries)) for one in Aggressive().prepare([group])]
    [('g every 2', 2), ('g exactly 5', 1)]

    Reference: section 4.2 of the aggregates paper. Queries that are answered at the multiples of
    their slide only cannot be answered more often; they are tasks of their own.
    """

    def divide(self, group: QueryGroup) -> tuple[Task, ...]:
        """One task, with the shortest period."""
        free = [query for query in group.queries if not query.exactly]
        one = (task(group, free, min(query.period for query in free)),) if free else ()
        return one + tuple(part for part in subgroups(group) if part.exactly)
