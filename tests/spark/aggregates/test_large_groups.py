"""Groups that were too large for the driver are known after a restart."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from penstock.errors import CheckpointError
from penstock.spark.aggregates.large_groups import LargeGroups
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.inspection import inspected


def test_a_group_is_large_for_what_the_driver_had_and_for_less(tmp_path: Path) -> None:
    checkpoint = Checkpoint.open(tmp_path / "state")
    LargeGroups(checkpoint).add("packets/src@1", 1000)
    checkpoint.close()
    checkpoint = Checkpoint.open(tmp_path / "state")
    known = LargeGroups(checkpoint)
    assert [known.has("packets/src@1", most) for most in (10, 1000, 1001)] == [True, True, False]
    assert not known.has("packets/all@2", 10)
    known.add("packets/src@1", 5000)
    assert LargeGroups(checkpoint).has("packets/src@1", 5000)
    checkpoint.close()


def test_a_full_disk_does_not_end_the_engine(tmp_path: Path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    checkpoint = Checkpoint.open(tmp_path / "state")
    known = LargeGroups(checkpoint)
    monkeypatch.setattr(Checkpoint, "write", full)
    known.add("packets/src@1", 1000)
    assert known.has("packets/src@1", 1000)
    checkpoint.close()


def test_a_damaged_list_is_refused_by_name(tmp_path: Path) -> None:
    checkpoint = Checkpoint.open(tmp_path / "state")
    LargeGroups(checkpoint).add("packets/src@1", 1000)
    (tmp_path / "state" / "large.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"large\.json"):
        LargeGroups(checkpoint)
    checkpoint.close()
    (fault,) = inspected(tmp_path / "state")[1]
    assert "large.json is damaged" in fault
