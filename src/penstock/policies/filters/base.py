"""What a filters policy sees, what it answers, and the contract between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.errors import PolicyError
from penstock.policies.filters.model.drop_patterns import Bits, DropPatterns, Floats, Order
from penstock.policies.filters.model.matrix_view import Counts, every_entry, unasked
from penstock.policies.filters.model.profile import FilterPredicate, Profile, ProfileBatch


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What the profile of a conjunction says at one moment."""

    names: tuple[str, ...]
    """The predicates in the order written."""
    order: Order
    """The present order; a *place* is an index into it."""
    matrix: Counts
    """By place and place: see `MatrixView`."""
    patterns: DropPatterns
    """The profiled rows, and those that passed meanwhile."""
    seconds: Floats
    """By predicate: the mean seconds per row."""
    rows: int
    """How many profiled rows there are."""
    position: int
    """The place that is profiled, under a policy that profiles one at a time."""
    version: int = 0
    """How often the order or that place has changed."""

    @property
    def rates(self) -> Floats:
        """The matrix divided by what the predicates take: drops per second."""
        rates: Floats = self.matrix / self.seconds[list(self.order)]
        return rates


def view_of(profile: Profile) -> View:
    """What a profile says now; later rows do not change it."""
    return View(tuple(predicate.name for predicate in profile.predicates), profile.order,
                profile.matrix.counts.copy(), profile.patterns, profile.seconds, profile.rows,
                profile.position, profile.version)


@dataclass(frozen=True, slots=True)
class Decision:
    """Evaluate predicates in this order from now on, for this reason."""

    order: Order
    reason: str
    before: float
    """Expected seconds per row in the present order."""
    after: float
    """The same in the new one."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Decides in which order the predicates of a conjunction are evaluated.

    `prepare` makes an empty profile, `observe` adds what a host sampled, and `choose` looks at the
    profile and perhaps changes the order. A policy keeps nothing itself. `AdaptiveOrder` does what
    all hosts do with the three.
    """

    alpha: float = 0.9
    """The thrash-avoidance factor: a predicate overtakes another only if this part of its drops per
    second is still more than the other's."""
    p: float = 0.01
    """The drop-profiling probability: the share of the dropped rows that are profiled."""
    window: float = 1000
    """Profiled rows that the window holds."""
    enough: float = 100
    """Nothing changes while the window holds fewer."""
    gain: float = 0.01
    """A new order must save this part of the expected cost. With 0 any order that restores the
    invariant is adopted, as in the paper."""
    per_partition: float = 0.0
    """A partition gets an order of its own if that saves this part of the expected cost of its
    rows; with 0 all have the same order. Probes, and rows in virtual time, are of one partition."""

    def __post_init__(self) -> None:
        """Refuse parameters that make no sense."""
        for name in ("alpha", "p"):
            if not 0 < getattr(self, name) <= 1:
                raise PolicyError(f"filters policy: {name} must be above 0 and at most 1")
        for name in ("gain", "per_partition"):
            if not 0 <= getattr(self, name) < 1:
                raise PolicyError(f"filters policy: {name} must be at least 0 and below 1")
        if self.per_partition and len(unasked(self.watched(3, 1))[0]) < 2:
            raise PolicyError("filters policy: per_partition needs a policy that profiles all "
                              "predicates, such as a_greedy")
        if not 1 <= self.enough <= self.window:
            raise PolicyError("filters policy: enough must be at least 1 and at most the window")

    def prepare(self, predicates: Sequence[FilterPredicate]) -> Profile:
        """An empty profile; predicates are evaluated as they are written."""
        first = min(1, len(predicates) - 1)
        watched = self.watched(len(predicates), first)
        return Profile(predicates, int(self.window), watched)

    def watched(self, predicates: int, position: int) -> Bits:
        """The entries of the matrix that are kept (Figure 7), which say what must be profiled."""
        return every_entry(predicates)

    def observe(self, profile: Profile, batch: ProfileBatch) -> None:
        """Take what was profiled."""
        profile.add(batch)

    def choose(self, view: View) -> Decision | None:
        """Another order, or None to keep the present one."""
        raise NotImplementedError

    def position_after(self, view: View, changed: bool) -> int:
        """The place to profile next, if a policy profiles one at a time."""
        return view.position

    def cost(self, view: View, order: Order) -> float:
        """Expected seconds per row under an order, as far as this policy knows."""
        return view.patterns.expected_cost(order, view.seconds)

    def violations(self, view: View) -> Bits:
        """By place and later place, whether the later predicate should come first (equation 4)."""
        rates = view.rates
        found: Bits = (np.diag(rates)[:, None] < self.alpha * rates) & _later(len(rates))
        return found

    def better(self, view: View, order: Order, why: str) -> Decision | None:
        """A decision for an order, if it is another one and saves enough."""
        before, after = self.cost(view, view.order), self.cost(view, order)
        if order == view.order or (self.gain and not after < before * (1 - self.gain)):
            return None
        return Decision(order, f"{why}; {after:.3g} instead of {before:.3g} s per row",
                        before, after)


def overtakes(view: View, place: int, later: int) -> str:
    """Why the predicate at a later place should be evaluated at an earlier one.

    >>> profile = Profile([FilterPredicate("a"), FilterPredicate("b")], window=3)
    >>> profile.add(ProfileBatch(np.array([[0, 1], [1, 1], [0, 1]], bool), np.array([0.5, 0.25])))
    >>> overtakes(view_of(profile), 0, 1)
    'b before a: drops 12 per second against 2'
    """
    ahead, behind = (view.names[view.order[at]] for at in (later, place))
    rates = view.rates
    return (f"{ahead} before {behind}: drops {rates[place, later]:.3g} per second "
            f"against {rates[place, place]:.3g}")


def _later(predicates: int) -> Bits:
    later: Bits = np.triu(np.ones((predicates, predicates), bool), 1)
    return later
