"""The blocks in the spool: who still reads them, which are held in memory, which may go."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from penstock.engine.instructions import Cool, Instruction, Release
from penstock.model import Block

HOT_READERS = 2
"""A block is worth keeping in memory when at least this many paths still have to read it after
the one that reads it now: filling the cache costs about three times what one hot read saves."""
OPENING = 4 * 2**20
"""To open a block's files costs about as much as to read so many bytes: Spark's own reckoning
(`spark.sql.files.openCostInBytes`)."""

SQUEEZE = 1.0
"""Seconds between two looks for blocks that could leave a full spool."""
LOOK_AGAIN = 10.0
"""Seconds after which a block is looked at again that is old enough to go but may be needed."""


@dataclass(slots=True)
class _Held:
    block: Block
    readers: int = 0
    """Queue entries and runs that read it, or will."""
    parts: int = 0
    """Queue entries and runs of rows that were kept of it: it must not leave the spool yet."""
    hot: bool = False

    @property
    def reading_again(self) -> float:
        """What it would cost to read it again for all who will, per byte of memory gained.

        In units of reading a byte, which costs the same for every block: all of them are Parquet,
        in the spool or in the stream's own folder.
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
    """When blocks were last looked for that could leave a full spool, and some could not."""
    _cooling: list[tuple[str, int]] = field(default_factory=list)

    def hold(self, block: Block, earlier: bool = False) -> None:
        """A block is in the spool: it has come, or an ``earlier`` run has left it."""
        self._newest[block.stream] = max(block.number, self.newest(block.stream))
        self._held[block.stream, block.number] = _Held(block)
        self.stored += block.stored
        if earlier:
            self._earlier.append(block)

    def settle_earlier(self) -> None:
        """Let blocks of an earlier run go that nobody wants: by now all queries have joined."""
        for block in self._earlier:
            if self.find(block.stream, block.number):
                self.settle(block)
        self._earlier.clear()

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

    def keep_part(self, block: Block) -> None:
        """A reader is done with the block itself, and goes on with what it kept of it."""
        held = self._held[block.stream, block.number]
        held.readers -= 1
        held.parts += 1
        self.settle(block)

    def let_go(self, block: Block, part: bool = False) -> None:
        """One reader is done with the block, or with a part of it."""
        held = self._held[block.stream, block.number]
        held.readers -= not part
        held.parts -= part
        self.settle(block)

    def settle(self, block: Block) -> None:
        """A block that nobody reads is not worth its memory; one that nobody needs grows old."""
        held = self._held[block.stream, block.number]
        if held.readers == 0:
            self._cooling.append((block.stream, block.number))
        if held.readers == held.parts == 0:
            due = block.arrived + self.retention
            heapq.heappush(self._aging, (due, block.stream, block.number))

    # --- memory ------------------------------------------------------------------------------

    def worth_keeping(self, blocks: Iterable[Block], room: int) -> tuple[int, ...]:
        """Those that should stay in memory as they are read, for the readers that come after."""
        keep = []
        for block in blocks:
            held = self._held[block.stream, block.number]
            if not held.hot and held.readers - 1 >= HOT_READERS and block.bytes <= room:
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
        """Let go of so many bytes of memory, first of what costs least to read again.

        That is blocks that few will read and, of two with as many readers, the larger.
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
        """Cool what nobody waits for; delete what is past its retention, or past ``most`` bytes.

        ``needed`` has streams whose rows from some time on (in microseconds) may be read again:
        blocks that may hold such rows stay.
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
