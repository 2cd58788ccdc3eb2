"""Operator scheduling: which segment runs next. The catalogue, and how text names a policy."""

from __future__ import annotations

from penstock.policies.family import PolicyFamily
from penstock.policies.naming import named
from penstock.policies.operators.base import (
    Decision,
    Flushing,
    Policy,
    Queue,
    Ranked,
    View,
    instant,
)
from penstock.policies.operators.chain import Chain
from penstock.policies.operators.chain_flush import ChainFlush
from penstock.policies.operators.edf import Edf
from penstock.policies.operators.fifo import Fifo
from penstock.policies.operators.greedy import Greedy
from penstock.policies.operators.mixed import Mixed
from penstock.policies.operators.model.routes import Route, Segment, Stage
from penstock.policies.operators.preemptive_rate_based import PreemptiveRateBased
from penstock.policies.operators.rate_based import RateBased
from penstock.policies.operators.round_robin import RoundRobin

POLICIES: dict[str, type[Policy]] = {
    "fifo": Fifo,
    "round_robin": RoundRobin,
    "greedy": Greedy,
    "chain": Chain,
    "chain_flush": ChainFlush,
    "mixed": Mixed,
    "edf": Edf,
    "rate_based": RateBased,
    "preemptive_rate_based": PreemptiveRateBased,
}
"""Every operator policy by name; to add one, add a file and a line here."""

DEFAULT = "fifo"
"""The policy of an application that sets none."""


def policy(text: str) -> Policy:
    """The policy that text such as ``fifo`` or ``mixed(gamma=0.01)`` names.

    >>> policy("fifo"), policy("round_robin(quantum=2)")
    (Fifo(), RoundRobin(quantum=2.0))
    """
    return named(text, POLICIES, "operator policy")


FAMILY = PolicyFamily(
    name="operators",
    decides="which segment of which path runs next",
    contract=Policy,
    catalogue=POLICIES,
    default=DEFAULT,
    read=policy,
)


def policies(text: str) -> dict[str, Policy]:
    """Several policies, separated by commas, each under its own text.

    >>> list(policies("fifo, mixed(gamma=0.01), chain_flush(latency=2, tuples=10)"))
    ['fifo', 'mixed(gamma=0.01)', 'chain_flush(latency=2, tuples=10)']
    """
    return FAMILY.several(text)


__all__ = ["DEFAULT", "FAMILY", "POLICIES", "Decision", "Flushing", "Policy", "Queue", "Ranked",
           "Route", "Segment", "Stage", "View", "instant", "policies", "policy"]
