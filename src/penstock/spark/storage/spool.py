"""The spool: a stream's decoded blocks, each with a manifest that makes it count.

A block is a folder of Parquet files and a manifest beside it. Executors write the files of a large
block, the driver those of a small one. The manifest is written last and by rename, so a block
without one does not exist. If the stream already is Parquet, a block is a list of the stream's own
files and nothing is copied.
"""

from __future__ import annotations

import contextlib
import os
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import reduce
from itertools import repeat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.storagelevel import StorageLevel

from penstock.engine.positions import SpoolContents
from penstock.errors import CheckpointError
from penstock.model import Block, Stream
from penstock.spark.compile.expressions import schema
from penstock.spark.compile.file_scans import LocalFile
from penstock.spark.delivery.text_formats import JSON
from penstock.spark.ingest import offsets, partitions, times
from penstock.spark.ingest.file_log import FILE_LOG
from penstock.spark.ingest.sources import files_frame
from penstock.spark.storage.checkpoint import Checkpoint, folder_name
from penstock.spark.storage.files import Files, as_pattern, local_path
from penstock.spark.storage.guarded import Witness, damaged
from penstock.spark.storage.merged_blocks import BLOCK, SMALL, MergedBlocks

ARRIVED = "@arrived"
"""The column with the time at which a row's block arrived, for streams without a time of their own.
"""
EVENT_TIME = "@time"
"""The column with the time of a row, for streams that count it in a unit."""

FILE_ROWS = 10_000
"""The fewest rows of a file of a block, if the driver writes several."""
_GROUP_ROWS = 1 << 20
"""The most rows of a row group, and so of those held in memory while a file is written."""
_END = 4096
"""The bytes examined at the end of a file: there Parquet has its footer, which describes everything
in the file."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file of a block as it was when the block was made."""

    path: str
    """Its name in the block's folder, or the whole path of one of the stream's own files."""
    own: bool
    """Whether it is one of the stream's own files."""
    size: int
    end: int
    """The checksum of its last bytes."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is known about a block."""

    number: int
    rows: int
    bytes: int
    arrived: float
    read: int
    late: int = 0
    """The part of the rows that came too late for windows."""
    rejected: int = 0
    cutoff: int | None = None
    """Rows with an earlier time (in microseconds) are late."""
    seen: int | None = None
    """The largest time on the stream up to and including this block, in microseconds."""
    progress: int = 0
    """How much of the source had been read with this block."""
    files: tuple[str, ...] = ()
    """The stream's own files, if nothing was copied."""
    copied: bool = False
    """Whether some files had to be copied into the block's folder, besides ``files``."""
    bounds: tuple[int, int] | None = None
    """Rows of the stream's own files with a time outside (in microseconds) were rejected."""
    offsets: int | None = None
    """The checksum of the offsets it was read with, if Spark keeps them."""
    place: dict[str, Any] | None = None
    """How far the source was read with it, if nothing else keeps that."""
    stored: tuple[Stored, ...] = ()
    """Its files, as far as they are on this machine."""
    released: bool = False
    """Whether the rows are gone and only the figures remain."""


PLACE = "@place"
"""Where a row stands in its stream, as what sorts in that order."""


def _place(modified: Column) -> Column:
    path, row = F.col("_metadata.file_path"), F.col("_metadata.row_index")
    return F.struct(modified.alias("modified"), path.alias("path"), row.alias("row")).alias(PLACE)


