"""What a job has read by Spark's own count, compared with its blocks before the job counts."""

from __future__ import annotations

import threading
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from penstock.engine.instructions import SegmentJob
from penstock.model import Block
from penstock.spark.jobs.row_checks import check_probed, check_read


@dataclass(slots=True)
class BlockReaders:
    """The active jobs, and which blocks they read at the same time.

    A job that keeps a block in memory reads it from its files. If another job reads the block at
    the same time, it may read some of it first. Then the rows that each has read are unknown.
    """

    _blocks: dict[int, set[tuple[str, int]]] = field(default_factory=dict)
    _shared: dict[int, set[tuple[str, int]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, job: SegmentJob) -> None:
        """A job begins to read its blocks."""
        mine = {(block.stream, block.number) for block in job.blocks}
        with self._lock:
            for other, theirs in self._blocks.items():
                self._shared[other] |= mine & theirs
            self._shared[job.number] = mine & set().union(*self._blocks.values())
            self._blocks[job.number] = mine

    def end(self, job: SegmentJob) -> None:
        """A job has ended."""
        with self._lock:
            del self._blocks[job.number], self._shared[job.number]

    def count(self, job: SegmentJob, blocks: Sequence[Block]) -> int:
        """The rows of some of a job's blocks, without kept blocks that another job reads."""
        with self._lock:
            unsure = self._shared.get(job.number, set())
            return sum(block.rows for block in blocks if block.number not in job.keep
                       or (block.stream, block.number) not in unsure)


@dataclass(frozen=True, slots=True)
class Reading:
    """What the Spark jobs of a job must read before its results may count."""

    spark: SparkSession
    group: str
    """The group of its Spark jobs, and of no others."""
    job: SegmentJob
    blocks: tuple[Block, ...]
    """The blocks that they read from files; blocks already in memory are not counted."""
    readers: BlockReaders
    before: frozenset[int]
    """The Spark jobs of this group that existed before, for a sample."""

    @staticmethod
    def begun(
        spark: SparkSession, group: str, job: SegmentJob, blocks: Sequence[Block],
        readers: BlockReaders,
    ) -> Reading:
        """Begin to count."""
        return Reading(spark, group, job, tuple(blocks), readers, frozenset(_jobs(spark, group)))

    def check(self) -> None:
        """Refuse the results if rows of its blocks were not read."""
        rows = self.readers.count(self.job, self.blocks)
        if not rows or seen_so_far(self.spark, self.group, self.before) >= rows:
            return
        read = rows_read(self.spark, self.group, self.before)
        if read is not None:
            check_read(self.job, rows, read)


@dataclass(frozen=True, slots=True)
class ProbeReading:
    """What the Spark jobs of a probe must read before its pairs may count."""

    spark: SparkSession
    group: str
    join: str
    rows: int
    """The least that they read, if they run once."""
    before: frozenset[int]
    """The Spark jobs of this group that existed before."""

    @staticmethod
    def begun(spark: SparkSession, group: str, join: str, rows: int) -> ProbeReading:
        """Begin to count."""
        return ProbeReading(spark, group, join, rows, frozenset(_jobs(spark, group)))

    def check(self) -> None:
        """Refuse the pairs if rows of blocks were not read."""
        if seen_so_far(self.spark, self.group, self.before) >= self.rows:
            return
        read = rows_read(self.spark, self.group, self.before)
        if read is not None:
            check_probed(self.join, self.rows, read)


def seen_so_far(spark: SparkSession, group: str, but: Container[int] = ()) -> int:
    """The rows that the jobs of a group have read, as far as Spark has noted it.

    The number only grows. Once it is large enough, there is no need to wait until Spark has noted
    everything: it does so every 10 ms.
    """
    store = spark.sparkContext._jsc.sc().statusStore()
    return sum(read for job in _jobs(spark, group) if job not in but
               for read in _noted_of(store, job))


def _noted_of(store: Any, job: int) -> Iterator[int]:
    try:
        ids = store.job(job).stageIds()
        for place in range(ids.size()):
            yield store.lastStageAttempt(ids.apply(place)).inputRecords()
    except Py4JJavaError:  # it is not noted yet
        return


def rows_read(spark: SparkSession, group: str, but: Container[int] = ()) -> int | None:
    """The rows that the jobs of a group have read from files, except for some jobs.

    None if Spark does not know. Its scans count anyway, so this costs one query (3 ms) and nothing
    per row. An `observe` over the scan would split the generated code and make a job 16 to 45 %
    longer. Rows read from memory count as batches, and a retried task counts twice. So there may be
    more than the files have, but never fewer.
    """
    engine = spark.sparkContext._jsc.sc()
    engine.listenerBus().waitUntilEmpty()
    store = engine.statusStore()
    read = [_read_by(store, job) for job in _jobs(spark, group) if job not in but]
    return None if None in read else sum(rows for rows in read if rows is not None)


def _jobs(spark: SparkSession, group: str) -> list[int]:
    return spark.sparkContext.statusTracker().getJobIdsForGroup(group)


def _read_by(store: Any, job: int) -> int | None:
    """What a job has read; None unless Spark knows every task of every stage that it ran."""
    try:
        known = store.job(job)
    except Py4JJavaError:
        return None
    read, stages, ids = 0, 0, known.stageIds()
    for place in range(ids.size()):
        try:
            stage = store.lastStageAttempt(ids.apply(place))
        except Py4JJavaError:
            continue  # skipped, since its output existed, and so old that Spark has forgotten it
        if stage.status().toString() == "COMPLETE":
            if stage.numCompleteTasks() < stage.numTasks():
                return None
            stages, read = stages + 1, read + stage.inputRecords()
    return read if stages >= known.numCompletedStages() else None
