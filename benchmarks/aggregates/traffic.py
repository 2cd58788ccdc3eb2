"""Packets with an even event time, and random windows over them; the same every time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = "ts TIMESTAMP, src INT, link INT, port INT, length INT"
SOURCES, LINKS, PORTS, LENGTHS = 1_000, 20, 100, 50
RATE = 20_000
"""Packets in a second of event time."""
FILES = 8
"""Files in a block, and in a micro-batch of the others: each has a cost beside its rows."""
BEGIN = 1_735_689_600_000_000
"""The time of the first packet, in microseconds: whole slides lie on both sides of it."""


@dataclass(frozen=True)
class Window:
    """In seconds; each is also a number of panes, for a pane is a second here."""

    length: int
    slide: int

    @property
    def copies(self) -> float:
        """Windows that hold a row, on average: as often does native Spark copy it."""
        return self.length / self.slide

    def ends(self, seconds: int) -> range:
        """The ends of windows with rows, in seconds since the first packet."""
        first, last = BEGIN // 1_000_000, BEGIN // 1_000_000 + seconds - 1 + self.length
        beyond = first // self.slide + 1
        return range(beyond * self.slide - first, last - first + 1, self.slide)


def windows(n: int) -> list[Window]:
    """The first n of a fixed sequence: 20 to 100 s, slides of 1 s to half of that.

    >>> windows(3) == windows(1000)[:3]
    True
    """
    rng = np.random.default_rng(57)
    lengths = rng.integers(20, 101, 1000)
    slides = [int(rng.integers(1, length // 2 + 1)) for length in lengths]
    return [Window(int(length), slide) for length, slide in zip(lengths[:n], slides, strict=False)]


def write_packets(folder: Path, rows: int, per_file: int) -> list[Path]:
    """The packets, in order of their time, in files of equal length."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(7)
    return [_write(folder / f"part-{number:05d}.parquet", number * per_file, per_file, rng)
            for number in range(rows // per_file)]


def _write(path: Path, first: int, rows: int, rng: np.random.Generator) -> Path:
    times = BEGIN + np.arange(first, first + rows) * (1_000_000 // RATE)
    pq.write_table(pa.table({
        "ts": pa.array(times, pa.timestamp("us", "UTC")),
        "src": _skewed(rng, SOURCES, rows),
        "link": rng.integers(0, LINKS, rows, dtype="int32"),
        "port": _skewed(rng, PORTS, rows),
        "length": (30 * rng.integers(1, LENGTHS + 1, rows)).astype("int32"),
    }), path)
    return path


def _skewed(rng: np.random.Generator, values: int, rows: int) -> np.ndarray:
    """Low numbers come most: the first of a thousand sixty times as often as the last."""
    return (values * rng.random(rows) ** 2).astype("int32")
