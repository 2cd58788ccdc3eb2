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

_TRUTH = {"true": True, "false": False}
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
    given = [part for part in (match.group(2) or "").split(",") if part.strip()]
    return kind(**_parameters(name, kind, given))


def policies(text: str) -> dict[str, Policy]:
    """Several policies, separated by commas, each under its own text.

    >>> list(policies("fifo, mixed(gamma=0.01), chain_flush(latency=2, tuples=10)"))
    ['fifo', 'mixed(gamma=0.01)', 'chain_flush(latency=2, tuples=10)']
    """
    parts = [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]
    return {part: policy(part) for part in parts}


def _parameters(name: str, kind: type[Policy], given: list[str]) -> dict[str, float | bool]:
    known = inspect.signature(kind).parameters
    parameters: dict[str, float | bool] = {}
    for part in given:
        key, _, value = (word.strip() for word in part.partition("="))
        if key not in known:
            takes = f"takes {', '.join(known)}" if known else "takes none"
            raise PolicyError(f"policy '{name}' has no parameter '{key}'; it {takes}")
        if key in parameters:
            raise PolicyError(f"policy '{name}': '{key}' is given twice")
        parameters[key] = _value(name, part.strip(), value, isinstance(known[key].default, bool))
    return parameters


def _value(name: str, part: str, value: str, is_flag: bool) -> float | bool:
    try:
        return _TRUTH[value.lower()] if is_flag else float(value)
    except (KeyError, ValueError):
        form = "true or false" if is_flag else "number"
        raise PolicyError(
            f"policy '{name}': '{part}' is not of the form parameter = {form}") from None


__all__ = ["DEFAULT", "POLICIES", "Policy", "Queue", "Route", "Run", "Segment", "Stage", "View",
           "policies", "policy"]
