"""Independent: predicates by what each drops of all rows, as if none overlapped with another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.policies.filters.base import Decision, Policy, View
from penstock.policies.filters.model.drop_patterns import Bits, Order


@dataclass(frozen=True, slots=True)
class Independent(Policy):
    """Sorts predicates by their drops per second among all dropped rows.

    If predicates are independent, this is the best order of all. If they are not, it may cost n
    times as much as A-Greedy's, since it asks a second predicate that drops what the first one
    dropped already. It needs one line of the matrix and fewer profiled rows.

    >>> from penstock.policies.filters.base import view_of
    >>> from penstock.policies.filters.model.profile import FilterPredicate, ProfileBatch
    >>> policy = Independent(window=5, enough=5)
    >>> profile = policy.prepare([FilterPredicate(name) for name in "abc"])
    >>> rows = np.array([[0, 1, 1], [0, 1, 1], [0, 1, 1], [1, 0, 0], [1, 0, 0]], bool)
    >>> policy.observe(profile, ProfileBatch(rows, np.ones(3)))
    >>> policy.choose(view_of(profile)).reason
    'b drops 3 per second, a 2; 1.56 instead of 1.84 s per row'

    Those are the seconds as if the predicates were independent; in fact it takes 2 instead of 1.6.

    Reference: section 6 of the filters paper, where Eddies order in this way.
    """

    p: float = 0.005

    def watched(self, predicates: int, position: int) -> Bits:
        """The first line."""
        watched = np.zeros((predicates, predicates), bool)
        watched[0] = True
        return watched

    def choose(self, view: View) -> Decision | None:
        """All predicates by their drops per second, if some place has a wrong one."""
        rates = view.rates[0]
        wrong = np.triu(rates[:, None] < self.alpha * rates, 1)
        if view.rows < self.enough or not wrong.any():
            return None
        order = tuple(view.order[place] for place in np.argsort(-rates, kind="stable"))
        place, later = (int(at) for at in np.argwhere(wrong)[0])
        ahead, behind = view.names[view.order[later]], view.names[view.order[place]]
        return self.better(view, order, f"{ahead} drops {rates[later]:.3g} per second, "
                                        f"{behind} {rates[place]:.3g}")

    def cost(self, view: View, order: Order) -> float:
        """Expected seconds per row if no predicate overlapped with another."""
        kept = 1 - view.matrix[0][list(_places(view.order, order))] / view.patterns.total
        reached = np.concatenate([[1.0], np.cumprod(kept)[:-1]])
        return float(reached @ view.seconds[list(order)])


def _places(present: Order, order: Order) -> Order:
    """Where the predicates of an order are at present."""
    return tuple(present.index(predicate) for predicate in order)
