"""The versions of relations, and the blocks that are joined with each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RelationVersion:
    """What a relation held when it was read."""

    number: int
    """Versions are counted from 1."""
    digest: str
    rows: int
    since: Mapping[str, int] = field(default_factory=dict)
    """By stream, the first block that is joined with it; 0 for a stream that is missing."""


@dataclass(frozen=True, slots=True)
class RelationHistory:
    """The versions that some block may still be joined with.

    >>> history = RelationHistory({"users": (
    ...     RelationVersion(1, "", 10), RelationVersion(2, "", 12, {"clicks": 7}))})
    >>> [history.seen("users", "clicks", block) for block in (0, 6, 7, 8)]
    [1, 1, 2, 2]

    A stream that had no block when the relation changed has the new version from its beginning:

    >>> history.seen("users", "views", 0)
    2
    """

    versions: Mapping[str, tuple[RelationVersion, ...]] = field(default_factory=dict)
    """By relation, in the order of their numbers."""

    def latest(self, relation: str) -> RelationVersion | None:
        """The newest version of a relation; None if it was never read."""
        known = self.versions.get(relation)
        return known[-1] if known else None

    def seen(self, relation: str, stream: str, block: int) -> int:
        """The version with which a block of a stream is joined; the oldest if all are newer."""
        known = self.versions[relation]
        return next((version.number for version in reversed(known)
                     if version.since.get(stream, 0) <= block), known[0].number)

    def having(self, relation: str, version: RelationVersion) -> RelationHistory:
        """The same with one more version."""
        known = self.versions.get(relation, ())
        return RelationHistory({**self.versions, relation: (*known, version)})
