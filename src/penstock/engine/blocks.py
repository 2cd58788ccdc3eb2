"""The blocks in the spool: who still reads them, which are held in memory, which may go."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.engine.instructions import Cool, Instruction, Release
from penstock.model import Block

HOT_READERS = 2
"""A block is worth keeping in memory when at least this many paths still have to read it after
the one that reads it now: filling the cache costs about three times what one hot read saves."""


@dataclass(slots=True)
class _Held:
    block: Block
    readers: int = 0
    """Queue entries and runs that still need it."""
    hot: bool = False


@dataclass(slots=True)
class Blocks:
    """Everything the spool holds."""

    retention: float
    """Seconds a block stays after it arrived, once all have read it."""
    hot_bytes: int = 0
    _held: dict[tuple[str, int], _Held] = field(default_factory=dict)
    _newest: dict[str, int] = field(default_factory=dict)
    _aging: list[tuple[float, str, int]] = field(default_factory=list)
    _cooling: list[tuple[str, int]] = field(default_factory=list)

    def hold(self, block: Block) -> None:
        """A block is in the spool."""
        self._newest[block.stream] = max(block.number, self.newest(block.stream))
        self._held[block.stream, block.number] = _Held(block)

    def find(self, stream: str, number: int) -> Block | None:
        """A block that is there."""
        held = self._held.get((stream, number))
        return held.block if held else None

    def newest(self, stream: str) -> int:
        """The highest number among the stream's blocks so far; -1 when there was none."""
        return self._newest.get(stream, -1)

    # --- readers -----------------------------------------------------------------------------

    def take(self, block: Block) -> None:
        """One more needs the block."""
        self._held[block.stream, block.number].readers += 1

    def let_go(self, block: Block) -> None:
        """One reader of the block is done."""
        self._held[block.stream, block.number].readers -= 1
        self.settle(block)

    def settle(self, block: Block) -> None:
        """A block that nobody reads grows old, and is no longer worth its memory."""
        if self._held[block.stream, block.number].readers == 0:
            due = block.arrived + self.retention
            heapq.heappush(self._aging, (due, block.stream, block.number))
            self._cooling.append((block.stream, block.number))

    # --- memory ------------------------------------------------------------------------------

    def worth_keeping(self, block: Block, room: int) -> bool:
        """Whether a block that is being read should stay in memory for those who come after."""
        held = self._held[block.stream, block.number]
        return not held.hot and held.readers - 1 >= HOT_READERS and block.bytes <= room

    def warm(self, stream: str, number: int) -> None:
        """A block is held in memory."""
        held = self._held.get((stream, number))
        if held and not held.hot:
            held.hot = True
            self.hot_bytes += held.block.bytes

    def cool(self, spare: int) -> Iterator[Instruction]:
        """Let go of so many bytes of memory, the largest blocks first; the spool has them all."""
        hot = [held for held in self._held.values() if held.hot]
        for held in sorted(hot, key=lambda held: -held.block.bytes):
            if spare <= 0:
                return
            spare -= held.block.bytes
            yield self._cooled(held)

    def release(self, at: float) -> Iterator[Instruction]:
        """Cool what nobody waits for; delete what is past its retention."""
        for place in self._cooling:
            held = self._held.get(place)
            if held and held.hot and held.readers == 0:
                yield self._cooled(held)
        self._cooling.clear()
        while self._aging and self._aging[0][0] <= at:
            _, stream, number = heapq.heappop(self._aging)
            held = self._held.get((stream, number))
            if held and held.readers == 0:
                del self._held[stream, number]
                yield Release(stream, number)

    def _cooled(self, held: _Held) -> Cool:
        held.hot = False
        self.hot_bytes -= held.block.bytes
        return Cool(held.block.stream, held.block.number)
