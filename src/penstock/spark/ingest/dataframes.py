"""DataFrames that a Python program gives: their columns as ours, their rows in our session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.arrow import arrow_schema, fields_of
from penstock.errors import SourceError
from penstock.model import DATAFRAME, Field, Stream, quoted
from penstock.spark.compile.data_types import data_type, own_fields
from penstock.spark.ingest.sources import FAULTS, plain
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.local_store import OWNER_ONLY, private
from penstock.spark.storage.stored_relations import StoredRelations


def streaming(frame: Any, name: str) -> DataFrame:
    """A streaming DataFrame; SourceError if it is something else."""
    if not isinstance(frame, DataFrame):
        raise SourceError(f"stream {name} takes a streaming DataFrame of Spark, not "
                          f"{type(frame).__name__}; engine.relation takes tables")
    if not frame.isStreaming:
        raise SourceError(
            f"stream {name} takes a streaming DataFrame (spark.readStream), and this one is not; "
            "engine.relation takes it, or write it as Parquet files and read their folder")
    _check_classic(frame, f"stream {name}")
    return frame


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows that are there, for a relation."""

    name: str
    rows: Any
    """A DataFrame of Spark, or an Arrow table."""
    columns: tuple[Field, ...]

    @staticmethod
    def of(rows: Any, name: str) -> StoredRows:
        """The rows of a table; SourceError says why they cannot be taken."""
        taken = _taken(rows, name)
        return StoredRows(name, taken, columns_of(taken, f"relation {name}"))

    @property
    def statement(self) -> str:
        """What declares the relation."""
        return (f"CREATE RELATION {quoted(self.name)} ({declaration(self.columns)}) "
                f"FROM {DATAFRAME}")

    def keep(self, checkpoint: Checkpoint, session: Callable[[], SparkSession]) -> None:
        """Copy the rows into the checkpoint; an Arrow table needs no Spark."""
        is_table = isinstance(self.rows, pa.Table)
        write = self._write_table if is_table else partial(self._write_frame, session())
        StoredRelations(checkpoint).keep(self.name, write)

    def _write_table(self, folder: Path) -> None:
        folder.mkdir(mode=OWNER_ONLY)
        # From nanoseconds to microseconds, as Spark does it; all other casts only widen.
        table = self.rows.cast(arrow_schema(self.columns), safe=False)
        with open(folder / "part-00000.parquet", "wb", opener=private) as file:
            pq.write_table(table, file)

    def _write_frame(self, spark: SparkSession, folder: Path) -> None:
        try:
            in_session(spark, self.rows, self.columns).write.parquet(str(folder))
        except FAULTS as error:
            raise SourceError(f"relation {self.name}: {plain(error)}") from error


def _taken(rows: Any, name: str) -> DataFrame | pa.Table:
    if isinstance(rows, DataFrame):
        if rows.isStreaming:
            raise SourceError(f"relation {name} takes rows that are there, and this DataFrame is "
                              f"streaming: engine.stream({name!r}, df) takes it")
        _check_classic(rows, f"relation {name}")
        return rows
    try:
        if hasattr(rows, "index") and hasattr(rows, "columns"):  # pandas: a named index is data
            named = any(one is not None for one in rows.index.names)
            return pa.Table.from_pandas(rows, preserve_index=named)
        return pa.table(rows)
    except (pa.ArrowException, AttributeError, TypeError, ValueError) as error:
        raise SourceError(f"relation {name} takes a DataFrame of Spark, pandas or Polars, or an "
                          f"Arrow table: {error}") from error


def _check_classic(frame: DataFrame, what: str) -> None:
    if not hasattr(frame, "_jdf"):
        raise SourceError(f"{what}: this DataFrame is one of Spark Connect; Penstock works in the "
                          "driver, and takes those of a SparkSession there")


def columns_of(rows: DataFrame | pa.Table, what: str) -> tuple[Field, ...]:
    """The columns under which SQL knows the rows; SourceError names one that has no type."""
    try:
        return own_fields(rows.schema) if isinstance(rows, DataFrame) else fields_of(rows.schema)
    except FAULTS as error:
        raise SourceError(f"{what}: {plain(error)}; leave it out, or cast it") from error


def declaration(columns: Sequence[Field]) -> str:
    """Columns as a statement declares them."""
    return ", ".join(f"{quoted(column.name)} {column.type}" for column in columns)


def in_session(spark: SparkSession, frame: DataFrame, columns: Sequence[Field]) -> DataFrame:
    """The frame in our session, with these columns and no others.

    What it says was settled when it was made, in the session of the program. So only what is added
    here, and how it is carried out, goes by our settings. A time without a zone is UTC.
    """
    datasets = spark._jvm.org.apache.spark.sql.classic.Dataset  # type: ignore[union-attr]
    ours = DataFrame(datasets.ofRows(spark._jsparkSession, frame._jdf.logicalPlan()), spark)
    return ours.select(*[F.col(quoted(c.name)).cast(data_type(c.type)).alias(c.name)
                         for c in columns])


def stream_rows(spark: SparkSession, frame: DataFrame, stream: Stream) -> DataFrame:
    """The rows of a stream that a program has given."""
    try:
        return in_session(spark, frame, stream.columns)
    except FAULTS as error:
        raise SourceError(f"stream {stream.name}: {plain(error)}") from error
