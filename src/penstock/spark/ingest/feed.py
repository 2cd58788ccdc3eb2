"""The feed of a derived stream: what its query has delivered and the stream has not taken yet.

A job's files come into the feed when the job counts. The stream takes all files of some jobs as one
block, whose manifest names them, and removes them before it takes others. So a file is taken once:
after a crash, one that the last manifest names is removed, and any other is still to be taken. A
job is taken whole, since its rows may be late for each other's windows otherwise.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.errors import SourceError
from penstock.spark.storage.files import Files
from penstock.spark.storage.store import Store

_JOB = re.compile(r"run-(\d+)-")


class DerivedFeed:
    """The feed of one stream; the loop tells it of jobs, and the stream's thread takes them."""

    def __init__(
        self, files: Files, store: Store, folder: Path, place: Mapping[str, Any] | None
    ) -> None:
        """``place`` is that of the last manifest. All that is there belongs to jobs that count."""
        self._files, self._store, self._folder = files, store, folder
        self._taken: Sequence[str] = ()
        self.remove(place["files"] if place else ())
        self._jobs = {_job(name) for name in self._names()}
        self._changed = threading.Condition()
        self._ended, self._reason = False, ""

    def _names(self) -> list[str]:
        return sorted(path.rsplit("/", 1)[-1] for path, _ in self._files.data(str(self._folder)))

    # --- what the loop says ------------------------------------------------------------------

    def publish(self, job: int) -> None:
        """All files of a job are there."""
        with self._changed:
            self._jobs.add(job)
            self._changed.notify_all()

    def end(self, reason: str = "") -> None:
        """No further job delivers; with a reason, because its query has failed."""
        with self._changed:
            self._ended, self._reason = True, reason
            self._changed.notify_all()

    def wake(self) -> None:
        """Let the stream's thread look whether it should stop."""
        with self._changed:
            self._changed.notify_all()

    # --- what the stream's thread does -------------------------------------------------------

    def next(self) -> list[str]:
        """The names of all files that can be taken now; what was taken is removed first."""
        self.remove(self._taken)
        self._taken = ()
        with self._changed:
            jobs, self._jobs = self._jobs, set()
        return [name for name in self._names() if _job(name) in jobs] if jobs else []

    def paths(self, names: Iterable[str]) -> list[str]:
        """Where files are."""
        return [str(self._folder / name) for name in names]

    def took(self, names: Sequence[str]) -> None:
        """The rows of files are in a block, and are not taken again."""
        self._taken = names

    def remove(self, names: Sequence[str]) -> None:
        """Remove files whose rows are in a block, durably: a later manifest names others."""
        for name in names:
            self._store.remove(self._folder / name)
        if names:
            self._store.sync((), [self._folder])

    def put_back(self, names: Iterable[str]) -> None:
        """Files could not be taken: they are still to be."""
        for name in names:
            self.publish(_job(name))

    def wait(self, seconds: float) -> bool:
        """Wait for more; return whether more may come. SourceError if the query has failed."""
        with self._changed:
            if not self._jobs and not self._ended:
                self._changed.wait(seconds)
            if self._jobs or not self._ended:
                return True
        if self._reason:
            raise SourceError(self._reason)
        return False


def _job(name: str) -> int:
    """The job that a file is of.

    >>> _job("run-00000012-ab12-part-00000-00000.parquet")
    12
    """
    found = _JOB.match(name)
    return int(found[1]) if found else -1
