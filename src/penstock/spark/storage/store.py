"""The port to storage: the few verbs by which a checkpoint is kept.

The checkpoint, its logs, and the manifests of blocks and of staged files go through a `Store`. So a
checkpoint can lie wherever somebody writes these verbs; `LocalStore` has them for a mounted file
system. Rows are not its business: Spark writes and reads them, and `Files` lists and moves them
wherever they lie, by the verb `move` of the local store if that is on this machine.

What a store promises:

- `write` and `create` leave a whole file or none, and it outlasts a power cut once they return. So
  does everything that `Appender.add` and `sync` return from.
- `create` and `move` never replace a file. Of two who create one file, the second is refused.
- A move that a crash cut short can be repeated.
- A line that `Appender.add` refuses was never written: the next one stands behind the last whole
  one.
- Only its owner can read and write the files and folders that a store makes.
- Only one engine at a time owns a folder, and an engine that has lost its folder learns so.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Protocol


class Store(Protocol):
    """Files of a checkpoint. Verbs raise OSError, and FileNotFoundError if a file is missing."""

    def read(self, path: Path) -> bytes:
        """The whole content of a file."""

    def write(self, path: Path, data: bytes) -> None:
        """Replace a file, or create it."""

    def create(self, path: Path, data: bytes) -> None:
        """Create a file; if it exists, FileExistsError, and nothing has changed."""

    def append(self, path: Path, keep: int) -> Appender:
        """Keep the first bytes of a file, cut off the rest, and append; the file may be missing."""

    def begin(self, path: Path, data: bytes) -> Appender:
        """Like `write`, then append to it; if it fails the old file stays."""

    def stamp(self, path: Path) -> Stamp:
        """Open a small existing file, to overwrite it again and again."""

    def has(self, path: Path) -> bool:
        """Whether there is a file or a folder."""

    def list(self, folder: Path, pattern: str = "*") -> list[Path]:
        """The files and folders in a folder whose names match, by name; none if it is missing."""

    def make(self, folder: Path) -> None:
        """Make a folder, durably, and those above it, if they are missing."""

    def move(self, source: Path, target: Path) -> None:
        """Rename a file, so that it appears whole; FileExistsError if another has the name.

        The new name outlasts a power cut once its folder is synced.
        """

    def remove(self, path: Path) -> None:
        """Remove a file, if it exists."""

    def sync(self, files: Collection[Path], folders: Collection[Path] = ()) -> None:
        """Make files that another process wrote survive a power cut, then these folders."""

    def own(self, folder: Path) -> Ownership:
        """Take a folder; BlockingIOError if another engine has it."""

    def is_owned(self, folder: Path) -> bool:
        """Whether some engine has a folder now."""


class Appender(Protocol):
    """A file that grows line by line."""

    def add(self, data: bytes) -> None:
        """Add data, durably; if it raises OSError nothing was added."""

    def close(self) -> None:
        """Write no more."""


class Stamp(Protocol):
    """A small file of constant length, always whole."""

    def write(self, data: bytes, durable: bool) -> None:
        """Overwrite it; without ``durable`` a power cut may bring the previous text back."""

    def close(self) -> None:
        """Write no more."""


class Ownership(Protocol):
    """A folder that an engine has taken."""

    @property
    def path(self) -> Path:
        """The folder, or the file in it, that shows others that it is taken."""

    def is_lost(self) -> bool:
        """Whether the folder was moved, deleted or replaced, so that another may have it."""

    def release(self) -> None:
        """Release the folder."""
