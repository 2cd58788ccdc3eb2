"""SET: the settings there are, and what each may hold."""

from __future__ import annotations

import re
from collections.abc import Callable

from penstock.language import durations, sizes
from penstock.policies import FAMILIES

AUTO = "auto"
"""Leaves the number of slots to the engine."""
_POLICY = re.compile(
    r"""\s*+[a-z_]\w*+\s*+
        (\(\s*+(?:[a-z_]\w*+\s*+=\s*+[\w.+'"-]++\s*+(?:,\s*+(?=[a-z_])|(?=\))))*+\))?+\s*+""",
    re.ASCII | re.I | re.VERBOSE,
)


def _policy(text: str) -> str:
    """``name``, ``name(parameter=value, ...)``, or several joined by ``+``."""
    if not all(_POLICY.fullmatch(part) for part in _parts(text)):
        raise ValueError(f"{text!r} is not a policy such as 'fifo' or 'mixed(gamma=0.01)'")
    return "".join(text.split()).replace(",", ", ").lower()


def _parts(text: str) -> list[str]:
    """What stands between the ``+`` outside of parentheses."""
    edges, depth = [-1], 0
    for position, char in enumerate(text):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "+" and depth == 0:
            edges.append(position)
    return [text[a + 1 : b] for a, b in zip(edges, [*edges[1:], len(text)], strict=True)]


def _size(text: str) -> str:
    if sizes.bytes(text) <= 0:
        raise ValueError(f"{text!r} is no memory at all")
    return " ".join(text.upper().split())


def _bound(text: str) -> str:
    return "none" if text.strip().lower() == "none" else _size(text)


def _duration(text: str) -> str:
    durations.seconds(text)
    return " ".join(text.split())


def _slots(text: str) -> str:
    given = text.strip().lower()
    if given != AUTO and not re.fullmatch(r"[1-9]\d{0,3}", given, re.ASCII):
        raise ValueError(f"{text!r} is neither 'auto' nor a whole number of at least 1")
    return given


SETTINGS: dict[str, Callable[[str], str]] = dict(sorted({
    **dict.fromkeys(FAMILIES, _policy),
    "memory": _size,
    "quantum": _duration,
    "retention": _duration,
    "retry": _duration,
    "slots": _slots,
    "spool": _bound,
    "synopses": _size,
    "timeout": _duration,
    "trigger": _duration,
}.items()))
"""What normalises the value of each setting, or raises ValueError."""
