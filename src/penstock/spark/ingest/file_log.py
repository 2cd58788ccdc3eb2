"""The log of a folder's batches: which files each batch holds, and which files were set aside.

A line is durable before its batch is stored. After a crash the last batch is stored again with the
same files, unless its block is already durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

from penstock.spark.ingest.file_batches import KnownFiles
from penstock.spark.storage.files import ListedFile
from penstock.spark.storage.guarded import Log, damaged

FILE_LOG = "files.jsonl"
"""Its name in the folder of a stream's offsets."""


class FileLog:
    """The log of one stream."""

    def __init__(self, log: Log, *, writing: bool = True) -> None:
        """Read the log; half a line at its end never counted, and is cut off."""
        self._log = log
        self.known = KnownFiles()
        self.last: tuple[int, tuple[ListedFile, ...]] | None = None
        """The number and the files of the last batch."""
        for entry in log.read():
            try:
                self._apply(entry)
            except (ValueError, LookupError, TypeError) as error:
                raise damaged(log.path, f"line {log.lines} is not one that this version knows"
                              ) from error
        if writing:
            log.open()

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._log.path

    def _apply(self, entry: dict[str, Any]) -> None:
        if "aside" in entry:
            self.known.set_aside(ListedFile(*entry["aside"]))
            return
        number, files = entry["batch"], tuple(ListedFile(*file) for file in entry["files"])
        if self.last is not None and self.last[0] == number:  # it was begun again
            for file in self.last[1]:
                self.known.taken.pop(file.path, None)
        self.known.take(files)
        self.last = number, files

    def begin(self, number: int, files: Sequence[ListedFile]) -> None:
        """Note the files of a batch before it is stored; the last one may be begun again."""
        if self.last != (number, tuple(files)):
            self._write({"batch": number, "files": [astuple(file) for file in files]})

    def set_aside(self, file: ListedFile, reason: str) -> None:
        """Note that this version of a file is not read."""
        self._write({"aside": astuple(file), "reason": reason})

    def _write(self, entry: dict[str, Any]) -> None:
        self._log.append(entry)
        self._apply(entry)

    def close(self) -> None:
        """Write no more."""
        self._log.close()


def check_last(log: FileLog, number: int) -> None:
    """Raise CheckpointError unless the log matches a spool whose next block is this one."""
    last = log.last[0] if log.last else -1
    if last not in (number - 1, number):
        raise damaged(log.path, f"ends with block {last}, but the stream has {number} blocks")
