"""Rows that jobs keep between two stages of a path, and samples of what the stages cost."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import itemgetter

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from penstock.engine.instructions import SegmentJob
from penstock.engine.paths.stage_costs import names
from penstock.errors import RunError
from penstock.events.kinds import StageFigures
from penstock.plan import Path
from penstock.spark.compile.compiler import Compiler
from penstock.spark.compile.file_scans import FileScan
from penstock.spark.compile.pipeline import Progress
from penstock.spark.jobs.rows_read import Reading
from penstock.spark.row_bytes import row_bytes

SAMPLE_ROWS = 20_000
"""The rows of a sample: enough to tell the costs of stages from the fixed cost of a job."""
FEW_ROWS = 2_000
"""The fewest rows of a sample. A sample of a small block is half of it, so that other jobs wait
only briefly."""
BRIEF = 0.4
"""A stage that takes fewer seconds on a sample is timed twice: jobs differ by about a tenth."""


@dataclass(frozen=True, slots=True)
class IntermediateRows:
    """Rows that wait before a stage."""

    frame: DataFrame
    rows: int
    bytes: int
    counts: dict[str, int]
    """Rows out of each operator that was counted on the way."""
    progress: Progress
    """What else was measured."""
    tasks: int
    """Its partitions, up to the last one that has rows: about as many tasks will read it."""


class IntermediateStore:
    """The kept frames of a run, by the number of the job that kept them.

    A frame is persisted, so a lost executor computes its part again from the spool.
    """

    def __init__(self, spark: SparkSession) -> None:
        """Begin without any frames."""
        self._spark = spark
        self._parts: dict[int, IntermediateRows] = {}
        self._lock = threading.Lock()  # jobs keep and forget from their own threads

    def keep(
        self, compiler: Compiler, path: Path, job: SegmentJob, frame: DataFrame, reading: Reading,
        scan: FileScan | None = None,
    ) -> IntermediateRows:
        """Compute the stages of a job and keep the rows."""
        level = StorageLevel.DISK_ONLY if job.on_disk else StorageLevel.MEMORY_AND_DISK
        progress = compiler.part(path, job.members[0], frame, job.first, job.last,
                                 job.evaluation, scan)
        seen = Observation()
        counted = progress.frame.observe(
            seen, F.count(F.lit(1)).alias("rows"), _bytes(progress.frame).alias("bytes"),
            F.max(F.spark_partition_id()).alias("last"))
        kept = counted.persist(level)
        _compute(kept)
        found, counts = seen.get, progress.counts()
        try:
            reading.check()
        except RunError:
            kept.unpersist()
            raise
        part = IntermediateRows(kept, found["rows"], found["bytes"] or 0, counts, progress,
                                1 + (found["last"] or 0))
        with self._lock:
            self._parts[job.number] = part
        return part

    def frame(self, jobs: Sequence[int]) -> DataFrame:
        """The rows that some jobs have kept, together."""
        return reduce(DataFrame.unionAll, [self._parts[job].frame for job in jobs])

    def tasks(self, jobs: Sequence[int]) -> int:
        """About how many tasks read what some jobs have kept; asking Spark takes 0.04 s."""
        return sum(self._parts[job].tasks for job in jobs)

    def rows(self, jobs: Sequence[int]) -> int:
        """Rows that some jobs have kept, together."""
        return sum(self._parts[job].rows for job in jobs)

    def forget(self, job: int) -> None:
        """Release the rows that a job kept."""
        with self._lock:
            part = self._parts.pop(job, None)
        if part is not None:
            part.frame.unpersist()

    def close(self) -> None:
        """Release all rows."""
        for job in list(self._parts):
            self.forget(job)

    def measure(
        self, compiler: Compiler, path: Path, job: SegmentJob, frame: DataFrame
    ) -> tuple[dict[str, StageFigures], float]:
        """Sample the stages that a job names; return their figures and the fixed cost of a job.

        The time for one row of each partition is subtracted: it is the cost of a job, however few
        its rows are. Earlier stages that need no sample are run as well, but not timed.
        """
        cores = self._spark.sparkContext.defaultParallelism
        whole = sum(block.rows for block in job.blocks)
        wanted = min(SAMPLE_ROWS, max(FEW_ROWS, whole // 2))
        kept = [frame.limit(wanted).repartition(cores).persist()]
        figures: dict[str, StageFigures] = {}
        bare = []
        try:
            rows, size, _ = _timed(kept[0])
            stages = names(path.in_order(job.evaluation.order))
            for stage in range(job.first, 1 + max(map(stages.index, job.sample))):
                few, all_ = (compiler.part(path, job.members[0], before, stage, stage + 1,
                                            replace(job.evaluation, rate=0.0)).frame
                             for before in (_few(kept[-1]), kept[-1]))
                kept.append(all_)
                if stages[stage] not in job.sample:
                    rows, size, _ = _timed(all_.persist())
                    continue
                bare.append(_timed_well(few)[2])
                few.unpersist()
                rows_out, size_out, seconds = _timed_well(all_)
                figures[stages[stage]] = StageFigures(
                    rows_in=rows, rows_out=rows_out, seconds=seconds, bytes_in=size,
                    bytes_out=size_out)
                rows, size = rows_out, size_out
        finally:
            for part in kept:
                part.unpersist()
        fixed = min(bare)  # anything more is the noise of a busy machine
        return {name: replace(told, seconds=max(told.seconds - fixed, 1e-6))
                for name, told in figures.items()}, fixed


def _timed(frame: DataFrame) -> tuple[float, float, float]:
    """Rows, bytes, and the seconds that computing them took."""
    began = time.perf_counter()
    told = frame.agg(F.count(F.lit(1)), _bytes(frame)).first()
    assert told is not None
    return float(told[0]), float(told[1] or 0), time.perf_counter() - began


def _timed_well(frame: DataFrame) -> tuple[float, float, float]:
    """The same for rows that are kept; the better of two timings if it is short."""
    found = _timed(frame.persist())
    if found[2] < BRIEF:
        frame.unpersist()
        found = min(found, _timed(frame.persist()), key=itemgetter(2))
    return found


def _few(frame: DataFrame) -> DataFrame:
    """The first row of every partition."""
    return frame.where(F.monotonically_increasing_id() % F.lit(2**33) == 0)


def _compute(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _bytes(frame: DataFrame) -> Column:
    """The bytes of the rows in decoded form."""
    return F.sum(row_bytes(frame.schema))
