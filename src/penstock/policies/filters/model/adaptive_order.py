"""The order of one conjunction as it adapts: what every host does with a filters policy."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.policies.filters.base import Decision, Policy, view_of
from penstock.policies.filters.model.drop_patterns import Order
from penstock.policies.filters.model.profile import FilterPredicate, ProfileBatch, ProfileRequest


class AdaptiveOrder:
    """Takes profiles in, gives orders out. Hosts evaluate predicates in `order`.

    While they do, they sample as `request` says. Between two blocks they hand over the sample and
    ask for a decision, which holds from the next block on.

    >>> import numpy as np
    >>> from penstock.policies.filters import policy
    >>> adaptive = AdaptiveOrder(policy("a_greedy(enough=2)"), [FilterPredicate("slow", 9.0),
    ...                                                         FilterPredicate("fast", 1.0)])
    >>> adaptive.order, adaptive.request.unasked  # by the place that dropped a row
    ((0, 1), ((1,), ()))
    >>> adaptive.observe(ProfileBatch(np.array([[1, 1], [0, 1]], bool), np.array([8.0, 1.0])))
    >>> adaptive.decide().reason
    'fast before slow: drops 2 per second against 0.125; 1 instead of 8.5 s per row'
    >>> adaptive.order
    (1, 0)
    """

    def __init__(self, policy: Policy, predicates: Sequence[FilterPredicate]) -> None:
        """Begin with the order in which the predicates are written."""
        self.policy = policy
        self.profile = policy.prepare(predicates)

    def go_on(self, order: Order) -> None:
        """Begin with an order that is known instead."""
        position = self.profile.position
        self.profile.adopt(order, position, self.policy.watched(len(order), position))

    @property
    def order(self) -> Order:
        """In which order predicates are evaluated now."""
        return self.profile.order

    @property
    def request(self) -> ProfileRequest:
        """What to sample meanwhile."""
        return self.profile.request(self.policy.p)

    def observe(self, batch: ProfileBatch) -> None:
        """Some dropped rows were profiled."""
        self.policy.observe(self.profile, batch)

    def decide(self) -> Decision | None:
        """Adopt another order, if the policy wants one."""
        view = view_of(self.profile)
        decision = self.policy.choose(view)
        order = decision.order if decision else view.order
        position = self.policy.position_after(view, decision is not None)
        if decision or position != view.position:
            self.profile.adopt(order, position, self.policy.watched(len(order), position))
        return decision
