"""The `onoff` source: its options, and bursty packets as a Spark table, made where they are read.

    register(spark)
    spark.read.format("onoff").option("rows", 100_000).option("seed", 7).load()

A position in the stream of `penstock.generators.packets` says all that is needed to make the
packets that follow it, so the tasks of a table make their parts independently. Relations are read
so. A stream is made by the driver, see `penstock.spark.ingest.packet_stream`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from penstock.generators.packets import (
    EVERYTHING,
    NEW_YEAR_2025,
    ORIGIN,
    OnOff,
    Position,
    check_options,
)

SCHEMA = "ts TIMESTAMP, src INT, dst INT, port INT, length INT, protocol STRING"
"""The columns in Spark's words. A reader may declare fewer of them, in any order."""

def register(spark: SparkSession) -> None:
    """Make the format `onoff` known to a session."""
    spark.dataSource.register(OnOffSource)


# -- options -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the source, read and checked. Their names are case-insensitive.

    >>> options = Options.parse({"rate": "500", "rows": "5000", "maxRowsPerTrigger": "1000"})
    >>> options.traffic.rate, options.block, options.paced
    (500.0, 1000, False)
    >>> Options.parse({"raet": "500"})
    Traceback (most recent call last):
    ValueError: onoff has no option 'raet'; did you mean 'rate'?
    """

    traffic: OnOff
    """rate (1000 rows/s), burst (5), length (1 s), seed (0), rows (none: endless), start."""
    paced: bool
    """pace: `clock` gives a packet when its time has come, `none` as soon as it is asked for.

    By default `clock` for an endless stream and `none` for a bounded one.
    """
    dated: bool
    """Whether start was given (ISO 8601, in UTC unless it says otherwise).

    If not, event time begins at 2025-01-01, or now if the stream follows the clock.
    """
    block: int
    """maxRowsPerTrigger: a block has at most so many rows (250,000)."""
    tick: int
    """slice: the clock moves in steps of so many milliseconds (50); here in microseconds.

    A fast trigger then does not make many tiny blocks.
    """
    partitions: int
    """partitions: a block has so many files, if it has 10,000 rows for each of them (2)."""

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Options:
        """Read what was declared, or given to a DataFrameReader."""
        options = {name.lower(): value for name, value in given.items()}
        check_options(options)
        numbers = {name: _number(options, name, kind) for name, kind in TRAFFIC.items()}
        start = _instant(options["start"]) if "start" in options else NEW_YEAR_2025
        stream = OnOff(**{k: v for k, v in numbers.items() if v is not None}, start=start)
        return cls(
            traffic=stream,
            paced=_paced(options),
            dated="start" in options,
            block=_positive(options, "maxRowsPerTrigger", 250_000),
            tick=_positive(options, "slice", 50) * 1000,
            partitions=_positive(options, "partitions", 2),
        )


TRAFFIC: dict[str, type] = {
    "rate": float,
    "burst": float,
    "length": float,
    "seed": int,
    "rows": int,
}
"""The options that say which packets come, with their types."""


def _number(options: Mapping[str, str], name: str, kind: type) -> Any:
    text = options.get(name.lower())
    if text is None:
        return None
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise ValueError(f"option {name!r} of onoff must be {what}, not {text!r}") from None


def _positive(options: Mapping[str, str], name: str, default: int) -> int:
    value = _number(options, name, int)
    if value is not None and value < 1:
        raise ValueError(f"option {name!r} of onoff must be at least 1, not {value}")
    return default if value is None else int(value)


def _paced(options: Mapping[str, str]) -> bool:
    bounded = "rows" in options
    pace = options.get("pace", "none" if bounded else "clock").lower()
    if pace not in ("clock", "none"):
        raise ValueError(f"option 'pace' of onoff must be 'clock' or 'none', not {pace!r}")
    if pace == "none" and not bounded:
        raise ValueError("onoff with pace 'none' needs 'rows', or it would never end")
    return pace == "clock"


def _instant(text: str) -> int:
    """Microseconds since 1970.

    >>> _instant("1970-01-01T00:00:01")
    1000000
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        hint = "a time such as 2025-01-01T00:00:00"
        raise ValueError(f"option 'start' of onoff must be {hint}, not {text!r}") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


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
