"""Ingest: the rows of a source become durable blocks.

The files of a folder are read batch by batch. A line of the stream's log of files is durable before
a batch is stored, and the block's manifest makes it count. The driver makes the packets of `onoff`,
and the manifest itself says how far they have come. A Structured Streaming query reads all other
sources. Returning from `foreachBatch` commits the source's offsets, so the block is durable first.
After a crash the last batch comes again under the same number. If its block is durable, the batch
is done. If not, the block is written again over what exists.

The driver stores a small batch by itself; the executors store a large one.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.clock import Clock
from penstock.events import kinds as ev
from penstock.generators import onoff_options
from penstock.language.source_checks import FILES
from penstock.model import Block
from penstock.spark.compile.expressions import schema
from penstock.spark.ingest import (
    driver_batches,
    executor_batches,
    footers,
    partitions,
    times,
)
from penstock.spark.ingest.dataframes import stream_rows
from penstock.spark.ingest.driver_batches import SmallBatches, are_small
from penstock.spark.ingest.executor_batches import Counted
from penstock.spark.ingest.feed import DerivedFeed
from penstock.spark.ingest.file_batches import Ages
from penstock.spark.ingest.file_checks import Verdict
from penstock.spark.ingest.file_log import FILE_LOG
from penstock.spark.ingest.file_source import FileSource
from penstock.spark.ingest.folder_watch import FolderWatch
from penstock.spark.ingest.offsets import synced
from penstock.spark.ingest.packet_stream import PacketBatch, PacketPosition, PacketStream
from penstock.spark.ingest.retries import StreamReader
from penstock.spark.ingest.source_options import opened
from penstock.spark.ingest.sources import (
    FAULTS,
    files_frame,
    plain,
    stream_frame,
    with_computed,
)
from penstock.spark.row_bytes import typical_bytes
from penstock.spark.session import guard_callbacks, lost
from penstock.spark.storage.checkpoint import Checkpoint, remove_torn
from penstock.spark.storage.files import Files, ListedFile, as_pattern, local_path
from penstock.spark.storage.local_store import private
from penstock.spark.storage.spool import Manifest, Spool

LOOK_AGAIN = 5.0
"""Seconds after which a derived stream looks whether it should stop, though nothing was said."""
LOOKING = 0.1
"""The part of the time that may be spent on looking at a folder without new files."""
Batch = DataFrame | list[Verdict] | PacketBatch
"""What a source delivers: rows, files, or a range of packets."""


class _Unreadable(Exception):
    """A file of a batch cannot be read."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = path, reason


