"""The log of a folder's batches: which files each batch holds, and which files were set aside.

A line is durable before its batch is stored. After a crash the last batch is stored again, with the
same files, unless its block is durable already.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

from penstock.errors import CheckpointError
from penstock.events.record import write_all
from penstock.spark.file_batches import Known
from penstock.spark.files import Listed


class FileLog:
    """The log of one stream."""

    def __init__(self, folder: Path) -> None:
        """Read the log; half a line at its end never counted and is cut off."""
        if (folder / "sources").is_dir():
            raise CheckpointError(f"{folder} was written by an earlier version; "
                                  "name another --checkpoint")
        self._path = folder / "files.jsonl"
        self.known = Known()
        self.last: tuple[int, tuple[Listed, ...]] | None = None
        """The number and the files of the last batch."""
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._load()

    def _load(self) -> None:
        content = self._path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.ftruncate(self._file, whole)
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                self._apply(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise CheckpointError(f"line {number} of {self._path} is damaged") from error

    def _apply(self, entry: dict[str, Any]) -> None:
        if "aside" in entry:
            self.known.set_aside(Listed(*entry["aside"]))
            return
        number, files = entry["batch"], tuple(Listed(*file) for file in entry["files"])
        if self.last is not None and self.last[0] == number:  # it was begun again
            for file in self.last[1]:
                self.known.taken.pop(file.path, None)
        self.known.take(files)
        self.last = number, files

    def begin(self, number: int, files: Sequence[Listed]) -> None:
        """Note the files of a batch before it is stored; the last one may be begun again."""
        if self.last != (number, tuple(files)):
            self._write({"batch": number, "files": [astuple(file) for file in files]})

    def set_aside(self, file: Listed, reason: str) -> None:
        """Note that this version of a file is not read."""
        self._write({"aside": astuple(file), "reason": reason})

    def _write(self, entry: dict[str, Any]) -> None:
        whole = os.fstat(self._file).st_size
        try:
            write_all(self._file, (json.dumps(entry) + "\n").encode())
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, whole)  # half a line would damage the next one
            raise
        self._apply(entry)

    def close(self) -> None:
        """Write no more."""
        os.close(self._file)
