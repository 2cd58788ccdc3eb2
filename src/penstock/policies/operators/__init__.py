"""Operator scheduling: which segment runs next. The catalogue, and how text names a policy."""

from __future__ import annotations

import difflib
import inspect
import re

from penstock.errors import PolicyError
from penstock.policies.operators.base import Policy, Queue, Run, Segment, View
from penstock.policies.operators.fifo import Fifo

POLICIES: dict[str, type[Policy]] = {
    "fifo": Fifo,
}
"""Every operator policy by name; to add one, add a file and a line here."""

DEFAULT = "fifo"
"""The policy of an application that sets none."""

_CALL = re.compile(r"\s*(\w+)\s*(?:\((.*)\))?\s*$", re.DOTALL)


def policy(text: str) -> Policy:
    """The policy that text such as ``fifo`` or ``mixed(gamma=0.01)`` names.

    >>> policy("fifo")
    Fifo()
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
    known = inspect.signature(kind).parameters
    for parameter in parameters:
        if parameter not in known:
            takes = ", ".join(known) or "no parameters"
            raise PolicyError(f"policy '{name}' has no parameter '{parameter}'; it takes {takes}")
    return kind(**parameters)


def _parameter(name: str, part: str) -> tuple[str, float]:
    key, _, value = part.partition("=")
    try:
        return key.strip(), float(value)
    except ValueError:
        raise PolicyError(
            f"policy '{name}': '{part.strip()}' is not of the form parameter = number") from None


__all__ = ["DEFAULT", "POLICIES", "Policy", "Queue", "Run", "Segment", "View", "policy"]
