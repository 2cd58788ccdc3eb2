"""What waits before the stages of all paths, with the account and the blocks kept in step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf

from penstock.engine.blocks import Blocks
from penstock.engine.instructions import Cool, Forget, Instruction
from penstock.engine.paths.bisection import Riders
from penstock.engine.paths.queue_entries import AGAIN, Entry, StageQueue
from penstock.engine.queue_memory import Account, Place
from penstock.model import Block
from penstock.plan import Member, Plan


@dataclass(slots=True)
class Waiting:
    """The queues, and who is in them."""

    blocks: Blocks
    account: Account = field(default_factory=Account)
    riders: Riders = field(default_factory=Riders)
    places: list[Place] = field(default_factory=list)
    """Before which stages work can wait, in plan order."""
    queues: dict[Place, StageQueue] = field(default_factory=dict)
    _home: dict[Member, str] = field(default_factory=dict)
    _rank: dict[Member, int] = field(default_factory=dict)
    _retry: set[tuple[Place, int, int]] = field(default_factory=set)
    _forgotten: list[Forget] = field(default_factory=list)

    def adopt(self, plan: Plan) -> None:
        """What waits moves to the paths that now carry it."""
        waiting = [(place, entry) for place, queue in self.queues.items()
                   for entry in queue.entries]
        members = [(member, path.id) for path in plan.paths for member in path.members]
        self._home = dict(members)
        self._rank = {member: rank for rank, (member, _) in enumerate(members)}
        self.places = [(path.id, k) for path in plan.paths for k in range(len(path.stages))]
        self.queues = {place: StageQueue() for place in self.places}
        for place, entry in waiting:
            self.account.leave(place, entry)
            self.put_back(place, entry, entry.members)

    # --- coming ------------------------------------------------------------------------------

    def add(
        self, block: Block, members: Iterable[Member], retry: bool = False, lane: int | None = None
    ) -> None:
        """Put a block before the paths of these members."""
        shares: dict[tuple[str, int], list[Member]] = {}
        for member in members:
            if member in self._home:
                own = self.riders.lane(member) if lane is None else lane
                shares.setdefault((self._home[member], own), []).append(member)
        for (path, own), riders in shares.items():
            entry = Entry((block,), tuple(sorted(riders, key=self._rank.__getitem__)), own)
            if self.queues[path, 0].add(entry, self._rank.__getitem__):
                self.blocks.take(block)
                self.account.hold(entry)
                self.account.enter((path, 0), entry)
            if retry:
                self._retry.add(((path, 0), *entry.order))

    def keep(
        self, entries: Iterable[Entry], kept: Entry, place: Place, members: tuple[Member, ...]
    ) -> None:
        """What a run has kept of entries waits before a stage, for those who still want it."""
        for entry in entries:
            self.account.drop(entry)
            for block in entry.blocks if not entry.job else ():
                self.blocks.keep_part(block)
        self.account.hold(kept)
        self.put_back(place, kept, members)

    def put_back(
        self, place: Place, entry: Entry, members: tuple[Member, ...], retry: bool = False
    ) -> None:
        """Let what waited, or was under way, wait again; what nobody wants is let go.

        Rows that were kept on a path that is no more are of no use: their blocks begin anew.
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
        """Give up the rows that were kept between stages of a path: their blocks begin anew."""
        for place, queue in self.queues.items():
            for entry in list(queue.entries) if place[0] == path and place[1] else ():
                queue.remove([entry])
                self.account.leave(place, entry)
                lane = AGAIN if entry.lane == AGAIN else None
                for block in entry.blocks:
                    self.add(block, entry.members, lane=lane)
                self.let_go(entry)
                self._forget(entry)

    def _wait(self, entry: Entry, place: Place) -> None:
        self.queues[place].add(entry, self._rank.__getitem__)
        self.account.enter(place, entry)

    # --- going -------------------------------------------------------------------------------

    def take(self, place: Place, most_rows: float) -> tuple[list[Entry], bool]:
        """The next train from a queue, and whether it has been tried before: then it goes alone."""
        queue = self.queues[place]
        retried = (place, *queue.entries[0].order) in self._retry
        train = queue.entries[:1] if retried else queue.train(most_rows)
        queue.remove(train)
        for entry in train:
            self.account.leave(place, entry)
            self._retry.discard((place, *entry.order))
        return train, retried

    def let_go(self, entry: Entry) -> None:
        """An entry is done with."""
        self.account.drop(entry)
        for block in entry.blocks:
            self.blocks.let_go(block, part=bool(entry.job))

    def withdraw(self, query: str) -> None:
        """A query waits for nothing any more."""
        for place, queue in self.queues.items():
            for entry in queue.withdraw(query):
                self.account.leave(place, entry)
                self.let_go(entry)
                self._forget(entry)

    def _forget(self, entry: Entry) -> None:
        if entry.job:
            self._forgotten.append(Forget(job=entry.job))

    def forgotten(self) -> list[Forget]:
        """Kept rows that nobody will take up; each is told once."""
        gone, self._forgotten = self._forgotten, []
        return gone

    def make_room(
        self, at: float, memory: int, needed: dict[str, int], spool: float = inf
    ) -> Iterator[Instruction]:
        """Let go of blocks that are not worth their memory, or their place in the spool.

        ``needed`` has streams whose rows from some time on may be read again.
        """
        gone = list(self.blocks.release(at, needed, spool))
        gone += self.blocks.cool(self.held_in_memory - memory)
        for instruction in gone:
            if isinstance(instruction, Cool):
                self.account.heat(instruction.stream, instruction.number, hot=False)
            yield instruction

    # --- looking -----------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many entries wait."""
        return sum(len(queue) for queue in self.queues.values())

    def is_wanted_by(self, query: str) -> bool:
        """Whether something waits for a query."""
        return any(member.query == query for queue in self.queues.values()
                   for entry in queue.entries for member in entry.members)

    def before(self, path: str) -> Iterator[Entry]:
        """What waits anywhere on a path."""
        for place, queue in self.queues.items():
            if place[0] == path:
                yield from queue.entries

    @property
    def held_in_memory(self) -> int:
        """Bytes of blocks and kept rows in memory."""
        return self.blocks.hot_bytes + self.account.kept_hot
