"""Time as an argument: a host hands its clock to every part that needs the time."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
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
class SteadyClock:
    """Another clock's time that never goes back.

    Where the other clock is set back, time goes on at half its pace until the two agree again. So
    it does where an earlier run is known to have seen a later time (`reach`).

    >>> wall = VirtualClock(100.0)
    >>> clock = SteadyClock(wall)
    >>> clock.now()
    100.0
    >>> wall.time = 40.0
    >>> clock.now()
    100.0
    >>> wall.time = 50.0
    >>> clock.now()
    105.0
    >>> wall.time = 200.0
    >>> clock.now()
    200.0
    >>> clock.reach(300.0)
    >>> clock.now()
    300.0
    """

    clock: Clock
    _shown: float | None = None
    """The other clock's time when it was last looked at."""
    _time: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def now(self) -> float:
        """The time, at least that of the call before."""
        with self._lock:
            shown = self.clock.now()
            passed = 0.0 if self._shown is None else max(0.0, shown - self._shown)
            self._shown = shown
            self._time = shown if shown >= self._time else self._time + passed / 2
            return self._time

    def reach(self, time: float) -> None:
        """It is at least this late."""
        with self._lock:
            self._time = max(self._time, time)


@dataclass(slots=True)
class VirtualClock:
    """Time that moves only by `advance`.

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
