"""Refreshing answers: which ones next, and which of them together. The catalogue of policies."""

from __future__ import annotations

from penstock.policies.family import PolicyFamily
from penstock.policies.naming import named, parted
from penstock.policies.refresh.aggressive import Aggressive
from penstock.policies.refresh.base import Decision, Policy, View
from penstock.policies.refresh.conservative import Conservative
from penstock.policies.refresh.edf import EarliestDeadline
from penstock.policies.refresh.hybrid import Hybrid
from penstock.policies.refresh.late import Late
from penstock.policies.refresh.late_pending import LatePending
from penstock.policies.refresh.model.tasks import Costs, Due, QueryGroup, Task, WindowQuery
from penstock.policies.refresh.no_sharing import NoSharing

POLICIES: dict[str, type[Policy]] = {
    "no_sharing": NoSharing,
    "edf": EarliestDeadline,
    "aggressive": Aggressive,
    "conservative": Conservative,
    "hybrid": Hybrid,
}
"""Every refresh policy by name; to add one, add a file and a line here."""

MODIFIERS: dict[str, type[Late]] = {
    "late": Late,
    "late_pending": LatePending,
}
"""What may follow a policy's name after a ``+``."""

DEFAULT = "hybrid+late_pending"
"""The policy of an application that sets none."""


def policy(text: str) -> Policy:
    """The policy that text such as ``hybrid`` or ``hybrid+late_pending`` names.

    >>> policy("conservative"), policy("hybrid + late_pending")
    (Conservative(), LatePending(of=Hybrid()))
    """
    first, *modifiers = parted(text, by="+") or [text]
    made = named(first, POLICIES, "refresh policy")
    for modifier in modifiers:
        made = named(modifier, MODIFIERS, "modifier of a refresh policy", of=made)
    return made


FAMILY = PolicyFamily(
    name="refresh",
    decides="which answers of window aggregates are renewed next, and which of them together",
    contract=Policy,
    catalogue=POLICIES,
    default=DEFAULT,
    read=policy,
)


def policies(text: str) -> dict[str, Policy]:
    """Several policies, separated by commas, each under its own text.

    >>> list(policies("no_sharing, hybrid+late"))
    ['no_sharing', 'hybrid+late']
    """
    return FAMILY.several(text)


__all__ = ["DEFAULT", "FAMILY", "MODIFIERS", "POLICIES", "Costs", "Decision", "Due", "Policy",
           "QueryGroup", "Task", "View", "WindowQuery", "policies", "policy"]
