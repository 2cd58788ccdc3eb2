"""LocalSwaps: neighbours change places when the later one drops more per second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.policies.filters.base import Decision, Policy, View, overtakes
from penstock.policies.filters.model.drop_patterns import Bits


@dataclass(frozen=True, slots=True)
class LocalSwaps(Policy):
    """Compares each predicate with the next one only.

    A profiled row is shown to the predicate after the one that dropped it, and two diagonals of the
    matrix are kept. A predicate moves one place at a time, and it never moves if its neighbour does
    just as much. So the order may stay up to n times as costly as A-Greedy's (Example 7).

    >>> from penstock.policies.filters.base import view_of
    >>> from penstock.policies.filters.model.profile import FilterPredicate, ProfileBatch
    >>> policy = LocalSwaps(window=4, enough=4)
    >>> profile = policy.prepare([FilterPredicate(name) for name in "abc"])
    >>> profile.request(policy.p).unasked  # by the place that dropped a row
    ((1,), (2,), ())
    >>> rows = np.array([[1, 1, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]], bool)
    >>> policy.observe(profile, ProfileBatch(rows, np.ones(3)))
    >>> policy.choose(view_of(profile)).reason
    'b before a: drops 3 per second against 1; 1.5 instead of 2 s per row'

    Reference: section 7 of the filters paper.
    """

    def watched(self, predicates: int, position: int) -> Bits:
        """The diagonal and the one above it."""
        return np.eye(predicates, dtype=bool) | np.eye(predicates, k=1, dtype=bool)

    def choose(self, view: View) -> Decision | None:
        """Swap the first two neighbours that should be swapped."""
        found = np.diag(self.violations(view), 1)
        if view.rows < self.enough:
            return None
        for place in np.flatnonzero(found).tolist():
            order = list(view.order)
            order[place], order[place + 1] = order[place + 1], order[place]
            decided = self.better(view, tuple(order), overtakes(view, place, place + 1))
            if decided:
                return decided
        return None
