"""Files on their way, without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.spark.delivery.staging import Staging
from penstock.spark.storage import local_store
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.files import Files


def test_answers_are_on_the_disk_before_their_run_can_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(local_store, "sync_file", lambda path: synced.append(path.name))
    replaced = local_store.os.replace
    monkeypatch.setattr(local_store.os, "replace", lambda a, b: (
        synced.append(Path(b).name), replaced(a, b)))
    checkpoint, out = Checkpoint.open(tmp_path / "state"), str(tmp_path / "out")
    staging = Staging(checkpoint, Files(None), lambda: [out])
    place = Path(staging.place(7, "0", out))
    place.mkdir(parents=True)
    for number in range(40):
        (place / f"part-{number:05d}.json").write_text("{}")
    moves = [replace(move, folder=out) for move in staging.moves(7, "0", str(place))]
    synced.clear()
    staging.write(7, moves)
    assert sorted(synced[:40]) == [f"part-{number:05d}.json" for number in range(40)]
    assert synced[40:] == ["moves.json"]
    for move in moves:
        staging.finish(7, move)
    assert len(list(Path(out).iterdir())) == 40
    checkpoint.close()
