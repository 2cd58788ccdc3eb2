"""Operator scheduling: which segment runs next. The catalogue, and how text names a policy."""

from __future__ import annotations

import difflib
import inspect
import re

from penstock.errors import PolicyError
from penstock.policies.operators.base import Policy, Queue, Run, View
from penstock.policies.operators.chain import Chain
from penstock.policies.operators.chain_flush import ChainFlush
from penstock.policies.operators.edf import Edf
from penstock.policies.operators.fifo import Fifo
from penstock.policies.operators.greedy import Greedy
from penstock.policies.operators.mixed import Mixed
from penstock.policies.operators.preemptive_rate_based import PreemptiveRateBased
from penstock.policies.operators.rate_based import RateBased
from penstock.policies.operators.round_robin import RoundRobin
from penstock.policies.operators.routes import Route, Segment, Stage

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

_CALL = re.compile(r"\s*(\w+)\s*(?:\((.*)\))?\s*$", re.DOTALL)


def policy(text: str) -> Policy:
    """The policy that text such as ``fifo`` or ``mixed(gamma=0.01)`` names.

    >>> policy("fifo"), policy("round_robin(quantum=2)")
    (Fifo(), RoundRobin(quantum=2.0))
    """
    match = _CALL.match(text)
    name = match.group(1).lower() if match else text
    if match is None or name not in POLICIES:
        close = difflib.get_close_matches(name, POLICIES, 1)
        hint = f"; did you mean '{close[0]}'?" if close else f"; there is {', '.join(POLICIES)}"
        raise PolicyError(f"no operator policy '{name}'{hint}")
    kind = POLICIES[name]
    parameters = dict(_parameter(name, part) for part in (match.group(2) or "").split(",")
                      if part.strip())
    known = [name for name in inspect.signature(kind).parameters if not name.startswith("_")]
    for parameter in parameters:
        if parameter not in known:
            takes = ", ".join(known) or "no parameters"
            raise PolicyError(f"policy '{name}' has no parameter '{parameter}'; it takes {takes}")
    return kind(**parameters)


def policies(text: str) -> dict[str, Policy]:
    """Several policies, separated by commas, each under its own text.

    >>> list(policies("fifo, mixed(gamma=0.01), chain_flush(latency=2, tuples=10)"))
    ['fifo', 'mixed(gamma=0.01)', 'chain_flush(latency=2, tuples=10)']
    """
    parts = [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]
    return {part: policy(part) for part in parts}


def _parameter(name: str, part: str) -> tuple[str, float | bool]:
    key, _, value = part.partition("=")
    truth = {"true": True, "false": False}.get(value.strip().lower())
    try:
        return key.strip(), float(value) if truth is None else truth
    except ValueError:
        raise PolicyError(
            f"policy '{name}': '{part.strip()}' is not of the form parameter = number") from None


__all__ = ["DEFAULT", "POLICIES", "Policy", "Queue", "Route", "Run", "Segment", "Stage", "View",
           "policies", "policy"]
