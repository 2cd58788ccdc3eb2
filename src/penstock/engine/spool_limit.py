"""The bound of the spool: when streams pause for the queries, and when they resume."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from penstock.engine.instructions import Instruction, Note, Pause, Resume
from penstock.events import kinds as ev

LOW = 0.9
"""The streams resume when the spool holds less than this part of its bound."""


@dataclass(slots=True)
class SpoolLimit:
    """Whether the spool is full."""

    bound: float = inf
    _since: float | None = None
    """Since when the streams are paused."""
    _warned: bool = False

    @property
    def most(self) -> float:
        """Past this many bytes, blocks without readers go before their retention is over."""
        return self.bound if self._since is None else LOW * self.bound

    def look(self, at: float, stored: int, idle: bool) -> Iterator[Instruction]:
        """Compare what the spool holds with its bound.

        ``idle``: nothing waits and no job is active, so nothing will become free.
        """
        if self._since is None and stored >= self.bound:
            self._since = at
            yield Pause()
            yield Note(event=ev.SpoolFull(at=at, bytes=stored, bound=int(self.bound)))
        elif self._since is not None and stored < LOW * self.bound:
            yield Resume()
            yield Note(event=ev.SpoolFreed(at=at, bytes=stored, seconds=at - self._since))
            self._since, self._warned = None, False
        if self._since is not None and idle and not self._warned:
            self._warned = True
            yield Note(event=ev.Warned(
                at=at, subject="spool", text=f"its {int(self.bound):,} bytes are full of rows that "
                "windows may still need, so nothing of it can go and the streams stand still; SET "
                "spool to more, or shorten the windows"))
