"""What waits before the stages of all paths, kept in step with memory and blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias

from penstock.engine.blocks import Blocks
from penstock.engine.instructions import Cool, Forget, Instruction
from penstock.engine.paths.bisection import Riders
from penstock.engine.paths.queue_entries import AGAIN, QueueEntry, StageQueue
from penstock.engine.queue_memory import Place, QueueMemory
from penstock.model import Block
from penstock.plan import Member, Plan

_Share: TypeAlias = tuple[str, int, tuple[Member, ...]]
"""A path, a lane, and the members that ride there."""


@dataclass(slots=True)
class StageQueues:
    """The queues, and which members are in them."""

    blocks: Blocks
    memory: QueueMemory = field(default_factory=QueueMemory)
    riders: Riders = field(default_factory=Riders)
    places: list[Place] = field(default_factory=list)
    """The stages before which work can wait, in plan order."""
    numbers: dict[Place, int] = field(default_factory=dict)
    """By place, its number in that order."""
    queues: dict[Place, StageQueue] = field(default_factory=dict)
    _home: dict[Member, str] = field(default_factory=dict)
    _rank: dict[Member, int] = field(default_factory=dict)
    _retry: set[tuple[Place, int, int]] = field(default_factory=set)
    _forgotten: list[Forget] = field(default_factory=list)
    _of: dict[str, list[Place]] = field(default_factory=dict)
    """By path, its places."""
    _changed: dict[Place, None] = field(default_factory=dict)
    """The places that the scheduler must be told about."""
    _count: int = 0
    _latest: tuple[object, Sequence[_Share]] = (None, ())
    """Whose shares were asked for last, under which lanes, and the shares."""

    def adopt(self, plan: Plan) -> None:
        """Move what waits to the paths that now carry it."""
        waiting = [(place, entry) for place, queue in self.queues.items()
                   for entry in queue.entries]
        members = [(member, path.id) for path in plan.paths for member in path.members]
        self._home = dict(members)
        self._rank = {member: rank for rank, (member, _) in enumerate(members)}
        self._of = {path.id: [(path.id, k) for k in range(len(path.stages))]
                    for path in plan.paths}
        self.places = [place for places in self._of.values() for place in places]
        self.numbers = {place: number for number, place in enumerate(self.places)}
        self.queues = {place: StageQueue() for place in self.places}
        self._changed = dict.fromkeys(self.places)
        self._count, self._latest = 0, (None, ())
        for place, entry in waiting:
            self.memory.leave(place, entry)
            self.put_back(place, entry, entry.members)

    # --- coming ------------------------------------------------------------------------------

    def add(
        self, block: Block, members: Iterable[Member], retry: bool = False, lane: int | None = None
    ) -> None:
        """Put a block before the paths of these members."""
        for path, own, riders in self._shares_of(tuple(members), lane):
            entry = QueueEntry((block,), riders, own)
            if self._enter((path, 0), entry):
                self.blocks.take(block)
                self.memory.hold(entry)
                self.memory.enter((path, 0), entry)
            if retry:
                self._retry.add(((path, 0), *entry.order))

    def _shares_of(self, members: tuple[Member, ...], lane: int | None) -> Sequence[_Share]:
        """The members of each path and lane, in plan order; they are found once for many blocks."""
        asked = members, lane, self.riders.changes
        if asked != self._latest[0]:
            shares: dict[tuple[str, int], list[Member]] = {}
            for member in members:
                if member in self._home:
                    own = self.riders.lane(member) if lane is None else lane
                    shares.setdefault((self._home[member], own), []).append(member)
            self._latest = asked, [
                (path, own, tuple(sorted(riders, key=self._rank.__getitem__)))
                for (path, own), riders in shares.items()]
        return self._latest[1]

    def keep(
        self, entries: Iterable[QueueEntry], kept: QueueEntry, place: Place,
        members: tuple[Member, ...],
    ) -> None:
        """The rows that a job kept of entries wait before a stage, if any member wants them."""
        for entry in entries:
            self.memory.drop(entry)
            for block in entry.blocks if not entry.job else ():
                self.blocks.keep_part(block)
        self.memory.hold(kept)
        self.put_back(place, kept, members)

    def put_back(
        self, place: Place, entry: QueueEntry, members: tuple[Member, ...], retry: bool = False
    ) -> None:
        """Let entries wait again that waited or were in a job; let go of what nobody wants.

        Rows kept on a path that no longer exists are of no use: their blocks start again.
        """
        if entry.job and members and place in self.queues:
            self._wait(entry, place)
            if retry:
                self._retry.add((place, *entry.order))
            return
        for block in entry.blocks:
            self.add(block, members, retry, AGAIN if entry.lane == AGAIN else None)
        self.let_go(entry)
        self._forget(entry)

    def begin_anew(self, path: str) -> None:
        """Give up the rows that were kept between stages of a path: their blocks start again."""
        for place in self._of.get(path, ())[1:]:
            queue = self.queues[place]
            for entry in list(queue.entries):
                queue.remove([entry])
                self._leave(place, entry)
                lane = AGAIN if entry.lane == AGAIN else None
                for block in entry.blocks:
                    self.add(block, entry.members, lane=lane)
                self.let_go(entry)
                self._forget(entry)

    def _wait(self, entry: QueueEntry, place: Place) -> None:
        self._enter(place, entry)
        self.memory.enter(place, entry)

    def _enter(self, place: Place, entry: QueueEntry) -> bool:
        """Put an entry into a queue; return False if it merged with another."""
        self._changed[place] = None
        added = self.queues[place].add(entry, self._rank.__getitem__)
        self._count += added
        return added

    def _leave(self, place: Place, entry: QueueEntry) -> None:
        """An entry was taken out of a queue."""
        self._changed[place] = None
        self._count -= 1
        self.memory.leave(place, entry)

    # --- going -------------------------------------------------------------------------------

    def take(
        self, place: Place, most_rows: float, most_blocks: float = inf,
        sees: Callable[[Block], object] | None = None,
    ) -> tuple[list[QueueEntry], bool]:
        """The next train from a queue, and whether it was tried before: then it goes alone."""
        queue = self.queues[place]
        retried = (place, *queue.entries[0].order) in self._retry
        train = queue.entries[:1] if retried else queue.train(most_rows, most_blocks, sees)
        queue.remove(train)
        for entry in train:
            self._leave(place, entry)
            self._retry.discard((place, *entry.order))
        return train, retried

    def let_go(self, entry: QueueEntry) -> None:
        """An entry is done."""
        self.memory.drop(entry)
        for block in entry.blocks:
            self.blocks.let_go(block, part=bool(entry.job))

    def withdraw(self, query: str) -> None:
        """A query no longer waits for anything."""
        for place, queue in self.queues.items():
            for entry in queue.withdraw(query):
                self._leave(place, entry)
                self.let_go(entry)
                self._forget(entry)

    def _forget(self, entry: QueueEntry) -> None:
        if entry.job:
            self._forgotten.append(Forget(job=entry.job))

    def forgotten(self) -> list[Forget]:
        """Kept rows that nobody will take up; each is listed once."""
        gone, self._forgotten = self._forgotten, []
        return gone

    def make_room(
        self, at: float, budget: int, needed: dict[str, int], spool: float = inf
    ) -> Iterator[Instruction]:
        """Let go of blocks that are not worth their memory, or their room in the spool.

        ``needed`` has, by stream, the time from which on rows may be read again.
        """
        gone = list(self.blocks.release(at, needed, spool))
        gone += self.blocks.cool(self.held_in_memory - budget)
        for instruction in gone:
            if isinstance(instruction, Cool):
                self.memory.heat(instruction.stream, instruction.number, hot=False)
            yield instruction

    # --- looking -----------------------------------------------------------------------------

    def touch(self, path: str) -> None:
        """A job on this path has begun or ended: its queues are blocked, or free."""
        self._changed.update(dict.fromkeys(self._of.get(path, ())))

    def touch_all(self) -> None:
        """Something that decides which queues may run has changed."""
        self._changed = dict.fromkeys(self.places)

    def changed(self) -> list[Place]:
        """The places whose queues have changed since the last call."""
        changed, self._changed = list(self._changed), {}
        return changed

    def __len__(self) -> int:
        """How many entries wait."""
        return self._count

    def is_wanted_by(self, query: str) -> bool:
        """Whether anything waits for a query."""
        return any(member.query == query for queue in self.queues.values()
                   for entry in queue.entries for member in entry.members)

    def before(self, path: str) -> Iterator[QueueEntry]:
        """What waits anywhere on a path."""
        for place in self._of.get(path, ()):
            yield from self.queues[place].entries

    @property
    def held_in_memory(self) -> int:
        """Bytes of blocks and kept rows in memory."""
        return self.blocks.hot_bytes + self.memory.kept_hot
