"""Panes that stay on the executors: groups with too many keys for the driver's memory.

Every job of the pane path leaves a persisted frame of pane tables. Spark holds it in its storage
memory, and on disk where that is full. A refresh is one Spark job over these frames, with so many
tasks that each worker can hold its share. Its answers go from the executors to the sink. Only
counts, and what console and callback sinks receive, pass through the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import ceil

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.storagelevel import StorageLevel

from penstock.engine.instructions import RefreshJob
from penstock.errors import RunError
from penstock.model import Aggregate, Branch
from penstock.plan import Group, Member
from penstock.planning.check import MEMBER
from penstock.spark.aggregates.driver_answers import asked_of, kept_of, session_of
from penstock.spark.aggregates.executor_answers import ExecutorAnswers
from penstock.spark.aggregates.executor_refresh import QUESTION, WindowDue, aggregates, refreshed
from penstock.spark.aggregates.pane_groupings import PANE
from penstock.spark.aggregates.pane_job import PaneJob
from penstock.spark.compile.compiler import Summarised
from penstock.synopses import Family, Question, SessionRule

_TIMES = pa.timestamp("us", "UTC")


TASK = 64 << 20
"""About how many bytes of cells of one window a Python worker holds while it answers."""


@dataclass(frozen=True, slots=True)
class _JobPanes:
    """The panes that one job has made."""

    youngest: int
    """The number of its newest pane."""
    frame: DataFrame
    bytes: int
    """The memory that its cells would take in Python."""
    blocks: frozenset[int]
    """The blocks that it is made of. Spark reads them again if it loses the frame."""


@dataclass(slots=True)
class ExecutorPanes:
    """The panes of one group, as persisted Spark frames."""

    spark: SparkSession
    group: Group
    families: tuple[Family, ...]
    _job: PaneJob | None = None
    _place: Summarised | None = None
    _parts: list[_JobPanes] = field(default_factory=list)

    def add(self, rows: Summarised, blocks: Iterable[int]) -> dict[int, int]:
        """Make the panes of some rows and keep them; return the rows that each pane got."""
        if self._job is None:
            self._job = PaneJob([rows.group(self.group, self.families)], rows.time)
            self._place = rows
        frame = self._job.frame(rows.frame).persist(StorageLevel.MEMORY_AND_DISK)
        counted = rows_per_pane(self._job, frame, 0)
        try:
            rows.check()
        except RunError:
            frame.unpersist()
            raise
        if counted:
            self._parts.append(_JobPanes(max(counted), frame, sum(self._job.sizes(frame)),
                                     frozenset(blocks)))
        else:
            frame.unpersist()
        return counted

    def reads(self, block: int) -> bool:
        """Whether the panes are made from a block."""
        return any(block in part.blocks for part in list(self._parts))

    def forget(self, before: int) -> None:
        """Drop the frames whose panes are all older."""
        for part in [part for part in self._parts if part.youngest < before]:
            part.frame.unpersist()
            self._parts.remove(part)

    def close(self) -> None:
        """Unpersist all frames; an active refresh computes its panes again."""
        for part in self._parts:
            part.frame.unpersist()

    @property
    def _tasks(self) -> int:
        """Enough tasks that none has more cells of a window than a worker should hold."""
        held = sum(part.bytes for part in self._parts)
        return max(self.spark.sparkContext.defaultParallelism, ceil(held / TASK))

    def answers(
        self, refresh: RefreshJob, branches: Mapping[Member, Branch]
    ) -> ExecutorAnswers | None:
        """The answers of a refresh, not yet computed; None if there is no pane at all."""
        if self._job is None or self._place is None or not self._parts:
            return None
        windows: list[tuple[int, int, int, int]] = []
        asks: dict[tuple[int, int, SessionRule | None, int], dict[Aggregate, None]] = {}
        """One question for each window."""
        numbers = {member: number for number, member in enumerate(branches)}
        for scan in refresh.scans:
            for query, length in scan.queries:
                branch = branches[Member(query, 0)]
                kept = kept_of(branch, refresh.pane)
                window = scan.end, length, self._session(branch, refresh.pane), kept
                asked = map(self._place.over, asked_of(branch))
                asks.setdefault(window, {}).update(dict.fromkeys(asked))
                windows.append((list(asks).index(window), numbers[Member(query, 0)],
                                (scan.end - length + kept) * refresh.pane,
                                scan.end * refresh.pane))
        due = [WindowDue(end, Question(length, tuple(some), session, kept))
               for (end, length, session, kept), some in asks.items()]
        frames = reduce(DataFrame.unionAll, [part.frame for part in self._parts])
        found = refreshed(self._job, 0, frames, due, self._tasks)
        order = {aggregate: n for n, aggregate in enumerate(aggregates(due))}
        known = {member: [order[self._place.over(a)] for a in asked_of(branch)]
                 for member, branch in branches.items()}
        table = self.spark.createDataFrame(_numbered(windows))
        rows = found.join(sf.broadcast(table), QUESTION).drop(QUESTION)
        return ExecutorAnswers(rows, branches, known)

    def _session(self, branch: Branch, pane: int) -> SessionRule | None:
        found = session_of(branch, pane)
        if found is None or self._place is None:
            return found
        return replace(found, times=tuple(map(self._place.over, found.times)))


def rows_per_pane(job: PaneJob, frame: DataFrame, group: int) -> dict[int, int]:
    """How many rows of a group each pane got, from what its pane job gave."""
    tables = job.read(frame, group)
    counting = next(t for f, t in tables.items() if f.kind in ("scalars", "frequencies"))
    return {row[0]: row[1] for row in counting.groupBy(PANE).agg(sf.sum("m0")).collect()}


def _numbered(windows: Sequence[tuple[int, int, int, int]]) -> pa.Table:
    """A table that says which member and which window each question is for."""
    questions, members, starts, ends = zip(*windows, strict=True)
    return pa.table({
        QUESTION: pa.array(questions, pa.int32()),
        MEMBER: pa.array(members, pa.int32()),
        "window_start": pa.array(starts, pa.int64()).cast(_TIMES),
        "window_end": pa.array(ends, pa.int64()).cast(_TIMES),
    })
