"""The log of deliveries: which blocks each member has had, up to which end each window aggregate
has answered, and the point at which a run counts.

A line of this log is the commit of a run. Before it, the staged files are rubbish that recovery
removes; after it, the answers count as delivered and recovery finishes moving them. So a row is
delivered once whatever moment the driver dies at.
"""

from __future__ import annotations

import bisect
import contextlib
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.spark.storage.guarded import Log, damaged

COMPACT_LINES = 20_000
"""After this many lines the log is written anew as one snapshot."""


@dataclass(slots=True)
class Intervals:
    """A set of whole numbers that mostly follow each other, as a list of ranges.

    >>> numbers = Intervals()
    >>> for number in (3, 1, 2, 7):
    ...     numbers.add(number)
    >>> numbers.ranges, 2 in numbers, 5 in numbers
    ([[1, 3], [7, 7]], True, False)
    """

    ranges: list[list[int]] = field(default_factory=list)

    def add(self, number: int) -> None:
        """Put a number in."""
        if number in self:
            return
        place = bisect.bisect_left(self.ranges, [number])
        before = self.ranges[place - 1] if place else None
        after = self.ranges[place] if place < len(self.ranges) else None
        joins_before = before is not None and before[1] == number - 1
        joins_after = after is not None and after[0] == number + 1
        if before and after and joins_before and joins_after:
            before[1] = after[1]
            del self.ranges[place]
        elif before and joins_before:
            before[1] = number
        elif after and joins_after:
            after[0] = number
        else:
            self.ranges.insert(place, [number, number])

    def __contains__(self, number: int) -> bool:
        """Whether the number is in."""
        place = bisect.bisect_right(self.ranges, [number, number])
        near = self.ranges[max(0, place - 1) : place + 1]
        return any(low <= number <= high for low, high in near)


@dataclass(slots=True)
class Standing:
    """Where a query stands."""

    start: dict[str, int] = field(default_factory=dict)
    """Per stream the first block that is its own to see."""
    had: dict[int, Intervals] = field(default_factory=dict)
    """Per branch the blocks it has delivered."""
    answered: int | None = None
    """The end of the last window it has answered for, in microseconds."""
    rows: int = 0
    since: int = 0
    """Runs up to this one were not its own, but perhaps an earlier namesake's."""
    at: float = 0.0
    """When it began."""
    text: str = ""
    """A digest of its declaration: a query declared otherwise is another query."""


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
        self.standing: dict[str, Standing] = {}
        self.last_run = 0
        self.committed: set[int] = set()
        """Runs that count but whose files may still be on their way."""
        self._groups: dict[int, list[tuple[str, int]]] = {}
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
        self, run: int, group: int, members: Iterable[tuple[str, int]], blocks: Iterable[int],
        rows: Mapping[str, int],
    ) -> None:
        """These members have had these blocks: the moment at which a run counts."""
        with self._lock:
            if group not in self._groups:
                self._write({"group": group, "members": [list(member) for member in members]})
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
                   "had": {str(branch): had.ranges for branch, had in s.had.items()}}
            for name, s in self.standing.items()
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
            self._groups[line["group"]] = [(query, branch) for query, branch in line["members"]]
        elif "join" in line:
            # Runs up to here are not theirs: no number may come again, after a restart neither.
            self.last_run = max(self.last_run, line["since"])
            for query, start in line["join"].items():
                self.standing[query] = Standing(
                    dict(start), since=line["since"], at=line["at"],
                    text=line["texts"].get(query, ""))
        elif "leave" in line:
            self.standing.pop(line["leave"], None)
        elif "snapshot" in line:
            self._apply_snapshot(line)

    def _apply_run(self, line: dict[str, Any]) -> None:
        self.last_run = max(self.last_run, line["run"])
        self.committed.add(line["run"])
        for query, branch in self._groups[line["group"]] if "group" in line else ():
            standing = self.standing.get(query)
            if standing and standing.since < line["run"]:
                had = standing.had.setdefault(branch, Intervals())
                for block in line["blocks"]:
                    had.add(block)
        for query, end in line.get("ends", {}).items():
            standing = self.standing.get(query)
            if standing and standing.since < line["run"]:
                standing.answered = end
        for query, rows in line["rows"].items():
            standing = self.standing.get(query)
            if standing and standing.since < line["run"]:
                standing.rows += rows

    def _apply_snapshot(self, line: dict[str, Any]) -> None:
        self.last_run = line["last_run"]
        self.committed = set(line["committed"])
        for name, s in line["snapshot"].items():
            had = {int(branch): Intervals(ranges) for branch, ranges in s["had"].items()}
            self.standing[name] = Standing(s["start"], had, s.get("answered"), s["rows"],
                                           s["since"], s["at"], s["text"])
