"""Who still waits for which block: the bookkeeping behind "never lost, never twice".

A stream keeps the blocks that a member waits for. A member, which is one input of one branch of a
query, keeps how far it has come. Both forget a block when it is delivered, and the stream forgets
its size when it leaves the spool. So an endless run needs memory only for the blocks in its spool.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from penstock.model import Block


@dataclass(slots=True, eq=False)
class WaitingBlock:
    """A block that at least one member waits for."""

    block: Block
    order: int
    """Its place among the stream's arrivals in this run; -1 if a member waits for it again."""
    members: int = 0
    """How many members wait for it."""


@dataclass(slots=True)
class Row:
    """Blocks that arrived in a row, given to many members at once.

    A member that waits for all of them, and for none before, takes them as one: it moves its
    frontier. So a thousand members of a job need not be asked about every block of it.
    """

    blocks: tuple[WaitingBlock, ...]
    """In order of arrival; empty if the blocks of the job did not arrive in a row."""
    members: int = 0
    """How many members have taken them as one."""

    @staticmethod
    def of(blocks: Sequence[WaitingBlock | None]) -> Row:
        """The blocks of a job."""
        known = tuple(block for block in blocks if block is not None)
        orders = [block.order for block in known]
        in_a_row = orders == list(range(orders[0], orders[0] + len(blocks))) if orders else False
        return Row(known if in_a_row and orders[0] >= 0 else ())

    def settle(self, queue: StreamQueue) -> None:
        """The members that took them no longer wait for any of them."""
        for waiting in self.blocks if self.members else ():
            queue.settle(waiting, self.members)
        self.members = 0


@dataclass(slots=True, eq=False)
class StreamQueue:
    """The blocks of a stream that members wait for, in order of arrival."""

    waiting: dict[int, WaitingBlock] = field(default_factory=dict)
    spool: dict[int, Block] = field(default_factory=dict)
    """All blocks in the spool: a query may ask for earlier ones."""
    arrivals: int = 0
    """Blocks with rows that arrived in this run: the `order` of the next one."""
    newest: int = -1
    """The largest number seen."""
    readers: int = 0
    """Live members that read the stream."""
    rows: int = 0
    bytes: int = 0

    def hold(self, block: Block) -> bool:
        """A block is in the spool; return False if it was there before."""
        if block.number <= self.newest:
            return False
        self.newest = block.number
        self.spool[block.number] = block
        return True

    def arrive(self, block: Block) -> bool:
        """A block arrives for all readers; return False if it arrived before."""
        if not self.hold(block):
            return False
        if block.rows:  # nobody waits for an empty block
            if self.readers:
                self._add(WaitingBlock(block, self.arrivals, self.readers))
            self.arrivals += 1
        return True

    def await_again(self, number: int) -> bool:
        """One more member waits for a block from before it joined; False if it has no rows."""
        waiting = self.waiting.get(number)
        if waiting is None:
            block = self.spool.get(number)
            if block is None or not block.rows:
                return False
            waiting = WaitingBlock(block, -1)
            self._add(waiting)
        waiting.members += 1
        return True

    def settle(self, waiting: WaitingBlock, members: int = 1) -> None:
        """So many members fewer wait for the block; after the last one it waits no more."""
        waiting.members -= members
        if waiting.members == 0:
            self._remove(waiting.block.number)

    def release(self, number: int) -> WaitingBlock | None:
        """The block has left the spool; return it if a member still waits for it."""
        self.spool.pop(number, None)
        return self._remove(number)

    def _add(self, waiting: WaitingBlock) -> None:
        self.waiting[waiting.block.number] = waiting
        self.rows += waiting.block.rows
        self.bytes += waiting.block.bytes

    def _remove(self, number: int) -> WaitingBlock | None:
        waiting = self.waiting.pop(number, None)
        if waiting is not None:
            self.rows -= waiting.block.rows
            self.bytes -= waiting.block.bytes
        return waiting


class Ledger:
    """The blocks of its stream that one member has been given.

    ``frontier`` is the first arrival that it has not been given. ``ahead`` are those after it that
    it has been given. ``owed`` are the numbers of blocks from before it joined.
    """

    __slots__ = ("ahead", "frontier", "live", "name", "owed", "queue", "stream")

    def __init__(
        self, name: str, stream: str, queue: StreamQueue, backlog: Iterable[int] = ()
    ) -> None:
        """Join the stream now, with a backlog of earlier blocks."""
        self.name, self.stream, self.queue = name, stream, queue
        self.frontier = queue.arrivals
        self.ahead: set[int] = set()
        self.owed = {number for number in dict.fromkeys(backlog) if queue.await_again(number)}
        self.live = True
        queue.readers += 1

    def owes(self, waiting: WaitingBlock) -> bool:
        """Whether the member still waits for the block."""
        if waiting.block.number in self.owed:
            return True
        return waiting.order >= self.frontier and waiting.order not in self.ahead

    def deliver(self, waiting: WaitingBlock | None) -> bool:
        """Give the member a block; return False if it did not wait for it.

        A member that has left takes anything: a job may have been active when it left. Blocks that
        waited for a query whose lifetime has ended are still delivered.
        """
        if not self.live:
            return True
        if waiting is None or not self.owes(waiting):
            return False
        self._advance(waiting)
        self.queue.settle(waiting)
        return True

    def deliver_row(self, row: Row) -> bool:
        """Give the member blocks that arrived in a row; return False if it must be asked for each.

        The queue is told later, of all members at once (`Row.settle`).
        """
        if (not row.blocks or not self.live or self.owed or self.ahead
                or row.blocks[0].order != self.frontier):
            return False
        self.frontier += len(row.blocks)
        row.members += 1
        return True

    def leave(self) -> None:
        """The member no longer waits for anything."""
        if not self.live:
            return
        self.live = False
        self.queue.readers -= 1
        for waiting in self.waiting():
            self.queue.settle(waiting)

    def skip(self, waiting: WaitingBlock) -> bool:
        """Stop waiting for a block that is gone; return whether the member waited for it."""
        if not (self.live and self.owes(waiting)):
            return False
        self._advance(waiting)
        return True

    def waiting(self) -> list[WaitingBlock]:
        """The blocks that the member has still to be given."""
        return [waiting for waiting in list(self.queue.waiting.values()) if self.owes(waiting)]

    def _advance(self, waiting: WaitingBlock) -> None:
        number, order = waiting.block.number, waiting.order
        if number in self.owed:
            self.owed.discard(number)
        elif order == self.frontier:
            self.frontier += 1
            while self.frontier in self.ahead:
                self.ahead.discard(self.frontier)
                self.frontier += 1
        else:
            self.ahead.add(order)
