"""Pure choices with their reasons, in families; each family's catalogue lists its policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.policies import filters, joins, operators, refresh
from penstock.policies.family import PolicyFamily

FAMILIES: dict[str, PolicyFamily[Any]] = {
    "operators": operators.FAMILY,
    "refresh": refresh.FAMILY,
    "joins": joins.FAMILY,
    "filters": filters.FAMILY,
}
"""Every family by the name of its setting; to add one, add a folder and a line here."""


def texts(settings: Mapping[str, str]) -> dict[str, str]:
    """By family, the text that the settings of an application choose, or the default.

    >>> texts({"operators": "chain", "memory": "1 GB"})
    {'operators': 'chain', 'refresh': 'hybrid+late_pending', 'joins': 'mqt', 'filters': 'a_greedy'}
    """
    return {name: settings.get(name, family.default) for name, family in FAMILIES.items()}


def read(settings: Mapping[str, str]) -> dict[str, object]:
    """By family, the policy that the settings of an application choose, or the default.

    >>> read({"operators": "chain"})
    {'operators': Chain(), 'refresh': ..., 'filters': AGreedy(...)}
    """
    return {name: FAMILIES[name].read(text) for name, text in texts(settings).items()}


__all__ = ["FAMILIES", "PolicyFamily", "read", "texts"]