class Spool:
    """The blocks of one stream."""

    @classmethod
    def look(
        cls, spark: SparkSession, checkpoint: Checkpoint, files: Files, stream: Stream
    ) -> Spool:
        """The spool as it is, for reading only: a run may be writing to it."""
        return cls(spark, checkpoint, files, stream, writing=False)

    def __init__(
        self, spark: SparkSession, checkpoint: Checkpoint, files: Files, stream: Stream, *,
        writing: bool = True,
    ) -> None:
        """Read the existing manifests, and remove what a crash left of other blocks."""
        self._spark, self._files, self.stream = spark, files, stream
        self._checkpoint = checkpoint
        self._folder = checkpoint.root / "spool" / folder_name(stream.name)
        self._setting_aside = threading.Lock()  # jobs do it from their own threads
        self._schema = schema(stream.columns)
        self._first = Witness(self._folder / "first", checkpoint.id, checkpoint.store)
        self._manifests = self._load()
        self._lock = threading.Lock()  # blocks come and go in threads of their own
        self._released: set[int] = set()
        """Blocks that may go once all earlier ones have gone: numbers have no gaps."""
        self._closed = False
        self._merged = MergedBlocks(
            lambda: checkpoint.folder("merged", stream.name), self._small, self.check)
        if writing:
            files.remove(str(checkpoint.root / "merged" / folder_name(stream.name)))
            checkpoint.folder("spool", stream.name)
            if not self._manifests:
                self._first.begin(0)
            checkpoint.require(self._first.path)
            self._clear()
        self._hot: dict[int, DataFrame] = {}
        self._told: set[int] = set()
        """The hot blocks that were told of."""
        self._warming = threading.Lock()  # jobs beside each other may keep the same block
        self.last = self._manifests[max(self._manifests)] if self._manifests else None
        """The newest block's manifest, released or not: the next one continues from it."""

    def _load(self) -> dict[int, Manifest]:
        """The manifests; one may vanish while they are read, if a run is going."""
        found = {}
        for path in self._checkpoint.store.list(self._folder, "[0-9]*.json"):
            with contextlib.suppress(FileNotFoundError):
                manifest = self._read_manifest(path)
                found[manifest.number] = manifest
        first = self._first.read()  # it is written before a manifest is removed
        self._refuse_gaps(first, found)
        return {number: found[number] for number in sorted(found) if number >= (first or 0)}

    def _read_manifest(self, path: Path) -> Manifest:
        fields = self._checkpoint.read(path)
        try:
            bounds = fields["bounds"]
            manifest = Manifest(**{**fields, "files": tuple(fields["files"]),
                                   "bounds": tuple(bounds) if bounds else None,
                                   "stored": tuple(Stored(**one) for one in fields["stored"])})
        except (LookupError, TypeError) as error:
            raise damaged(path, "is not a manifest that this version knows") from error
        if path != self._manifest(manifest.number):
            raise damaged(path, f"is the manifest of block {manifest.number}")
        return manifest

    def _refuse_gaps(self, first: int | None, found: dict[int, Manifest]) -> None:
        """Blocks are numbered one by one, so a missing one was taken away."""
        if first is None:
            self._checkpoint.has(self._first.path)
            if found:
                raise damaged(self._first.path, "is missing, which tells where the blocks begin")
            return
        missing = next((n for n in range(first, max(found, default=first))
                        if n not in found), None)
        if missing is not None or (first and not found):
            raise damaged(self._manifest(missing or first), "is missing")

    def check_offsets(self) -> None:
        """Refuse a checkpoint whose offsets and blocks do not match."""
        folder = self._checkpoint.root / "offsets" / folder_name(self.stream.name)
        if self._checkpoint.has(folder / FILE_LOG):
            return  # a folder's own log, which is compared with the blocks when it is opened
        last = self.last
        if last is not None and last.place is not None:
            return
        offsets.check(self._checkpoint.store, folder, last.number if last else None,
                      last.offsets if last else None, self._folder)

    def refuse_without_place(self) -> None:
        """Refuse blocks of an earlier version, whose manifests do not say how far they came."""
        if self.last is not None and self.last.place is None:
            raise CheckpointError(
                f"{self._manifest(self.last.number)} was written by an earlier version of Penstock,"
                f" which read {self.stream.format} in another way; begin with another --checkpoint")

    def refuse_before(self, number: int) -> None:
        """Refuse blocks that end before this one, of which rows were delivered."""
        if self.last is None or self.last.number < number:
            raise damaged(self._manifest(number), "is missing: rows of its block were delivered")

    def _clear(self) -> None:
        """Remove what a crash left of blocks that do not exist, or no longer do."""
        held = {number for number, manifest in self._manifests.items() if not manifest.released}
        for path in self._checkpoint.store.list(self._folder):
            number = int(path.stem) if path.stem.isdigit() else None
            if path.is_dir() and number is not None and number not in held:
                self._files.remove(str(path))
            elif path.suffix == ".json" and number is not None and number not in self._manifests:
                self._checkpoint.store.remove(path)

    # --- blocks ------------------------------------------------------------------------------

    def folder(self, number: int) -> Path:
        """Where a block's rows are."""
        return self._folder / f"{number:08d}"

    def has(self, number: int) -> bool:
        """Whether the block is durable."""
        return number in self._manifests or (self.last is not None and number <= self.last.number)

    def write(
        self, number: int, columns: pa.Schema, files: Sequence[Iterable[pa.RecordBatch]]
    ) -> None:
        """Write the rows of a block, file by file; remove what an earlier try left."""
        folder = self.folder(number)
        self._files.remove(str(folder))
        try:
            folder.mkdir()
            places = [folder / f"part-{place:05d}.parquet" for place in range(len(files))]
            if len(files) == 1:
                _write_file(places[0], columns, files[0])
                return
            with ThreadPoolExecutor(len(files)) as pool:
                for _ in pool.map(_write_file, places, repeat(columns), files):
                    pass  # whatever it raised is raised here
        except OSError as error:  # Arrow names neither the folder nor, in plain words, the reason
            why = os.strerror(error.errno) if error.errno else str(error)
            raise OSError(error.errno, why, str(folder)) from error

    def add(self, manifest: Manifest) -> Block:
        """Make a block count."""
        manifest = replace(manifest, stored=tuple(self._stored(manifest)))
        self._checkpoint.check_own()
        with self._lock:
            if self._closed:
                raise CheckpointError("the engine has ended, and takes no block any more")
            self._checkpoint.create(self._manifest(manifest.number), asdict(manifest))
            self._manifests[manifest.number] = manifest
            self.last = manifest
            self._forget()
        return self.block(manifest.number)

    def _stored(self, manifest: Manifest) -> Iterator[Stored]:
        """Examine the files of a new block; those that Spark wrote for it are made durable."""
        local = [(path, local_path(path)) for path in manifest.files]
        yield from (stored_file(name, place, own=True) for name, place in local
                    if place is not None)
        folder, rows = self.folder(manifest.number), 0
        if (manifest.files and not manifest.copied) or not folder.is_dir():
            return
        paths = [Path(path) for path, _ in self._files.data(str(folder))]
        self._checkpoint.store.sync(paths, [folder, self._folder])
        for path in paths:
            rows += pq.read_metadata(path).num_rows
            yield stored_file(os.path.relpath(path, folder), path, own=False)
        if rows != manifest.rows and not manifest.copied:
            raise CheckpointError(f"{folder} holds {rows} rows, but {manifest.rows} were counted "
                                  "as they were written")

    def block(self, number: int) -> Block:
        """A block as the core knows it."""
        manifest = self._manifests[number]
        cutoff, watermark, newest = manifest.cutoff, None, manifest.seen
        if self.stream.time is None:  # all of its rows have the time at which they arrived
            cutoff = watermark = newest = round(manifest.arrived * 1e6)
        elif newest is not None:
            watermark = newest - round(self.stream.lateness * 1e6)
        return Block(self.stream.name, number, manifest.rows, manifest.bytes, manifest.arrived,
                     cutoff, watermark, newest, manifest.late,
                     sum(stored.size for stored in manifest.stored if not stored.own))

    def held(self) -> list[Block]:
        """The blocks that can be read, oldest first."""
        return [self.block(n) for n, manifest in sorted(self._manifests.items())
                if not manifest.released and n not in self._released]

    def release(self, number: int) -> None:
        """Delete a block; the newest keeps its manifest, from which the stream continues.

        Its manifest goes when the earlier ones have gone: a missing one in between is a sign of
        damage. On a full disk a block may have to stay until the next one comes.
        """
        self.cool(number)
        self._merged.forget(number)
        with self._lock:
            self._released.add(number)
            if self.last is not None and number == self.last.number:
                self._keep_figures(self.last)
            self._forget()

    def _keep_figures(self, last: Manifest) -> None:
        gone = replace(last, files=(), stored=(), released=True)
        try:
            self._checkpoint.write(self._manifest(last.number), asdict(gone))
        except OSError:
            return  # it goes when a later block has come
        self._manifests[last.number] = gone
        self._files.remove(str(self.folder(last.number)))

    def _forget(self) -> None:
        """Remove the released blocks that have none before them.

        If that fails, they stay for now; a new block counts regardless.
        """
        gone = []
        for number in self._manifests:  # in the order of their numbers, as they came
            if number not in self._released and not self._manifests[number].released:
                break
            if self.last is None or number != self.last.number:
                gone.append(number)
        if not gone:
            return
        try:
            self._first.write(gone[-1] + 1, sync=True)  # else their absence would look like damage
        except OSError:
            return
        for number in gone:
            del self._manifests[number]
            self._released.discard(number)
            with contextlib.suppress(OSError):
                self._checkpoint.store.remove(self._manifest(number))
            self._files.remove(str(self.folder(number)))

    def _manifest(self, number: int) -> Path:
        return self._folder / f"{number:08d}.json"

    # --- frames ------------------------------------------------------------------------------

    def frame(self, numbers: Sequence[int], keep: Sequence[int] = ()) -> DataFrame:
        """The rows of some blocks; those to ``keep`` stay in memory once this frame is computed."""
        for number in keep:
            self._warm(number)
        apart = [n for n in numbers
                 if n in self._hot or self._manifests[n].bounds is not None]
        together = [n for n in numbers if n not in set(apart)]
        frames = [self._hot.get(n) or self._read([n]) for n in apart]
        if together:
            frames.append(self._read(together))
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionAll(frame)
        return whole

    def local_files(self, numbers: Sequence[int]) -> list[LocalFile] | None:
        """The files with exactly the rows of some blocks; None if only Spark can read them."""
        found: list[LocalFile] = []
        for number in numbers:
            manifest = self._manifests[number]
            if number in self._hot or manifest.bounds is not None:
                return None
            self.check(number)
            for path in manifest.files:
                local = local_path(path)
                if local is None or self._is_partitioned(path):
                    return None
                found.append(LocalFile(local, is_ours=False))
            found += [LocalFile(self.folder(number) / stored.path, is_ours=True)
                      for stored in manifest.stored if not stored.own]
        return found

    def _is_partitioned(self, path: str) -> bool:
        assert self.stream.path is not None
        return bool(partitions.of_stream(path, self.stream, partitions.root(self.stream.path)))

    def timed_frame(self, numbers: Sequence[int], keep: Sequence[int] = ()) -> DataFrame:
        """The same rows with a time: their own, or when their block arrived."""
        if self.stream.unit:
            return self.frame(numbers, keep).withColumn(
                EVENT_TIME, F.timestamp_micros(times.micros(self.stream)))
        if self.stream.time is not None:
            return self.frame(numbers, keep)
        frames = [self.frame([n], keep).withColumn(ARRIVED, F.timestamp_micros(
            F.lit(round(self._manifests[n].arrived * 1e6)))) for n in numbers]
        return reduce(DataFrame.unionAll, frames)

    def timely_frame(self, numbers: Sequence[int], keep: Sequence[int] = ()) -> DataFrame:
        """The same without the late rows: what windows take."""
        late = [n for n in numbers if self._manifests[n].late]
        timely = [n for n in numbers if not self._manifests[n].late]
        frames = [self.timed_frame([n], keep).where(~self._is_late(n)) for n in late]
        frames += [self.timed_frame(timely, keep)] if timely else []
        return reduce(DataFrame.unionAll, frames)

    def window_frame(self, numbers: Sequence[int]) -> DataFrame:
        """The timely rows for a window of many blocks, by a plan that does not grow with them.

        Neighbouring small blocks are one file, and what differs by block is looked up by its
        number. The stream's own files, and blocks in memory, are read as `timely_frame` does.
        """
        cover = self._merged.cover(numbers)
        alone = [n for n in cover.apart if self._manifests[n].files or n in self._hot]
        apart = [n for n in cover.apart if not self._manifests[n].files and n not in self._hot]
        frames = []
        if cover.files:
            columns = T.StructType([*self._schema.fields, T.StructField(BLOCK, T.IntegerType())])
            frames.append(self._spark.read.schema(columns).parquet(*map(str, cover.files)))
        if apart:
            folder = F.substring_index("_metadata.file_path", "/", -2)
            number = F.substring_index(folder, "/", 1).cast("int")
            frames.append(self._read(apart, [number.alias(BLOCK)]))
        if frames:
            whole = reduce(DataFrame.unionAll, frames)
            frames = [self._timely(whole, [*cover.merged, *apart])]
        frames += [self.timely_frame(alone)] if alone else []
        return reduce(DataFrame.unionByName, frames)

    def _timely(self, frame: DataFrame, numbers: Sequence[int]) -> DataFrame:
        """Rows that have the number of their block, with a time and without late ones."""
        known = {number: self._manifests[number] for number in numbers}
        if self.stream.unit:
            frame = frame.withColumn(EVENT_TIME, F.timestamp_micros(times.micros(self.stream)))
        if self.stream.time is None:
            arrived = _by_block({n: round(one.arrived * 1e6) for n, one in known.items()})
            frame = frame.withColumn(ARRIVED, F.timestamp_micros(arrived))
        cutoffs = {n: one.cutoff for n, one in known.items() if one.late and one.cutoff is not None}
        if cutoffs:
            late = times.micros(self.stream) < _by_block(cutoffs)
            frame = frame.where(~F.coalesce(late, F.lit(False)))
        return frame.drop(BLOCK)

    def _small(self, number: int) -> list[Path] | None:
        """The files of a block, if it may be copied into one with others."""
        manifest = self._manifests.get(number)
        if manifest is None or manifest.released or number in self._released or manifest.files:
            return None
        if sum(stored.size for stored in manifest.stored) > SMALL:
            return None
        files = [self.folder(number) / stored.path for stored in manifest.stored]
        return files if manifest.rows else []

    def numbered_frame(self, numbers: Sequence[int]) -> DataFrame:
        """The timely rows with their `PLACE`, by which rows of one time are told apart."""
        apart = [n for n in numbers if self.stream.time is None
                 or self._manifests[n].late or self._manifests[n].bounds is not None]
        together = [n for n in numbers if n not in set(apart)]
        frames = [self._numbered([n]) for n in apart] + (
            [self._numbered(together)] if together else [])
        return reduce(DataFrame.unionAll, frames)

    def _numbered(self, numbers: Sequence[int]) -> DataFrame:
        """Blocks of which none has late rows, or a single one."""
        frame, first = self._read(numbers, placed=True), self._manifests[numbers[0]]
        if self.stream.unit:
            frame = frame.withColumn(EVENT_TIME, F.timestamp_micros(times.micros(self.stream)))
        if self.stream.time is None:
            frame = frame.withColumn(ARRIVED, F.timestamp_micros(
                F.lit(round(first.arrived * 1e6))))
        return frame.where(~self._is_late(numbers[0])) if first.late else frame

    def set_late_aside(self, numbers: Sequence[int]) -> None:
        """Store the late rows of blocks separately; done once, however many windows omit them."""
        with self._setting_aside:
            for number in (n for n in numbers if self._manifests[n].late):
                target = self._checkpoint.folder("late", self.stream.name) / f"block={number:08d}"
                if not (target / "_SUCCESS").exists():
                    late = self.frame([number]).where(self._is_late(number))
                    late.write.mode("overwrite").options(**JSON).json(str(target))

    def _is_late(self, number: int) -> Column:
        cutoff = self._manifests[number].cutoff
        assert cutoff is not None
        return is_late(self.stream, cutoff)

    def check(self, number: int) -> None:
        """Refuse to read a block whose files are not those that it was made from."""
        manifest = self._manifests[number]
        for stored in manifest.stored:
            place = local_path(stored.path) if stored.own else self.folder(number) / stored.path
            assert place is not None
            fault = changed(stored, place)
            if fault:
                raise CheckpointError(
                    f"{place} {fault} since block {number} of stream {self.stream.name} was made "
                    "of it; put the file back as it was, or start over with another --checkpoint")

    def _read(
        self, numbers: Sequence[int], more: Sequence[Column] = (), placed: bool = False
    ) -> DataFrame:
        """The rows of some blocks; a block with rejected rows is read alone.

        ``placed``: with their `PLACE`. ``more`` columns are for blocks in folders.
        """
        for number in numbers:
            self.check(number)
        files = [file for number in numbers for file in self._manifests[number].files]
        own = [n for n in numbers if self._manifests[n].copied or not self._manifests[n].files]
        frame = self.read_files(files, *own, more=more, placed=placed)
        manifest = self._manifests[numbers[0]]
        if manifest.bounds is not None:
            frame = frame.where(times.fault(self.stream, times.Bounds(*manifest.bounds)).isNull())
        return frame

    def read_files(
        self, files: Sequence[str], *numbers: int | None, more: Sequence[Column] = (),
        placed: bool = False,
    ) -> DataFrame:
        """The rows of the stream's own files and of blocks' folders, with its columns.

        ``placed``: and with their `PLACE`. The stream's own files were taken in the order of their
        times and names, and blocks' folders and the files in them are numbered.
        """
        modified = F.col("_metadata.file_modification_time")
        frames = [files_frame(self._spark, self.stream, files,
                              [_place(modified)] if placed else [])] if files else []
        folders = [as_pattern(str(self.folder(n))) for n in numbers if n is not None]
        if folders:
            read = self._spark.read.schema(self._schema).parquet(*folders)
            none = F.lit(None).cast("timestamp")
            more = [*more, _place(none)] if placed else more
            frames.append(read.select("*", *more) if more else read)
        return reduce(DataFrame.unionAll, frames)

    def is_hot(self, number: int) -> bool:
        """Whether a block is in memory, or will be once it has been read."""
        return number in self._hot

    def became_hot(self, number: int) -> bool:
        """Whether a block is hot, and this was not asked before."""
        with self._warming:
            fresh = number in self._hot and number not in self._told
            self._told |= {number} if fresh else set()
            return fresh

    def _warm(self, number: int) -> None:
        with self._warming:
            if number not in self._hot:
                self._hot[number] = self._read([number]).persist(StorageLevel.MEMORY_AND_DISK)

    def close(self) -> None:
        """Release all hot blocks; an ingest that was left behind adds no block from now on."""
        with self._lock:
            self._closed = True
        for number in list(self._hot):
            self.cool(number)
        self._first.close()

    def cool(self, number: int) -> bool:
        """Release a hot block; return False if it was not hot."""
        with self._warming:
            frame = self._hot.pop(number, None)
            self._told.discard(number)
        if frame is not None:
            frame.unpersist()
        return frame is not None


