"""The generated packets for native Spark: the same, by the same clock, in micro-batches.

Penstock's driver makes the packets of `onoff` itself. Spark reads a source in Python through a
process of its own, which is what anybody would write who has such a source.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import StructType

from penstock.language import bind
from penstock.model import Field
from penstock.spark.ingest.onoff import SCHEMA, OnOffSource
from penstock.spark.ingest.packet_stream import PacketPosition, PacketStream

FORMAT = "packets"


def register(session: SparkSession) -> None:
    """Make the format `packets` known to a session."""
    session.dataSource.register(PacketSource)


class PacketSource(OnOffSource):
    """What Spark knows as `packets`."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return FORMAT

    def streamReader(self, schema: StructType) -> PacketReader:  # noqa: N802 (Spark's name)
        """Read the stream in micro-batches."""
        return PacketReader(PacketStream(self._options, _columns(), time.time))


@dataclass(frozen=True)
class _Packets(InputPartition):
    """The packets that one task makes."""

    first: dict[str, Any]
    last: dict[str, Any]


class PacketReader(DataSourceStreamReader):
    """An offset is a position as the manifest of a block holds it."""

    def __init__(self, packets: PacketStream) -> None:
        self._packets = packets

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Before the first packet."""
        return self._packets.noted(PacketPosition())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """All that is due."""
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """As far as the clock allows."""
        return self._packets.noted(self._packets.next(self._packets.place(start)))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One task: a micro-batch has a few hundred packets."""
        return [_Packets(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Make the packets, in order. Runs in a task."""
        assert isinstance(partition, _Packets)
        first, last = map(self._packets.place, (partition.first, partition.last))
        for batches in self._packets.files(first, last):
            yield from batches


def _columns() -> Sequence[Field]:
    application = bind(f"CREATE STREAM packets ({SCHEMA}) FROM onoff TIME ts;")
    return application.streams["packets"].columns
