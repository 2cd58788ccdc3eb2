"""The `onoff` source: bursty packets as a Spark stream or table, made where they are read.

    register(spark)
    spark.readStream.format("onoff").option("rate", 100_000).option("seed", 7).load()

A micro-batch is a range of positions in the stream of `penstock.generators.packets`, and a position
says all that is needed to make the packets that follow it. So a batch that is replayed after a
crash holds the same rows, nothing is stored, and the tasks of a batch make their parts
independently.

With `rows` the stream is bounded and given as fast as it is asked for. Without it the stream is
endless and follows the clock: a packet is given once its time has come, and the offset remembers
when the stream began, so what was due while the query was down comes when it is started again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from penstock.generators.packets import NEW_YEAR_2025, ORIGIN, OnOff, Position, check_options

SCHEMA = "ts TIMESTAMP, src INT, dst INT, port INT, length INT, protocol STRING"
"""The columns in Spark's words. A reader may declare fewer of them, in any order."""

EVERYTHING = 1 << 62
"""More rows than any stream has."""

Offset = dict[str, Any]


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
    """maxRowsPerTrigger: a micro-batch has at most so many rows (250,000)."""
    tick: int
    """slice: the clock moves in steps of so many milliseconds (50); here in microseconds.

    A fast trigger then does not make many tiny batches.
    """
    partitions: int
    """partitions: so many tasks make a batch, if it has 10,000 rows for each of them (2)."""

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Options:
        """Read what was given to a DataFrameReader or a DataStreamReader."""
        options = {name.lower(): value for name, value in given.items()}
        check_options(options)
        numbers = {name: _number(options, name, kind) for name, kind in _TRAFFIC.items()}
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


_TRAFFIC: dict[str, type] = {
    "rate": float,
    "burst": float,
    "length": float,
    "seed": int,
    "rows": int,
}


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

    def streamReader(self, schema: StructType) -> OnOffStream:  # noqa: N802 (Spark's name)
        """Read the stream in micro-batches."""
        return OnOffStream(self._options, schema)


@dataclass(frozen=True)
class TaskPackets(InputPartition):
    """The packets one task makes."""

    first: Position
    last: Position
    start: int
    """Event time of the stream's first packet, in microseconds since 1970."""


def _cut(
    traffic: OnOff, first: Position, last: Position, parts: int, start: int
) -> list[TaskPackets]:
    """Share the packets between two places among tasks, evenly."""
    rows, cuts = last.rows - first.rows, [first]
    for part in range(parts):
        share = rows * (part + 1) // parts - rows * part // parts
        cuts.append(traffic.advance(cuts[-1], share))
    return [TaskPackets(a, b, start)
            for a, b in zip(cuts, cuts[1:], strict=False) if a.rows < b.rows]


class _Maker:
    """Makes the packets of a part, with the columns a reader declared."""

    def __init__(self, options: Options, schema: StructType) -> None:
        _refuse_other_columns(schema)
        self._options = options
        self._nullable = {field.name: field.nullable for field in schema.fields}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Make the packets of a part, in order. Runs in a task."""
        assert isinstance(partition, TaskPackets)
        traffic = replace(self._options.traffic, start=partition.start)
        for batch in traffic.batches(partition.first, partition.last):
            yield self._shaped(batch)

    def _shaped(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        # Spark compares Arrow schemas exactly, whether a column may be null included.
        fields = [batch.schema.field(n).with_nullable(null) for n, null in self._nullable.items()]
        arrays = [batch[name] for name in self._nullable]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


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


class OnOffTable(_Maker, DataSourceReader):
    """The whole of a bounded stream, for `spark.read`."""

    def partitions(self) -> Sequence[InputPartition]:
        """Cut the stream into parts of `maxRowsPerTrigger` rows."""
        traffic = self._options.traffic
        if traffic.rows is None:
            raise ValueError("onoff read as a table needs the option 'rows'")
        parts = -(-traffic.rows // self._options.block)
        return _cut(traffic, ORIGIN, traffic.advance(ORIGIN, EVERYTHING), parts, traffic.start)


def wall_clock() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


class OnOffStream(_Maker, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The stream in micro-batches.

    An offset is a `Position`, the clock when the stream began, and the parameters the position was
    made with: with others it would be a place in another stream, so they must not change.
    """

    def __init__(
        self, options: Options, schema: StructType, clock: Callable[[], int] = wall_clock
    ) -> None:
        """Read in a process of its own on the driver; `read` alone runs in tasks."""
        super().__init__(options, schema)
        self._clock = clock
        self._stopped: int | None = None
        self._due: Offset | None = None

    def initialOffset(self) -> Offset:  # noqa: N802
        """Before the first packet. Spark does not write this down, so it has no clock yet."""
        return self._offset(ORIGIN, 0)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """At most `maxRowsPerTrigger` rows."""
        return ReadMaxRows(self._options.block)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """As far as the limit, the clock and the end of the stream allow."""
        position, clock = self._position(start), int(start["clock"])
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else EVERYTHING
        if self._options.paced:
            # A new stream began a tick ago: its first batch then has rows, and is written down.
            clock = clock or self._now() - self._options.tick
            due = self._options.traffic.reach(position, self._elapsed(clock))
            self._due = self._offset(due, clock)
            rows = min(rows, due.rows - position.rows)
        return self._offset(self._options.traffic.advance(position, rows), clock)

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        """What is due by the clock, limit or not: shows in the query's progress as a lag."""
        return self._due

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Stop the clock: what is due now is all there is."""
        self._stopped = self._clock()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Share a batch among tasks."""
        options = self._options
        first, last = self._position(start), self._position(end)
        parts = max(1, min(options.partitions, (last.rows - first.rows) // 10_000))
        began = end["clock"] if options.paced and not options.dated else options.traffic.start
        return _cut(options.traffic, first, last, parts, began)

    def _now(self) -> int:
        return self._clock() if self._stopped is None else self._stopped

    def _elapsed(self, clock: int) -> int:
        elapsed = max(0, self._now() - clock)
        return elapsed - elapsed % self._options.tick

    def _offset(self, position: Position, clock: int) -> Offset:
        return asdict(position) | {"clock": clock, "stream": self._stream()}

    def _position(self, offset: Offset) -> Position:
        if offset["stream"] != self._stream():
            was, now = offset["stream"], self._stream()
            raise ValueError(f"the checkpoint is of onoff with {was}; it cannot go on with {now}")
        return Position(offset["epoch"], offset["row"], offset["rows"])

    def _stream(self) -> str:
        traffic = self._options.traffic
        return " ".join(f"{name}={getattr(traffic, name)}" for name in _TRAFFIC if name != "rows")
