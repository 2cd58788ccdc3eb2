"""The spool without Spark: blocks have numbers without gaps, and their files stay as they were."""

from __future__ import annotations

import errno
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import CheckpointError
from penstock.model import BIGINT, Field, Stream
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.files import Files
from penstock.spark.storage.guarded import Witness
from penstock.spark.storage.inspection import inspected
from penstock.spark.storage.spool import Manifest, Spool

STREAM = Stream("s", (Field("n", BIGINT),), "csv")


@pytest.fixture
def checkpoint(tmp_path):
    opened = Checkpoint.open(tmp_path / "checkpoint")
    yield opened
    opened.close()


def spool_of(checkpoint: Checkpoint) -> Spool:
    return Spool(None, checkpoint, Files(None), STREAM)


def add(spool: Spool, number: int, rows: int = 5, counted: int | None = None) -> None:
    folder = spool.folder(number)
    folder.mkdir()
    pq.write_table(pa.table({"n": list(range(rows))}), folder / "part-0.parquet")
    spool.add(Manifest(number, rows if counted is None else counted, 40, 1.0, rows))


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def numbers(spool: Spool) -> list[int]:
    return [block.number for block in spool.held()]


def test_blocks_leave_in_any_order_and_no_gap_is_left(checkpoint):
    spool = spool_of(checkpoint)
    for number in range(5):
        add(spool, number)
    spool.release(2)
    assert numbers(spool) == [0, 1, 3, 4]
    assert spool.folder(2).is_dir(), "its turn comes when those before it have gone"
    spool.release(0)
    assert numbers(spool_of(checkpoint)) == [1, 2, 3, 4]
    spool.release(1)
    assert not spool.folder(2).exists()
    spool.release(4)
    spool.release(3)
    assert numbers(spool) == numbers(spool_of(checkpoint)) == []
    assert [path.name for path in spool.folder(0).parent.glob("*.json")] == ["00000004.json"]
    add(spool, 5)
    again = spool_of(checkpoint)
    assert numbers(again) == [5] and again.has(4) and not again.has(6)


@pytest.mark.parametrize(("gone", "said"), [
    ("00000001.json", "00000001.json is missing"),
    ("00000000.json", "00000000.json is missing"),
    ("first", "first is missing"),
])
def test_a_manifest_that_is_gone_is_missed(checkpoint, gone, said):
    spool = spool_of(checkpoint)
    for number in range(3):
        add(spool, number)
    (spool.folder(0).parent / gone).unlink()
    with pytest.raises(CheckpointError, match=said):
        spool_of(checkpoint)


def test_what_a_crash_left_of_blocks_is_cleared_away(checkpoint):
    spool = spool_of(checkpoint)
    for number in range(3):
        add(spool, number)
    spool._first.write(1)  # the driver died before it deleted block 0
    spool.folder(7).mkdir()  # and before block 7 had a manifest
    (spool.folder(0).parent / "lost+found").mkdir()
    assert numbers(spool_of(checkpoint)) == [1, 2]
    left = {path.name for path in spool.folder(0).parent.iterdir()}
    assert left == {"first", "lost+found", "00000001", "00000001.json", "00000002",
                    "00000002.json"}


def test_rows_that_the_files_do_not_have_make_no_block(checkpoint):
    spool = spool_of(checkpoint)
    with pytest.raises(CheckpointError, match="holds 5 rows, but 6 were counted"):
        add(spool, 0, rows=5, counted=6)
    assert numbers(spool_of(checkpoint)) == []


@pytest.mark.parametrize(("damage", "said"), [
    (Path.unlink, "part-0.parquet was deleted since block 0 of stream s was made of it"),
    (lambda path: path.write_bytes(path.read_bytes()[:-9]), "was changed: it had"),
    (lambda path: pq.write_table(pa.table({"n": [9, 8, 7, 6, 5]}), path), "was changed"),
])
def test_a_block_with_another_file_is_not_read(checkpoint, damage, said):
    spool = spool_of(checkpoint)
    add(spool, 0)
    spool.check(0)
    damage(spool.folder(0) / "part-0.parquet")
    with pytest.raises(CheckpointError, match=said):
        spool.frame([0])


def test_what_is_in_the_checkpoint_is_durable_before_it_counts(checkpoint, monkeypatch):
    from penstock.spark.storage import local_store

    order: list[str] = []
    monkeypatch.setattr(local_store.LocalStore, "sync", lambda self, files, folders: order.extend(
        f"sync {path.name}" for path in files))
    link = local_store.os.link
    monkeypatch.setattr(local_store.os, "link", lambda a, b: (
        order.append(f"name {Path(b).name}"), link(a, b)))
    monkeypatch.setattr(
        local_store, "sync_folder", lambda path: order.append(f"folder {path.name}"))
    add(spool_of(checkpoint), 0)
    assert order[-3:] == ["sync part-0.parquet", "name 00000000.json", "folder s"]


def test_a_block_that_another_engine_wrote_is_not_replaced(checkpoint):
    """The one who lost the checkpoint may notice too late: the manifest itself says whose it is."""
    ours, theirs = spool_of(checkpoint), spool_of(checkpoint)
    add(theirs, 0)
    before = (checkpoint.root / "spool" / "s" / "00000000.json").read_bytes()
    with pytest.raises(CheckpointError, match="00000000.json is there already: another engine"):
        ours.add(Manifest(0, 5, 40, 1.0, 5))
    assert (checkpoint.root / "spool" / "s" / "00000000.json").read_bytes() == before
    assert not ours.has(0)


def test_a_block_counts_though_the_disk_lets_none_before_it_go(checkpoint, monkeypatch):
    """Or it would be durable, and nobody told of it."""
    spool = spool_of(checkpoint)
    add(spool, 0)
    add(spool, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Witness, "write", full)
        spool.release(0)
        add(spool, 2)
        assert numbers(spool) == [1, 2] and spool.has(2)
    add(spool, 3)
    assert not spool.folder(0).exists(), "it goes with the next block"
    assert numbers(spool_of(checkpoint)) == [1, 2, 3]


def test_a_full_disk_does_not_end_the_engine_when_a_block_goes(checkpoint, monkeypatch):
    spool = spool_of(checkpoint)
    add(spool, 0)
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "write", full)
        spool.release(0)
    assert numbers(spool) == [] and numbers(spool_of(checkpoint)) == [0]
    add(spool, 1)
    assert numbers(spool) == numbers(spool_of(checkpoint)) == [1]


def test_an_ingest_that_was_left_behind_adds_nothing(checkpoint):
    spool = spool_of(checkpoint)
    add(spool, 0)
    spool.close()
    with pytest.raises(CheckpointError, match="the engine has ended"):
        add(spool, 1)
    assert numbers(spool_of(checkpoint)) == [0]


@pytest.mark.parametrize("how", ["released", "deleted"])
def test_doctor_takes_no_block_that_was_released_meanwhile_for_a_damaged_one(
    checkpoint, monkeypatch, how
):
    spool, check = spool_of(checkpoint), Spool.check
    checkpoint.write(checkpoint.application, [])
    for number in range(3):
        add(spool, number)

    def meanwhile(looking, number):
        if how == "released":
            spool.release(number)
        else:
            (spool.folder(number) / "part-0.parquet").unlink()
        check(looking, number)

    monkeypatch.setattr(Spool, "check", meanwhile)
    found, faults = inspected(checkpoint.root)
    assert len(faults) == (0 if how == "released" else 3), faults
