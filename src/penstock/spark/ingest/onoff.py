"""The `onoff` source: bursty packets as a Spark table, made where they are read.

    register(spark)
    spark.read.format("onoff").option("rows", 100_000).option("seed", 7).load()

A position in the stream of `penstock.generators.packets` says all that is needed to make the
packets that follow it, so the tasks of a table make their parts independently. Relations are read
so. A stream is made by the driver, see `penstock.spark.ingest.packet_stream`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from penstock.generators.onoff_options import Options
from penstock.generators.packets import EVERYTHING, ORIGIN, Position

SCHEMA = "ts TIMESTAMP, src INT, dst INT, port INT, length INT, protocol STRING"
"""The columns in Spark's words. A reader may declare fewer of them, in any order."""

def register(spark: SparkSession) -> None:
    """Make the format `onoff` known to a session."""
    spark.dataSource.register(OnOffSource)


# -- the source ----------------------------------------------------------------------------------


class OnOffSource(DataSource):
    """What Spark knows as `onoff`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Check the options at once, so that `load()` fails and not the query."""
        self._options = Options.parse(options)

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "onoff"

    def schema(self) -> str:
        """Return all columns."""
        return SCHEMA

    def reader(self, schema: StructType) -> OnOffTable:
        """Read a bounded stream as a table."""
        return OnOffTable(self._options, schema)


@dataclass(frozen=True)
class TaskPackets(InputPartition):
    """The packets one task makes."""

    first: Position
    last: Position


def _refuse_other_columns(schema: StructType) -> None:
    types = dict(column.split() for column in SCHEMA.split(", "))
    for field in schema.fields:
        if field.name not in types:
            raise ValueError(f"onoff has no column {field.name!r}; it has {', '.join(types)}")
        declared = field.dataType.simpleString().upper()
        if declared != types[field.name]:
            raise ValueError(
                f"column {field.name!r} of onoff is {types[field.name]}, not {declared}"
            )


class OnOffTable(DataSourceReader):
    """The whole of a bounded stream, for `spark.read`, with the columns that a reader declared."""

    def __init__(self, options: Options, schema: StructType) -> None:
        """Refuse columns that packets do not have."""
        _refuse_other_columns(schema)
        self._options = options
        self._nullable = {field.name: field.nullable for field in schema.fields}

    def partitions(self) -> Sequence[InputPartition]:
        """Cut the stream into parts of `maxRowsPerTrigger` rows."""
        traffic = self._options.traffic
        if traffic.rows is None:
            raise ValueError("onoff read as a table needs the option 'rows'")
        parts = -(-traffic.rows // self._options.block)
        cuts = traffic.cut(ORIGIN, traffic.advance(ORIGIN, EVERYTHING), parts)
        return [TaskPackets(*cut) for cut in cuts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Make the packets of a part, in order. Runs in a task."""
        assert isinstance(partition, TaskPackets)
        for batch in self._options.traffic.batches(partition.first, partition.last):
            yield self._shaped(batch)

    def _shaped(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        # Spark compares Arrow schemas exactly, whether a column may be null included.
        fields = [batch.schema.field(n).with_nullable(null) for n, null in self._nullable.items()]
        arrays = [batch[name] for name in self._nullable]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
