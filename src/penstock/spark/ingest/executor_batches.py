"""A batch stored by the executors: they write its rows and count them, in one Spark job.

So a batch of any size can be stored. A Spark write job costs a tenth of a second however few rows
it has, so the driver stores small batches (`penstock.spark.ingest.driver_batches`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from penstock.model import Stream, quoted
from penstock.spark.compile.expressions import schema
from penstock.spark.delivery.text_formats import JSON
from penstock.spark.ingest import rejects, times
from penstock.spark.row_bytes import row_bytes
from penstock.spark.storage.spool import is_late


@dataclass(frozen=True, slots=True)
class Counted:
    """What one pass over a batch has counted."""

    read: int
    late: int
    rejected: int
    newest: int | None
    bytes: int | None
    """Bytes of the rows that are not rejects; None if not measured."""
    farthest: float | None = None
    """The largest time in microseconds of a row that is too far ahead."""
    rejects: pa.Table | None = None
    """The reason and the text of each reject, if the driver holds them."""


def copy(
    batch: DataFrame, stream: Stream, folder: Path, cutoff: int | None, bounds: times.Bounds
) -> Counted:
    """Write the good rows to a folder, late or not, and count all of them, in one job."""
    observation = Observation()
    size = row_bytes(schema(stream.columns))
    measures = [*_totals(stream, bounds),
                F.sum(F.when(F.col("@bad").isNull(), size)).alias("bytes")]
    counted = _marked(batch, stream, cutoff, bounds).observe(observation, *measures)
    good = counted.where(F.col("@bad").isNull())
    columns = [F.col(quoted(column.name)) for column in stream.columns]
    good.select(*columns).write.mode("overwrite").option(
        "mapreduce.fileoutputcommitter.marksuccessfuljobs", "false"
    ).parquet(str(folder))
    return _counted(observation.get)


def count(
    rows: DataFrame, stream: Stream, cutoff: int | None, bounds: times.Bounds
) -> Counted:
    """Count by a job over the times, if nothing is copied."""
    row = _marked(rows, stream, cutoff, bounds).agg(*_totals(stream, bounds)).collect()[0]
    return _counted(row.asDict())


def set_aside(batch: DataFrame, stream: Stream, target: Path, bounds: times.Bounds) -> None:
    """Write the rejects with their reasons to a folder; a repeated batch replaces itself."""
    bad = _marked(batch, stream, None, bounds).where(F.col("@bad").isNotNull())
    kept = bad.select(F.col("@bad").alias("reason"), rejects.row_text(batch, stream).alias("row"))
    kept.write.mode("overwrite").options(**JSON).json(str(target))


def _marked(
    batch: DataFrame, stream: Stream, cutoff: int | None, bounds: times.Bounds
) -> DataFrame:
    """A batch with two more columns: why a row is bad, and whether a good one is late."""
    reason = rejects.reason(batch, stream, bounds)
    late = (F.lit(False) if cutoff is None or stream.time is None else is_late(stream, cutoff))
    return batch.select("*", reason.alias("@bad"), (late & reason.isNull()).alias("@late"))


def _totals(stream: Stream, bounds: times.Bounds) -> list[Column]:
    good, timed = F.col("@bad").isNull(), stream.time is not None
    own = times.micros(stream) if timed else F.lit(None).cast("bigint")
    ahead = times.far_ahead(stream, bounds) if timed else F.lit(None).cast("double")
    return [
        F.count(F.lit(1)).alias("read"),
        F.count(F.when(F.col("@late"), 1)).alias("late"),
        F.count(F.when(F.col("@bad").isNotNull(), 1)).alias("rejected"),
        F.max(F.when(good, own)).alias("newest"),
        F.max(ahead).alias("farthest"),
    ]


def _counted(measured: dict[str, Any]) -> Counted:
    measured_bytes = (measured["bytes"] or 0) if "bytes" in measured else None
    return Counted(measured["read"], measured["late"], measured["rejected"], measured["newest"],
                   measured_bytes, measured["farthest"])
