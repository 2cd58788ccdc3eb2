"""Ordering the predicates of a conjunction: which one sees a row next. The catalogue."""

from __future__ import annotations

from penstock.policies.family import PolicyFamily
from penstock.policies.filters.a_greedy import AGreedy
from penstock.policies.filters.base import Decision, Policy, View, view_of
from penstock.policies.filters.independent import Independent
from penstock.policies.filters.local_swaps import LocalSwaps
from penstock.policies.filters.model.adaptive_order import AdaptiveOrder
from penstock.policies.filters.model.drop_patterns import DropPatterns
from penstock.policies.filters.model.profile import (
    FilterPredicate,
    Profile,
    ProfileBatch,
    ProfileRequest,
)
from penstock.policies.filters.static_greedy import StaticGreedy
from penstock.policies.filters.sweep import Sweep
from penstock.policies.naming import named

POLICIES: dict[str, type[Policy]] = {
    "static_greedy": StaticGreedy,
    "a_greedy": AGreedy,
    "sweep": Sweep,
    "independent": Independent,
    "local_swaps": LocalSwaps,
}
"""Every filters policy by name; to add one, add a file and a line here."""


def policy(text: str) -> Policy:
    """The policy that a text names.

    >>> policy("independent")
    Independent(alpha=0.9, p=0.005, window=1000, enough=100, gain=0.01, per_partition=0.0)
    """
    return named(text, POLICIES, "filters policy")


FAMILY = PolicyFamily(
    name="filters",
    decides="in which order predicates are evaluated",
    contract=Policy,
    catalogue=POLICIES,
    default="a_greedy",
    read=policy,
)

__all__ = ["FAMILY", "POLICIES", "AdaptiveOrder", "Decision", "DropPatterns", "FilterPredicate",
           "Policy", "Profile", "ProfileBatch", "ProfileRequest", "View", "policy", "view_of"]
