"""What is asked: filters and window aggregates over packets that come at an even rate.

Chosen once, for these reasons. A filter keeps one row in N where there are N filters, so all of
them together give about as many answers as rows come in, and no case is easy because little comes
out. Half of the filters ask for a range of sources, half for busy ports and a range of
destinations. Windows are short and slide by seconds, so that there are answers to measure: what
counts is how long after the end of its window an answer comes, and no window is easier than
another. Rates and numbers of queries are those of a small live application (5 and 10 queries), of a
busy one (20), and of one that native Spark cannot serve (200).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from typing import Any

import numpy as np

from penstock.generators.packets import OnOff

COLUMNS = "ts TIMESTAMP, src INT, dst INT, port INT, length INT, protocol STRING"
SINKS = ("callback", "folders", "shared")
"""A function, a Parquet folder per query, and one Parquet folder for all."""
SOURCES = ("generated", "files")
"""The source `onoff` by the clock, and files that a process lets appear."""
SEED = 23
EVEN = 0.1
"""The option `burst`: ten flows send at a time, on average, so the rate is nearly even."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window aggregate: packets and bytes by a column."""

    length: int
    slide: int
    """Both in seconds."""
    by: str


WINDOWS = (Window(1, 1, "protocol"), Window(2, 1, "port"), Window(5, 1, "protocol"),
           Window(10, 2, "dst"), Window(10, 5, "port"))


@dataclass(frozen=True, slots=True)
class Workload:
    """Queries over a stream of packets."""

    name: str
    rate: int
    """Rows a second."""
    filters: int
    windows: tuple[Window, ...] = ()
    native: bool = True
    """Whether native Spark is measured, too: with as many streaming queries."""

    @property
    def conditions(self) -> dict[str, str]:
        """By the name of a filter its condition."""
        return {f"f{n}": _condition(n, self.filters) for n in range(self.filters)}

    @property
    def aggregates(self) -> dict[str, Window]:
        """By the name of a window aggregate its window."""
        return {f"w{n}": window for n, window in enumerate(self.windows)}

    @property
    def queries(self) -> list[str]:
        """The names of all."""
        return [*self.conditions, *self.aggregates]


WORKLOADS = (
    Workload("filters-5", 1_000, 5),
    Workload("mix-5-5", 1_000, 5, WINDOWS),
    Workload("filters-20", 4_000, 20),
    Workload("filters-200", 4_000, 200, native=False),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A workload from a source into sinks."""

    workload: Workload
    sink: str
    source: str

    def __str__(self) -> str:
        return f"{self.workload.name}/{self.sink}/{self.source}"


CASES = tuple(Case(workload, sink, source)
              for workload in WORKLOADS for sink in SINKS for source in SOURCES)
QUICK = ("filters-5/callback/files", "mix-5-5/callback/generated", "filters-20/shared/files")


def chosen(patterns: Iterable[str]) -> list[Case]:
    """The cases that one of some patterns fits.

    >>> [str(case) for case in chosen(["mix*/shared/*"])]
    ['mix-5-5/shared/generated', 'mix-5-5/shared/files']
    """
    patterns = tuple(patterns)
    return [case for case in CASES if any(fnmatch(str(case), pattern) for pattern in patterns)]


# --- conditions --------------------------------------------------------------------------------


def _condition(n: int, of: int) -> str:
    if n % 2 == 0:
        low, high = _slice("src", n, of)
        return f"src BETWEEN {low} AND {high}"
    # Ports 80 and 443 have 0.62 of the packets: so much more of the destinations is asked for.
    low, high = _slice("dst", n, of, wider=1 / 0.62)
    return f"port IN (80, 443) AND dst BETWEEN {low} AND {high}"


def _slice(column: str, n: int, of: int, wider: float = 1.0) -> tuple[int, int]:
    """A range of a column's values that one packet in ``of`` has, roughly.

    Busy hosts come first, and one of them alone may have more: ranges begin behind those.
    """
    upto, width = _shares(column), wider / of
    busy = int(np.argmax(np.diff(upto, prepend=0.0) <= width))
    first = (upto[busy - 1] if busy else 0.0)
    begin = first + (1 - width - first) * n / of
    low = int(np.searchsorted(upto, begin, side="right"))
    high = int(np.searchsorted(upto, upto[low - 1] + width if low else width))
    return low + 1, max(low, high) + 1


@cache
def _shares(column: str) -> Any:
    """The part of the packets whose value is 1, at most 2, and so on."""
    values = OnOff(rate=100_000, burst=EVEN, seed=SEED).packets(0, 2)[column].to_numpy()
    return np.cumsum(np.bincount(values)[1:]) / len(values)


# --- as Penstock is told it --------------------------------------------------------------------


def options(workload: Workload) -> dict[str, Any]:
    """Of the generated source, for both sides."""
    return {"rate": workload.rate, "burst": EVEN, "seed": SEED}


def application(case: Case, folder: str, callback: str) -> str:
    """Streams and queries; answers go below ``folder`` or to ``callback``."""
    workload = case.workload
    given = ", ".join(f"{name} = {value}" for name, value in options(workload).items())
    source = (f"parquet '{folder}/in'" if case.source == "files" else f"onoff OPTIONS ({given})")
    lines = [f"CREATE STREAM packets ({COLUMNS}) FROM {source} TIME ts LATENESS 0 SECONDS;"]
    into = {name: _into(case, name, folder, callback) for name in workload.queries}
    lines += [f"CREATE QUERY {name} INTO {into[name]} AS "
              f"SELECT ts, src, dst, port, length FROM packets WHERE {condition};"
              for name, condition in workload.conditions.items()]
    lines += [f"CREATE QUERY {name} INTO {into[name]} AS SELECT {one.by}, "
              "COUNT(*) AS packets, SUM(length) AS bytes, window_end FROM packets "
              f"[WINDOW {one.length} SECONDS SLIDE EXACTLY {one.slide} SECONDS] GROUP BY {one.by};"
              for name, one in workload.aggregates.items()]
    return "\n".join(lines)


def _into(case: Case, name: str, folder: str, callback: str) -> str:
    if case.sink == "callback":
        return f"callback '{callback}'"
    return f"parquet '{folder}/out{'/' + name if case.sink == 'folders' else ''}'"


def folders(case: Case) -> Sequence[str]:
    """Where files appear, below the folder of answers; none for callbacks."""
    return {"callback": (), "folders": case.workload.queries, "shared": ("",)}[case.sink]
