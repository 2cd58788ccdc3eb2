"""Probing shared window joins: whose window is scanned next. The catalogue of policies."""

from __future__ import annotations

from penstock.policies.family import PolicyFamily
from penstock.policies.joins.base import Decision, Policy, View, Waiting
from penstock.policies.joins.isolated import Isolated
from penstock.policies.joins.lwo import LargestWindowOnly
from penstock.policies.joins.model.windows import JoinWindow, ScanCost, SharedScan
from penstock.policies.joins.mqt import MaximumQueryThroughput
from penstock.policies.joins.swf import SmallestWindowFirst
from penstock.policies.naming import named

POLICIES: dict[str, type[Policy]] = {
    "isolated": Isolated,
    "lwo": LargestWindowOnly,
    "swf": SmallestWindowFirst,
    "mqt": MaximumQueryThroughput,
}
"""Every joins policy by name; to add one, add a file and a line here."""


def policy(text: str) -> Policy:
    """The policy that a text names.

    >>> policy("mqt")
    MaximumQueryThroughput(merge=True)
    """
    return named(text, POLICIES, "joins policy")


FAMILY = PolicyFamily(
    name="joins",
    decides="whose window of a shared join is scanned next, and how far",
    contract=Policy,
    catalogue=POLICIES,
    default="mqt",
    read=policy,
)

__all__ = ["FAMILY", "POLICIES", "Decision", "JoinWindow", "Policy", "ScanCost", "SharedScan",
           "View", "Waiting", "policy"]
