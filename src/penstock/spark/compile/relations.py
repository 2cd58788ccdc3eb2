"""Stored relations: read once, kept where a join finds them cheaply."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from pyspark.storagelevel import StorageLevel

from penstock.model import Relation, quoted
from penstock.spark.ingest.source_options import CORRUPT
from penstock.spark.ingest.sources import check, relation_frame
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.files import Files
from penstock.spark.storage.stored_relations import StoredRelations

LOCAL_ROWS = 50_000
"""Up to this many rows, a relation is part of the plan itself, so that no job is needed to send it
out."""


class Relations:
    """The relations that queries join with."""

    def __init__(
        self, spark: SparkSession, checkpoint: Checkpoint,
        warn: Callable[[str, str], None] | None = None,
    ) -> None:
        """Begin with nothing read. Without ``warn`` malformed rows are dropped, not kept."""
        self._spark, self._checkpoint, self._warn = spark, checkpoint, warn
        self._stored = StoredRelations(checkpoint)
        self._frames: dict[Relation, DataFrame] = {}
        self._reading = threading.Lock()

    def frame(self, relation: Relation) -> DataFrame:
        """The relation's rows; SourceError when it cannot be read."""
        with self._reading:
            relation = self._stored.placed(relation)
            if relation not in self._frames:
                check(self._spark, Files(self._spark), relation)
                self._frames[relation] = self._read(relation)
            return self._frames[relation]

    def _read(self, relation: Relation) -> DataFrame:
        """The well-formed rows, cached; the others are set aside and reported."""
        frame = relation_frame(self._spark, relation)
        head = frame.limit(LOCAL_ROWS + 1).toArrow()
        if head.num_rows > LOCAL_ROWS:
            return self._good(relation, frame).persist(StorageLevel.MEMORY_AND_DISK)
        if CORRUPT in head.column_names:
            is_bad = pc.is_valid(head[CORRUPT])
            if bad := head.filter(is_bad).select([CORRUPT]):
                self._set_aside(relation, self._spark.createDataFrame(bad), bad.num_rows)
            head = head.filter(pc.invert(is_bad)).drop_columns([CORRUPT])
        columns = [field for field in frame.schema if field.name != CORRUPT]
        return self._spark.createDataFrame(head, StructType(columns))

    @contextmanager
    def once(self, relation: Relation) -> Iterator[DataFrame]:
        """The well-formed rows as they are now, whatever was read before; for a short while."""
        check(self._spark, Files(self._spark), relation)
        frame = relation_frame(self._spark, relation).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            yield self._well_formed(relation, frame) if CORRUPT in frame.columns else frame
        finally:
            frame.unpersist()

    def _good(self, relation: Relation, frame: DataFrame) -> DataFrame:
        """The same for a relation that stays on the executors."""
        if CORRUPT not in frame.columns:
            return frame
        frame = frame.persist(StorageLevel.MEMORY_AND_DISK)  # or Spark would skip bad rows' parsing
        return self._well_formed(relation, frame)

    def _well_formed(self, relation: Relation, frame: DataFrame) -> DataFrame:
        bad = frame.where(F.col(quoted(CORRUPT)).isNotNull())
        if self._warn is not None and (count := bad.count()):
            self._set_aside(relation, bad, count)
        return frame.where(F.col(quoted(CORRUPT)).isNull()).drop(CORRUPT)

    def _set_aside(self, relation: Relation, bad: DataFrame, count: int) -> None:
        if self._warn is None:
            return
        target = self._checkpoint.folder("rejects", relation.name) / "relation"
        bad.select(F.lit("malformed row").alias("reason"), F.col(quoted(CORRUPT)).alias("row")
                   ).write.mode("overwrite").json(str(target))
        self._warn(relation.name, f"{count} malformed rows of relation {relation.name} are "
                                  f"left out; see {target}")

    def close(self) -> None:
        """Release what is cached."""
        for frame in self._frames.values():
            frame.unpersist()
        self._frames = {}
