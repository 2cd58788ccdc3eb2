"""Writing the record of a run: one event, one line of JSON."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType

from penstock.events.kinds import Event
from penstock.events.lines import HEADER, encode

FILE = "events.jsonl"
_LARGE = 256 * 1024
_STAMP = "%Y%m%dT%H%M%S.%fZ"
_log = logging.getLogger(__name__)


def new_record(checkpoint: Path, at: float) -> Path:
    """The path for the record of a run that starts now; names sort in the order of the runs.

    They do so even if the clock has been set back since the previous run.

    >>> new_record(Path("state"), 1735689600.25).as_posix()
    'state/runs/20250101T000000.250000Z/events.jsonl'
    """
    began = datetime.fromtimestamp(at, UTC)
    for folder in (checkpoint / "runs").glob("*Z"):
        with contextlib.suppress(ValueError):  # anything else that a user has put there
            earlier = datetime.strptime(folder.name, _STAMP).replace(tzinfo=UTC)
            began = max(began, earlier + timedelta(microseconds=1))
    return checkpoint / "runs" / began.strftime(_STAMP) / FILE


class Recorder:
    """Appends events to a file, from any thread, and never stops the run that it records.

    A thread of its own writes the lines in batches, at least every ``interval`` seconds, so a slow
    disk does not delay a decision. When the disk is full, events are lost and the run goes on. The
    recorder counts the lost events (`lost`) and keeps the reason (`fault`). The file holds whole
    lines only: a line that was written in part is cut off again.
    """

    def __init__(self, path: Path, *, interval: float = 1.0) -> None:
        """Open ``path`` for appending, and make its folders if they are missing."""
        self.path = path
        self.written = 0
        """Events in the file."""
        self.lost = 0
        """Events that could not be written."""
        self.fault = ""
        """Why the last of them could not."""
        self._interval = interval
        self._lines: list[str] = []
        self._size = 0
        self._closing = False
        self._wake = threading.Condition()
        self._file = self._open()
        self._thread = threading.Thread(target=self._run, name="penstock-record", daemon=True)
        self._thread.start()

    def record(self, event: Event) -> None:
        """Add an event."""
        line = encode(event)
        with self._wake:
            self._lines.append(line)
            self._size += len(line)
            if self._size >= _LARGE:
                self._wake.notify()

    __call__ = record

    def close(self) -> None:
        """Write the remaining events; closing twice is harmless."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self) -> None:
        while True:
            with self._wake:
                if not self._closing:
                    self._wake.wait(self._interval)
                closing = self._closing
                lines, self._lines, self._size = self._lines, [], 0
            if lines:
                self._write(lines)
            if closing:
                return

    def _open(self) -> int | None:
        try:
            self.path.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.parent.mkdir(mode=0o700, exist_ok=True)
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            if not os.fstat(file).st_size:
                write_all(file, f"{HEADER}\n".encode())
            return file
        except OSError as error:
            self._complain(0, error)
            return None

    def _write(self, lines: list[str]) -> None:
        if self._file is None:
            self.lost += len(lines)
            return
        before = os.fstat(self._file).st_size
        try:
            write_all(self._file, ("\n".join(lines) + "\n").encode())
            self.written += len(lines)
        except OSError as error:
            self._complain(len(lines), error)
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, before)

    def _complain(self, lost: int, error: OSError) -> None:
        if not self.fault:
            _log.warning("the record %s is incomplete: %s", self.path, error)
        self.lost += lost
        self.fault = str(error)


def write_all(file: int, data: bytes) -> None:
    """Write all of it: a disk that fills up takes a part first, and refuses only the rest."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
