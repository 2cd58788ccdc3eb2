"""Live window aggregates on Spark: bursts, silence, backlogs, late rows and a restart.

Every answer is DuckDB's over the rows of its window, and no answer is missing. A second of the
streams in `tests.live` lasts ten minutes here, so that no load makes the machine late by the clock.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.events import kinds as ev
from penstock.policies.refresh import POLICIES
from tests.live import Asked, asked, check_ends, exact_ends, in_time, missing, pane_of, streamed
from tests.spark.kit import eventually

pytestmark = pytest.mark.spark

SECOND = 600
BEGIN = datetime.fromtimestamp(417 * 1260 * SECOND, UTC)
"""A multiple of all slides since 1970, so that EXACTLY means the same as in `tests.live`."""
LATENESS = 5
BLOCKS = 6
REFRESH = [*POLICIES, "hybrid+late_pending"]


@dataclass
class Stream:
    """A stream out of a seed, its queries, and the files that it comes in."""

    seed: int
    folder: Path
    queries: list[Asked] = field(init=False)
    blocks: list[tuple[int, ...]] = field(init=False)
    put: int = 0

    def __post_init__(self) -> None:
        chance = random.Random(self.seed)
        self.queries = [Asked(f"q{self.seed}_{n}", one.window, one.slide, one.exactly)
                        for n, one in enumerate(asked(chance, 3))]
        self.blocks = streamed(chance, BLOCKS)
        self.folder.mkdir()

    @property
    def sql(self) -> str:
        grouped = "GROUP BY k" if self.seed % 2 else ""
        stream = (f"CREATE STREAM s{self.seed} (ts TIMESTAMP, k INT, v INT) "
                  f"FROM parquet '{self.folder.name}' OPTIONS (maxFilesPerTrigger = 1) "
                  f"TIME ts LATENESS {LATENESS * SECOND} SECONDS;")
        return stream + "".join(
            f"CREATE QUERY {one.name} AS SELECT {'k' if grouped else '0'} AS k, COUNT(*) AS n, "
            f"SUM(v) AS s, MAX(v) AS m FROM s{self.seed} "
            f"[WINDOW {one.window * SECOND} SECONDS SLIDE {'EXACTLY' * one.exactly} "
            f"{one.slide * SECOND} SECONDS] {grouped};" for one in self.queries)

    def rows(self, block: int) -> list[tuple[datetime, int, int]]:
        return [(BEGIN + timedelta(seconds=time * SECOND), number % 3, number + 7 * block)
                for number, time in enumerate(self.blocks[block])]

    def write(self, count: int) -> None:
        """So many more files."""
        for block in range(self.put, self.put + count):
            ts, k, v = zip(*self.rows(block), strict=True)
            table = pa.table({"ts": pa.array(ts, pa.timestamp("us", "UTC")),
                              "k": pa.array(k, pa.int32()), "v": pa.array(v, pa.int32())})
            hidden = self.folder / f".{block}.parquet"
            pq.write_table(table, hidden)
            os.utime(hidden, (1_700_000_000 + block,) * 2)
            hidden.rename(self.folder / f"{block}.parquet")
        self.put += count

    # --- what it owes ------------------------------------------------------------------------

    @property
    def punctual(self) -> list[int]:
        return in_time(self.blocks[: self.put], LATENESS)

    @property
    def closed(self) -> int:
        pane = pane_of(self.queries)
        return (max(self.punctual) - LATENESS) // pane * pane

    def is_answered(self, last: dict[str, int]) -> bool:
        """Whether each of its queries has answered up to where time stands."""
        rows, closed, pane = self.punctual, self.closed, pane_of(self.queries)
        for of in self.queries:
            # Nobody is answered before the first row, so that is where a query stands at first.
            at = last.get(of.name, rows[0] // pane * pane)
            owed = exact_ends(rows, of, closed)[-1:] if of.exactly else []
            if owed > [at] or (not of.exactly and missing(rows, of, pane, at, closed + pane)):
                return False
        return True

    def check(self, of: Asked, found: pa.Table) -> None:
        """No end is missing, and each answer is DuckDB's."""
        ends = sorted({_second(end) for end in found["window_end"].to_pylist()})
        check_ends(self.punctual, of, pane_of(self.queries), self.closed, ends)
        kept, seen = [], None
        for number, block in enumerate(self.blocks):
            kept += [(time, *row[1:]) for time, row in zip(block, self.rows(number), strict=True)
                     if seen is None or time >= seen - LATENESS]
            seen = max(time for time, *_ in kept)
        assert _rows(found) == _by_duckdb(kept, of, ends, bool(self.seed % 2)), of


