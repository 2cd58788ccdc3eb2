"""When answers came: what callbacks were called with, and what files held."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.latency import watcher
from benchmarks.latency.workloads import Case, folders

TIMES = ("ts", "window_end")
"""The event time of a row, and of the answer of a window aggregate."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows for a query that came at once; of a window aggregate they may be a part of an answer."""

    at: float
    """When they came, in seconds since 1970."""
    query: str
    times: Any
    """Their event times, likewise."""


@dataclass
class Called:
    """What callbacks were called with."""

    answers: list[tuple[float, str, pa.Table]] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def take(self, query: str, table: pa.Table) -> None:
        """Note the moment; everything else can wait until the run is over."""
        at = time.time()
        with self._lock:
            self.answers.append((at, query, table))

    @property
    def count(self) -> int:
        """Calls with rows so far."""
        return sum(1 for _, _, table in list(self.answers) if table.num_rows)

    def reached(self, since: float) -> dict[str, float]:
        """By query the latest event time answered for, going by what came since a time."""
        return _latest(_answer(*each) for each in list(self.answers)
                       if each[0] >= since and each[2].num_rows)

    def all(self, since: float = 0.0) -> list[Answer]:
        """What came since a time."""
        return [_answer(*each) for each in self.answers if each[0] >= since and each[2].num_rows]


CALLED = Called()
"""Where `take` puts them."""


def take(query: str, table: pa.Table) -> None:
    """The callback of every query, as a sink names it."""
    CALLED.take(query, table)


@dataclass
class Filed:
    """What the files below a folder held, and when each was there."""

    case: Case
    root: Path
    log: Path
    """What the watcher writes."""
    _known: dict[tuple[int, str], list[Answer]] = field(default_factory=dict)
    """Files that `reached` has read. The engine goes on meanwhile, in this process and with a
    thousand files a second, so as few are read as will do."""

    @cached_property
    def homes(self) -> list[Path]:
        """The folders that are watched, in their order; asked for once for every file."""
        return [self.root / name for name in folders(self.case)]

    @property
    def count(self) -> int:
        """Files so far."""
        return len(watcher.seen(self.log))

    def reached(self, since: float) -> dict[str, float]:
        """By query the latest event time answered for, going by what came since a time."""
        homes: dict[int, list[tuple[float, str]]] = {}
        for (folder, name), at in watcher.seen(self.log).items():
            if at >= since:
                homes.setdefault(folder, []).append((at, name))
        return _latest(answer for folder, files in homes.items()
                       for answer in self._newest(folder, files))

    def _newest(self, folder: int, files: Iterable[tuple[float, str]]) -> list[Answer]:
        """The last answers in a folder; where queries share it, all of them."""
        is_shared = len(self.homes) < len(self.case.workload.queries)
        found: list[Answer] = []
        for at, name in sorted(files, reverse=True):
            if (folder, name) not in self._known:
                self._known[folder, name] = self._read(at, folder, name)
            found += self._known[folder, name]
            if found and not is_shared:
                break
        return found

    def all(self, since: float = 0.0) -> list[Answer]:
        """What came since a time, and in a shared folder of every query."""
        return [answer for (folder, name), at in watcher.seen(self.log).items() if at >= since
                for answer in self._read(at, folder, name)]

    def _read(self, at: float, folder: int, name: str) -> list[Answer]:
        file = pq.ParquetFile(self.homes[folder] / name)
        wanted = [one for one in file.schema_arrow.names if one in ("query", *TIMES)]
        table = file.read(wanted)
        if "query" not in table.column_names:
            return [_answer(at, self.homes[folder].name.removeprefix("query="), table)
                    ] if table.num_rows else []
        return [_answer(at, query, table.filter(pc.equal(table["query"], query)))
                for query in table["query"].unique().to_pylist()]


def _answer(at: float, query: str, table: pa.Table) -> Answer:
    """In a shared folder rows have the columns of all, but a query fills its own alone."""
    for name in TIMES:
        if name in table.column_names and table[name].null_count < table.num_rows:
            return Answer(at, query, table[name].cast("int64").to_numpy() / _unit(table, name))
    raise ValueError(f"the answers of {query} have no time: {table.column_names}")


def _latest(answers: Iterable[Answer]) -> dict[str, float]:
    latest: dict[str, float] = {}
    for answer in answers:
        latest[answer.query] = max(float(max(answer.times)), latest.get(answer.query, 0.0))
    return latest


def _unit(table: pa.Table, name: str) -> float:
    return {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[table.schema.field(name).type.unit]


# --- figures -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Latencies:
    """Seconds from the event to its answer."""

    p50: float
    p99: float
    max: float
    count: int

    @classmethod
    def of(cls, seconds: Any) -> Latencies | None:
        """None where nothing came."""
        if not len(seconds):
            return None
        p50, p99 = np.quantile(seconds, [0.5, 0.99])
        return cls(float(p50), float(p99), float(max(seconds)), len(seconds))


def of_rows(answers: Iterable[Answer], queries: Iterable[str], begin: float, end: float
            ) -> Latencies | None:
    """Of every row answered, by queries that answer row by row, whose event lies in a span."""
    wanted, found = set(queries), [np.empty(0)]
    for answer in answers:
        if answer.query in wanted:
            inside = (answer.times >= begin) & (answer.times < end)
            found.append(answer.at - answer.times[inside])
    return Latencies.of(np.concatenate(found))


def of_windows(answers: Iterable[Answer], queries: Iterable[str], begin: float, end: float
               ) -> Latencies | None:
    """Of every window that ended in a span: from its end to the last rows of its answer."""
    wanted, last = set(queries), {}
    for answer in answers:
        if answer.query in wanted:
            for ended in np.unique(answer.times):
                if begin <= ended < end:
                    key = answer.query, float(ended)
                    last[key] = max(answer.at, last.get(key, 0.0))
    return Latencies.of(np.array([at - ended for (_, ended), at in last.items()]))
