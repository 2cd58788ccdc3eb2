"""A-Greedy: the greedy order of the latest rows, restored as soon as it is violated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.policies.filters.base import Decision, Policy, View, overtakes
from penstock.policies.filters.model.drop_patterns import greedy_order


@dataclass(frozen=True, slots=True)
class AGreedy(Policy):
    """Keeps the greedy invariant: no predicate drops more per second of what is left than the next.

    Every predicate is evaluated on a profiled row, so the policy knows how predicates overlap. It
    notices any violation at once and corrects it at once, out of the same window. That makes it the
    quickest to adapt, and the one that spends the most on profiling.

    In Example 5 of the paper F4 drops more of the last six rows than F3, and both F1 and F3 drop
    one of the rows that F4 leaves. The new order restores the invariant and saves nothing, which is
    why it takes a ``gain`` of 0:

    >>> from penstock.policies.filters.base import view_of
    >>> from penstock.policies.filters.model.profile import FilterPredicate, ProfileBatch
    >>> policy = AGreedy(window=6, enough=6, gain=0)
    >>> profile = policy.prepare([FilterPredicate(f"F{number}") for number in (1, 2, 3, 4)])
    >>> profile.adopt((2, 0, 1, 3), 1, policy.watched(4, 1))
    >>> window = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [1, 1, 0, 1], [0, 1, 1, 1], [0, 0, 1, 1],
    ...                    [1, 1, 0, 1]], bool)
    >>> policy.observe(profile, ProfileBatch(window, np.ones(4)))
    >>> policy.choose(view_of(profile))  # doctest: +NORMALIZE_WHITESPACE
    Decision(order=(3, 2, 0, 1),
             reason='F4 before F3: drops 4 per second against 3; 1.5 instead of 1.5 s per row',
             before=1.5, after=1.5)

    Reference: section 4 of the filters paper. A place is filled by moving a predicate up and
    leaving the others in their order. Swapping the two, as Figure 5 has it, gives F4 F1 F3 F2 here,
    and not the printed order.
    """

    def choose(self, view: View) -> Decision | None:
        """The greedy order from the first violation on."""
        found = self.violations(view)
        if view.rows < self.enough or not found.any():
            return None
        place = int(np.argmax(found.any(axis=1)))
        later = int(np.argmax(np.where(found[place], view.rates[place], -1.0)))
        order = greedy_order(view.patterns, view.seconds, view.order, fixed=place)
        return self.better(view, order, overtakes(view, place, later))
