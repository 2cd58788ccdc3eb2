"""The source `onoff` as a stream: the driver makes the packets of each block itself.

A block is a range of positions in the stream of `penstock.generators.packets`. The block's manifest
holds the position where it ends, so both are durable at once. After a crash the stream goes on
after the last block that counts. A thousand packets are made in a millisecond, so no Spark job and
no Python worker is needed.

With `rows` the stream is bounded and delivered as fast as it is asked for. Without it the stream is
endless and follows the clock: a packet is delivered when its time has come. The position remembers
when the stream began. So packets that fell due while the engine was down come when it starts again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from itertools import chain
from typing import Any

import pyarrow as pa

from penstock.arrow import arrow_schema
from penstock.generators.onoff_options import TRAFFIC, Options
from penstock.generators.packets import EVERYTHING, ORIGIN, SCHEMA, OnOff, Position
from penstock.model import Field, name_key
from penstock.spark.ingest.driver_batches import Tally, well_within
from penstock.spark.ingest.executor_batches import Counted
from penstock.spark.ingest.times import Bounds
from penstock.spark.storage.spool import FILE_ROWS, Spool

LONGEST_PAUSE = 1.0
"""Seconds after which the clock is read again, whatever it said."""


@dataclass(frozen=True, slots=True)
class PacketPosition:
    """How far a stream was read."""

    position: Position = ORIGIN
    clock: int = 0
    """When a stream that follows the clock began, in microseconds since 1970; 0 if it has not
    begun."""


class PacketStream:
    """Says which packets are due, and makes them."""

    def __init__(
        self, options: Options, columns: Sequence[Field], clock: Callable[[], float]
    ) -> None:
        """``columns`` are the declared ones; ``clock`` returns seconds since 1970."""
        self._options, self._clock = options, clock
        names = {name_key(name): name for name in SCHEMA.names}
        self._columns = [names[name_key(column.name)] for column in columns]
        self.schema = arrow_schema(columns)
        self._reached = 0
        """Microseconds after its beginning up to which packets were asked for."""

    # --- places ------------------------------------------------------------------------------

    def noted(self, place: PacketPosition) -> dict[str, Any]:
        """A position as a manifest holds it, with the parameters that it was made with."""
        return asdict(place.position) | {"clock": place.clock, "stream": self._parameters()}

    def place(self, noted: Mapping[str, Any] | None) -> PacketPosition:
        """The position that a manifest holds; ValueError if it belongs to another stream."""
        if noted is None:
            return PacketPosition()
        if noted["stream"] != self._parameters():
            raise ValueError(f"the checkpoint is of onoff with {noted['stream']}; it cannot go on "
                             f"with {self._parameters()}")
        return PacketPosition(Position(noted["epoch"], noted["row"], noted["rows"]), noted["clock"])

    def _parameters(self) -> str:
        traffic = self._options.traffic
        return " ".join(f"{name}={getattr(traffic, name)}" for name in TRAFFIC if name != "rows")

    @property
    def is_paced(self) -> bool:
        """Whether packets come when their time has come, instead of as fast as asked for."""
        return self._options.paced

    def is_over(self, place: PacketPosition) -> bool:
        """Whether all packets of a bounded stream were delivered."""
        return self._options.traffic.rows == place.position.rows

    def next(self, place: PacketPosition) -> PacketPosition:
        """The position that the clock, `maxRowsPerTrigger` and the end of the stream allow next."""
        options, rows = self._options, EVERYTHING
        if options.paced:
            now = round(self._clock() * 1e6)
            # A new stream began a tick ago, so that its first block has rows.
            place = replace(place, clock=place.clock or now - options.tick)
            elapsed = max(0, now - place.clock)
            self._reached = elapsed - elapsed % options.tick
            rows = options.traffic.reach(place.position, self._reached).rows - place.position.rows
        taken = options.traffic.advance(place.position, min(rows, options.block))
        return replace(place, position=taken)

    def pause(self, place: PacketPosition, interval: float) -> float:
        """Seconds until there may be more packets, asked at most once per ``interval`` seconds.

        A stream that follows the clock is asked when a tick is over, and not just before.
        """
        options = self._options
        if not options.paced:
            return interval
        ticks = max(1, -(-round(interval * 1e6) // options.tick))
        due = place.clock + self._reached + ticks * options.tick
        return min(max(0.0, due / 1e6 - self._clock()), max(interval, LONGEST_PAUSE))

    # --- packets -----------------------------------------------------------------------------

    def files(self, first: PacketPosition, last: PacketPosition) -> list[Iterator[pa.RecordBatch]]:
        """The packets between two positions, divided into the files of a block."""
        traffic, rows = self._traffic(last), last.position.rows - first.position.rows
        parts = max(1, min(self._options.partitions, rows // FILE_ROWS))
        cuts = traffic.cut(first.position, last.position, parts)
        return [map(self._declared, traffic.batches(*cut)) for cut in cuts]

    def times(self, first: PacketPosition, last: PacketPosition) -> tuple[int, int]:
        """A time before the first packet between two positions, and the time of the last one."""
        traffic = self._traffic(last)
        return (traffic.start + traffic.last_time(first.position),
                traffic.start + traffic.last_time(last.position))

    def _traffic(self, place: PacketPosition) -> OnOff:
        """The packets with their event times, which start at the clock if the stream follows it."""
        options = self._options
        follows = options.paced and not options.dated
        return replace(options.traffic, start=place.clock) if follows else options.traffic

    def _declared(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [batch[name].cast(field.type)
                  for name, field in zip(self._columns, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


@dataclass(frozen=True, slots=True)
class PacketBatch:
    """The packets of one block."""

    packets: PacketStream
    first: PacketPosition
    last: PacketPosition

    def write(
        self, spool: Spool, number: int, cutoff: int | None, bounds: Bounds
    ) -> Counted | None:
        """Write them to the spool; None if Spark must check their times or compute columns."""
        stream, files = spool.stream, self.packets.files(self.first, self.last)
        if stream.computed:
            return None
        if stream.time is not None and (
                stream.unit or not well_within(*self.packets.times(self.first, self.last), bounds)):
            return None
        tallies = [Tally(cutoff) for _ in files]
        spool.write(number, self.packets.schema, [
            _tallied(batches, tally, stream.time)
            for batches, tally in zip(files, tallies, strict=True)])
        return reduce(Tally.plus, tallies).counted()

    def table(self) -> pa.Table:
        """All packets in one table."""
        files = self.packets.files(self.first, self.last)
        return pa.Table.from_batches(chain(*files), self.packets.schema)


def _tallied(
    batches: Iterable[pa.RecordBatch], tally: Tally, time: str | None
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        tally.add(batch, batch[time].cast(pa.int64()) if time is not None else None)
        yield batch
