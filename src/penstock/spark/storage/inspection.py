"""Whether a checkpoint is intact: all its files are read, none is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

from penstock.errors import CheckpointError
from penstock.events import read_events
from penstock.model import Stream
from penstock.spark.delivery.delivery_log import Deliveries
from penstock.spark.ingest.file_log import FILE_LOG, FileLog, check_last
from penstock.spark.storage.checkpoint import Checkpoint, folder_name
from penstock.spark.storage.files import Files
from penstock.spark.storage.spool import Spool
from penstock.spark.storage.store import Store
from penstock.spark.storage.stored_relations import StoredRelations


def inspected(folder: Path) -> tuple[list[str], list[str]]:
    """What a checkpoint holds, and each way in which it is damaged.

    While an engine runs on it, files come and go. Then its blocks are not compared with its
    offsets.
    """
    found: list[str] = []
    faults: list[str] = []
    with _noted(faults):
        checkpoint = Checkpoint.look(folder)
        for part in (_statements, _relations, _log, _streams, _staged, _records):
            with _noted(faults):
                found += part(checkpoint, faults)
    return found, faults


@contextmanager
def _noted(faults: list[str]) -> Iterator[None]:
    """Note a fault and go on after it."""
    try:
        yield
    except CheckpointError as error:
        faults.append(str(error))
    except OSError as error:
        faults.append(f"{error.filename} cannot be read: {error.strerror}")


def _statements(checkpoint: Checkpoint, faults: list[str]) -> list[str]:
    for path in (checkpoint.application, checkpoint.folders, checkpoint.large,
                 checkpoint.versions):
        with _noted(faults):
            if checkpoint.has(path):
                checkpoint.read(path)
    return []


def _relations(checkpoint: Checkpoint, _: list[str]) -> list[str]:
    return [f"relation {name}: its rows are here" for name in StoredRelations(checkpoint).check()]


def _log(checkpoint: Checkpoint, _: list[str]) -> list[str]:
    log = Deliveries.look(checkpoint.log(checkpoint.deliveries))
    return [f"{len(log.positions)} queries, {log.last_job} jobs"]


def _streams(checkpoint: Checkpoint, faults: list[str]) -> list[str]:
    said, busy = [], checkpoint.is_taken
    spools, sources = (_names(checkpoint.store, checkpoint.root / room)
                       for room in ("spool", "offsets"))
    for name in sorted(spools | sources):
        with _noted(faults):
            spool = _spool(checkpoint, name)
            for block in spool.held():
                with _noted(faults):
                    try:
                        spool.check(block.number)
                    except CheckpointError:  # an engine may have released it meanwhile
                        if not busy or block in _spool(checkpoint, name).held():
                            raise
            if not busy:
                spool.check_offsets()
                _check_files(checkpoint, spool)
                _check_delivered(checkpoint, spool)
            said.append(f"stream {name}: {len(spool.held())} blocks held")
    return said


def _spool(checkpoint: Checkpoint, name: str) -> Spool:
    """The blocks of a stream; without frames to make there is nothing for Spark to do."""
    stream = Stream(name, (), "parquet")
    return Spool.look(cast(Any, None), checkpoint, Files(cast(Any, None)), stream)


def _check_files(checkpoint: Checkpoint, spool: Spool) -> None:
    """Compare the log of a folder's files with the blocks, as the source does."""
    log = checkpoint.log(checkpoint.root / "offsets" / folder_name(spool.stream.name) / FILE_LOG)
    if checkpoint.store.has(log.path):
        check_last(FileLog(log, writing=False), spool.last.number + 1 if spool.last else 0)


def _check_delivered(checkpoint: Checkpoint, spool: Spool) -> None:
    """Look for delivered blocks that are missing, using queries that read only this stream."""
    log = Deliveries.look(checkpoint.log(checkpoint.deliveries))
    for position in log.positions.values():
        if list(position.start) == [spool.stream.name]:
            for had in position.had.values():
                spool.refuse_before(had.ranges[-1][1])


def _names(store: Store, folder: Path) -> set[str]:
    return {unquote(path.name) for path in store.list(folder)
            if path.is_dir() and path.name != "lost+found"}


def _staged(checkpoint: Checkpoint, faults: list[str]) -> list[str]:
    store = checkpoint.store
    runs = store.list(checkpoint.root / "staging", "[0-9]*")
    for path in (path for run in runs for path in store.list(run, "*.json")):
        with _noted(faults), suppress(FileNotFoundError):  # a job may have been settled meanwhile
            checkpoint.read(path)
    return []


def _records(checkpoint: Checkpoint, faults: list[str]) -> list[str]:
    store = checkpoint.store
    runs = store.list(checkpoint.root / "runs")
    records = [record for run in runs for record in store.list(run, "events.jsonl")]
    for record in records:
        with _noted(faults):
            for _ in read_events(record):
                pass
    return [f"{len(records)} records of runs"]
