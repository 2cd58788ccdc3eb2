"""The outers of a shared join: stretches of time whose rows probe the window together.

Rows of both streams that lie in a stretch of event time are one *outer*. It begins where the one
before ends, and it ends before the earlier of the two streams' watermarks: no row of its time can
come any more. So the join waits for the stream that lags, each pair belongs to the one outer in
which its later row lies, and the pairs do not depend on how fast the streams are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from penstock.engine.instructions import JoinSide
from penstock.engine.state import EngineState
from penstock.model import Block
from penstock.plan import EARLIEST, Member

LATEST = -EARLIEST
"""A time in microseconds after all that can occur."""
MOST_ROWS = 500_000
"""An outer has no more rows than this, unless a single block does: they are broadcast."""


@dataclass(slots=True)
class Outer:
    """A stretch of time, and who has not had all pairs whose later rows lie in it."""

    number: int
    since: int
    until: int
    rows: int
    """About how many rows it has (`rows_within`)."""
    arrived: float
    """When the first of those blocks arrived."""
    rest: dict[Member, int] = field(default_factory=dict)
    """By member: its pairs of rows less than this far apart have been delivered."""
    whole: set[Member] = field(default_factory=set)
    """Members that get what is left of it at once: the log holds a part of a later outer."""

    @property
    def reach(self) -> int:
        """How far apart the pairs are that all its members have had."""
        return min(self.rest.values(), default=0)


def frontier(state: EngineState, streams: Iterable[str]) -> int | None:
    """The time before which no row of these streams can come any more; None while one is unknown.

    Late rows may come, but no join takes them.
    """
    ends = [_end(state, stream) for stream in streams]
    known = [end for end in ends if end is not None]
    return min(known) if len(known) == len(ends) else None


def _end(state: EngineState, stream: str) -> int | None:
    if state.is_at_its_end(stream):
        return LATEST
    newest = state.blocks.find(stream, state.blocks.newest(stream))
    return newest.watermark if newest is not None else None


def reaching(blocks: Iterable[Block], since: int, until: int) -> tuple[Block, ...]:
    """The blocks that may hold rows from ``since`` on and before ``until``.

    A block whose stream had no time so far counts as the earliest there is.
    """
    return tuple(block for block in blocks if block.rows and newest(block) >= since
                 and (block.cutoff is None or block.cutoff < until))


def rows_within(blocks: Iterable[Block], since: int, until: int) -> int:
    """About how many rows blocks have from ``since`` on and before ``until``.

    The rows of a block are taken to be spread evenly. Its last row often lies in the next outer,
    and none of the others does.

    >>> rows_within([Block("s", 0, 400, 0, 0.0, 0, 10, 10)], 5, 20)
    200
    """
    return round(sum(block.rows * _share(block, since, until) for block in blocks))


def _share(block: Block, since: int, until: int) -> float:
    if block.cutoff is None or newest(block) <= block.cutoff:  # nobody knows where it begins
        return float(since < newest(block) or block.newest is None)
    within = min(newest(block), until) - max(block.cutoff, since)
    return max(within, 0) / (newest(block) - block.cutoff)


def newest(block: Block) -> int:
    """The largest time on a block's stream up to and with it."""
    return EARLIEST if block.newest is None else block.newest


def cut(blocks: Sequence[Block], since: int, until: int, most: float) -> int:
    """Where an outer that begins at ``since`` ends: at ``until``, or before it has too many rows.

    It can end where a block ends.

    >>> some = [Block("s", n, 400, 0, 0.0, 10 * n, 10 * n + 10, 10 * n + 10) for n in range(5)]
    >>> cut(some, 0, 50, most=1000), cut(some, 0, 50, most=5000), cut(some, 0, 50, most=1)
    (20, 50, 10)
    """
    if rows_within(reaching(blocks, since, until), since, until) <= most:
        return until
    ends = sorted({block.watermark for block in blocks
                   if block.watermark is not None and since < block.watermark < until})
    chosen = until
    for end in reversed(ends):
        chosen = end
        if rows_within(reaching(blocks, since, end), since, end) <= most:
            break
    return chosen


def side(blocks: Sequence[Block], since: int, until: int, nearest: int, farthest: int) -> JoinSide:
    """The blocks of a stream that a scan reads."""
    return JoinSide(fresh=reaching(blocks, since, until),
                    window=reaching(blocks, max(since - farthest, EARLIEST), until - nearest))
