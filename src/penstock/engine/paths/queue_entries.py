"""The work that waits before a stage of a path: which blocks, and for which members."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from math import inf

from penstock.events.kinds import KeptRows
from penstock.model import Block
from penstock.plan import Member

TRAIN_BLOCKS = 64
TRAIN_ROWS = 4_000_000
"""The most rows of a train, so that a decision comes round again and a failed job repeats little.
"""
AGAIN = -1
"""The lane of blocks from which only panes are made, a second time."""


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """What some members of a path still have to see: a block, or the rows a job kept of several.

    ``lane`` is 0, except for members set apart while the core looks for the one that fails.
    """

    blocks: tuple[Block, ...]
    """In the order of their numbers."""
    members: tuple[Member, ...]
    lane: int = 0
    job: int = 0
    """The job that kept it; 0 for a block as it arrived."""
    kept: KeptRows | None = None
    """What that job kept."""
    met: tuple[int, ...] = ()
    """The predicates of the path's conjunction that these rows have met, by number."""

    @property
    def order(self) -> tuple[int, int]:
        """Blocks of one stream arrive in the order of their numbers."""
        return (self.blocks[0].number, self.lane)

    @property
    def arrived(self) -> float:
        """When the oldest block of it arrived."""
        return self.blocks[0].arrived

    @property
    def rows(self) -> int:
        """Rows that wait."""
        return self.kept.rows if self.kept else sum(block.rows for block in self.blocks)

    @property
    def bytes(self) -> int:
        """Bytes that wait."""
        return self.kept.bytes if self.kept else sum(block.bytes for block in self.blocks)


@dataclass(slots=True)
class StageQueue:
    """What waits before a stage of a path, in order of arrival; one entry per block and lane."""

    entries: list[QueueEntry] = field(default_factory=list)

    def __len__(self) -> int:
        """How many entries wait."""
        return len(self.entries)

    def add(self, entry: QueueEntry, rank: Callable[[Member], int]) -> bool:
        """Add an entry, merged with one of the same block and lane if there is one: then False.

        Members come out in plan order (``rank``), so that equal sets of members are equal tuples
        and their blocks can ride in one train.
        """
        place = self._place(entry)
        if place < len(self.entries) and self.entries[place].order == entry.order:
            members = {*self.entries[place].members, *entry.members}
            self.entries[place] = replace(entry, members=tuple(sorted(members, key=rank)))
            return False
        self.entries.insert(place, entry)
        return True

    def train(
        self, most_rows: float = TRAIN_ROWS, most_blocks: float = inf,
        sees: Callable[[Block], object] | None = None,
    ) -> list[QueueEntry]:
        """The entries that would ride in one job now: those of one kind at the head.

        With ``sees``, only blocks for which it gives the same ride together.
        """
        head = self.entries[0]
        riders: list[QueueEntry] = []
        rows = blocks = 0
        for entry in self.entries:
            if sees is not None and sees(entry.blocks[0]) != sees(head.blocks[0]):
                break  # all later blocks differ as well
            if (entry.lane, entry.members, entry.met) != (head.lane, head.members, head.met):
                continue
            rows, blocks = rows + entry.rows, blocks + len(entry.blocks)
            if riders and (rows > most_rows or blocks > most_blocks):
                break
            riders.append(entry)
            if len(riders) == TRAIN_BLOCKS:
                break
        return riders

    def is_full(self) -> bool:
        """Whether a whole train waits, so that waiting for more would gain nothing."""
        return (len(self.entries) >= TRAIN_BLOCKS
                or sum(entry.rows for entry in self.entries) >= TRAIN_ROWS)

    def remove(self, entries: Iterable[QueueEntry]) -> None:
        """Take entries out. They are usually at the head, so the others are not examined."""
        for entry in entries:
            del self.entries[self._place(entry)]

    def withdraw(self, query: str) -> list[QueueEntry]:
        """Take a query's members out; return the entries that nobody wants now."""
        kept: list[QueueEntry] = []
        unwanted: list[QueueEntry] = []
        for entry in self.entries:
            members = tuple(m for m in entry.members if m.query != query)
            if not members:
                unwanted.append(entry)
            else:
                same = len(members) == len(entry.members)
                kept.append(entry if same else replace(entry, members=members))
        self.entries = kept
        return unwanted

    def _place(self, entry: QueueEntry) -> int:
        return bisect.bisect_left(self.entries, entry.order, key=lambda e: e.order)
