"""The spool in virtual time: the blocks that have arrived, and the event times of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.engine.positions import SpoolContents
from penstock.model import Block, Stream

BYTES_PER_ROW = 16


@dataclass(slots=True)
class VirtualSpool:
    """The blocks of all streams."""

    times: dict[str, EventTime] = field(default_factory=dict)
    """By stream, if its blocks have event times."""
    _numbers: dict[str, int] = field(default_factory=dict)
    """By stream, the number of the last block that will arrive."""
    _blocks: dict[str, dict[int, Block]] = field(default_factory=dict)
    """By stream, the blocks that have arrived and are not released."""
    _newest: dict[str, Block] = field(default_factory=dict)
    """By stream, the last block that has arrived."""

    def block(
        self, stream: Stream, arrived: float, rows: int, late: int,
        times: Sequence[float] | None,
    ) -> Block:
        """The next block of a stream; with ``times``, in seconds, its rows have event times."""
        number = self._numbers[stream.name] = self._numbers.get(stream.name, -1) + 1
        if times is None:
            return Block(stream.name, number, rows, rows * BYTES_PER_ROW, arrived, late=late)
        clock = self.times.setdefault(stream.name, EventTime(round(stream.lateness * 1e6)))
        return clock.block(stream.name, number, arrived, [round(time * 1e6) for time in times])

    def add(self, block: Block) -> None:
        """A block has arrived."""
        self._blocks.setdefault(block.stream, {})[block.number] = block
        self._newest[block.stream] = block

    def release(self, stream: str, number: int) -> None:
        """A block goes, if it has not gone already."""
        self._blocks[stream].pop(number, None)

    def held(self, stream: str) -> list[Block]:
        """The blocks of a stream that can be read."""
        return list(self._blocks.get(stream, {}).values())

    def contents(self, stream: Stream) -> SpoolContents:
        """The same, as `penstock.engine.positions` wants to know it."""
        return SpoolContents(self.held(stream.name), self._newest.get(stream.name),
                             round(stream.lateness * 1e6))

    def times_of(self, blocks: Sequence[Block]) -> list[int]:
        """The event times of the rows of one stream's blocks, without late ones."""
        known = self.times.get(blocks[0].stream)
        return [time for block in blocks for time in known.times[block.number]] if known else []


@dataclass(slots=True)
class EventTime:
    """The event times of a stream's blocks, in microseconds, and which of them are late."""

    lateness: int
    seen: int | None = None
    times: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """By block, without the late ones: those that windows take."""

    def block(self, stream: str, number: int, arrived: float, times: Sequence[int]) -> Block:
        """A block whose rows have these times."""
        cutoff = None if self.seen is None else self.seen - self.lateness
        kept = tuple(time for time in times if cutoff is None or time >= cutoff)
        self.times[number] = kept
        self.seen = max(kept if self.seen is None else (*kept, self.seen), default=None)
        watermark = None if self.seen is None else self.seen - self.lateness
        return Block(stream, number, len(times), len(times) * BYTES_PER_ROW, arrived,
                     cutoff, watermark, self.seen, len(times) - len(kept))
