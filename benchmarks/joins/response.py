"""Joins of live streams: how long a query waits for its pairs, and what a block costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.joins.streams import BEGIN, LARGEST, NAMES, SCHEMA, StorageUse, table
from benchmarks.joins.streams import WINDOWS as LENGTHS
from benchmarks.live import Arrival, Feeder, Watch, running, through, until
from harness.program import Progress
from penstock.events import kinds as ev

SPAN = LENGTHS[-1]
"""Seconds of the largest window."""
ROUNDS = 8
"""Blocks whose probes are timed, one after the other; the first half warms up."""


@dataclass(frozen=True, slots=True)
class Answered:
    """How long the blocks of bursts took, by window."""

    mean: dict[int, float]
    worst: dict[int, float]
    pairs: int
    """Of all windows, from beginning to end."""

    @property
    def overall(self) -> float:
        """The mean over all queries."""
        return mean(self.mean.values())


@dataclass(frozen=True, slots=True)
class Traffic:
    """Blocks of both streams; those of one number end at the same time.

    The first ones fill the window. Their keys differ by stream, so that they make no pairs.
    """

    first: int
    """Rows of the block of each stream that fills the window."""
    rows: int
    """Rows of each later block."""
    seconds: float
    """What each later block covers."""
    keys: int

    def write(self, folder: Path, blocks: int) -> None:
        """The files, `file` tells where."""
        rng = np.random.default_rng(11)
        folder.mkdir(parents=True)
        for number in range(blocks):
            begin = SPAN + (number - 1) * self.seconds if number else 0.0
            length, rows = (self.seconds, self.rows) if number else (SPAN, self.first)
            for place, name in enumerate(NAMES):
                times = np.sort(rng.uniform(begin, begin + length, rows))
                times[-1] = begin + length
                micros = (times * 1e6).astype("int64") + BEGIN
                half = self.keys // 2
                made = (table(rng, micros, self.keys) if number
                        else table(rng, micros, half, least=place * half))
                pq.write_table(made, file(folder, name, number))

    def ends(self, number: int) -> int:
        """The time, in microseconds, at which the blocks of a number end."""
        return round((SPAN + number * self.seconds) * 1e6) + BEGIN


def file(folder: Path, stream: str, number: int) -> Path:
    """Where the rows of a block are."""
    return folder / f"{stream}-{number}.parquet"


@contextmanager
def joined(
    spark: Any, work: Path, traffic: Traffic, blocks: int, windows: Sequence[int], policy: str
) -> Iterator[tuple[Any, Watch, Feeder]]:
    """An engine that joins what a feeder lets appear."""
    traffic.write(work / "blocks", blocks)
    feeder = Feeder(lambda stream, number: file(work / "blocks", stream, number),
                    lambda stream: work / "in" / stream)
    for name in NAMES:
        (work / "in" / name).mkdir(parents=True)
    streams = "".join(
        f"CREATE STREAM {name} ({SCHEMA}) FROM parquet '{work}/in/{name}' "
        "OPTIONS (maxFilesPerTrigger = 1) TIME ts;" for name in NAMES)
    queries = "".join(
        f"CREATE QUERY w{length} INTO noop AS SELECT A.ts, A.v, B.v AS w FROM a A, b B "
        f"WHERE A.k = B.k WINDOW {length} SECONDS;" for length in windows)
    with running(f"{streams}{queries}SET joins = '{policy}';", spark, work) as (engine, watch):
        yield engine, watch, feeder


def responses(
    spark: Any, work: Path, policy: str, quick: bool, progress: Progress
) -> Answered:
    """Bursts of blocks, under one policy."""
    traffic = Traffic(first=300_000, rows=5_000, seconds=10.0, keys=16)
    singles, bursts, size = 8, 1 if quick else 3, 10
    blocks = 1 + singles + bursts * size
    with joined(spark, work, traffic, blocks, LENGTHS, policy) as (engine, watch, feeder):
        progress(f"{policy}: warming up")
        warm = [(name, number) for number in range(1 + singles) for name in NAMES]
        done = _Done(watch, [f"w{length}" for length in LENGTHS])
        # A block is let in only with the other stream's, so the first of two cannot be waited for.
        for burst in range(bursts):
            first = 1 + singles + burst * size
            arrivals = [Arrival(0.2 * n, name, first + n) for n in range(size) for name in NAMES]
            progress(f"{policy}: burst {burst + 1}")
            through(feeder, warm, arrivals, lambda stream, number: (
                stream != NAMES[-1] or done.through(traffic.ends(number))), pause=0.05)
            warm = []
        pairs = sum(query.rows_out for query in engine.status().queries.values())
    numbers = range(1 + singles, blocks)
    waited = {length: [done.at(f"w{length}", traffic.ends(number))
                       - max(feeder.arrived[name, number] for name in NAMES)
                       for number in numbers] for length in LENGTHS}
    return Answered({length: mean(some) for length, some in waited.items()},
                    {length: max(some) for length, some in waited.items()}, pairs)


@dataclass(frozen=True)
class _Done:
    """Up to which time queries have had all pairs, and when that was."""

    watch: Watch
    queries: Sequence[str]

    def at(self, query: str, time: int) -> float:
        """When a query had all pairs whose later rows are before a time; infinite if never."""
        return next((event.at for event in list(self.watch.events)
                     if isinstance(event, ev.JobFinished)
                     and isinstance(event.result, ev.ProbeResult)
                     and event.result.ends.get(query, time - 1) >= time), float("inf"))

    def through(self, time: int) -> bool:
        """Whether all queries had."""
        return all(self.at(query, time) < float("inf") for query in self.queries)


def probe_seconds(spark: Any, work: Path, rows: int) -> tuple[float, int, int]:
    """Seconds of the probe of a block while the window has so many rows; bytes of storage; pairs.

    The pairs are those that the last of the probes found.
    """
    traffic = Traffic(first=rows, rows=5_000, seconds=SPAN * 5_000 / rows, keys=5_000)
    held = StorageUse(spark)
    with (joined(spark, work, traffic, 1 + ROUNDS, LARGEST, "mqt") as (_, watch, feeder),
          held.watched()):
        done, took = _Done(watch, [f"w{SPAN}"]), []
        for number in range(1 + ROUNDS):
            for name in NAMES:
                feeder.put(name, number)
            until(lambda number=number: done.through(traffic.ends(number)))
            last = [end for _, end in watch.jobs() if end.kind == "probe"][-1]
            took.append(last.seconds)
    return median(took[-ROUNDS // 2:]), held.most, sum(last.rows_out.values())
