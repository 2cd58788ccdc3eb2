"""The bytes that wait: in all and before every stage, hot and cold.

They are counted entry by entry, so an event costs the same whether ten entries wait or ten
thousand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.engine.instructions import Note
from penstock.engine.paths.queue_entries import QueueEntry
from penstock.events.kinds import Queued, QueueLevel

Place = tuple[str, int]
"""A queue: the path, and the number of the stage before which it lies."""
_EMPTY = QueueLevel()
_Key = tuple[str, int]
"""A block by stream and number, or the intermediate rows of a job under an empty stream name."""


@dataclass(slots=True)
class _Thing:
    """A block, or the intermediate rows of a job."""

    bytes: int
    hot: bool
    users: int = 0
    """Its entries that wait or are in an active job."""
    places: list[Place] = field(default_factory=list)
    """The queues it waits in."""


@dataclass(slots=True)
class QueueMemory:
    """Counts what waits or is in an active job. A block that waits for several paths counts once.

    >>> from penstock.model import Block
    >>> memory, block = QueueMemory(), Block("s", 0, 10, 160, 0.0)
    >>> for path in ("p", "q"):
    ...     entry = QueueEntry((block,), ())
    ...     memory.hold(entry)
    ...     memory.enter((path, 0), entry)
    >>> memory.heat("s", 0)
    >>> [(note.event.bytes, note.event.queues["p"]) for note in memory.news(1.0, hot=160)]
    [(160, QueueLevel(entries=1, bytes=160, hot=160))]
    """

    blocks: int = 0
    """Blocks, and intermediate rows between two stages."""
    bytes: int = 0
    kept_hot: int = 0
    """Bytes of intermediate rows in memory."""
    _things: dict[_Key, _Thing] = field(default_factory=dict)
    _queues: dict[Place, QueueLevel] = field(default_factory=dict)
    """What waits before each stage."""
    _told: dict[Place, QueueLevel] = field(default_factory=dict)
    _total: QueueLevel = _EMPTY
    """The total that the last event had."""
    _touched: dict[Place, None] = field(default_factory=dict)

    def hold(self, entry: QueueEntry) -> None:
        """Count an entry until it is dropped: it waits, and then is in an active job.

        A block that was not counted yet is cold.
        """
        hot = entry.kept is not None and not entry.kept.on_disk
        for key, size in _keys(entry):
            if key not in self._things:
                self._things[key] = _Thing(size, hot)
                self._count(1, size, size if hot else 0)
            self._things[key].users += 1

    def drop(self, entry: QueueEntry) -> None:
        """An entry is done, or nobody wants it any more."""
        for key, size in _keys(entry):
            thing = self._things[key]
            thing.users -= 1
            if not thing.users:
                self._count(-1, -size, -size if thing.hot and entry.job else 0)
                del self._things[key]

    def enter(self, place: Place, entry: QueueEntry) -> None:
        """A counted entry waits before a stage."""
        for key, _ in _keys(entry):
            self._things[key].places.append(place)
            self._move(place, self._things[key], 1)

    def leave(self, place: Place, entry: QueueEntry) -> None:
        """An entry waits there no longer."""
        for key, _ in _keys(entry):
            self._things[key].places.remove(place)
            self._move(place, self._things[key], -1)

    def heat(self, stream: str, number: int, hot: bool = True) -> None:
        """A block is in memory now, or is not."""
        thing = self._things.get((stream, number))
        if thing is None or thing.hot == hot:
            return
        thing.hot = hot
        for place in thing.places:
            level = self._queues[place]
            self._set(place, level.entries, level.bytes,
                      level.hot + (thing.bytes if hot else -thing.bytes))

    def news(self, at: float, hot: int) -> Iterator[Note]:
        """What has changed since the last call; ``hot`` are the bytes of hot blocks."""
        total = QueueLevel(entries=self.blocks, bytes=self.bytes, hot=hot + self.kept_hot)
        queues = self._changed()
        if queues or total != self._total:
            self._total = total
            yield Note(event=Queued(at=at, blocks=total.entries, bytes=total.bytes, hot=total.hot,
                                    queues=queues))

    def _changed(self) -> dict[str, QueueLevel]:
        now = {place: self._queues.get(place, _EMPTY) for place in self._touched}
        fresh = {place: queue for place, queue in now.items()
                 if queue != self._told.get(place, _EMPTY)}
        self._touched.clear()
        for place, queue in fresh.items():
            if queue != _EMPTY:
                self._told[place] = queue
            else:
                self._told.pop(place, None)
        return {queue_name(place): queue for place, queue in fresh.items()}

    def _count(self, things: int, size: int, hot: int) -> None:
        self.blocks += things
        self.bytes += size
        self.kept_hot += hot

    def _move(self, place: Place, thing: _Thing, by: int) -> None:
        level = self._queues.get(place, _EMPTY)
        self._set(place, level.entries + by, level.bytes + by * thing.bytes,
                  level.hot + (by * thing.bytes if thing.hot else 0))

    def _set(self, place: Place, entries: int, size: int, hot: int) -> None:
        self._touched[place] = None
        if entries:
            self._queues[place] = QueueLevel(entries=entries, bytes=size, hot=hot)
        else:
            self._queues.pop(place, None)


def queue_name(place: Place) -> str:
    """A queue as people know it, and as the segment that begins there is called.

    >>> queue_name(("s/fanout", 0)), queue_name(("q#0", 2))
    ('s/fanout', 'q#0@2')
    """
    path, stage = place
    return f"{path}@{stage}" if stage else path


def _keys(entry: QueueEntry) -> Iterator[tuple[_Key, int]]:
    if entry.job:
        yield ("", entry.job), entry.bytes
    else:
        for block in entry.blocks:
            yield (block.stream, block.number), block.bytes
