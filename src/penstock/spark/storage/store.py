"""The port to storage: the few verbs by which a checkpoint is kept.

The checkpoint, its logs, and the manifests of blocks and of staged files go through a `Store`, so
that a checkpoint can lie wherever somebody writes these verbs; `LocalStore` has them for a mounted
file system. Rows are not its business: Spark writes and reads them, and `Files` moves them.

What a store promises:

- `write` leaves the old file or the new one, never half of it, and the new one outlasts a power cut
  once it returns. So does what `Appender.add` and `sync` return from.
- A line that `Appender.add` refuses was never written: the next one stands behind the last whole
  one.
- What it makes can be read and written by its owner alone.
- Only one engine at a time owns a folder, and learns it when it no longer does.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Protocol


class Store(Protocol):
    """Files of a checkpoint. Verbs raise OSError, and FileNotFoundError where nothing is."""

    def read(self, path: Path) -> bytes:
        """The whole content of a file."""

    def write(self, path: Path, data: bytes) -> None:
        """Put a file in the place of what is there, if anything is."""

    def append(self, path: Path, keep: int) -> Appender:
        """Go on behind the first bytes of a file, and cut off what follows; it may be new."""

    def begin(self, path: Path, data: bytes) -> Appender:
        """Like `write`, and go on behind it; where that fails the old file stays."""

    def stamp(self, path: Path) -> Stamp:
        """A small file that is there, to be written over again and again."""

    def has(self, path: Path) -> bool:
        """Whether there is a file or a folder."""

    def list(self, folder: Path, pattern: str = "*") -> list[Path]:
        """The files and folders in a folder whose names fit, by name; none if it is missing."""

    def make(self, folder: Path) -> None:
        """Make a folder, durably, and those above it, if they are missing."""

    def remove(self, path: Path) -> None:
        """Remove a file, if it is there."""

    def sync(self, files: Collection[Path], folders: Collection[Path] = ()) -> None:
        """Make files that another process wrote outlast a power cut, then folders of them."""

    def own(self, folder: Path) -> Ownership:
        """Take a folder; BlockingIOError if another engine has it."""

    def is_owned(self, folder: Path) -> bool:
        """Whether some engine has a folder now."""


class Appender(Protocol):
    """A file that grows line by line."""

    def add(self, data: bytes) -> None:
        """Add data, durably; what raises OSError was not added."""

    def close(self) -> None:
        """Write no more."""


class Stamp(Protocol):
    """A small file of constant length, always whole."""

    def write(self, data: bytes, durable: bool) -> None:
        """Write it over; without ``durable`` a power cut may bring the one before back."""

    def close(self) -> None:
        """Write no more."""


class Ownership(Protocol):
    """A folder that an engine has taken."""

    @property
    def path(self) -> Path:
        """What tells whose it is."""

    def is_lost(self) -> bool:
        """Whether the folder was moved, deleted or replaced, so that another may have it."""

    def release(self) -> None:
        """Let it go."""
