"""The files of committed jobs, wherever they are: exactly what counts, during a run and after.

A job counts from its line in the log of deliveries on, and its files are moved into place after
that line. So a listing alone may show half a job, and may lack a job whose driver died in between.
The log is read before and after the listing: a job that was committed meanwhile is left for the
next look, and a file that still waits is read where it waits.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import RunError
from penstock.spark.delivery.delivery_log import Deliveries
from penstock.spark.delivery.sink_folders import Folders
from penstock.spark.delivery.staging import Staging
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.files import Files

TRIES = 5
"""How often the folders are listed again because the log was rewritten meanwhile."""


@dataclass(frozen=True, slots=True, order=True)
class AnswerFile:
    """A file of a job that counts."""

    job: int
    name: str
    path: str


def committed_files(
    checkpoint: Checkpoint, folders: Collection[str], root: str = ""
) -> list[AnswerFile]:
    """The files of committed jobs that lie in local folders, or are on their way there.

    If there is a ``root``, all folders directly below it are meant too, also those to come.
    """
    for _ in range(TRIES):
        stamp, before = log_stamp(checkpoint), _jobs(checkpoint)
        waiting = {file.name: file for file in _waiting(checkpoint, before, folders, root)}
        below = sorted(Path(root).iterdir()) if root and os.path.isdir(root) else ()
        found = {file.name: file for folder in (*folders, *map(str, below))
                 for file in _listed(checkpoint, folder)}
        after = before if log_stamp(checkpoint) == stamp else _jobs(checkpoint)
        if before <= after:
            count = (file for file in (waiting | found).values()
                     if file.job not in after - before)
            return sorted(count)
    raise RunError(f"{checkpoint.root} changes faster than it can be read; try again")


def log_stamp(checkpoint: Checkpoint) -> tuple[int, ...]:
    """What changes whenever a job is committed: the log of deliveries is another one then."""
    try:
        known = os.stat(checkpoint.deliveries)
    except FileNotFoundError:
        return ()
    return known.st_ino, known.st_size, known.st_mtime_ns


def _jobs(checkpoint: Checkpoint) -> set[int]:
    """The committed jobs since the log was last shortened; all earlier ones are in place."""
    return set(Deliveries.look(checkpoint.log(checkpoint.deliveries)).committed)


def _waiting(
    checkpoint: Checkpoint, jobs: Collection[int], folders: Collection[str], root: str
) -> Iterator[AnswerFile]:
    """Files of committed jobs that have not been seen in place."""
    files = Files(None)
    known = Folders(checkpoint, files)
    staging, wanted = Staging(checkpoint, files, lambda: known.known), set(folders)
    for job in set(staging.runs()) & set(jobs):
        for source, target in staging.pending(job):
            folder = os.path.dirname(target)
            is_meant = folder in wanted or root and os.path.dirname(folder) == root
            if is_meant and os.path.exists(source):
                yield AnswerFile(job, os.path.basename(target), source)


def _listed(checkpoint: Checkpoint, folder: str) -> Iterator[AnswerFile]:
    """Files in place; those of other checkpoints do not belong to its answers."""
    for path in Path(folder).glob(f"run-*-{checkpoint.id}-*"):
        yield AnswerFile(int(path.name.split("-")[1]), path.name, str(path))
