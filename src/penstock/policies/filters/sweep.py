"""Sweep: one predicate at a time is compared with all before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.policies.filters.base import Decision, Policy, View, overtakes
from penstock.policies.filters.model.drop_patterns import Bits


@dataclass(frozen=True, slots=True)
class Sweep(Policy):
    """Profiles the predicate at one place, and then the one at the next.

    A profiled row is shown to that predicate only, so profiling costs one predicate instead of all
    that are left. A stage ends when the predicate should come earlier, or when the window is full.
    If nothing changes any more, this ends with the greedy order. But a violation may be found as
    late as n - 1 stages after it began, and is corrected one predicate at a time.

    >>> from penstock.policies.filters.base import view_of
    >>> from penstock.policies.filters.model.profile import FilterPredicate, ProfileBatch
    >>> policy = Sweep(window=6, enough=6)
    >>> profile = policy.prepare([FilterPredicate(f"F{number}") for number in (1, 2, 3, 4)])
    >>> profile.adopt((0, 1, 2, 3), 3, policy.watched(4, 3))
    >>> profile.request(policy.p).unasked  # by the place that dropped a row
    ((3,), (3,), (3,), ())
    >>> window = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1],
    ...                    [1, 0, 0, 1]], bool)
    >>> policy.observe(profile, ProfileBatch(window, np.ones(4), version=profile.version))
    >>> policy.choose(view_of(profile)).reason
    'F4 before F1: drops 4 per second against 3; 1.67 instead of 1.83 s per row'

    Reference: section 5 of the filters paper. The order of stages after a change is ours: the next
    place is profiled.
    """

    window: float = 500

    def watched(self, predicates: int, position: int) -> Bits:
        """The diagonal up to the place, and the column of the place."""
        watched = np.diag(np.arange(predicates) <= position)
        watched[:position, position] = True
        return watched

    def choose(self, view: View) -> Decision | None:
        """The profiled predicate goes to the first place at which it drops more."""
        found = self.violations(view)[:, view.position]
        if view.rows < self.enough or not found.any():
            return None
        place, order = int(np.argmax(found)), list(view.order)
        order.insert(place, order.pop(view.position))
        return self.better(view, tuple(order), overtakes(view, place, view.position))

    def position_after(self, view: View, changed: bool) -> int:
        """The next place, when the stage is over."""
        if len(view.order) < 2 or (not changed and view.rows < self.window):
            return view.position
        return view.position % (len(view.order) - 1) + 1
