"""The records of a Kafka topic as rows: the columns that a stream declares, from their values.

Without ``valueFormat`` the columns are Kafka's own, and one that is declared STRING is text. With
it the value is read as JSON or Avro, as a file of this format would be: a value that cannot be read
has its text in `@corrupt`, and becomes a reject.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from penstock.language import kafka
from penstock.model import STRING, Field, Relation, Stream, name_key, quoted
from penstock.spark.compile.data_types import data_type, schema
from penstock.spark.ingest.source_options import CORRUPT

_VALUE = "@value"


def columns_of(
    records: DataFrame, source: Stream | Relation, read: tuple[Field, ...],
    options: Mapping[str, str],
) -> DataFrame:
    """The columns ``read`` of a frame of Spark's source kafka, and `@corrupt` if there may be."""
    own = kafka.own_columns(source, read)
    names = {name_key(column.name): name for name, column in own.items()}
    form = kafka.value_format(source)
    if not form:
        return records.select(*[_own(column, names.get(name_key(column.name), column.name))
                                for column in read])
    inside = [column for column in read if name_key(column.name) not in names]
    value = _json(inside, options) if form == "json" else _avro(options)
    parsed = records.withColumn(_VALUE, value)
    columns = [
        _own(column, names[name_key(column.name)]) if name_key(column.name) in names
        else F.col(_VALUE).getField(column.name).cast(data_type(column.type)).alias(column.name)
        for column in read]
    return parsed.select(*columns, _malformed(form).alias(CORRUPT))


def _own(column: Field, name: str) -> Column:
    found = F.col(quoted(name))
    return (found.cast("string") if column.type == STRING else found).alias(column.name)


def _json(columns: list[Field], options: Mapping[str, str]) -> Column:
    inside = {name: value for name, value in options.items() if not name.startswith("kafka.")}
    return F.from_json(F.col("value").cast("string"), schema([*columns, Field(CORRUPT, STRING)]),
                       {**inside, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT})


def _avro(options: Mapping[str, str]) -> Column:
    given = {name.lower(): value for name, value in options.items()}
    return from_avro(F.col("value"), given["avroschema"], {"mode": "PERMISSIVE"})


def _malformed(form: str) -> Column:
    """The text of a value that cannot be read; a value that is NULL is no fault."""
    whole = F.col("value").isNotNull() & F.col(_VALUE).isNull()
    if form == "avro":
        return F.when(whole, F.base64("value"))
    return F.coalesce(F.col(_VALUE).getField(CORRUPT),
                      F.when(whole, F.col("value").cast("string")))
