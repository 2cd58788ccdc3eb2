"""Static greedy: the greedy order of the first full window, for good. The baseline."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.policies.filters.base import Decision, Policy, View
from penstock.policies.filters.model.drop_patterns import greedy_order


@dataclass(frozen=True, slots=True)
class StaticGreedy(Policy):
    """Orders predicates once, by what each drops of what is left, per second.

    Every place gets the predicate that drops the most of the rows that the places before it let
    through, divided by its cost. If nothing changes any more, that costs at most four times as much
    as the best order. If something does, this policy does not notice.

    >>> import numpy as np
    >>> from penstock.policies.filters.base import view_of
    >>> from penstock.policies.filters.model.profile import FilterPredicate, ProfileBatch
    >>> policy = StaticGreedy(window=3, enough=3)
    >>> profile = policy.prepare([FilterPredicate("a"), FilterPredicate("b")])
    >>> rows = np.array([[0, 1], [0, 1], [1, 0]], bool)
    >>> policy.observe(profile, ProfileBatch(rows, np.ones(2)))
    >>> policy.choose(view_of(profile)).reason
    'the window is full for the first time; 1.33 instead of 1.67 s per row'

    Reference: section 4 of the filters paper (Greedy); Theorem 4.1 has the bound.
    """

    def choose(self, view: View) -> Decision | None:
        """The greedy order, when the first window is full."""
        if view.version or view.rows < self.window:
            return None
        written = tuple(range(len(view.order)))
        order = greedy_order(view.patterns, view.seconds, written)
        return self.better(view, order, "the window is full for the first time")
