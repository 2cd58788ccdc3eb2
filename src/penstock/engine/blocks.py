"""The blocks in the spool: how many readers each still has, which are in memory, which may go."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from penstock.engine.instructions import Cool, Instruction, Release
from penstock.model import Block

HOT_READERS = 2
"""A block is worth keeping in memory if at least this many paths still have to read it after the
present one: filling the cache costs about three times what one hot read saves."""
OPENING = 4 * 2**20
"""Opening a block's files costs about as much as reading this many bytes. Spark assumes the same
(`spark.sql.files.openCostInBytes`)."""

SQUEEZE = 1.0
"""Seconds between two searches for blocks that can leave a full spool."""
LOOK_AGAIN = 10.0
"""Re-check interval, in seconds, for blocks past their retention that a window may still need."""


@dataclass(slots=True)
class _Held:
    block: Block
    readers: int = 0
    """Queue entries and jobs that read it, or will."""
    parts: int = 0
    """Queue entries and jobs of intermediate rows made of it: it must stay in the spool."""
    hot: bool = False

    @property
    def reading_again(self) -> float:
        """The cost of reading it again for all its readers, per byte of memory gained.

        The unit is the cost of reading a byte. It is the same for every block: all are Parquet, in
        the spool or in the stream's own folder.
        """
        return self.readers * (OPENING + self.block.bytes) / max(self.block.bytes, 1)


@dataclass(slots=True)
class Blocks:
    """Everything the spool holds."""

    retention: float
    """Seconds a block stays after it arrived, once all have read it."""
    hot_bytes: int = 0
    stored: int = 0
    """Bytes in the spool."""
    _held: dict[tuple[str, int], _Held] = field(default_factory=dict)
    _newest: dict[str, int] = field(default_factory=dict)
    _earlier: list[Block] = field(default_factory=list)
    _aging: list[tuple[float, str, int]] = field(default_factory=list)
    _squeezed: float = -inf
    """When a search for blocks that can leave a full spool last found some that cannot."""
    _cooling: list[tuple[str, int]] = field(default_factory=list)

    def hold(self, block: Block, earlier: bool = False) -> None:
        """A block is in the spool: it has arrived, or an ``earlier`` run has left it."""
        self._newest[block.stream] = max(block.number, self.newest(block.stream))
        self._held[block.stream, block.number] = _Held(block)
        self.stored += block.stored
        if earlier:
            self._earlier.append(block)

    def settle_earlier(self) -> None:
        """Release blocks of an earlier run that nobody wants: by now all queries have joined."""
        for block in self._earlier:
            if self.find(block.stream, block.number):
                self.settle(block)
        self._earlier.clear()

    def find(self, stream: str, number: int) -> Block | None:
        """A block that is there."""
        held = self._held.get((stream, number))
        return held.block if held else None

    def of(self, stream: str) -> list[Block]:
        """The blocks of a stream that are there, in the order of their numbers."""
        found = [held.block for (name, _), held in self._held.items() if name == stream]
        return sorted(found, key=lambda block: block.number)

    def newest(self, stream: str) -> int:
        """The highest number among the stream's blocks so far; -1 when there was none."""
        return self._newest.get(stream, -1)

    @property
    def following(self) -> dict[str, int]:
        """By stream, the number of the block that comes next."""
        return {stream: newest + 1 for stream, newest in self._newest.items()}

    def oldest(self, stream: str) -> float:
        """The least number among the stream's blocks that are there; infinite if none is."""
        return min((number for name, number in self._held if name == stream), default=inf)

    # --- readers -----------------------------------------------------------------------------

    def take(self, block: Block) -> None:
        """The block has one more reader."""
        self._held[block.stream, block.number].readers += 1

    def keep_part(self, block: Block) -> None:
        """A reader is done with the block, and goes on with the intermediate rows made of it."""
        held = self._held[block.stream, block.number]
        held.readers -= 1
        held.parts += 1
        self.settle(block)

    def let_go(self, block: Block, part: bool = False) -> None:
        """One reader is done with the block, or with intermediate rows made of it."""
        held = self._held[block.stream, block.number]
        held.readers -= not part
        held.parts -= part
        self.settle(block)

    def settle(self, block: Block) -> None:
        """A block without readers may leave memory; one that nobody needs may age."""
        held = self._held[block.stream, block.number]
        if held.readers == 0:
            self._cooling.append((block.stream, block.number))
        if held.readers == held.parts == 0:
            due = block.arrived + self.retention
            heapq.heappush(self._aging, (due, block.stream, block.number))

    # --- memory ------------------------------------------------------------------------------

    def worth_keeping(
        self, blocks: Iterable[Block], room: int, smallest: int = 0
    ) -> tuple[int, ...]:
        """The blocks that should stay in memory once read, for the readers that follow.

        A block smaller than ``smallest`` bytes is not kept: reading it again is cheaper.
        """
        keep = []
        for block in blocks:
            held = self._held[block.stream, block.number]
            if not held.hot and held.readers - 1 >= HOT_READERS and (
                    smallest <= block.bytes <= room):
                keep.append(block.number)
                room -= block.bytes
        return tuple(keep)

    def warm(self, stream: str, number: int) -> None:
        """A block is held in memory."""
        held = self._held.get((stream, number))
        if held and not held.hot:
            held.hot = True
            self.hot_bytes += held.block.bytes

    def cool(self, spare: int) -> Iterator[Instruction]:
        """Free this many bytes of memory, beginning with the blocks that are cheapest to re-read.

        Those have few readers; of two with as many, the larger is cheaper per byte.
        """
        if spare <= 0:
            return
        hot = [held for held in self._held.values() if held.hot]
        for held in sorted(hot, key=lambda held: held.reading_again):
            if spare <= 0:
                return
            spare -= held.block.bytes
            yield self._cooled(held)

    def release(
        self, at: float, needed: Mapping[str, int] | None = None, most: float = inf
    ) -> Iterator[Instruction]:
        """Cool blocks without readers; delete blocks past their retention, or past ``most`` bytes.

        ``needed`` has, by stream, the time in microseconds from which on rows may be read again.
        Blocks that may hold such rows stay.
        """
        for place in self._cooling:
            held = self._held.get(place)
            if held and held.hot and held.readers == 0:
                yield self._cooled(held)
        self._cooling.clear()
        stay: list[tuple[float, str, int]] = []
        most = most if at >= self._squeezed + SQUEEZE else inf
        while self._aging and (self._aging[0][0] <= at or self.stored >= most):
            due, stream, number = heapq.heappop(self._aging)
            held = self._held.get((stream, number))
            if held and held.readers == held.parts == 0:
                since = (needed or {}).get(stream)
                if since is not None and (held.block.newest is None or held.block.newest >= since):
                    stay.append((max(due, at + LOOK_AGAIN), stream, number))
                    continue
                del self._held[stream, number]
                self.stored -= held.block.stored
                yield Release(stream=stream, number=number)
        for one in stay:
            heapq.heappush(self._aging, one)
            self._squeezed = at

    def _cooled(self, held: _Held) -> Cool:
        held.hot = False
        self.hot_bytes -= held.block.bytes
        return Cool(stream=held.block.stream, number=held.block.number)
