"""`onoff` as a stream: every packet once, in any blocks, over crashes and restarts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.clock import VirtualClock
from penstock.errors import CheckpointError
from penstock.events import kinds as ev
from penstock.generators.onoff_options import Options
from penstock.generators.packets import OnOff
from penstock.model import BIGINT, TIMESTAMP, Field, Stream
from penstock.spark.ingest.packet_stream import PacketBatch, PacketPosition, PacketStream
from penstock.spark.ingest.times import Bounds
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.files import Files
from penstock.spark.storage.spool import Manifest, Spool
from tests.spark.kit import eventually

COLUMNS = (Field("Port", BIGINT), Field("ts", TIMESTAMP))
ALWAYS = Bounds(0, 4_000_000_000 * 10**6)


def stream(clock: VirtualClock | None = None, **options: str) -> PacketStream:
    given = {"rate": "1000", "burst": "1", "length": "0.1"} | options
    return PacketStream(Options.parse(given), COLUMNS, (clock or VirtualClock(10.0)).now)


def rows_of(packets: PacketStream, first: PacketPosition, last: PacketPosition) -> pa.Table:
    return PacketBatch(packets, first, last).table()


def micros(table: pa.Table) -> list[int]:
    return table["ts"].cast(pa.int64()).to_pylist()


# -- which packets: no JVM, and a clock moved by hand --------------------------------------------


def test_a_block_has_at_most_the_rows_of_the_limit_and_the_last_place_stays():
    packets = stream(rows="250", maxRowsPerTrigger="100")
    places = [PacketPosition()]
    while len(places) < 6:
        places.append(packets.next(places[-1]))
    assert [place.position.rows for place in places] == [0, 100, 200, 250, 250, 250]
    assert [packets.is_over(place) for place in places[2:]] == [False, True, True, True]
    assert places[3] == places[5]


def test_a_paced_stream_gives_what_is_due_by_whole_ticks():
    clock = VirtualClock(10.0)
    packets = stream(clock, slice="100")
    began = packets.next(PacketPosition())
    traffic = OnOff(rate=1000, burst=1, length=0.1)
    assert began.position.rows == traffic.count(0, 0.1) > 0  # the tick before now
    clock.time += 0.099_999
    assert packets.next(began) == began
    clock.time += 1
    assert packets.next(began).position.rows == traffic.count(0, 1.1)


def test_a_paced_stream_is_asked_when_a_tick_is_over():
    clock = VirtualClock(10.0)
    packets = stream(clock, slice="100")
    place = packets.next(PacketPosition())
    assert packets.pause(place, 0.05) == pytest.approx(0.1)
    clock.time += 0.03
    assert packets.pause(place, 0.05) == pytest.approx(0.07)
    assert packets.pause(place, 0.25) == pytest.approx(0.27), "three ticks, and not one just before"
    clock.time += 0.3
    assert packets.pause(place, 0.05) == 0, "it is behind"
    clock.time -= 3600
    assert packets.pause(place, 0.05) == 1, "the clock may be set back, and forth again"
    assert packets.next(place) == place
    assert stream(rows="9").pause(PacketPosition(), 0.05) == 0.05


def test_a_paced_stream_has_event_times_of_the_clock_or_from_start():
    clock = VirtualClock(10.0)
    for options, began in (({}, 9_950_000), ({"start": "1970-01-01T01:00"}, 3600 * 10**6)):
        packets = stream(clock, **options)
        end = packets.next(PacketPosition())
        times = micros(rows_of(packets, PacketPosition(), end))
        assert times[0] == began
        assert packets.times(PacketPosition(), end) == (times[0], times[-1])
        clock.time += 1
        later = packets.next(end)
        following = micros(rows_of(packets, end, later))
        assert packets.times(end, later) == (times[-1], following[-1])


@given(st.lists(st.tuples(st.integers(0, 900_000), st.booleans()), min_size=1, max_size=8),
       st.integers(1, 700))
def test_the_rows_are_the_same_however_often_it_is_asked_and_begun_again(steps, limit):
    """The clock moves on by any steps; before some of them the engine dies and starts again."""
    clock = VirtualClock(10.0)
    packets = stream(clock, maxRowsPerTrigger=str(limit))
    place, pieces = PacketPosition(), []
    for step, dies in steps:
        clock.time += step / 1e6
        if dies:
            noted = packets.noted(place) if place.clock else None
            packets = stream(clock, maxRowsPerTrigger=str(limit))
            place = packets.place(noted)
        following = packets.next(place)
        if following.position != place.position:
            pieces.append(rows_of(packets, place, following))
            place = following
    if not pieces:
        return
    start = place.clock
    whole = OnOff(rate=1000, burst=1, length=0.1, start=start, rows=place.position.rows)
    expected = pa.Table.from_batches([whole.packets(0, 60)])
    assert micros(pa.concat_tables(pieces)) == micros(expected)
    assert (pa.concat_tables(pieces)["Port"].to_pylist() == expected["port"].to_pylist())


def test_files_share_a_large_block_evenly_and_a_small_one_is_not_shared():
    for rows, shares in (40_001, [13333, 13334, 13334]), (5000, [5000]), (0, []):
        packets = stream(rows="40001", partitions="3", maxRowsPerTrigger=str(rows or 1))
        end = packets.next(PacketPosition()) if rows else PacketPosition()
        files = packets.files(PacketPosition(), end)
        assert [sum(map(len, batches)) for batches in files] == shares


def test_a_place_of_another_stream_is_refused():
    noted = stream(rows="10").noted(PacketPosition())
    with pytest.raises(ValueError, match=r"is of onoff with .* seed=0; it cannot .* seed=1"):
        stream(rows="10", seed="1").place(noted)


# -- a block in the spool ------------------------------------------------------------------------


@pytest.fixture
def checkpoint(tmp_path: Path) -> Iterator[Checkpoint]:
    opened = Checkpoint.open(tmp_path / "checkpoint")
    yield opened
    opened.close()


def spool_of(checkpoint: Checkpoint, columns=COLUMNS, time: str | None = "ts") -> Spool:
    return Spool(None, checkpoint, Files(None), Stream("s", columns, "onoff", time=time))


def test_a_block_has_its_packets_their_figures_and_the_place_behind_them(checkpoint):
    spool, packets = spool_of(checkpoint), stream(rows="30000", maxRowsPerTrigger="25000")
    first = PacketPosition()
    for number, rows in enumerate((25_000, 5000)):
        last = packets.next(first)
        batch = PacketBatch(packets, first, last)
        times = micros(batch.table())
        counted = batch.write(spool, number, times[7], ALWAYS)
        assert (counted.read, counted.rejected, counted.newest) == (rows, 0, times[-1])
        assert (counted.late, counted.bytes) == (sum(t < times[7] for t in times), 16 * rows)
        spool.add(Manifest(number, rows, counted.bytes, 1.0, rows, place=packets.noted(last)))
        files = sorted(spool.folder(number).iterdir())
        assert len(files) == (2 if rows == 25_000 else 1)
        assert pa.concat_tables(map(pq.read_table, files)).equals(batch.table())
        first = packets.place(spool_of(checkpoint).last.place)
        assert first == last
    assert packets.is_over(first)
    spool.release(1)
    assert packets.place(spool_of(checkpoint).last.place) == first, "the figures of the last stay"


def test_times_near_a_bound_are_left_to_spark_and_streams_without_a_time_are_not(checkpoint):
    packets = stream(rows="100")
    batch = PacketBatch(packets, PacketPosition(), packets.next(PacketPosition()))
    _, newest = packets.times(batch.first, batch.last)
    spool = spool_of(checkpoint)
    assert batch.write(spool, 0, None, Bounds(0, newest + 10)) is None
    assert batch.write(spool, 0, None, Bounds(0, newest + 10**7)).read == 100
    assert batch.write(spool_of(checkpoint, time=None), 0, None, Bounds(0, 0)).newest is None


def test_blocks_that_do_not_say_how_far_they_came_are_refused(checkpoint):
    spool, packets = spool_of(checkpoint), stream(rows="10")
    spool.refuse_without_place()
    begin = PacketPosition()
    PacketBatch(packets, begin, packets.next(begin)).write(spool, 0, None, ALWAYS)
    spool.add(Manifest(0, 10, 160, 1.0, 10, offsets=7))
    with pytest.raises(CheckpointError, match="00000000.json was written by an earlier version"):
        spool.refuse_without_place()


# -- under the engine ----------------------------------------------------------------------------

LIVE = """
    SET trigger = '50 ms';
    CREATE STREAM packets (ts TIMESTAMP, src INT, protocol STRING)
        FROM onoff OPTIONS (rate = 2000, burst = 0.1, length = 0.1, seed = 5) TIME ts;
    CREATE QUERY q AS SELECT ts, src, protocol FROM packets;
