"""Who rides together: groups of members, and lanes that separate members when a job fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from penstock.plan import Member


@dataclass(slots=True)
class Riders:
    """The members that ride in one job, by number, and who may not ride with whom.

    A job that fails twice is retried in two halves, each in a lane of its own, until the query that
    fails stands alone. A member whose job succeeded returns to the common lane.
    """

    _groups: dict[tuple[str, tuple[Member, ...]], int] = field(default_factory=dict)
    _formed: int = 0
    _lanes: dict[Member, int] = field(default_factory=dict)
    _lane: int = 0
    changes: int = 0
    """How often a member has changed its lane: while it stays, lanes are as they were."""

    def group(self, path: str, members: tuple[Member, ...]) -> tuple[int, bool]:
        """The number of a group, and whether it is new."""
        known = self._groups.get((path, members))
        if known is not None:
            return known, False
        self._formed += 1
        self._groups[path, members] = self._formed
        return self._formed, True

    def dissolve(self, query: str) -> None:
        """Forget the groups of an earlier query of this name."""
        self._groups = {riders: group for riders, group in self._groups.items()
                        if all(member.query != query for member in riders[1])}

    def lane(self, member: Member) -> int:
        """The lane in which a member rides; 0 is the common one."""
        return self._lanes.get(member, 0)

    def set_apart(self, members: Iterable[Member], first: Callable[[Member], bool]) -> None:
        """Give two new lanes: one to the ``first`` half, one to the others."""
        self._lane += 2
        self.changes += 1
        for member in members:
            self._lanes[member] = self._lane - first(member)

    def clear(self, members: Iterable[Member]) -> None:
        """Members whose job succeeded may ride with the others again."""
        if self._lanes:
            self.changes += 1
            for member in members:
                self._lanes.pop(member, None)
