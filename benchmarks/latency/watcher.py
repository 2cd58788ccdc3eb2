"""A process that sees files as they come: `python -m benchmarks.latency.watcher LOG FOLDER ...`.

The kernel says when a file is whole under its final name: when it was renamed into place, got this
name besides another (a file that is created with content), or was closed after it was written
there. The last is earlier than the moment at which native Spark's own
readers would see it, which read the log of its sink. The clock is read when the kernel's message
is; on a busy machine that is some milliseconds later.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

CLOSE_WRITE, MOVED_TO, CREATE = 0x8, 0x80, 0x100
_HEAD = struct.Struct("iIII")


def start(log: Path, folders: Sequence[Path]) -> subprocess.Popen[bytes]:
    """The process, once it watches; it ends when it is told to."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.latency.watcher", str(log), *map(str, folders)])
    while not log.exists():
        if process.poll() is not None:
            raise RuntimeError("the watcher has ended")
        time.sleep(0.01)
    return process


def seen(log: Path) -> dict[tuple[int, str], float]:
    """By the number of a folder and the name of a file in it: when it was there."""
    lines = (line.split("\t") for line in log.read_text().splitlines() if line.count("\t") == 2)
    return {(int(folder), name): float(at) for at, folder, name in lines}


def watch(log: Path, folders: Sequence[str]) -> None:
    """Write a line for every file that comes."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init()
    numbers = {}
    for number, folder in enumerate(folders):
        given = libc.inotify_add_watch(
            descriptor, os.fsencode(folder), CLOSE_WRITE | MOVED_TO | CREATE)
        if given < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), folder)
        numbers[given] = number
    with open(log, "w", buffering=1) as file:
        while True:
            read = os.read(descriptor, 1 << 20)
            now = time.time()
            for watched, what, name in _messages(read):
                number = numbers[watched]
                if name.startswith((".", "_")) or (
                        what & CREATE and not _has_content(Path(folders[number], name))):
                    continue
                file.write(f"{now:.6f}\t{number}\t{name}\n")


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False


def _messages(read: bytes) -> Iterator[tuple[int, int, str]]:
    """The folder of every message, what happened, and the file."""
    at = 0
    while at < len(read):
        watched, what, _, size = _HEAD.unpack_from(read, at)
        at += _HEAD.size
        yield watched, what, os.fsdecode(read[at : at + size].rstrip(b"\0"))
        at += size


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    watch(Path(sys.argv[1]), sys.argv[2:])
