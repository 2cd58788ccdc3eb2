"""A folder as a stream's source: its files, batch by batch, each read once and whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf

from penstock.model import Stream
from penstock.spark.ingest.file_batches import Ages
from penstock.spark.ingest.file_checks import COMPRESSED, Verdict, judged, limits, wanted
from penstock.spark.ingest.file_log import FileLog, check_last
from penstock.spark.ingest.folder_watch import FolderWatch
from penstock.spark.storage.files import Files, ListedFile
from penstock.spark.storage.guarded import Log

SetAside = Callable[[ListedFile, str, int], None]
"""Called for a file that is not read: the file, the reason, and its rows as far as known."""
Changed = Callable[[ListedFile], None]
"""Called for a file that was written to after it was read."""


class FileSource:
    """Decides which files make the next batch, and notes it before anything is stored."""

    def __init__(
        self, files: Files, log: Log, stream: Stream, until_drained: bool,
        set_aside: SetAside, changed: Changed, ages: Ages, watch: FolderWatch | None = None,
    ) -> None:
        """``log`` is the log of the checkpoint, with the files read so far.

        Without a ``watch`` every listing looks at all files.
        """
        assert stream.path is not None
        self._files, self._stream, self._path = files, stream, stream.path
        self._set_aside, self._changed = set_aside, changed
        self._log = FileLog(log)
        self._limits = limits(stream)
        self._ages, self._watch = ages, watch
        self._failed: dict[str, tuple[ListedFile, str]] = {}
        """Files that could not be read to their end, in the version that was tried."""
        self._only = {f.path for f in files.listing(stream.path)} if until_drained else None
        """The files that exist at the beginning: a drain reads no others."""
        self.waiting = 0
        """How many files are not whole yet."""
        self._undecided = False
        """Whether the last listing has left files undecided."""

    def check(self, number: int) -> None:
        """Raise CheckpointError unless the log matches a spool whose next block is this one."""
        check_last(self._log, number)

    @property
    def taken(self) -> int:
        """How many files the last batch holds."""
        return len(self._log.last[1]) if self._log.last else 0

    def next(self, number: int) -> list[Verdict]:
        """The files of a batch, in order; none if there is nothing to read."""
        if self._log.last is not None and self._log.last[0] == number:
            batch = self._again(number, self._log.last[1])
            if batch:
                return batch
        listing = [file for file in self._listing()
                   if wanted(file, self._stream)
                   and (self._only is None or file.path in self._only)]
        known = self._log.known
        for file in known.changed(listing):
            self._changed(file)
        batch = self._ready(known.fresh(listing))
        if batch:
            self._log.begin(number, [verdict.file for verdict in batch])
        self._undecided = any(not known.has(file.path) for file in listing)
        return batch

    def _listing(self) -> Iterable[ListedFile]:
        if self._watch is None:
            return self._files.listing(self._path)
        return self._watch.listing(self._log.known.taken.__contains__, self._undecided)

    def _again(self, number: int, files: Iterable[ListedFile]) -> list[Verdict]:
        """The batch that a crash left unfinished, as far as its files can still be read."""
        batch = []
        for file in files:
            there = next(self._files.listing(file.path), file)
            verdict = judged(self._files, there, self._stream, inf)  # it had come to rest before
            if verdict.state == "whole":
                batch.append(verdict)
            else:
                self.set_aside(there, verdict.reason or "it is gone", verdict.rows)
        self._log.begin(number, [verdict.file for verdict in batch])  # also if none is left
        return batch

    def _ready(self, fresh: Iterable[ListedFile]) -> list[Verdict]:
        batch: list[Verdict] = []
        size, self.waiting = 0, 0
        for file in fresh:
            if not self._limits.admits(len(batch), size):
                break
            verdict = self._judged(file)
            if verdict.state == "whole":
                batch.append(verdict)
                size += file.size
            elif verdict.state in ("unfit", "misfit") or (
                verdict.state == "incomplete"
                and self._ages.of(file) >= self._stream.file_timeout):
                self.set_aside(file, verdict.reason, verdict.rows)
            elif verdict.state == "incomplete":
                self.waiting += 1
        return batch

    def _judged(self, file: ListedFile) -> Verdict:
        version, reason = self._failed.get(file.path, (None, ""))
        if version == file:
            return Verdict(file, "incomplete", reason)
        verdict = judged(self._files, file, self._stream, self._ages.of(file))
        if verdict.state in ("whole", "gone"):
            self._ages.forget(file)
        return verdict

    def leave_out(self, number: int, batch: list[Verdict], bad: dict[str, str]) -> list[Verdict]:
        """The rest of a batch without the files, by path, that could not be read."""
        rest = [verdict for verdict in batch if verdict.file.path not in bad]
        self._log.begin(number, [verdict.file for verdict in rest])
        for verdict in batch:
            reason = bad.get(verdict.file.path)
            if reason is None:
                continue
            if verdict.file.path.endswith(COMPRESSED):  # its end may still be on its way
                self._failed[verdict.file.path] = verdict.file, reason
            else:
                rows = verdict.footer.rows or 0 if verdict.footer else 0
                self.set_aside(verdict.file, reason, rows)
        return rest

    def set_aside(self, file: ListedFile, reason: str, rows: int) -> None:
        """Do not read this version of a file."""
        self._failed.pop(file.path, None)
        self._ages.forget(file)
        self._log.set_aside(file, reason)
        self._set_aside(file, reason, rows)

    def close(self) -> None:
        """Read no more."""
        self._log.close()

