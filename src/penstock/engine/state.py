"""What all parts of the engine know: the plan, the streams, who reads them, and the blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.engine.blocks import Blocks
from penstock.engine.relation_versions import ChangingRelations
from penstock.engine.settings import Settings
from penstock.plan import Member, Plan


@dataclass(slots=True)
class EngineState:
    """The core writes it, and departments read it."""

    settings: Settings
    plan: Plan = field(default_factory=lambda: Plan((), ()))
    blocks: Blocks = field(init=False)
    relations: ChangingRelations = field(init=False)
    open: dict[str, None] = field(default_factory=dict)
    """Streams that may bring more blocks."""
    ended: dict[str, None] = field(default_factory=dict)
    """Streams that have brought all their blocks."""
    broken: dict[str, str] = field(default_factory=dict)
    """Streams that cannot be read any more, and why."""
    readers: dict[str, dict[Member, None]] = field(default_factory=dict)
    """By stream, the members that take its new blocks."""

    def __post_init__(self) -> None:
        """No block has come yet."""
        self.blocks = Blocks(self.settings.retention)
        self.relations = ChangingRelations(self.blocks)

    def expect(self, streams: Iterable[str]) -> None:
        """A query has joined that reads or derives these: those that are new may bring blocks."""
        for stream in streams:
            if stream not in self.ended and stream not in self.broken:
                self.open.setdefault(stream)

    def is_alive(self, query: str) -> bool:
        """Whether a query takes new blocks."""
        return any(member.query == query for members in self.readers.values()
                   for member in members)

    def retire(self, query: str) -> list[Member]:
        """Let a query take no more blocks; return the members that took some until now."""
        retired = []
        for members in self.readers.values():
            for member in [m for m in members if m.query == query]:
                del members[member]
                retired.append(member)
        return retired

    def is_at_its_end(self, stream: str) -> bool:
        """Whether a bounded stream has brought all its rows."""
        return (self.settings.until_drained and stream not in self.open
                and stream not in self.broken)
