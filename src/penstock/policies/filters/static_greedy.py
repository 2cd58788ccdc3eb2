"""Static greedy: the greedy order of the first full window, for good. The baseline."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.policies.filters.base import Decision, Policy, View
from penstock.policies.filters.model.drop_patterns import Bits, greedy_order
from penstock.policies.filters.model.matrix_view import every_entry


@dataclass(frozen=True, slots=True)
class StaticGreedy(Policy):
    """Orders predicates once, by what each drops of what is left, per second, and profiles no more.

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

    Reference: section 4 of the filters paper (Greedy); Theorem 4.1 has the bound. The position 0
    says that the first window is over.
    """

    def watched(self, predicates: int, position: int) -> Bits:
        """Everything, and afterwards nothing."""
        return every_entry(predicates) & (position > 0)

    def choose(self, view: View) -> Decision | None:
        """The greedy order, when the first window is full."""
        if not self._is_over(view):
            return None
        written = tuple(range(len(view.order)))
        order = greedy_order(view.patterns, view.seconds, written)
        return self.better(view, order, "the window is full for the first time")

    def position_after(self, view: View, changed: bool) -> int:
        """Place 0 when the first window is over, whether the order has changed or not."""
        return 0 if self._is_over(view) else view.position

    def _is_over(self, view: View) -> bool:
        return view.position > 0 and view.rows >= self.window
