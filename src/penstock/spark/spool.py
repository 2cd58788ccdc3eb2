"""The spool: a stream's decoded blocks, each with a manifest that makes it count.

A block is a folder of Parquet files and a manifest beside it. The manifest is written last and by
rename, so a block without one never happened. Where the stream already is Parquet, a block is a
list of the stream's own files and nothing is copied.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from penstock.model import Block, Stream
from penstock.spark import times
from penstock.spark.checkpoint import Checkpoint, folder_name, read_json, write_json
from penstock.spark.expressions import schema
from penstock.spark.files import Files, as_pattern
from penstock.spark.sources import files_frame
from penstock.spark.text import JSON

ARRIVED = "@arrived"
"""The column with the time at which a row's block arrived, of streams that have no own time."""
EVENT_TIME = "@time"
"""The column with the time of a row, of streams that count it in a unit."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is known of a block."""

    number: int
    rows: int
    bytes: int
    arrived: float
    read: int
    late: int = 0
    """Of the rows: those that came too late for windows."""
    rejected: int = 0
    cutoff: int | None = None
    """Rows with an earlier time (in microseconds) are late."""
    seen: int | None = None
    """The largest time on the stream up to and with this block, in microseconds."""
    progress: int = 0
    """How much of the source had been read with this block."""
    files: tuple[str, ...] = ()
    """The stream's own files, where nothing was copied."""
    copied: bool = False
    """Whether some files had to be copied into the block's folder, beside ``files``."""
    bounds: tuple[int, int] | None = None
    """Rows of the stream's own files with a time outside (in microseconds) were rejected."""
    released: bool = False
    """The rows are gone; only the figures remain."""


class Spool:
    """The blocks of one stream."""

    @classmethod
    def look(
        cls, spark: SparkSession, checkpoint: Checkpoint, files: Files, stream: Stream
    ) -> Spool:
        """The spool as it stands, not to be written to: a run may be doing that."""
        return cls(spark, checkpoint, files, stream, writing=False)

    def __init__(
        self, spark: SparkSession, checkpoint: Checkpoint, files: Files, stream: Stream, *,
        writing: bool = True,
    ) -> None:
        """Read the manifests that are there, and clear away what a crash left of others."""
        self._spark, self._files, self.stream = spark, files, stream
        self._folder = checkpoint.root / "spool" / folder_name(stream.name)
        self._late = checkpoint.root / "late" / folder_name(stream.name)
        self._setting_aside = threading.Lock()  # runs do it from their own threads
        self._schema = schema(stream.columns)
        self._manifests = self._load()
        if writing:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._clear()
        self._hot: dict[int, DataFrame] = {}
        self.last = self._manifests[max(self._manifests)] if self._manifests else None
        """The newest block's manifest, released or not: where the next one goes on."""

    def _load(self) -> dict[int, Manifest]:
        """The manifests; one may go while they are read, if a run is at work."""
        found = {}
        for path in sorted(self._folder.glob("*.json")):
            with contextlib.suppress(FileNotFoundError):
                fields = read_json(path)
                bounds = fields.get("bounds")
                manifest = Manifest(**{**fields, "files": tuple(fields["files"]),
                                       "bounds": tuple(bounds) if bounds else None})
                found[manifest.number] = manifest
        return found

    def _clear(self) -> None:
        """Remove what a crash left of blocks that are not there, or no more."""
        held = {number for number, manifest in self._manifests.items() if not manifest.released}
        for path in self._folder.iterdir():
            if path.is_dir() and int(path.name) not in held:
                self._files.remove(str(path))

    # --- blocks ------------------------------------------------------------------------------

    def folder(self, number: int) -> Path:
        """Where a block's rows are."""
        return self._folder / f"{number:08d}"

    def has(self, number: int) -> bool:
        """Whether the block is durable."""
        return number in self._manifests or (self.last is not None and number <= self.last.number)

    def add(self, manifest: Manifest) -> Block:
        """Make a block count."""
        write_json(self._manifest(manifest.number), asdict(manifest))
        self._manifests[manifest.number] = manifest
        self._forget_last()
        self.last = manifest
        return self.block(manifest.number)

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
                     self._stored(number))

    def _stored(self, number: int) -> int:
        """Bytes on disk of what was copied for a block."""
        with contextlib.suppress(FileNotFoundError):
            return sum(entry.stat().st_size for entry in os.scandir(self.folder(number)))
        return 0

    def held(self) -> list[Block]:
        """The blocks that can be read, oldest first."""
        return [self.block(n) for n, manifest in sorted(self._manifests.items())
                if not manifest.released]

    def release(self, number: int) -> None:
        """Delete a block; the newest keeps its manifest, from which the stream goes on."""
        self.cool(number)
        manifest = self._manifests.pop(number)
        if self.last is not None and number == self.last.number:
            gone = Manifest(**{**asdict(manifest), "files": (), "released": True})
            write_json(self._manifest(number), asdict(gone))
            self._manifests[number] = gone
        else:
            self._manifest(number).unlink(missing_ok=True)
        self._files.remove(str(self.folder(number)))

    def _forget_last(self) -> None:
        if self.last is not None and self._manifests[self.last.number].released:
            del self._manifests[self.last.number]
            self._manifest(self.last.number).unlink(missing_ok=True)

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

    def set_late_aside(self, numbers: Sequence[int]) -> None:
        """Keep the late rows of blocks apart; done once, however many windows leave them out."""
        with self._setting_aside:
            for number in (n for n in numbers if self._manifests[n].late):
                target = self._late / f"block={number:08d}"
                if not (target / "_SUCCESS").exists():
                    late = self.frame([number]).where(self._is_late(number))
                    late.write.mode("overwrite").options(**JSON).json(str(target))

    def _is_late(self, number: int) -> Column:
        cutoff = self._manifests[number].cutoff
        assert cutoff is not None
        return is_late(self.stream, cutoff)

    def _read(self, numbers: Sequence[int]) -> DataFrame:
        """The rows of some blocks; one of which rows are left out is read alone."""
        files = [file for number in numbers for file in self._manifests[number].files]
        own = [n for n in numbers if self._manifests[n].copied or not self._manifests[n].files]
        frame = self.read_files(files, *own)
        manifest = self._manifests[numbers[0]]
        if manifest.bounds is not None:
            frame = frame.where(times.fault(self.stream, times.Bounds(*manifest.bounds)).isNull())
        return frame

    def read_files(self, files: Sequence[str], *numbers: int | None) -> DataFrame:
        """The rows of the stream's own files and of blocks' folders, with its columns."""
        frames = [files_frame(self._spark, self.stream, files)] if files else []
        folders = [as_pattern(str(self.folder(n))) for n in numbers if n is not None]
        if folders:
            frames.append(self._spark.read.schema(self._schema).parquet(*folders))
        return reduce(DataFrame.unionAll, frames)

    def _warm(self, number: int) -> None:
        if number not in self._hot:
            self._hot[number] = self._read([number]).persist(StorageLevel.MEMORY_AND_DISK)

    def close(self) -> None:
        """Let all hot blocks go."""
        for number in list(self._hot):
            self.cool(number)

    def cool(self, number: int) -> bool:
        """Let a hot block go; False when it was not hot."""
        frame = self._hot.pop(number, None)
        if frame is not None:
            frame.unpersist()
        return frame is not None


def is_late(stream: Stream, cutoff: int) -> Column:
    """Whether a row's time lies before the cut-off; a row without a time is not late."""
    return F.coalesce(times.micros(stream) < F.lit(cutoff), F.lit(False))
