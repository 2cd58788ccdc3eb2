"""Queries with a lifetime, and when it is over."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field


@dataclass(slots=True)
class Lifetimes:
    """When each query's time is over.

    >>> lifetimes = Lifetimes()
    >>> lifetimes.begin("short", 10.0)
    >>> list(lifetimes.over(9.0)), lifetimes.next, list(lifetimes.over(10.0)), lifetimes.next
    ([], 10.0, ['short'], None)
    """

    _ends: list[tuple[float, str]] = field(default_factory=list)

    def begin(self, query: str, end: float) -> None:
        """A query ends then."""
        heapq.heappush(self._ends, (end, query))

    def over(self, at: float) -> list[str]:
        """The queries whose time is over, the earliest first; each is listed once."""
        ended = []
        while self._ends and self._ends[0][0] <= at:
            ended.append(heapq.heappop(self._ends)[1])
        return ended

    @property
    def next(self) -> float | None:
        """When the next one ends."""
        return self._ends[0][0] if self._ends else None
