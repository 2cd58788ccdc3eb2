"""The ruler for bytes: the size of rows in decoded form, measured alike everywhere.

A policy such as Chain ranks stages by bytes out per byte in. The bytes in come from ingest, the
bytes out from the rows that a job keeps, and a sample measures both. So all of them must use one
ruler.
"""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import BinaryType, DataType, StringType, StructType

from penstock.spark.compile.columns import ours
from penstock.spark.storage.spool import ARRIVED, EVENT_TIME

WIDTHS = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "bigint": 8, "float": 4, "double": 8,
          "date": 4, "timestamp": 8, "timestamp_ntz": 8, "decimal": 16, "void": 1}
"""Bytes of a value, by the name of its type in Spark."""
TYPICAL = 24
"""Bytes of an array, a map or a struct, and of a text that was not measured."""


def row_bytes(schema: StructType) -> Column:
    """The bytes of a row of a frame with these columns; texts are measured.

    The time that the spool adds to a row is not one of the stream's columns and counts nothing.
    """
    columns = [field for field in schema.fields if field.name not in (ARRIVED, EVENT_TIME)]
    fixed = sum(_width(field.dataType) for field in columns if not _is_text(field.dataType))
    texts = [F.coalesce(F.octet_length(ours(field.name)), F.lit(0))
             for field in columns if _is_text(field.dataType)]
    return reduce(Column.__add__, texts, F.lit(fixed).cast("bigint"))


def table_bytes(table: pa.Table | pa.RecordBatch) -> int:
    """The bytes of all rows that the driver holds, as `row_bytes` would measure them.

    >>> table_bytes(pa.table({"n": pa.array([1, 2]), "word": ["four", None]}))
    20
    """
    width = texts = 0
    for name, column in zip(table.schema.names, table.columns, strict=True):
        type_ = from_arrow_type(column.type)
        if name in (ARRIVED, EVENT_TIME):
            continue
        if _is_text(type_):
            texts += pc.sum(pc.binary_length(column)).as_py() or 0
        else:
            width += _width(type_)
    return len(table) * width + texts


def typical_bytes(schema: StructType) -> int:
    """The bytes of a row with these columns, by their types alone.

    >>> from pyspark.sql.types import DecimalType, LongType, StringType
    >>> typical_bytes(StructType().add("n", LongType()).add("price", DecimalType(9, 2)))
    24
    >>> typical_bytes(StructType().add("word", StringType()))
    24
    """
    return sum(TYPICAL if _is_text(field.dataType) else _width(field.dataType)
               for field in schema.fields)


def _is_text(type_: DataType) -> bool:
    return isinstance(type_, StringType | BinaryType)


def _width(type_: DataType) -> int:
    return WIDTHS.get(type_.simpleString().partition("(")[0], TYPICAL)
