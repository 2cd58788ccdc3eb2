"""How far a source was read, as Structured Streaming notes it, checked against the blocks.

Spark writes ``offsets/N`` before a batch and ``commits/N`` after it, and block N becomes durable in
between. So the last block has its offsets, and nothing is committed beyond it. If that does not
hold, a part of the checkpoint is missing, and rows would be lost or taken twice.
"""

from __future__ import annotations

import zlib
from pathlib import Path

from penstock.spark.storage.guarded import damaged
from penstock.spark.storage.store import Store


def synced(store: Store, folder: Path, number: int) -> int:
    """Make the offsets of a batch survive a power cut; return their checksum."""
    place = folder / "offsets" / str(number)
    store.sync([place], [place.parent])
    return zlib.crc32(store.read(place))


def check(
    store: Store, folder: Path, last: int | None, known: int | None, manifests: Path
) -> None:
    """Refuse offsets that are not those of the last block, whose checksum is ``known``."""
    begun, done = _newest(store, folder / "offsets"), _newest(store, folder / "commits")
    if done is not None and (last is None or done > last):
        raise damaged(manifests / f"{done:08d}.json", f"is missing: {folder} knows of its rows")
    if last is None:
        return
    place = folder / "offsets" / str(last)
    if begun is None or not store.has(place):
        raise damaged(place, f"is missing, which tells how far block {last} had come")
    if known is not None and zlib.crc32(store.read(place)) != known:
        raise damaged(place, f"is not the one that block {last} was read with")


def _newest(store: Store, log: Path) -> int | None:
    numbers = [int(path.name) for path in store.list(log) if path.name.isdigit()]
    return max(numbers, default=None)
