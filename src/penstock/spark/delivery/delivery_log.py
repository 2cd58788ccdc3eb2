"""The log of deliveries: which blocks each member has had, up to which end each window aggregate
has answered, and the point at which a job counts.

A line of this log is the commit of a job. Before it, the staged files are leftovers that recovery
removes. After it, the answers count as delivered and recovery finishes moving them. So every row is
delivered once, at whatever moment the driver dies.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.engine.positions import Intervals, QueryPosition
from penstock.plan import Member
from penstock.spark.storage.guarded import Log, damaged

COMPACT_LINES = 20_000
"""After this many lines the log is rewritten as one snapshot."""


class Deliveries:
    """The log, and the position of every query according to it."""

    @classmethod
    def look(cls, log: Log) -> Deliveries:
        """The log as it is, for reading only: a run may be writing to it."""
        return cls(log, writing=False)

    def __init__(self, log: Log, *, writing: bool = True) -> None:
        """Open the log of a checkpoint, and rewrite it in short form."""
        self._log = log
        self._lock = threading.Lock()  # jobs commit from their own threads
        self.positions: dict[str, QueryPosition] = {}
        self.last_job = 0
        self.committed: set[int] = set()
        """Jobs that count but whose files may not be in place yet."""
        self._riders: dict[int, list[tuple[str, int, int]]] = {}
        self._load()
        if writing:
            self._compact()

    # --- writing -----------------------------------------------------------------------------

    def join(
        self, starts: Mapping[str, Mapping[str, int]], at: float = 0.0,
        texts: Mapping[str, str] | None = None, since: int = 0,
    ) -> None:
        """Queries begin, each at these blocks of its streams and after the job ``since``."""
        with self._lock:
            self._write({"join": {query: dict(start) for query, start in starts.items()},
                         "since": max(since, self.last_job), "at": at, "texts": dict(texts or {})})

    def leave(self, query: str) -> None:
        """A query is gone, and so is what was known about its deliveries."""
        with self._lock:
            self._write({"leave": query})

    def commit(
        self, job: int, *, rows: Mapping[str, int], riders: int = 0,
        members: Iterable[Member] = (), blocks: Sequence[int] = (),
        ends: Mapping[str, int] | None = None,
        partial: Mapping[str, tuple[int, int]] | None = None,
    ) -> None:
        """Commit what a job has delivered: from this moment the job counts.

        These members, with the number ``riders``, have had these blocks. These queries have
        answered for all windows up to these ends. These window joins have had a part of what comes
        next (`QueryPosition.partial`).
        """
        line: dict[str, Any] = {"job": job, "rows": dict(rows)}
        with self._lock:
            if riders and riders not in self._riders:
                named = [[m.query, m.branch, m.input] for m in members]
                self._write({"riders": riders, "members": named})
            if riders:
                line |= {"riders": riders, "blocks": list(blocks)}
            if ends:
                line |= {"ends": dict(ends)}
            if partial:
                line |= {"partial": {query: list(part) for query, part in partial.items()}}
            self._write(line)
            self._shorten()

    def close(self) -> None:
        """Close the file."""
        self._log.close()

    def settled(self, job: int) -> None:
        """All files of a job are in place; nothing of it is left to recover."""
        with self._lock:
            self.committed.discard(job)

    def recovered(self, waiting: Iterable[int], last_job: int) -> None:
        """Only these jobs' files are not in place yet; later jobs are numbered after ``last_job``.

        A number is never used again, not even that of a job that failed. What a dying JVM still
        writes for the old job would mix with the answers of the new one.
        """
        with self._lock:
            self.committed &= set(waiting)
            self.last_job = max(self.last_job, last_job)

    def _write(self, line: dict[str, Any]) -> None:
        self._log.append(line)
        self._apply(line)

    def _shorten(self) -> None:
        if self._log.lines > COMPACT_LINES:
            with contextlib.suppress(OSError):  # the job counts, so nothing may fail any more
                self._compact()

    def _compact(self) -> None:
        """Rewrite the log; if that fails, the old one stays in use."""
        snapshot = {
            name: {"start": s.start, "rows": s.rows, "since": s.since, "at": s.at, "text": s.text,
                   "answered": s.answered, "partial": s.partial,
                   "had": [[branch, input, had.ranges] for (branch, input), had in s.had.items()]}
            for name, s in self.positions.items()
        }
        self._log.rewrite({"snapshot": snapshot, "last_job": self.last_job,
                           "committed": sorted(self.committed)})
        self._riders = {}

    # --- reading -----------------------------------------------------------------------------

    def _load(self) -> None:
        for line in self._log.read():
            try:
                self._apply(line)
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise damaged(self._log.path, f"line {self._log.lines} is not one that this "
                              "version knows") from error

    def _apply(self, line: dict[str, Any]) -> None:
        if "job" in line:
            self._apply_job(line)
        elif "riders" in line:
            self._riders[line["riders"]] = [
                (query, branch, input) for query, branch, input in line["members"]]
        elif "join" in line:
            # Jobs up to here are not theirs: no number may be used again, even after a restart.
            self.last_job = max(self.last_job, line["since"])
            for query, start in line["join"].items():
                self.positions[query] = QueryPosition(
                    dict(start), since=line["since"], at=line["at"],
                    text=line["texts"].get(query, ""))
        elif "leave" in line:
            self.positions.pop(line["leave"], None)
        elif "snapshot" in line:
            self._apply_snapshot(line)

    def _apply_job(self, line: dict[str, Any]) -> None:
        job = line["job"]
        self.last_job = max(self.last_job, job)
        self.committed.add(job)
        riders = self._riders[line["riders"]] if "riders" in line else ()
        delivered = Intervals.of(line["blocks"]).ranges if riders else []
        for query, branch, input in riders:
            if position := self._current(query, job):
                had = position.had.setdefault((branch, input), Intervals())
                for low, high in delivered:
                    had.add(low, high)
        for query, end in line.get("ends", {}).items():
            if position := self._current(query, job):
                position.end(end)
        for query, (until, apart) in line.get("partial", {}).items():
            if position := self._current(query, job):
                position.partial = until, apart
        for query, rows in line["rows"].items():
            if position := self._current(query, job):
                position.rows += rows

    def _current(self, query: str, job: int) -> QueryPosition | None:
        """A query's position, if a job was its own and not an earlier query's of its name."""
        position = self.positions.get(query)
        return position if position and position.since < job else None

    def _apply_snapshot(self, line: dict[str, Any]) -> None:
        self.last_job = line["last_job"]
        self.committed = set(line["committed"])
        for name, s in line["snapshot"].items():
            had = {(branch, input): Intervals(ranges) for branch, input, ranges in s["had"]}
            partial = s.get("partial")
            self.positions[name] = QueryPosition(
                s["start"], had, s.get("answered"), tuple(partial) if partial else None,
                s["rows"], s["since"], s["at"], s["text"])
