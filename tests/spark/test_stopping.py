"""How streams are stopped and files named, without Spark."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event

from penstock.clock import SystemClock
from penstock.events import kinds as ev
from penstock.model import BIGINT, Field, Stream
from penstock.spark.ingest.stream_ingest import Ingest
from penstock.spark.stopping import stop_all
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.files import Files, ListedFile
from penstock.spark.storage.spool import Spool


class Stuck:
    """A stream whose batch does not end."""

    def stop(self, within: float | None = None) -> None:
        assert within is not None
        time.sleep(2 * within)


def test_streams_that_are_stuck_take_no_longer_than_one() -> None:
    began = time.monotonic()
    stop_all([Stuck() for _ in range(30)], 0.2)
    assert time.monotonic() - began < 3.0


def test_a_file_that_is_set_aside_is_told_of_on_a_full_disk_too(
    tmp_path: Path, monkeypatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    told: list[ev.Event] = []
    checkpoint, files = Checkpoint.open(tmp_path / "state"), Files(None)
    spool = Spool(None, checkpoint, files, Stream("s", (Field("n", BIGINT),), "csv", "in"))
    ingest = Ingest(None, checkpoint, files, spool, SystemClock(), SystemClock(), told.append, 1.0,
                    Event())
    ingest._tell_set_aside(ListedFile("in/a.csv", 3, 0), "it is empty", 0)
    monkeypatch.setattr("penstock.spark.ingest.stream_ingest.private", full)
    ingest._tell_set_aside(ListedFile("in/b.csv", 3, 0), "it is empty", 0)
    spool.close()
    checkpoint.close()
    assert [event.file for event in told] == ["in/a.csv", "in/b.csv"]
    assert (tmp_path / "state/rejects/s/files.json").read_text().count("\n") == 1
