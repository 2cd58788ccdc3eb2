"""When a stream that failed is retried."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    ParseException,
    PySparkException,
)

from penstock.clock import Clock
from penstock.errors import PenstockError
from penstock.events import kinds as ev
from penstock.spark.ingest.sources import plain

FIRST, LONGEST = 1.0, 60.0
"""Seconds of the first pause and of the longest; each is twice as long as the one before."""
_LASTING = (AnalysisException, IllegalArgumentException, ParseException, PenstockError, TypeError,
            ValueError)
_MARKS = ("AnalysisException", "ClassNotFoundException", "DATA_SOURCE_NOT_FOUND",
          "IllegalArgumentException", "UnsupportedOperationException")


@dataclass(slots=True)
class StreamRetries:
    """The pauses between retries.

    >>> retries = StreamRetries(patience=10.0)
    >>> [retries.pause(now) for now in (0.0, 1.0, 3.0, 7.0, 15.0)]
    [1.0, 2.0, 4.0, 8.0, None]
    """

    patience: float
    """Seconds for which a stream may fail before it is given up."""
    _since: float | None = None
    _last: float = 0.0

    def pause(self, now: float) -> float | None:
        """Seconds until the next retry; None if it has failed for too long."""
        self._since = now if self._since is None else self._since
        if now - self._since >= self.patience:
            return None
        self._last = min(2 * self._last, LONGEST) if self._last else FIRST
        return self._last

    def reset(self) -> None:
        """Forget earlier faults, since the stream was read."""
        self._since, self._last = None, 0.0


def may_pass(error: Exception) -> bool:
    """Whether a retry may succeed: not after a fault in the declaration."""
    return not isinstance(error, _LASTING) and not any(mark in str(error) for mark in _MARKS)


@dataclass(slots=True)
class StreamReader:
    """Reads a stream to its end; retries after a fault that may pass, with growing pauses."""

    stream: str
    clock: Clock
    report: Callable[[ev.Event], None]
    patience: float
    """Seconds for which the stream may fail, with faults that may pass, before it is given up."""
    stop: threading.Event

    def read_on(
        self, read: Callable[[], None], progress: Callable[[], int], is_over: Callable[[], bool]
    ) -> None:
        """Read, and report how it ended, unless it ``is_over`` for another reason.

        A stream that has made ``progress`` begins with short pauses again.
        """
        retries = StreamRetries(self.patience)
        fault: Exception | None = None
        while not self.stop.is_set():
            before = progress()
            try:
                read()
                fault = None
            except Exception as error:  # whatever a file system, Spark or Arrow may raise
                fault = error
            if is_over():
                return
            if fault is None:
                self.report(ev.StreamEnded(at=self.clock.now(), stream=self.stream))
                return
            if progress() > before:
                retries.reset()
            if not self._wait(fault, retries):
                return

    def _wait(self, fault: Exception, retries: StreamRetries) -> bool:
        """Pause after a fault; return whether to read on."""
        now, text = self.clock.now(), reason(fault)
        pause = retries.pause(now) if may_pass(fault) else None
        if pause is None:
            self.report(ev.StreamFailed(at=now, stream=self.stream, reason=text))
            return False
        self.report(ev.StreamRetried(at=now, stream=self.stream, reason=text, pause=pause))
        return not self.stop.wait(pause)


def reason(error: Exception) -> str:
    """Why a stream cannot be read, without Spark's wrapping of the cause."""
    if not isinstance(error, PySparkException):
        return plain(error)
    text = str(error)
    for mark in ("] Reason: ", "Caused by: ", "] terminated with exception: "):
        if mark in text:
            text = text.rsplit(mark, 1)[-1]
    return plain(ValueError(text.replace("[STREAM_FAILED] ", "")))
