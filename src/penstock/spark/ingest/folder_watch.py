"""Watching a folder many times a second, at a cost that does not grow with its files.

A folder's own time changes when a file is added, removed or renamed. While no folder has changed,
nothing is listed. When one has, the names are listed, and only files that were not taken yet are
examined. From time to time all files are examined, since writing to a file in place changes no
folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from penstock.clock import Clock
from penstock.spark.storage.files import GLOB, Files, ListedFile, local_path, walk

SETTLED = 2_000_000_000
"""Nanoseconds after which a folder's time shows every change to it: some disks count seconds."""
WHOLE = 2.0
"""Seconds between two looks at all files, at least."""
SHARE = 0.05
"""The part of the time that looks at all files may take."""


class FolderWatch:
    """The files of a source, listed at little cost.

    A pattern of paths, or a folder that is not on this machine, is listed in full each time.
    """

    def __init__(
        self, files: Files, path: str, wall: Clock, passed: Callable[[], float] = time.monotonic
    ) -> None:
        """Times of folders go by ``wall``; ``passed`` counts seconds."""
        self._files, self._path, self._wall, self._passed = files, path, wall, passed
        local = local_path(path)
        self._root = str(local) if local and not any(c in path for c in GLOB) else None
        self._folders: dict[str, int] = {}
        """All folders of the source, each with its time before it was last listed."""
        self._listed = 0
        """When they were listed, in nanoseconds since 1970."""
        self._whole = 0.0
        """When all files are examined again."""

    def listing(self, is_taken: Callable[[str], bool], undecided: bool) -> list[ListedFile]:
        """All files that were not taken, and from time to time the others too.

        ``undecided`` says that the last listing had some files which may have grown meanwhile.
        """
        if self._root is None:
            return list(self._files.listing(self._path))
        began = self._passed()
        if began >= self._whole:
            found = self._walk(self._root, lambda path: False)
            now = self._passed()
            self._whole = now + max(WHOLE, (now - began) / SHARE)
            return found
        if not undecided and self._is_unchanged():
            return []
        return self._walk(self._root, is_taken)

    def _walk(self, root: str, skip: Callable[[str], bool]) -> list[ListedFile]:
        self._listed, self._folders = round(self._wall.now() * 1e9), {}
        return list(walk(root, self._folders, skip))

    def _is_unchanged(self) -> bool:
        """Whether no folder has changed since it was listed, as far as its time shows."""
        try:
            return bool(self._folders) and all(
                os.stat(folder).st_mtime_ns == before and self._listed - before > SETTLED
                for folder, before in self._folders.items())
        except OSError:
            return False