def contents_of(spools: Mapping[str, Spool], stream: str) -> SpoolContents | None:
    """What the spool of a stream holds, for the engine; None if it cannot be read."""
    spool = spools.get(stream)
    if spool is None:
        return None
    last = spool.block(spool.last.number) if spool.last is not None else None
    return SpoolContents(spool.held(), last, round(spool.stream.lateness * 1e6))


def is_late(stream: Stream, cutoff: int) -> Column:
    """Whether a row's time lies before the cut-off; a row without a time is not late."""
    return F.coalesce(times.micros(stream) < F.lit(cutoff), F.lit(False))


def _by_block(values: Mapping[int, int]) -> Column:
    """A number for each row by the number of its block; NULL for a block that has none.

    The numbers are one constant, so that the plan is the same however many blocks there are.
    """
    first, last = min(values), max(values)
    texts = [str(values.get(number, "")) for number in range(first, last + 1)]
    array = F.split(F.lit(" ".join(texts)), " ")
    return F.get(array, F.col(BLOCK) - F.lit(first)).try_cast("bigint")


def _write_file(path: Path, columns: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    with pq.ParquetWriter(path, columns, compression="snappy") as writer:
        for group in _row_groups(batches):
            writer.write_table(pa.Table.from_batches(group, columns))


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches for one row group each, up to the most rows it may have."""
    group: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if group and rows + len(batch) > _GROUP_ROWS:
            yield group
            group, rows = [], 0
        group.append(batch)
        rows += len(batch)
    yield group


def stored_file(name: str, place: Path, own: bool) -> Stored:
    """A file as it is now."""
    with open(place, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        return Stored(name, own, size, _end(file.fileno(), size))


def _end(file: int, size: int) -> int:
    return zlib.crc32(os.pread(file, _END, max(0, size - _END)))


def changed(stored: Stored, place: Path) -> str:
    """What has happened to a file; empty if it is the same."""
    try:
        now = stored_file(stored.path, place, stored.own)
    except FileNotFoundError:
        return "was deleted"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if now.size != stored.size:
        return f"was changed: it had {stored.size} bytes, and has {now.size}"
    return "was changed" if now.end != stored.end else ""