"""


def blocks(seen: list[ev.Event]) -> list[ev.BlockArrived]:
    return [event for event in seen if isinstance(event, ev.BlockArrived)]


@pytest.mark.spark
def test_an_endless_stream_follows_the_clock_over_a_restart(engine):
    found: list[Any] = []
    began = datetime.now(UTC)
    for _ in range(2):
        seen: list[ev.Event] = []
        with engine(on_event=seen.append) as e:
            e.load(LIVE)
            e.start()
            eventually(lambda seen=seen: len(blocks(seen)) > 4, "some blocks came")
            e.stop()
            found = e.results("q").sort_by("ts").to_pylist()
            stored = e.status().streams["packets"].kept
    last = max(event.block.number for event in blocks(seen))
    assert last >= 9, "numbers go on"
    assert stored > 0 and found[0]["ts"] < found[-1]["ts"] < datetime.now(UTC)
    assert (found[0]["ts"] - began).total_seconds() > -1
    # Only the event times depend on when it began: the rows are those of the bounded stream.
    same = OnOff(rate=2000, burst=0.1, length=0.1, seed=5, rows=len(found)).packets(0, 3600)
    assert [row["src"] for row in found] == same["src"].to_pylist()


@pytest.mark.spark
def test_packets_too_far_ahead_are_rejects_with_their_reason(engine):
    with engine() as e:
        e.execute("""
            CREATE STREAM packets (ts TIMESTAMP, src INT)
                FROM onoff OPTIONS (rows = 30, start = '2900-01-01') TIME ts;
            CREATE QUERY q AS SELECT src FROM packets;
        """)
        summary = e.run()
        told = [path.read_text() for path in (e.checkpoint / "rejects").rglob("*.json")]
    packets = summary.streams["packets"]
    assert (packets.read, packets.rejected, packets.kept) == (30, 30, 0)
    assert "".join(told).count("seconds ahead of the clock") == 30
    assert '2900-01-01 00:00:00' in "".join(told)


@pytest.mark.spark
def test_columns_that_packets_do_not_have_are_refused(engine):
    with engine() as e:
        e.execute("""
            CREATE STREAM a (lenght INT) FROM onoff OPTIONS (rows = 3);
            CREATE STREAM b (port STRING) FROM onoff OPTIONS (rows = 3);
            CREATE QUERY qa AS SELECT * FROM a;
            CREATE QUERY qb AS SELECT * FROM b;
        """)
        told = {name: query.reason for name, query in e.run().queries.items()}
    assert "column 'lenght' is declared but not in the data, which has ts, src" in told["qa"]
    assert "column 'port' is declared STRING but the data holds INT" in told["qb"]
