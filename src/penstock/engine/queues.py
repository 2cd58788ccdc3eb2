"""The work that waits before a path: which blocks, and for which members."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from penstock.model import Block
from penstock.plan import Member

TRAIN_BLOCKS = 64
TRAIN_ROWS = 4_000_000
"""A train ends here, so that a decision comes round again and a failed run repeats little."""
JOB_ROWS = 1_000_000
"""With so many rows the fixed cost of a job is a small part of it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A block that some members of a path still have to see.

    ``lane`` is 0 but for members set apart while the core looks for the one that fails.
    """

    block: Block
    members: tuple[Member, ...]
    lane: int = 0

    @property
    def order(self) -> tuple[int, int]:
        """Blocks of one stream arrive in the order of their numbers."""
        return (self.block.number, self.lane)


@dataclass(slots=True)
class PathQueue:
    """Entries in order of arrival, at most one for each block and lane."""

    entries: list[Entry] = field(default_factory=list)

    def __len__(self) -> int:
        """How many entries wait."""
        return len(self.entries)

    def add(self, entry: Entry, rank: Callable[[Member], int]) -> bool:
        """Take an entry in, merged with one of the same block and lane; False when it merged.

        Members come out in plan order (``rank``), so that equal sets of members are equal tuples
        and their blocks can ride in one train.
        """
        place = bisect.bisect_left(self.entries, entry.order, key=lambda e: e.order)
        if place < len(self.entries) and self.entries[place].order == entry.order:
            members = {*self.entries[place].members, *entry.members}
            merged = Entry(entry.block, tuple(sorted(members, key=rank)), entry.lane)
            self.entries[place] = merged
            return False
        self.entries.insert(place, entry)
        return True

    def train(self) -> list[Entry]:
        """The entries that would ride in one job now: those at the head that are of one kind."""
        head = self.entries[0]
        riders: list[Entry] = []
        rows = 0
        for entry in self.entries:
            if entry.lane != head.lane or entry.members != head.members:
                continue
            if riders and rows + entry.block.rows > TRAIN_ROWS:
                break
            riders.append(entry)
            rows += entry.block.rows
            if len(riders) == TRAIN_BLOCKS:
                break
        return riders

    def is_worth_a_job(self) -> bool:
        """Whether so much waits that waiting for more would gain nothing."""
        rows = sum(entry.block.rows for entry in self.entries)
        return rows >= JOB_ROWS or len(self.entries) >= TRAIN_BLOCKS

    def remove(self, entries: Iterable[Entry]) -> None:
        """Take entries out."""
        gone = {entry.order for entry in entries}
        self.entries = [entry for entry in self.entries if entry.order not in gone]
