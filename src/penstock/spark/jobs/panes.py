"""Jobs over blocks whose rows go into the panes of window aggregates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from penstock.engine.instructions import SegmentJob
from penstock.events import kinds as ev
from penstock.plan import Group
from penstock.spark.aggregates.synopsis_store import SynopsisStore
from penstock.spark.compile.file_scans import FileScan
from penstock.spark.delivery.commit import added
from penstock.spark.jobs.intermediate import IntermediateRows
from penstock.spark.jobs.rows_read import Reading
from penstock.spark.jobs.segments import Order, Segments, finished
from penstock.spark.storage.spool import Spool


@dataclass(frozen=True)
class Panes(Segments):
    """Carries out jobs of paths that end in panes; refreshes answer from these later."""

    windows: SynopsisStore
    outgrow: Callable[[Group], None]
    """Called for a group whose panes have become too large for the driver."""

    def _rows(self, job: SegmentJob, spool: Spool) -> DataFrame:
        """The rows of a job without the late ones, which no window takes."""
        numbers = [block.number for block in job.blocks]
        if not job.again:
            spool.set_late_aside(numbers)
        return spool.timely_frame(numbers, job.keep)

    def _emptied(self, job: SegmentJob, part: IntermediateRows) -> ev.JobFinished:
        result = ev.PanesResult(rows_in=job.rows, operators=part.counts, late=job.late)
        return finished(job, result, spark_jobs=1)

    def _finish(
        self, order: Order, frame: DataFrame, reading: Reading, scan: FileScan | None = None
    ) -> ev.JobFinished:
        """Put the rows into panes."""
        job, path = order.job, order.path
        made = order.compiler.summarised(path, job.members, frame, job.first, job.evaluation)
        with replace(made, reading=reading) as rows:
            taken = self.windows.take(job, order.plan, rows, order.synopses)
            done = self.delivery.summarise(job, rows, taken.late)
        progress = made.python.progress if made.python else None
        profile = self._profile(order, progress)
        measured = self._measured(order, progress)
        for number in job.parts:
            self.parts.forget(number)
        for group in taken.outgrown:
            self.outgrow(group)
        result = ev.PanesResult(
            rows_in=job.rows, rejected=done.rejected, errors=done.errors, operators=done.operators,
            added=added(job, taken.passed, done.rejected) if path.lookups else {},
            panes=taken.panes, summarised=taken.rows, late=taken.missed, measured=measured,
            profile=profile, raising=self._raising(order, measured))
        return finished(job, result, bytes_out=done.bytes, spark_jobs=done.jobs + taken.jobs,
                        failed=done.failed)
