"""What a job has read, as Spark itself counts it, held against its blocks before it counts."""

from __future__ import annotations

import threading
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from penstock.engine.instructions import SegmentJob
from penstock.model import Block
from penstock.spark.jobs.row_checks import check_read


@dataclass(slots=True)
class BlockReaders:
    """The jobs under way, and which blocks they read at the same time.

    A job that is to hold a block in memory reads it from its files, unless another job that reads
    the block meanwhile has read some of it: then nobody can say how many rows each has read.
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
        """A job is over."""
        with self._lock:
            del self._blocks[job.number], self._shared[job.number]

    def count(self, job: SegmentJob, blocks: Sequence[Block]) -> int:
        """The rows of some of a job's blocks, without those that it keeps and another reads."""
        with self._lock:
            unsure = self._shared.get(job.number, set())
            return sum(block.rows for block in blocks if block.number not in job.keep
                       or (block.stream, block.number) not in unsure)


@dataclass(frozen=True, slots=True)
class Reading:
    """What the Spark jobs of a job have to read, before what they computed may count."""

    spark: SparkSession
    group: str
    """The Spark jobs of it, and of no other."""
    job: SegmentJob
    blocks: tuple[Block, ...]
    """Those that they read from files; what is in memory already is not counted."""
    readers: BlockReaders
    before: frozenset[int]
    """Those of these jobs that were there already, for a sample."""

    @staticmethod
    def begun(
        spark: SparkSession, group: str, job: SegmentJob, blocks: Sequence[Block],
        readers: BlockReaders,
    ) -> Reading:
        """Count from now on."""
        return Reading(spark, group, job, tuple(blocks), readers, frozenset(_jobs(spark, group)))

    def check(self) -> None:
        """Refuse what was computed if rows of its blocks were not read."""
        rows = self.readers.count(self.job, self.blocks)
        if not rows or seen_so_far(self.spark, self.group, self.before) >= rows:
            return
        read = rows_read(self.spark, self.group, self.before)
        if read is not None:
            check_read(self.job, rows, read)


def seen_so_far(spark: SparkSession, group: str, but: Container[int] = ()) -> int:
    """The rows of which Spark has noted already that the jobs of a group have read them.

    They only become more. Once they are enough, nobody has to wait until Spark has noted all that
    has happened: it looks every 10 ms whether it has.
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
    """The rows that the jobs of a group have read from files, but for some.

    None if Spark does not know. Its scans count as they go, so this costs a look (3 ms) and nothing
    per row: an `observe` over the scan would part the generated code and make a job 16 to 45 %
    longer. What is read from memory counts as batches, and a task that is tried again counts twice:
    there may be more than the files have, but never fewer.
    """
    engine = spark.sparkContext._jsc.sc()
    engine.listenerBus().waitUntilEmpty()
    store = engine.statusStore()
    read = [_read_by(store, job) for job in _jobs(spark, group) if job not in but]
    return None if None in read else sum(rows for rows in read if rows is not None)


def _jobs(spark: SparkSession, group: str) -> list[int]:
    return spark.sparkContext.statusTracker().getJobIdsForGroup(group)


def _read_by(store: Any, job: int) -> int | None:
    """What a job has read; None unless Spark knows of every task of every stage that it ran."""
    try:
        known = store.job(job)
    except Py4JJavaError:
        return None
    read, stages, ids = 0, 0, known.stageIds()
    for place in range(ids.size()):
        try:
            stage = store.lastStageAttempt(ids.apply(place))
        except Py4JJavaError:
            continue  # skipped, for what it makes was there, and so old that it is forgotten
        if stage.status().toString() == "COMPLETE":
            if stage.numCompleteTasks() < stage.numTasks():
                return None
            stages, read = stages + 1, read + stage.inputRecords()
    return read if stages >= known.numCompletedStages() else None
