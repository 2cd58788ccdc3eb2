"""How far a source was read, as Structured Streaming notes it: held against the blocks.

Spark writes ``offsets/N`` before a batch and ``commits/N`` after it, and the block N is durable in
between. So the last block has its offsets, and nothing is committed beyond it. Where that does not
hold, a part of the checkpoint is missing, and rows would be lost or taken twice.
"""

from __future__ import annotations

import zlib
from pathlib import Path

from penstock.spark.storage.guarded import damaged, sync_file, sync_folder


def synced(folder: Path, number: int) -> int:
    """Make the offsets of a batch outlast a power cut; their checksum."""
    place = folder / "offsets" / str(number)
    sync_file(place)
    sync_folder(place.parent)
    return zlib.crc32(place.read_bytes())


def check(folder: Path, last: int | None, known: int | None, manifests: Path) -> None:
    """Refuse offsets that are not those of the last block, whose checksum is ``known``."""
    begun, done = _newest(folder / "offsets"), _newest(folder / "commits")
    if done is not None and (last is None or done > last):
        raise damaged(manifests / f"{done:08d}.json", f"is missing: {folder} knows of its rows")
    if last is None:
        return
    place = folder / "offsets" / str(last)
    if begun is None or not place.is_file():
        raise damaged(place, f"is missing, which tells how far block {last} had come")
    if known is not None and zlib.crc32(place.read_bytes()) != known:
        raise damaged(place, f"is not the one that block {last} was read with")


def _newest(log: Path) -> int | None:
    if not log.is_dir():
        return None
    return max((int(path.name) for path in log.iterdir() if path.name.isdigit()), default=None)
