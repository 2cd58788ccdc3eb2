"""A family of policies: they answer one question, and one setting chooses among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from penstock.policies.naming import parted

_Policy = TypeVar("_Policy")


@dataclass(frozen=True, slots=True)
class PolicyFamily(Generic[_Policy]):
    """What the rest of the product knows about a family, whatever its policies decide.

    >>> from penstock.policies import FAMILIES
    >>> FAMILIES["operators"].read("round_robin(quantum=2)")
    RoundRobin(quantum=2.0)
    """

    name: str
    """The setting that chooses: ``SET name = 'policy'``."""
    decides: str
    """What a policy of this family decides, as the end of a sentence."""
    contract: type[_Policy]
    """The class that every policy of the family extends."""
    catalogue: Mapping[str, type[_Policy]]
    """Every policy by name."""
    default: str
    """The policy of an application that sets none."""
    read: Callable[[str], _Policy]
    """The policy that a text names."""

    def several(self, text: str) -> dict[str, _Policy]:
        """Several policies, separated by commas, each under its own text."""
        return {part: self.read(part) for part in parted(text)}

    def among(self, chosen: Mapping[str, object]) -> _Policy:
        """The family's policy among those chosen, by family; the default if there is none."""
        policy = chosen.get(self.name)
        if policy is None:
            return self.read(self.default)
        assert isinstance(policy, self.contract), f"{policy!r} is no policy for {self.name}"
        return policy
