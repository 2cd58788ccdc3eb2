"""The log of deliveries: which blocks each member has had, up to which end each window aggregate
has answered, and the point at which a run counts.

A line of this log is the commit of a run. Before it, the staged files are rubbish that recovery
removes; after it, the answers count as delivered and recovery finishes moving them. So a row is
delivered once whatever moment the driver dies at.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.engine.positions import Intervals, QueryPosition
from penstock.plan import Member
from penstock.spark.storage.guarded import Log, damaged

COMPACT_LINES = 20_000
"""After this many lines the log is written anew as one snapshot."""


class Deliveries:
    """The log, and where every query stands according to it."""

    @classmethod
    def look(cls, log: Log) -> Deliveries:
        """The log as it stands, not to be written to: a run may be doing that."""
        return cls(log, writing=False)

    def __init__(self, log: Log, *, writing: bool = True) -> None:
        """Open the log of a checkpoint, and write it anew in short form."""
        self._log = log
        self._lock = threading.Lock()  # runs commit from their own threads
        self.positions: dict[str, QueryPosition] = {}
        self.last_run = 0
        self.committed: set[int] = set()
        """Runs that count but whose files may still be on their way."""
        self._groups: dict[int, list[tuple[str, int, int]]] = {}
        self._load()
        if writing:
            self._compact()

    # --- writing -----------------------------------------------------------------------------

    def join(
        self, starts: Mapping[str, Mapping[str, int]], at: float = 0.0,
        texts: Mapping[str, str] | None = None, since: int = 0,
    ) -> None:
        """Queries begin, each at these blocks of its streams and after the run ``since``."""
        with self._lock:
            self._write({"join": {query: dict(start) for query, start in starts.items()},
                         "since": max(since, self.last_run), "at": at, "texts": dict(texts or {})})

    def leave(self, query: str) -> None:
        """A query is gone, and with it what is known of its deliveries."""
        with self._lock:
            self._write({"leave": query})

    def commit(
        self, run: int, group: int, members: Iterable[Member], blocks: Iterable[int],
        rows: Mapping[str, int],
    ) -> None:
        """These members have had these blocks: the moment at which a run counts."""
        with self._lock:
            if group not in self._groups:
                named = [[m.query, m.branch, m.input] for m in members]
                self._write({"group": group, "members": named})
            self._write({"run": run, "group": group, "blocks": list(blocks), "rows": dict(rows)})
            self._shorten()

    def answer(self, run: int, ends: Mapping[str, int], rows: Mapping[str, int]) -> None:
        """These queries have answered for all windows up to these ends."""
        with self._lock:
            self._write({"run": run, "ends": dict(ends), "rows": dict(rows)})
            self._shorten()

    def close(self) -> None:
        """Close the file."""
        self._log.close()

    def settled(self, run: int) -> None:
        """A run's files are all where they belong; nothing of it is left to recover."""
        with self._lock:
            self.committed.discard(run)

    def recovered(self, waiting: Iterable[int], last_run: int) -> None:
        """Only these runs' files are still on their way; later runs come after ``last_run``.

        A number is never used again, not even that of a run that came to nothing: what a dying JVM
        still writes for it would mix with the answers of its namesake.
        """
        with self._lock:
            self.committed &= set(waiting)
            self.last_run = max(self.last_run, last_run)

    def _write(self, line: dict[str, Any]) -> None:
        self._log.append(line)
        self._apply(line)

    def _shorten(self) -> None:
        if self._log.lines > COMPACT_LINES:
            with contextlib.suppress(OSError):  # the run counts, so nothing may fail any more
                self._compact()

    def _compact(self) -> None:
        """Write the log anew; where that fails the old one goes on."""
        snapshot = {
            name: {"start": s.start, "rows": s.rows, "since": s.since, "at": s.at, "text": s.text,
                   "answered": s.answered,
                   "had": [[branch, input, had.ranges] for (branch, input), had in s.had.items()]}
            for name, s in self.positions.items()
        }
        self._log.rewrite({"snapshot": snapshot, "last_run": self.last_run,
                           "committed": sorted(self.committed)})
        self._groups = {}

    # --- reading -----------------------------------------------------------------------------

    def _load(self) -> None:
        for line in self._log.read():
            try:
                self._apply(line)
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise damaged(self._log.path, f"line {self._log.lines} is not one that this "
                              "version knows") from error

    def _apply(self, line: dict[str, Any]) -> None:
        if "run" in line:
            self._apply_run(line)
        elif "group" in line:
            self._groups[line["group"]] = [
                (query, branch, input) for query, branch, input in line["members"]]
        elif "join" in line:
            # Runs up to here are not theirs: no number may come again, after a restart neither.
            self.last_run = max(self.last_run, line["since"])
            for query, start in line["join"].items():
                self.positions[query] = QueryPosition(
                    dict(start), since=line["since"], at=line["at"],
                    text=line["texts"].get(query, ""))
        elif "leave" in line:
            self.positions.pop(line["leave"], None)
        elif "snapshot" in line:
            self._apply_snapshot(line)

    def _apply_run(self, line: dict[str, Any]) -> None:
        self.last_run = max(self.last_run, line["run"])
        self.committed.add(line["run"])
        for query, branch, input in self._groups[line["group"]] if "group" in line else ():
            position = self.positions.get(query)
            if position and position.since < line["run"]:
                had = position.had.setdefault((branch, input), Intervals())
                for block in line["blocks"]:
                    had.add(block)
        for query, end in line.get("ends", {}).items():
            position = self.positions.get(query)
            if position and position.since < line["run"]:
                position.answered = end
        for query, rows in line["rows"].items():
            position = self.positions.get(query)
            if position and position.since < line["run"]:
                position.rows += rows

    def _apply_snapshot(self, line: dict[str, Any]) -> None:
        self.last_run = line["last_run"]
        self.committed = set(line["committed"])
        for name, s in line["snapshot"].items():
            had = {(branch, input): Intervals(ranges) for branch, input, ranges in s["had"]}
            self.positions[name] = QueryPosition(s["start"], had, s.get("answered"), s["rows"],
                                           s["since"], s["at"], s["text"])
