"""Small blocks in one file: a window reads the same rows from few files, by a plan of one shape."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import CheckpointError
from penstock.model import BIGINT, TIMESTAMP, Field, Stream
from penstock.spark.storage import merged_blocks
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.files import Files
from penstock.spark.storage.merged_blocks import MergedBlocks
from penstock.spark.storage.spool import Manifest, Spool

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
STREAM = Stream("s", (Field("ts", TIMESTAMP), Field("n", BIGINT)), "csv", time="ts", lateness=1.0)


def written(folder: Path, number: int, rows: int = 3) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{number}.parquet"
    pq.write_table(pa.table({"n": [100 * number + row for row in range(rows)]}), file)
    return file


def merging(tmp_path: Path, **others: list[Path] | None) -> MergedBlocks:
    """Blocks 0 to 199 of three rows; others have their own files, or may not be copied."""
    files = {n: [written(tmp_path / "blocks", n)] for n in range(200)}
    files |= {int(name[1:]): found for name, found in others.items()}
    (tmp_path / "merged").mkdir()
    return MergedBlocks(lambda: tmp_path / "merged", lambda number: files.get(number),
                        lambda number: None)


def test_neighbours_of_which_all_are_wanted_are_in_one_file(tmp_path):
    merged = merging(tmp_path)
    cover = merged.cover(range(10, 190))
    assert [file.name for file in cover.files] == ["00000064.parquet"]
    assert cover.merged == tuple(range(64, 128))
    assert cover.apart == (*range(10, 64), *range(128, 190))
    rows = pq.read_table(cover.files[0])
    assert rows["@block"].to_pylist() == [n for n in range(64, 128) for _ in range(3)]
    assert rows["n"].to_pylist() == [100 * n + row for n in range(64, 128) for row in range(3)]
    before = cover.files[0].stat().st_mtime_ns
    assert merged.cover(range(10, 190)) == cover
    assert cover.files[0].stat().st_mtime_ns == before, "it is made once"
    assert merged.cover(range(65, 190)).files == (), "its rows are not all wanted"
    assert merged.cover(range(64, 80)).files == ()


def test_empty_blocks_are_left_out_and_large_ones_stay_alone(tmp_path):
    merged = merging(tmp_path, _5=[], _70=None)
    cover = merged.cover([n for n in range(192) if n != 5])
    assert [file.name for file in cover.files] == ["00000000.parquet", "00000128.parquet"]
    assert 5 not in pq.read_table(cover.files[0])["@block"].to_pylist()
    assert cover.apart == tuple(range(64, 128))


def test_a_block_that_leaves_takes_the_file_with_it(tmp_path):
    merged = merging(tmp_path)
    (file,) = merged.cover(range(64)).files
    merged.forget(70)
    assert file.exists()
    merged.forget(3)
    assert not file.exists()


def test_few_files_are_made_for_one_reader(tmp_path, monkeypatch):
    monkeypatch.setattr(merged_blocks, "AT_ONCE", 1)
    merged = merging(tmp_path)
    assert [len(merged.cover(range(192)).files) for _ in range(4)] == [1, 2, 3, 3]


def test_blocks_that_cannot_be_copied_are_read_one_by_one(tmp_path):
    odd = tmp_path / "odd.parquet"
    pq.write_table(pa.table({"other": ["x"]}), odd)
    merged = merging(tmp_path, _9=[odd])
    for _ in range(2):
        cover = merged.cover(range(128))
        assert [file.name for file in cover.files] == ["00000064.parquet"]
        assert cover.apart == tuple(range(64))


# --- in a spool ---------------------------------------------------------------------------------


@pytest.fixture
def checkpoint(tmp_path):
    opened = Checkpoint.open(tmp_path / "checkpoint")
    yield opened
    opened.close()


def spool_of(spark: Any, checkpoint: Checkpoint, stream: Stream) -> Spool:
    return Spool(spark, checkpoint, Files(spark), stream)


def fill(spool: Spool, first: int, last: int, late: bool) -> None:
    """Blocks of a second; every third one has a row that is half a minute late."""
    for number in range(first, last):
        times = [BEGIN + timedelta(seconds=number + part / 4) for part in range(4)]
        if late and number % 3 == 2 and number > 40:
            times[1] = BEGIN + timedelta(seconds=number - 30)
        table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")),
                          "n": pa.array(range(4 * number, 4 * number + 4), pa.int64())})
        spool.write(number, table.schema, [table.to_batches()])
        seen = round(times[-1].timestamp() * 1e6)
        cutoff = seen - 2_000_000 if number else None
        missed = sum(cutoff is not None and time.timestamp() * 1e6 < cutoff for time in times)
        spool.add(Manifest(number, 4, 64, 1000.0 + number, 4, late=missed, cutoff=cutoff,
                           seen=seen))


@pytest.mark.spark
def test_a_block_whose_file_was_changed_is_not_copied(spark, checkpoint):
    spool = spool_of(spark, checkpoint, STREAM)
    fill(spool, 0, 64, late=False)
    (file,) = spool.folder(9).iterdir()
    pq.write_table(pq.read_table(file).slice(0, 2), file)
    with pytest.raises(CheckpointError, match="was changed"):
        spool.window_frame(range(64))


def bag(frame: Any) -> Counter:
    return Counter(map(tuple, frame.collect()))


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["in time", "late", "without a time"])
def test_a_window_of_many_blocks_has_the_same_rows_from_few_files(spark, checkpoint, kind):
    stream = replace(STREAM, time=None, lateness=0.0) if kind == "without a time" else STREAM
    spool = spool_of(spark, checkpoint, stream)
    fill(spool, 0, 330, late=kind == "late")
    wanted = range(5, 326)
    frame, whole = spool.window_frame(wanted), spool.timely_frame(wanted)
    assert bag(frame) == bag(whole)
    assert frame.columns == whole.columns
    assert (kind == "late") == (whole.count() < 4 * len(wanted))
    assert len(frame.inputFiles()) == 4 + (64 - 5) + (326 - 320), "four files for 256 blocks"
    plan = frame._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("Relation [") == 2, "one scan of these, one of the rest"


@pytest.mark.spark
def test_the_files_follow_the_blocks_and_do_not_outlive_a_run(spark, checkpoint):
    spool = spool_of(spark, checkpoint, STREAM)
    fill(spool, 0, 128, late=True)
    folder = checkpoint.root / "merged" / "s"
    before = bag(spool.window_frame(range(64, 128)))
    assert [file.name for file in folder.iterdir()] == ["00000064.parquet"]
    for number in range(70):
        spool.release(number)
    assert list(folder.iterdir()) == []
    assert bag(spool.window_frame(range(70, 128))) < before
    assert list(folder.iterdir()) == []
    fill(spool, 128, 192, late=True)
    spool.window_frame(range(128, 192))
    assert len(list(folder.iterdir())) == 1
    Spool.look(spark, checkpoint, Files(spark), STREAM)
    assert len(list(folder.iterdir())) == 1, "who only reads leaves them alone"
    again = spool_of(spark, checkpoint, STREAM)
    assert not folder.exists()
    assert bag(again.window_frame(range(128, 192))) == bag(again.timely_frame(range(128, 192)))
