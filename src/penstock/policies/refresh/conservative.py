"""Conservative: queries of one period together, and with others when they happen to coincide."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.policies.refresh.base import Policy


@dataclass(frozen=True, slots=True)
class Conservative(Policy):
    """No query is answered more often than it asks; tasks that are due together share the scan.

    >>> from penstock.policies.refresh.base import View
    >>> from penstock.policies.refresh.model.tasks import Due, QueryGroup, WindowQuery
    >>> group = QueryGroup("g", (WindowQuery("a", 10, 2), WindowQuery("b", 15, 3)))
    >>> two, three = Conservative().prepare([group])
    >>> Conservative().choose(View((Due(two, end=6, left=0), Due(three, end=6, left=0))))
    Decision(tasks=('g every 2', 'g every 3'), reason='g every 2 is due now; 1 more ride along')

    Reference: section 4.2 of the aggregates paper, Algorithm 2.
    """
