"""What can happen to a stream on its way into the spool."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEnded:
    """A bounded stream has given its last block."""

    at: float
    stream: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFailed:
    """A stream cannot be read; its queries stop once they have had what the spool holds."""

    at: float
    stream: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRetried:
    """A stream could not be read, for a reason that may pass; it is retried after a pause."""

    at: float
    stream: str
    reason: str
    pause: float
    """Seconds until the retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolFull:
    """The spool has reached its limit; the streams wait until queries have read some of it."""

    at: float
    bytes: int
    bound: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolFreed:
    """There is room in the spool again, and the streams resume."""

    at: float
    bytes: int
    seconds: float
    """How long the streams have waited."""
