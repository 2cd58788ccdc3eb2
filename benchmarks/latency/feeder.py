"""A process that lets Parquet files appear at a steady rate: `python -m benchmarks.latency.feeder`.

All rows of a file carry the moment at which the process began to write it, so a row's latency has
the writing of its file in it: some milliseconds. A file appears by a rename.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.latency.workloads import EVEN, SEED
from penstock.generators.packets import OnOff

FILES = 10
"""A second."""


def start(folder: Path, rate: int) -> subprocess.Popen[bytes]:
    """The process; it ends when it is told to."""
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.Popen([sys.executable, "-m", "benchmarks.latency.feeder", str(folder),
                             str(rate)])


def feed(folder: Path, rate: int, files: float = float("inf")) -> None:
    """Let files appear, without end unless their number is given."""
    rows = rate // FILES
    packets = pa.Table.from_batches([OnOff(rate=rate, burst=EVEN, seed=SEED).packets(0, 60)])
    began, number = time.time(), 0
    while number < files:
        time.sleep(max(0.0, began + number / FILES - time.time()))
        part = packets.slice(number * rows % (packets.num_rows - rows), rows)
        _put(part, folder, number)
        number += 1


def _put(part: pa.Table, folder: Path, number: int) -> None:
    now = pa.array([time.time_ns() // 1000] * part.num_rows, pa.timestamp("us", "UTC"))
    hidden = folder / f".{number}"
    pq.write_table(part.set_column(0, "ts", now), hidden)
    hidden.rename(folder / f"{number:06d}.parquet")


if __name__ == "__main__":
    feed(Path(sys.argv[1]), int(sys.argv[2]))
