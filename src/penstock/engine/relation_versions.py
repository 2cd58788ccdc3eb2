"""Relations that change: when they are read again, and which version a block is joined with.

A relation is read again when its time has come or somebody asks. If it has other rows than before,
they are its next *version*. The version holds for all blocks that the core has not been told of
yet. So a block has one version, whatever is read later, and whenever the block is joined. A version
is kept until no block is left that was joined with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import inf

from penstock.engine.blocks import Blocks
from penstock.engine.instructions import Instruction, Note, ReadRelation, StoreVersions
from penstock.engine.version_history import RelationHistory, RelationVersion
from penstock.events import kinds as ev


@dataclass(slots=True)
class ChangingRelations:
    """Decides when relations are read again, and from which block on a change holds.

    >>> relations = ChangingRelations(Blocks(0.0))
    >>> relations.adopt((("users", 60.0),))
    >>> def read(digest, at):
    ...     order = relations.order("users")
    ...     return relations.take(ev.RelationRead(at=at, relation="users", version=order.version,
    ...                                           digest=digest, rows=1))
    >>> _, stored = read("one", at=0.0)
    >>> relations.next, read("one", at=60.0)
    (60.0, [])
    >>> noted, _ = read("two", at=120.0)
    >>> noted.event.version, dict(noted.event.since)
    (2, {})
    """

    blocks: Blocks
    history: RelationHistory = field(default_factory=RelationHistory)
    _periods: dict[str, float] = field(default_factory=dict)
    """The relations that some query looks up, with the seconds between two reads; infinite for
    those that are read when asked."""
    _due: dict[str, float] = field(default_factory=dict)
    _under_way: dict[str, bool] = field(default_factory=dict)
    """The relations that are being read, and whether somebody has asked for them meanwhile."""
    _known: dict[str, None] = field(default_factory=dict)
    """Those that were read since some query has looked them up."""

    def adopt(self, changing: Iterable[tuple[str, float]]) -> None:
        """These relations are looked up from now on, and read again after so many seconds."""
        self._periods = dict(changing)
        self._due = {name: at for name, at in self._due.items() if name in self._periods}
        self._known = {name: None for name in self._known if name in self._periods}

    @property
    def unread(self) -> tuple[str, ...]:
        """The relations that have to be read before a query may join."""
        return tuple(name for name in self._periods if name not in self._known)

    @property
    def next(self) -> float | None:
        """When the next relation is to be read."""
        due = [at for name, at in self._due.items() if name not in self._under_way]
        return min(due, default=None)

    def order(self, relation: str) -> ReadRelation:
        """What a host is told to read."""
        self._under_way[relation] = False
        latest = self.history.latest(relation)
        return ReadRelation(
            relation=relation, version=1 + (latest.number if latest else 0),
            digest=latest.digest if latest else "")

    def due(self, at: float) -> list[Instruction]:
        """Read the relations whose time has come."""
        return [self.order(name) for name, when in self._due.items()
                if when <= at and name not in self._under_way]

    def take(self, event: ev.Event) -> list[Instruction]:
        """A relation was read, is asked for, or has a version from an earlier run."""
        match event:
            case ev.RelationAsked(relation=relation, at=at) if relation in self._periods:
                if relation in self._under_way:
                    self._under_way[relation] = True
                else:
                    self._due[relation] = at
            case ev.RelationRead():
                return self._read(event)
            case ev.RelationChanged():
                self.history = self.history.having(event.relation, RelationVersion(
                    event.version, event.digest, event.rows, dict(event.since)))
        return []

    def _read(self, event: ev.RelationRead) -> list[Instruction]:
        name, again = event.relation, self._under_way.pop(event.relation, False)
        if name not in self._periods:
            return []  # its queries have left meanwhile
        self._known[name] = None
        self._due[name] = event.at if again else event.at + self._periods[name]
        if self._due[name] == inf:
            del self._due[name]
        latest = self.history.latest(name)
        if event.reason:
            goes_on = f"; its version {latest.number} goes on" if latest else ""
            return [Note(event=ev.Warned(at=event.at, subject=f"relation {name}",
                                         text=f"it cannot be read: {event.reason}{goes_on}"))]
        if latest is not None and latest.digest == event.digest:
            return []
        return self._change(event, latest)

    def _change(
        self, event: ev.RelationRead, latest: RelationVersion | None
    ) -> list[Instruction]:
        since = {} if latest is None else {**latest.since, **self.blocks.following}
        self.history = self.history.having(event.relation, RelationVersion(
            event.version, event.digest, event.rows, since))
        changed = ev.RelationChanged(at=event.at, relation=event.relation, version=event.version,
                                     digest=event.digest, rows=event.rows, since=since)
        self._drop()
        return [Note(event=changed), StoreVersions(history=self.history)]

    def released(self) -> list[Instruction]:
        """Blocks have left the spool: drop the versions that none needs any more."""
        before = self.history
        self._drop()
        return [] if self.history == before else [StoreVersions(history=self.history)]

    def _drop(self) -> None:
        for name, versions in self.history.versions.items():
            while len(versions) > 1 and all(
                    self.blocks.oldest(stream) >= first
                    for stream, first in versions[1].since.items()):
                versions = versions[1:]
            self.history = replace(self.history, versions={
                **self.history.versions, name: versions})
