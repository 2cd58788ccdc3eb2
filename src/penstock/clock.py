"""Time as an argument: a host hands its clock to whoever needs to know the time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Something that tells the time in seconds."""

    def now(self) -> float:
        """The time now."""


class SystemClock:
    """Real time, in seconds since 1970."""

    def now(self) -> float:
        """The time of day."""
        return time.time()


@dataclass(slots=True)
class VirtualClock:
    """Time that moves only when it is told to.

    >>> clock = VirtualClock()
    >>> clock.advance(to=2.5)
    >>> clock.now()
    2.5
    """

    time: float = 0.0

    def now(self) -> float:
        """The time it was last advanced to."""
        return self.time

    def advance(self, to: float) -> None:
        """Move forward; time never goes back."""
        if to < self.time:
            raise ValueError(f"time cannot go back from {self.time} to {to}")
        self.time = to
