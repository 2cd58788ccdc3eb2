"""What can happen to a relation that changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationAsked:
    """Somebody wants a relation to be read again now."""

    at: float
    relation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationRead:
    """A relation was read again, or could not be."""

    at: float
    relation: str
    version: int
    """The number that its rows get if they are others than before."""
    digest: str = ""
    """Two reads with the same digest found the same rows."""
    rows: int = 0
    seconds: float = 0.0
    reason: str = ""
    """Why it could not be read; empty if it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationChanged:
    """Blocks from here on are joined with this version of a relation."""

    at: float
    relation: str
    version: int
    digest: str
    rows: int
    since: Mapping[str, int] = field(default_factory=dict)
    """By stream, the first block that is joined with it. Of a stream that is missing it is the
    first block of all."""
    earlier: bool = False
    """Whether an earlier run has decided it."""