class Ingest:
    """The ingest of one stream."""

    def __init__(
        self,
        spark: SparkSession,
        checkpoint: Checkpoint,
        files: Files,
        spool: Spool,
        clock: Clock,
        wall: Clock,
        report: Callable[[ev.Event], None],
        patience: float,
        room: threading.Event,
        given: DataFrame | None = None,
    ) -> None:
        """``report`` takes every event of this stream; it is called from other threads.

        ``clock`` gives the times of blocks and events and never goes back; the ages of files go by
        ``wall``, as their times do.
        A stream may fail for ``patience`` seconds with faults that may pass before it is given up.
        Batches wait while ``room`` is not set. The frame ``given`` is that of a Python program.
        """
        self._spark, self._checkpoint, self._files = spark, checkpoint, files
        self._spool, self._clock, self._wall, self._report = spool, clock, wall, report
        self._stream = spool.stream
        self._query: StreamingQuery | None = None
        self._source: FileSource | None = None
        self._packets: PacketStream | None = None
        self.feed: DerivedFeed | None = None
        """Of a derived stream."""
        self._small = SmallBatches()
        self._thread: threading.Thread | None = None
        self._busy = threading.Lock()
        self._woken = threading.Event()
        self._stopping = False
        self._patience, self._room, self._given = patience, room, given
        self._hinted = False

    # --- life --------------------------------------------------------------------------------

    def open(self, until_drained: bool) -> None:
        """Learn how far the source was read; CheckpointError if that is damaged."""
        if self._stream.derived:
            folder = self._checkpoint.folder("feeds", self._stream.name)
            self.feed = DerivedFeed(self._files, self._checkpoint.store, folder, self._place)
        elif self._stream.format in FILES:
            assert self._stream.path is not None
            log = self._checkpoint.log(self._offsets / FILE_LOG)
            self._source = FileSource(self._files, log, self._stream, until_drained,
                                      self._tell_set_aside, self._tell_changed,
                                      Ages(self._wall, time.monotonic),
                                      FolderWatch(self._files, self._stream.path, self._wall))
            self._source.check(self._next)
        elif self._stream.format == "onoff":
            options = onoff_options.Options.parse(opened(self._stream))
            self._packets = PacketStream(options, self._stream.read, self._wall.now)
            self._spool.refuse_without_place()
            self._packets.place(self._place)

    @property
    def can_wait(self) -> bool:
        """Whether no row exists, or falls due, before reading begins: a generator that is new."""
        return self._packets is not None and self._packets.is_paced and self._spool.last is None

    def start(self, until_drained: bool, interval: float) -> None:
        """Begin to read; with ``until_drained`` read what exists, or is due to come, and end."""
        read = partial(self._query_it, self._offsets, until_drained, interval)
        if self.feed is not None:
            read = partial(self._take_feed, self.feed)
        elif self._source is not None:
            read = partial(self._follow, self._source, until_drained, interval)
        elif self._packets is not None:
            read = partial(self._make, self._packets, until_drained, interval)
        reader = StreamReader(self._stream.name, self._clock, self._report, self._patience,
                              self._woken)
        keep_reading = partial(reader.read_on, read, lambda: self._next, self._is_over)
        self._thread = threading.Thread(target=keep_reading, daemon=True)
        self._thread.start()

    def hold(self) -> None:
        """Take no further batch."""
        self._stopping = True
        self._woken.set()
        if self.feed is not None:
            self.feed.wake()

    def stop(self, within: float | None = None) -> None:
        """Stop reading, if possible between two batches, but ``within`` seconds in any case."""
        self.hold()
        wait = -1.0 if within is None else within
        if self._busy.acquire(timeout=wait):  # the present batch is finished
            self._busy.release()
        if within is None:
            self._end_reading()
            return
        ending = threading.Thread(target=self._end_reading, args=(True,), daemon=True)
        ending.start()
        ending.join(within)
        if ending.is_alive() and self._source is not None:
            self._source.close()  # what is left behind notes nothing any more

    def _end_reading(self, hurried: bool = False) -> None:
        try:
            if self._query is not None:
                self._query.stop()
        except Exception:
            if not hurried and not lost(self._spark):
                raise
        if self._thread is not None:
            self._thread.join()
        if self._source is not None:
            self._source.close()

    def _is_over(self) -> bool:
        """Whether a source that seems to have ended was ended by us, or with Spark."""
        return self._stopping or bool(lost(self._spark))

    def _query_it(self, offsets: Path, until_drained: bool, interval: float) -> None:
        """Start the streaming query that delivers the batches of this source."""
        frame = (stream_frame(self._spark, self._stream) if self._given is None
                 else stream_rows(self._spark, self._given, self._stream))
        remove_torn(self._checkpoint.store, offsets)
        guard_callbacks(self._spark)
        writer = (
            frame.writeStream.foreachBatch(self._take)
            .queryName(f"penstock-{self._stream.name}-{uuid4().hex}")
            .option("checkpointLocation", str(offsets))
        )
        if until_drained:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{round(interval * 1000)} milliseconds")
        self._query = writer.start()
        if self._stopping:
            self._query.stop()
        self._query.awaitTermination()

    def _follow(self, source: FileSource, until_drained: bool, interval: float) -> None:
        """Read a folder, batch by batch, until it is drained or stopped."""
        while not self._stopping:
            began = time.monotonic()
            if self._take_files(source):
                continue
            if until_drained and not source.waiting:
                return
            took = time.monotonic() - began
            self._woken.wait(max(interval, took / LOOKING))

    def _make(self, packets: PacketStream, until_drained: bool, interval: float) -> None:
        """Make the packets of `onoff`, block by block, until all are made or it is stopped."""
        while not self._stopping:
            place = self._take_packets(packets)
            if until_drained and packets.is_over(place):
                return
            if not until_drained or packets.is_paced:
                self._woken.wait(packets.pause(place, interval))

    def _take_feed(self, feed: DerivedFeed) -> None:
        """Take what the query delivers, block by block, until it is through or it is stopped."""
        more = True
        while more and not self._stopping:
            self._wait_for_room()
            with self._busy:
                names = [] if self._stopping else feed.next()
                if names:
                    self._take_delivered(feed, names)
            more = bool(names) or feed.wait(LOOK_AGAIN)

    def _take_delivered(self, feed: DerivedFeed, names: list[str]) -> None:
        """Make a block of files that the query has delivered."""
        try:
            self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", "ingest")
            reader = self._spark.read.schema(schema(self._stream.columns))
            rows = reader.parquet(*map(as_pattern, feed.paths(names)))
            manifest = replace(self._store(rows, self._next), place={"files": names})
            block = self._spool.add(manifest)
        except BaseException:
            feed.put_back(names)
            raise
        feed.took(names)
        self._tell(block, manifest)

    def _wait_for_room(self) -> None:
        """Wait while the spool is full: no batch is taken until it has room."""
        while not self._room.wait(0.2) and not self._stopping:
            pass

    # --- a batch -----------------------------------------------------------------------------

    @property
    def _offsets(self) -> Path:
        return self._checkpoint.folder("offsets", self._stream.name)

    @property
    def _next(self) -> int:
        """The number of the next block."""
        return self._spool.last.number + 1 if self._spool.last is not None else 0

    @property
    def _place(self) -> dict[str, Any] | None:
        """How far the source was read with the last block, if its manifest says."""
        return self._spool.last.place if self._spool.last is not None else None

    def _take(self, batch: DataFrame, number: int) -> None:
        """Store a batch that the streaming query delivers."""
        self._wait_for_room()
        with self._busy:
            if self._spool.has(number) or self._stopping:
                if self._stopping and not self._spool.has(number):
                    raise InterruptedError("stopping")  # else the batch would be committed unread
                return
            batch.sparkSession.sparkContext.setLocalProperty("spark.scheduler.pool", "ingest")
            offsets = synced(self._checkpoint.store, self._offsets, number)
            manifest = replace(self._store(batch, number), offsets=offsets)
            block = self._spool.add(manifest)
        self._tell(block, manifest)

    def _take_packets(self, packets: PacketStream) -> PacketPosition:
        """Store the packets that are due, if any; return how far the stream has then come."""
        self._wait_for_room()
        with self._busy:
            first = packets.place(self._place)
            last = packets.next(first)
            if self._stopping or last.position == first.position:
                return last
            manifest = self._store(PacketBatch(packets, first, last), self._next)
            block = self._spool.add(replace(manifest, place=packets.noted(last)))
        self._tell(block, manifest)
        return last

    def _take_files(self, source: FileSource) -> bool:
        """Store the next files; return False if there is nothing to read now."""
        self._wait_for_room()
        with self._busy:
            number = self._next
            batch = [] if self._stopping else source.next(number)
            if not batch:
                return False
            self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", "ingest")
            manifest = self._store_files(source, batch, number)
            if manifest is None:
                return True
            block = self._spool.add(manifest)
        self._tell(block, manifest, source.taken)
        return True

    def _tell(self, block: Block, manifest: Manifest, files: int = 0) -> None:
        now = self._clock.now()
        self._report(ev.BlockArrived(at=now, block=block, read=manifest.read, late=manifest.late,
                                     rejected=manifest.rejected, progress=manifest.progress,
                                     files=files))
        if manifest.seen is not None:
            watermark = manifest.seen / 1e6 - self._stream.lateness
            self._report(ev.WatermarkMoved(at=now, stream=self._stream.name, time=watermark))

    def _tell_set_aside(self, file: ListedFile, reason: str, rows: int) -> None:
        """Report a file that is not read, and list it beside rejected rows if the disk has room."""
        self._report(ev.FileSetAside(at=self._clock.now(), stream=self._stream.name, file=file.path,
                                     reason=reason, rows=rows))
        entry = {"reason": reason, "file": file.path, "rows": rows}
        with suppress(OSError):
            aside = self._checkpoint.folder("rejects", self._stream.name) / "files.json"
            with open(aside, "a", opener=private) as log:
                log.write(json.dumps(entry) + "\n")

    def _tell_changed(self, file: ListedFile) -> None:
        self._warn(f"{file.path} was written to after it was read; what was added is not read. "
                   "Let files appear whole: write them elsewhere and rename them")

    def _warn(self, text: str) -> None:
        self._report(ev.Warned(at=self._clock.now(), subject=f"stream {self._stream.name}",
                               text=text))

    def _store_files(
        self, source: FileSource, batch: list[Verdict], number: int
    ) -> Manifest | None:
        """Make a block of files; those that turn out to be bad are left out and reported."""
        while batch:
            try:
                return self._store(batch, number)
            except _Unreadable as error:
                batch = source.leave_out(number, batch, {error.path: error.reason})
            except FAULTS:
                bad = self._unreadable(batch)
                if not bad:
                    raise
                batch = source.leave_out(number, batch, bad)
        return None

    def _unreadable(self, batch: Sequence[Verdict]) -> dict[str, str]:
        """The files of a failed batch that cannot be read alone either, with the reason."""
        bad = {}
        for verdict in batch:
            try:
                frame = files_frame(self._spark, self._stream, [verdict.file.path])
                frame.write.format("noop").mode("overwrite").save()
            except FAULTS as error:
                if "FAILED_READ_FILE" not in str(error):  # the file is not at fault
                    raise
                bad[verdict.file.path] = _cause(error)
        return bad

    def _store(self, batch: Batch, number: int) -> Manifest:
        """Make the block durable, except for its manifest."""
        arrived = self._clock.now()
        last = self._spool.last
        cutoff, bounds = self._cutoff(last), times.Bounds.of(self._stream, arrived)
        files: tuple[str, ...] = ()
        copied = False
        if isinstance(batch, PacketBatch):
            counted = self._generate(batch, number, cutoff, bounds)
        elif isinstance(batch, DataFrame):
            counted = self._copy(batch, number, cutoff, bounds, self._small.expected)
            self._small.note(counted.read)
        elif self._stream.in_place:
            files, copied, counted = self._look(batch, number, cutoff, bounds)
        else:
            counted = self._copy(self._read(batch, number), number, cutoff, bounds,
                                 are_small(batch))
            if self._stream.format == "parquet":
                self._files.remove(str(self._conversions(number)))
        self._look_for_wrong_unit(counted, bounds)
        kept = counted.read - counted.rejected
        seen = [t for t in (last.seen if last else None, counted.newest) if t is not None]
        read = sum(v.file.size for v in batch) if isinstance(batch, list) else counted.read
        in_place = self._stream.in_place
        return Manifest(
            number, kept, self._bytes(kept, counted), arrived, counted.read, counted.late,
            counted.rejected, cutoff, max(seen, default=None),
            read + (last.progress if last else 0), files, copied=copied,
            bounds=(bounds.first, bounds.last) if in_place and counted.rejected else None,
        )

    def _look_for_wrong_unit(self, counted: Counted, bounds: times.Bounds) -> None:
        if self._stream.time is None or self._hinted:
            return
        hint = times.unit_hint(self._stream, counted.farthest, counted.newest, bounds)
        if hint:
            self._hinted = True
            self._warn(hint)

    def _cutoff(self, last: Manifest | None) -> int | None:
        if self._stream.time is None or last is None or last.seen is None:
            return None
        return last.seen - round(self._stream.lateness * 1e6)

    def _copy(
        self, rows: DataFrame, number: int, cutoff: int | None, bounds: times.Bounds, small: bool
    ) -> Counted:
        """Write the good rows to the spool, late or not, and store the rejects separately."""
        counted = None
        if small:
            counted = driver_batches.copy(rows, self._stream, self._spool, number, cutoff, bounds,
                                          self._spark.sparkContext.defaultParallelism)
        if counted is None:
            counted = executor_batches.copy(rows, self._stream, self._spool.folder(number), cutoff,
                                            bounds)
        if counted.rejected:
            found = rows if counted.rejects is None else counted.rejects
            self._set_aside(found, number, bounds)
        return counted

    def _generate(
        self, batch: PacketBatch, number: int, cutoff: int | None, bounds: times.Bounds
    ) -> Counted:
        """Write packets to the spool; packets with a refused time are left to Spark."""
        counted = batch.write(self._spool, number, cutoff, bounds)
        if counted is not None:
            return counted
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", "ingest")
        rows = with_computed(self._spark.createDataFrame(batch.table()), self._stream)
        return self._copy(rows, number, cutoff, bounds, False)

    def _read(self, batch: Sequence[Verdict], number: int) -> DataFrame:
        """The rows of some files; those that Spark cannot read as declared are converted first."""
        odd = [v for v in batch if v.footer is not None and not v.footer.plain]
        files = [v.file.path for v in batch if v not in odd]
        frames = [files_frame(self._spark, self._stream, files)] if files else []
        if odd:
            folder = self._conversions(number)
            self._files.remove(str(folder))
            for place, verdict in enumerate(odd):
                self._converted(verdict, folder, place)
            read = self._spark.read.schema(schema(self._stream.read)).parquet(str(folder))
            frames.append(with_computed(read, self._stream))
        return reduce(DataFrame.unionAll, frames)

    def _conversions(self, number: int) -> Path:
        """Where files are converted before the rows of a block are computed from them."""
        return self._spool.folder(number).with_suffix(".converted")

    def _look(
        self, batch: Sequence[Verdict], number: int, cutoff: int | None, bounds: times.Bounds
    ) -> tuple[tuple[str, ...], bool, Counted]:
        """Count the rows; the stream's own files are the block. Footers suffice, without a job.

        Files that Spark cannot read as declared are copied into the block's folder.
        """
        self._files.remove(str(self._spool.folder(number)))
        odd = [v for v in batch if v.footer is not None and not v.footer.plain]
        found = [v.footer for v in batch if v.footer is None or v.footer.plain]
        if odd:
            converted = [self._converted(v, self._spool.folder(number), n)
                         for n, v in enumerate(odd)]
            found += [footers.footer(path, self._stream, {}) for path in converted]
        files = tuple(v.file.path for v in batch if v not in odd)
        oldest, newest = _range(found)
        told = all(f is not None and (f.times is not None or f.rows == 0) for f in found)
        timely = cutoff is None or oldest is None or oldest >= cutoff
        if (self._stream.time is None and None not in found) or (
                told and timely and bounds.hold(oldest, newest)):
            rows = sum(f.rows or 0 for f in found if f is not None)
            return files, bool(odd), Counted(rows, 0, 0, newest, None)
        frame = self._spool.read_files(files, number if odd else None)
        counted = executor_batches.count(frame, self._stream, cutoff, bounds)
        if counted.rejected:
            self._set_aside(frame, number, bounds)
        return files, bool(odd), counted

    def _converted(self, verdict: Verdict, folder: Path, place: int) -> Path:
        """Copy a file into a folder as it is declared."""
        source = local_path(verdict.file.path)
        assert source is not None and self._stream.path is not None
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"part-{place:05d}.parquet"
        base = partitions.root(self._stream.path)
        inherited = partitions.of_stream(verdict.file.path, self._stream, base)
        try:
            footers.copy(source, target, self._stream, inherited)
        except pa.ArrowException as error:
            target.unlink(missing_ok=True)
            raise _Unreadable(verdict.file.path, str(error).splitlines()[0]) from error
        return target

    def _set_aside(
        self, found: DataFrame | pa.Table, number: int, bounds: times.Bounds
    ) -> None:
        """Store rejects with their reasons: those of a batch, or those that the driver holds."""
        target = self._checkpoint.folder("rejects", self._stream.name) / f"block={number:08d}"
        if isinstance(found, DataFrame):
            executor_batches.set_aside(found, self._stream, target, bounds)
        else:
            driver_batches.set_aside(found, target)

    def _bytes(self, rows: int, counted: Counted) -> int:
        """The size of the rows in decoded form."""
        if counted.bytes is None:
            return rows * typical_bytes(schema(self._stream.columns))
        return counted.bytes


def _range(found: Sequence[footers.Footer | None]) -> tuple[int | None, int | None]:
    """The oldest and the newest time in some footers."""
    known = [f.times for f in found if f is not None and f.times is not None]
    return (min((t[0] for t in known), default=None), max((t[1] for t in known), default=None))


def _cause(error: BaseException) -> str:
    """Why a file could not be read, from the end of Spark's chain of causes."""
    causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
    return causes[-1].split(": ", 2)[-1].strip() if causes else plain(error)
