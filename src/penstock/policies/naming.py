"""How text names a policy: ``fifo``, ``mixed(gamma=0.01)``; one reader for every family."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping
from typing import TypeVar

from penstock.errors import PolicyError

_Policy = TypeVar("_Policy")

_TRUTH = {"true": True, "false": False}
_CALL = re.compile(r"\s*(\w+)\s*(?:\((.*)\))?\s*$", re.DOTALL)


def named(text: str, kinds: Mapping[str, type[_Policy]], family: str, **given: object) -> _Policy:
    """The policy that the text names; ``given`` are arguments that text cannot give.

    >>> named("fraction(numerator=3)", {"fraction": __import__("fractions").Fraction}, "number")
    Fraction(3, 1)
    """
    match = _CALL.match(text)
    name = match.group(1).lower() if match else text
    if match is None or name not in kinds:
        close = difflib.get_close_matches(name, kinds, 1)
        hint = f"; did you mean '{close[0]}'?" if close else f"; there is {', '.join(kinds)}"
        raise PolicyError(f"no {family} '{name}'{hint}")
    kind = kinds[name]
    parts = [part for part in (match.group(2) or "").split(",") if part.strip()]
    known = {key: parameter for key, parameter in inspect.signature(kind).parameters.items()
             if key not in given}
    return kind(**given, **_parameters(name, known, parts))


def parted(text: str, by: str = ",") -> list[str]:
    """The parts of a text between separators that stand outside parentheses.

    >>> parted("fifo, mixed(gamma=1, latency=2)"), parted("hybrid + late", by="+")
    (['fifo', 'mixed(gamma=1, latency=2)'], ['hybrid', 'late'])
    """
    parts = re.split(re.escape(by) + r"(?![^(]*\))", text)
    return [part.strip() for part in parts if part.strip()]


def _parameters(
    name: str, known: Mapping[str, inspect.Parameter], given: list[str]
) -> dict[str, float | bool]:
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
