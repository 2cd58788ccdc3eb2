"""DataFrames that a Python program gives: their columns as ours, their rows in our session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.arrow import arrow_schema, fields_of
from penstock.errors import SourceError
from penstock.model import Field, Stream, quoted
from penstock.spark.compile.data_types import data_type
from penstock.spark.ingest.sources import FAULTS, plain
from penstock.spark.storage.local_store import private


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


def stored(rows: Any, name: str) -> DataFrame | pa.Table:
    """Rows that are there: a DataFrame of Spark, or whatever Arrow can take; else SourceError."""
    if isinstance(rows, DataFrame):
        if rows.isStreaming:
            raise SourceError(f"relation {name} takes rows that are there, and this DataFrame is "
                              f"streaming: engine.stream({name!r}, df) takes it")
        _check_classic(rows, f"relation {name}")
        return rows
    try:
        index = getattr(rows, "index", None)  # of pandas: one with names holds columns
        if any(one is not None for one in getattr(index, "names", ())):
            return pa.Table.from_pandas(rows, preserve_index=True)
        return pa.table(rows) if index is None else pa.Table.from_pandas(rows, preserve_index=False)
    except (pa.ArrowException, AttributeError, KeyError, TypeError, ValueError) as error:
        raise SourceError(f"relation {name} takes a DataFrame of Spark, pandas or Polars, or an "
                          f"Arrow table: {error}") from error


def is_frame(rows: object) -> bool:
    """Whether Spark has to write these rows."""
    return isinstance(rows, DataFrame)


def _check_classic(frame: DataFrame, what: str) -> None:
    if not hasattr(frame, "_jdf"):
        raise SourceError(f"{what}: this DataFrame is one of Spark Connect; Penstock works in the "
                          "driver, and takes those of a SparkSession there")


def columns_of(rows: DataFrame | pa.Table, what: str) -> tuple[Field, ...]:
    """The columns under which SQL knows the rows; SourceError names one that has no type."""
    try:
        if isinstance(rows, DataFrame):
            _refuse_variants(rows.schema)
            return fields_of(to_arrow_schema(rows.schema))
        return fields_of(rows.schema)
    except FAULTS as error:
        raise SourceError(f"{what}: {plain(error)}; leave it out, or cast it") from error


def _refuse_variants(kind: T.DataType) -> None:
    """Arrow would take a VARIANT for a struct."""
    parts = {
        T.StructType: lambda: [field.dataType for field in kind.fields],  # type: ignore[attr-defined]
        T.ArrayType: lambda: [kind.elementType],  # type: ignore[attr-defined]
        T.MapType: lambda: [kind.keyType, kind.valueType],  # type: ignore[attr-defined]
    }
    if isinstance(kind, T.VariantType):
        raise ValueError("there is no type for VARIANT")
    for part in parts.get(type(kind), list)():
        _refuse_variants(part)


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


def write(
    spark: SparkSession | None, rows: DataFrame | pa.Table, columns: Sequence[Field], folder: Path
) -> None:
    """Write rows as Parquet files; those of an Arrow table need no Spark."""
    if isinstance(rows, pa.Table):
        folder.mkdir(mode=0o700)
        # From nanoseconds to microseconds, as Spark does it; all other casts only widen.
        table = rows.cast(arrow_schema(columns), safe=False)
        with open(folder / "part-00000.parquet", "wb", opener=private) as file:
            pq.write_table(table, file)
        return
    assert spark is not None
    in_session(spark, rows, columns).write.mode("overwrite").parquet(str(folder))
