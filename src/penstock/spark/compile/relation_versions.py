"""The rows of relations that change: each version is a folder of Parquet files in the checkpoint.

The rows of a version are on disk before the core decides that it holds, and `relations.json` says
so before a block is joined with it. What the file does not name is removed at the next start.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType
from pyspark.storagelevel import StorageLevel

from penstock.clock import Clock
from penstock.engine.instructions import ReadRelation
from penstock.engine.version_history import RelationHistory, RelationVersion
from penstock.errors import CheckpointError, PenstockError, SourceError
from penstock.events import kinds as ev
from penstock.model import Relation, quoted
from penstock.spark.compile.expressions import data_type
from penstock.spark.compile.relations import LOCAL_ROWS, Relations
from penstock.spark.ingest.sources import plain
from penstock.spark.storage.checkpoint import Checkpoint, folder_name
from penstock.spark.storage.guarded import damaged


class RelationVersions:
    """Writes versions, and finds their rows again."""

    def __init__(self, spark: SparkSession, checkpoint: Checkpoint, relations: Relations) -> None:
        """Begin with nothing read."""
        self._spark, self._checkpoint, self._relations = spark, checkpoint, relations
        self._frames: dict[tuple[str, int], DataFrame] = {}
        self._reading = threading.Lock()
        self._reasons: dict[str, str] = {}
        """Why relations could not be read when that was tried last; empty if they were."""
        self._stored = RelationHistory()

    # --- writing -----------------------------------------------------------------------------

    def read(self, order: ReadRelation, relation: Relation, clock: Clock) -> ev.RelationRead:
        """Read a relation; if it has other rows than before, write them as a version."""
        began, rows, digest, reason = clock.now(), 0, "", ""
        try:
            rows, digest = self._read(order, relation)
        except PenstockError as error:
            reason = str(error)
        except Exception as error:  # whatever Spark reports about the source
            reason = plain(error)
        self._reasons[relation.name] = reason
        now = clock.now()
        return ev.RelationRead(at=now, relation=relation.name, version=order.version,
                               digest=digest, rows=rows, seconds=now - began, reason=reason)

    def _read(self, order: ReadRelation, relation: Relation) -> tuple[int, str]:
        with self._relations.once(relation) as frame:
            rows, digest = _counted(frame)
            if digest != order.digest:
                folder = self._folder(relation.name, order.version)
                frame.write.mode("overwrite").parquet(str(folder))
                files = [path for path in folder.iterdir() if path.is_file()]
                self._checkpoint.store.sync(files, {folder, folder.parent, folder.parent.parent})
        return rows, digest

    def store(self, history: RelationHistory, relations: Mapping[str, Relation]) -> list[Path]:
        """Note durably which versions hold; return the folders of those that do no longer."""
        self._checkpoint.write(self._checkpoint.versions, {
            name: {"columns": _columns(relations[name]), "versions": [
                [one.number, one.digest, one.rows, dict(one.since)] for one in versions]}
            for name, versions in history.versions.items() if name in relations})
        before, self._stored = self._stored, history
        gone = _numbers(before) - _numbers(history)
        with self._reading:
            for place in gone:
                if frame := self._frames.pop(place, None):
                    frame.unpersist()
        return [self._folder(*place) for place in sorted(gone)]

    # --- reading -----------------------------------------------------------------------------

    def recover(self, relations: Mapping[str, Relation]) -> RelationHistory:
        """The versions that an earlier run has left; what nothing names is removed.

        The versions of a relation that has other columns now are of no use.
        """
        stored = stored_versions(self._checkpoint, relations)
        self._stored = stored
        kept = {self._folder(*place) for place in _numbers(stored)}
        for folder in self._checkpoint.store.list(self._checkpoint.root / "relations"):
            for version in self._checkpoint.store.list(folder):
                if version not in kept:
                    remove(version)
        return stored

    def look(self, relations: Mapping[str, Relation]) -> RelationVersions:
        """The same for reading what a checkpoint holds, on which a run may be going on."""
        self._stored = stored_versions(self._checkpoint, relations)
        return self

    def frame(self, relation: Relation, version: int = 0) -> DataFrame:
        """The rows of a version, or of the latest one."""
        latest = self._stored.latest(relation.name)
        if latest is None and (reason := self._reasons.get(relation.name)):
            raise SourceError(reason)
        if latest is None:  # no query looks it up, only a question does
            return self._relations.frame(relation)
        number = version or latest.number
        with self._reading:
            place = relation.name, number
            if place not in self._frames:
                self._frames[place] = version_frame(
                    self._spark, self._folder(*place), relation)
            return self._frames[place]

    def close(self) -> None:
        """Release what is cached."""
        for frame in self._frames.values():
            frame.unpersist()
        self._frames = {}

    def _folder(self, relation: str, version: int) -> Path:
        return version_folder(self._checkpoint, relation, version)


def version_folder(checkpoint: Checkpoint, relation: str, version: int) -> Path:
    """Where the rows of a version are."""
    return checkpoint.root / "relations" / folder_name(relation) / f"{version:08d}"


def version_frame(spark: SparkSession, folder: Path, relation: Relation) -> DataFrame:
    """The rows of a version; few of them become part of the plans that read them."""
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is missing; restore the checkpoint, or start over with "
                              "another --checkpoint")
    schema = StructType([StructField(column.name, data_type(column.type))
                         for column in relation.columns])
    frame = spark.read.schema(schema).parquet(str(folder))
    head = frame.limit(LOCAL_ROWS + 1).toArrow()
    if head.num_rows > LOCAL_ROWS:
        return frame.persist(StorageLevel.MEMORY_AND_DISK)
    return spark.createDataFrame(head, schema)


def stored_versions(
    checkpoint: Checkpoint, relations: Mapping[str, Relation]
) -> RelationHistory:
    """The versions that a checkpoint holds of relations with these columns."""
    place = checkpoint.versions
    if not checkpoint.has(place):
        return RelationHistory()
    content = checkpoint.read(place)
    try:
        return RelationHistory({
            name: tuple(RelationVersion(number, digest, rows, since)
                        for number, digest, rows, since in held["versions"])
            for name, held in content.items()
            if name in relations and held["columns"] == _columns(relations[name])})
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise damaged(place, "is not one that this version knows") from error


def remove(folder: Path) -> None:
    """Delete the rows of a version, which nothing reads any more."""
    shutil.rmtree(folder, ignore_errors=True)


def _columns(relation: Relation) -> list[list[str]]:
    return [[column.name, str(column.type)] for column in relation.columns]


def _numbers(history: RelationHistory) -> set[tuple[str, int]]:
    return {(name, one.number) for name, versions in history.versions.items() for one in versions}


def _counted(frame: DataFrame) -> tuple[int, str]:
    """How many rows there are, and a digest that does not depend on their order."""
    columns = [F.col(quoted(name)) for name in frame.columns]
    row = F.xxhash64(F.to_json(F.struct(*columns)))
    other = F.xxhash64(row, F.lit(1))
    wide = "decimal(20,0)"
    found: Any = frame.agg(F.count(F.lit(1)).alias("rows"), F.sum(row.cast(wide)).alias("one"),
                           F.sum(other.cast(wide)).alias("two")).first()
    return found["rows"], f"{found['rows']} {found['one']} {found['two']}"
