"""Ingest: one Structured Streaming query per stream turns micro-batches into durable blocks.

Returning from `foreachBatch` commits the source's offsets, so the block is durable before. After a
crash Spark hands the last batch over again under the same number: if its block is durable the batch
is done, if not it is written anew over what there is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from penstock.clock import Clock
from penstock.events import kinds as ev
from penstock.model import quoted
from penstock.spark.checkpoint import Checkpoint, write_json
from penstock.spark.files import Files
from penstock.spark.footers import Footer, files_of_batch, footer
from penstock.spark.sources import CORRUPT, FILE, FILES, last_row, plain, stream_frame
from penstock.spark.spool import Manifest, Spool, is_late

LONGEST = 2**20
"""A text or binary value of more bytes than this makes its row a reject."""
SHOWN = 10_000
"""How many characters of a malformed row are kept with it."""

_WIDTHS = {"BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "INT": 4, "BIGINT": 8, "FLOAT": 4,
           "DOUBLE": 8, "DATE": 4, "TIMESTAMP": 8, "DECIMAL": 16}
_TYPICAL = 24
"""Bytes assumed for a value whose size was not measured."""


@dataclass(frozen=True, slots=True)
class _Counted:
    """What one pass over a batch tells."""

    read: int
    late: int
    rejected: int
    newest: int | None
    variable: int | None
    """Bytes of the values without a fixed width; None when not measured."""
    files: tuple[str, ...] = ()


class Ingest:
    """The ingest of one stream."""

    def __init__(
        self,
        spark: SparkSession,
        checkpoint: Checkpoint,
        files: Files,
        spool: Spool,
        clock: Clock,
        report: Callable[[ev.Event], None],
    ) -> None:
        """``report`` takes every event of this stream; it is called from other threads."""
        self._spark, self._checkpoint, self._files = spark, checkpoint, files
        self._spool, self._clock, self._report = spool, clock, report
        self._stream = spool.stream
        self._query: StreamingQuery | None = None
        self._busy = threading.Lock()
        self._stopping = False
        self._end: int | None = None
        """The row after which a source that follows the clock has no more."""

    # --- life --------------------------------------------------------------------------------

    def start(self, until_drained: bool, interval: float) -> None:
        """Begin to read; with ``until_drained`` read what is there, or is due to come, and end."""
        self._end = last_row(self._stream) if until_drained else None
        frame = stream_frame(self._spark, self._stream)
        offsets = self._checkpoint.folder("offsets", self._stream.name)
        _remove_torn(offsets)
        writer = (
            frame.writeStream.foreachBatch(self._take)
            .queryName(f"penstock-{self._stream.name}-{id(self)}")
            .option("checkpointLocation", str(offsets))
        )
        if until_drained and self._end is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{round(interval * 1000)} milliseconds")
        self._query = writer.start()
        self._end_if_read()
        threading.Thread(target=self._watch, daemon=True).start()

    def stop(self) -> None:
        """Stop reading, between two batches where possible."""
        self._stopping = True
        if self._query is not None:
            with self._busy:  # the batch under way is finished; a later one sees that we stop
                pass
            self._query.stop()

    def _watch(self) -> None:
        assert self._query is not None
        reason = ""
        try:
            self._query.awaitTermination()
        except PySparkException as error:
            reason = _reason(error)
        if self._stopping:
            return
        now = self._clock.now()
        if reason:
            self._report(ev.StreamFailed(now, self._stream.name, reason))
        else:
            self._report(ev.StreamEnded(now, self._stream.name))

    # --- a batch -----------------------------------------------------------------------------

    def _take(self, batch: DataFrame, number: int) -> None:
        with self._busy:
            if self._spool.has(number) or self._stopping:
                if self._stopping and not self._spool.has(number):
                    raise InterruptedError("stopping")  # or the batch would be committed unread
                return
            batch.sparkSession.sparkContext.setLocalProperty("spark.scheduler.pool", "ingest")
            manifest = self._store(batch, number)
            block = self._spool.add(manifest)
        now = self._clock.now()
        self._report(ev.BlockArrived(now, block, manifest.read, manifest.late, manifest.rejected,
                                     manifest.progress))
        if manifest.seen is not None:
            watermark = manifest.seen / 1e6 - self._stream.lateness
            self._report(ev.WatermarkMoved(now, self._stream.name, watermark))
        self._end_if_read()

    def _end_if_read(self) -> None:
        """A source that follows the clock is at its end when its last row has been read."""
        last = self._spool.last
        if self._end is not None and last is not None and last.progress >= self._end:
            self._end = None
            self._report(ev.StreamEnded(self._clock.now(), self._stream.name))

    def _store(self, batch: DataFrame, number: int) -> Manifest:
        """Make the block durable, all but its manifest."""
        arrived = self._clock.now()
        last = self._spool.last
        cutoff = self._cutoff(last)
        copied = self._stream.format != "parquet"
        counted = (self._copy if copied else self._look)(batch, number, cutoff)
        if counted.late:
            rows = batch if copied else self._spool.read_files(counted.files)
            self._set_aside(rows, number, cutoff, "late")
        if counted.rejected and copied:
            self._set_aside(batch, number, cutoff, "rejects")
        kept = counted.read - counted.late - counted.rejected
        seen = [t for t in (last.seen if last else None, counted.newest) if t is not None]
        progress = self._progress(counted) + (last.progress if last else 0)
        return Manifest(
            number, kept, self._bytes(kept, counted), arrived, counted.read, counted.late,
            counted.rejected, cutoff, max(seen, default=None), progress,
            () if copied else counted.files,
        )

    def _cutoff(self, last: Manifest | None) -> int | None:
        if self._stream.time is None or last is None or last.seen is None:
            return None
        return last.seen - round(self._stream.lateness * 1e6)

    def _copy(self, batch: DataFrame, number: int, cutoff: int | None) -> _Counted:
        """Write the good rows to the spool and count all of them, in one job."""
        observation = Observation()
        kinds = self._kinds(batch, cutoff)
        counted = batch.select("*", *kinds).observe(observation, *self._measures(batch))
        good = counted.where(F.col("@bad").isNull() & ~F.col("@late"))
        columns = [F.col(quoted(column.name)) for column in self._stream.columns]
        good.select(*columns).write.mode("overwrite").option(
            "mapreduce.fileoutputcommitter.marksuccessfuljobs", "false"
        ).parquet(str(self._spool.folder(number)))
        return _counted(observation.get)

    def _look(self, batch: DataFrame, number: int, cutoff: int | None) -> _Counted:
        """Only count: the stream's own files serve as the block. Footers tell it without a job."""
        offsets = self._checkpoint.folder("offsets", self._stream.name)
        footers = [footer(file, self._stream) for file in files_of_batch(offsets, number) or ()]
        if not footers or any(f is None for f in footers):
            return self._count(batch, cutoff)
        known = [f for f in footers if f is not None]
        unfit = [f for f in known if f.fault]
        good = tuple(f.file for f in known if not f.fault)
        self._refuse_files(unfit, number)
        refused = sum(f.rows for f in unfit)
        oldest = min((f.oldest for f in known if f.oldest is not None), default=None)
        newest = max((f.newest for f in known if f.newest is not None), default=None)
        if cutoff is not None and oldest is not None and oldest < cutoff:
            counted = self._count_files(good, cutoff)
        else:
            counted = _Counted(sum(f.rows for f in known) - refused, 0, 0, newest, None, good)
        return replace(counted, read=counted.read + refused, rejected=refused)

    def _count_files(self, files: tuple[str, ...], cutoff: int) -> _Counted:
        """Some rows may be late: a job over the times counts them."""
        rows = self._spool.read_files(files)
        marked = rows.select("*", *self._kinds(rows, cutoff))
        row = marked.agg(*self._totals()).collect()[0]
        return _Counted(row["read"], row["late"], 0, row["newest"], None, files)

    def _count(self, batch: DataFrame, cutoff: int | None) -> _Counted:
        """Where there is neither log nor footer to look at, a job tells files and figures."""
        marked = batch.select("*", *self._kinds(batch, cutoff))
        found = marked.groupBy(F.col(quoted(FILE)).alias("file")).agg(*self._totals()).collect()
        newest = [row["newest"] for row in found if row["newest"] is not None]
        return _Counted(
            sum(row["read"] for row in found), sum(row["late"] for row in found), 0,
            max(newest, default=None), None, tuple(sorted(row["file"] for row in found)),
        )

    def _totals(self) -> list[Column]:
        return [
            F.count(F.lit(1)).alias("read"),
            F.count_if(F.col("@late")).alias("late"),
            F.max(F.when(~F.col("@late"), self._time())).alias("newest"),
        ]

    def _refuse_files(self, unfit: list[Footer], number: int) -> None:
        """Files that do not fit the declaration are rejected whole, with the reason."""
        if unfit:
            folder = self._checkpoint.folder("rejects", self._stream.name)
            reasons = [{"reason": f.fault, "file": f.file, "rows": f.rows} for f in unfit]
            write_json(folder / f"block={number:08d}-files.json", reasons)

    def _kinds(self, batch: DataFrame, cutoff: int | None) -> list[Column]:
        """Two columns that tell good rows from bad and late ones."""
        bad: list[Column] = []
        if CORRUPT in batch.columns:
            bad.append(F.when(F.col(quoted(CORRUPT)).isNotNull(), F.lit("malformed row")))
        if self._stream.format != "parquet":
            bad += [_too_long(name) for name in self._variable()]
        reason = F.coalesce(*bad) if bad else F.lit(None).cast("string")
        late = (F.lit(False) if cutoff is None or self._stream.time is None
                else is_late(self._stream.time, cutoff))
        return [reason.alias("@bad"), (late & reason.isNull()).alias("@late")]

    def _measures(self, batch: DataFrame) -> list[Column]:
        good = F.col("@bad").isNull() & ~F.col("@late")
        sizes = [F.coalesce(F.octet_length(F.col(quoted(n))), F.lit(0)) for n in self._variable()]
        total = reduce(lambda a, b: a + b, sizes, F.lit(0))
        measures = [
            F.count(F.lit(1)).alias("read"),
            F.count(F.when(F.col("@late"), 1)).alias("late"),
            F.count(F.when(F.col("@bad").isNotNull(), 1)).alias("rejected"),
            F.max(F.when(good, self._time())).alias("newest"),
            F.sum(F.when(good, total).cast("bigint")).alias("variable"),
        ]
        if FILE in batch.columns:
            measures.append(F.collect_set(F.col(quoted(FILE))).alias("files"))
        return measures

    def _time(self) -> Column:
        if self._stream.time is None:
            return F.lit(None).cast("bigint")
        return F.unix_micros(F.col(quoted(self._stream.time)).cast("timestamp"))

    def _variable(self) -> list[str]:
        return [c.name for c in self._stream.columns if c.type.name in ("STRING", "BINARY")]

    def _set_aside(self, batch: DataFrame, number: int, cutoff: int | None, kind: str) -> None:
        """Keep late rows, or rejects with their reason, apart; a repeated batch replaces itself."""
        marked = batch.select("*", *self._kinds(batch, cutoff))
        columns = [F.col(quoted(column.name)) for column in self._stream.columns]
        if kind == "late":
            aside = marked.where(F.col("@late")).select(*columns)
        else:
            aside = marked.where(F.col("@bad").isNotNull()).select(*self._evidence(batch))
        target = self._checkpoint.folder(kind, self._stream.name) / f"block={number:08d}"
        aside.write.mode("overwrite").json(str(target))

    def _evidence(self, batch: DataFrame) -> list[Column]:
        """Of a reject: the reason and the row, cut short where it is endless."""
        if CORRUPT in batch.columns:
            text = F.coalesce(F.col(quoted(CORRUPT)), self._row())
        else:
            text = self._row()
        return [F.col("@bad").alias("reason"), F.substring(text, 1, SHOWN).alias("row")]

    def _row(self) -> Column:
        cut = [
            F.substring(F.col(quoted(c.name)), 1, SHOWN).alias(c.name)
            if c.name in self._variable() else F.col(quoted(c.name))
            for c in self._stream.columns
        ]
        return F.to_json(F.struct(*cut))

    def _bytes(self, rows: int, counted: _Counted) -> int:
        """The size of the rows in decoded form."""
        fixed = sum(_WIDTHS.get(c.type.name, _TYPICAL) for c in self._stream.columns
                    if c.type.name not in ("STRING", "BINARY"))
        if counted.variable is None:
            return rows * (fixed + _TYPICAL * len(self._variable()))
        return rows * fixed + counted.variable

    def _progress(self, counted: _Counted) -> int:
        if self._stream.format in FILES:
            return sum(size for file in counted.files for _, size in self._files.data(file))
        return counted.read


def _counted(measured: dict[str, Any]) -> _Counted:
    return _Counted(measured["read"], measured["late"], measured["rejected"], measured["newest"],
                    measured["variable"] or 0, tuple(measured.get("files") or ()))


def _too_long(name: str) -> Column:
    size = F.octet_length(F.col(quoted(name)))
    reason = F.concat(F.lit(f"column {name} holds "), size.cast("string"),
                      F.lit(f" bytes; at most {LONGEST} are taken"))
    return F.when(size > LONGEST, reason)


def _reason(error: PySparkException) -> str:
    """Why a streaming query ended, without Spark's wrapping of the cause."""
    text = str(error)
    for mark in ("] Reason: ", "Caused by: ", "] terminated with exception: "):
        if mark in text:
            text = text.rsplit(mark, 1)[-1]
    return plain(ValueError(text.replace("[STREAM_FAILED] ", "")))


def _remove_torn(offsets: Path) -> None:
    """Remove what a crash left of the first entry of a log: Spark wants none but whole ones."""
    for log in (offsets / "offsets", offsets / "commits"):
        entries = list(log.iterdir()) if log.is_dir() else []
        if not any(entry.name.isdigit() for entry in entries):
            for entry in entries:
                entry.unlink()