def _second(end: datetime) -> int:
    return round((end.replace(tzinfo=UTC) - BEGIN).total_seconds()) // SECOND


def _rows(found: pa.Table) -> list[tuple[int, ...]]:
    names = ("window_start", "window_end", "k", "n", "s", "m")
    columns = [found[name].to_pylist() for name in names]
    return sorted((_second(start), _second(end), *rest)
                  for start, end, *rest in zip(*columns, strict=True))


def _by_duckdb(
    rows: Sequence[tuple[int, ...]], of: Asked, ends: Sequence[int], grouped: bool
) -> list[tuple[int, ...]]:
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute("CREATE TABLE w AS SELECT unnest(?::BIGINT[]) AS e", [list(ends)])
        database.execute(
            "CREATE TABLE r AS SELECT unnest(?::BIGINT[]) AS t, unnest(?::INT[]) AS k, "
            "unnest(?::INT[]) AS v", [list(column) for column in zip(*rows, strict=True)])
        key = "k" if grouped else "0"
        return database.execute(
            f"SELECT e - {of.window} AS s, e, {key} AS g, COUNT(*), SUM(v)::BIGINT, MAX(v) "
            f"FROM w JOIN r ON t >= e - {of.window} AND t < e GROUP BY e, g ORDER BY ALL"
        ).fetchall()


def live(
    engine: Callable[..., Any], folder: Path, seeds: Sequence[int], refresh: str
) -> None:
    """One engine over a stream for each seed: a backlog, bursts, a restart, a backlog again."""
    streams = [Stream(seed, folder / f"s{seed}") for seed in seeds]
    last: dict[str, int] = {}
    skipped: list[ev.AnswersSkipped] = []

    def watch(event: ev.Event) -> None:
        if isinstance(event, ev.JobFinished) and event.kind == "refresh":
            last.update({query: round(end / 1e6 - BEGIN.timestamp()) // SECOND
                         for query, end in event.result.ends.items()})
        elif isinstance(event, ev.AnswersSkipped):
            skipped.append(event)

    def feed(count: int) -> None:
        for stream in streams:
            stream.write(count)

    def settle() -> None:
        eventually(lambda: all(stream.is_answered(last) for stream in streams),
                   "every window that is closed is answered", 280.0)

    with engine(f"live-{seeds[0]}", on_event=watch) as e:
        e.execute(f"SET refresh = '{refresh}';" + "".join(s.sql for s in streams), folder=folder)
        feed(2)
        e.start()
        settle()
        feed(1)
        settle()
        e.stop()
        feed(2)
        e.start()
        feed(BLOCKS - 5)
        settle()
        e.stop()
        found = {of.name: e.results(of.name) for stream in streams for of in stream.queries}
    assert skipped == []
    for stream in streams:
        for of in stream.queries:
            stream.check(of, found[of.name])


def test_live_answers_are_those_of_duckdb_and_none_is_missing(
    engine: Callable[..., Any], tmp_path: Path
) -> None:
    live(engine, tmp_path, [1, 2], "hybrid+late_pending")


@pytest.mark.long
@pytest.mark.parametrize("first", range(100, 300, 10))
def test_live_answers_of_200_streams_are_those_of_duckdb(
    engine: Callable[..., Any], tmp_path: Path, first: int
) -> None:
    live(engine, tmp_path, range(first, first + 10), REFRESH[first // 10 % len(REFRESH)])
