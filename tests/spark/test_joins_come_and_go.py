"""Joins on Spark whose queries come and go in mid-run: each has what its own join would give."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from penstock.events import kinds as ev
from tests.spark import test_join_aggregates as aggregated
from tests.spark import test_joins, test_row_joins
from tests.spark.kit import eventually
from tests.spark.test_joins import COLUMNS, EVERY, STREAMS, WITHIN, oracle, pairs, timely

pytestmark = pytest.mark.spark
folder, small_outers = test_joins.folder, test_joins.small_outers

BY_TIME = {name: f"A.k = B.k AND {WITHIN.format(length)}" for name, length in
           (("stays", 5), ("goes", 12), ("comes", 20), ("past", 3), ("last", 40))}
GOING = ("goes", "rows_go", "counts_go")
COUNTS = {"counts": (10, 4), "counts_go": (35, 5), "counts_come": (14, 7), "odd": (10, 4),
          "odd_come": (14, 7)}
"""Window and slide of what counts pairs by key; some ask Python about each pair."""
SELECTED = {name: "A.k, COUNT(*) AS n, SUM(A.v) AS s" for name in COUNTS} | {
    "odd_come": "A.k, MAX(B.v) AS hi, SUM(A.v) AS s"}


def by_time(name: str, start: str = "now") -> str:
    length = BY_TIME[name].split("'")[1]
    return (f"CREATE QUERY {name} INTO parquet 'out/{name}' WITH (start = '{start}') AS SELECT "
            f"{COLUMNS} FROM a A, b B WHERE A.k = B.k WINDOW {length};\n")


def by_rows(name: str, rows: int) -> str:
    return (f"CREATE QUERY {name} INTO parquet 'out/{name}' AS SELECT {COLUMNS} FROM a A, b B "
            f"WHERE A.k = B.k WINDOW {rows} ROWS;\n")


def counting(name: str) -> str:
    length, slide = COUNTS[name]
    asked = " AND alike(A.v, B.v)" if name.startswith("odd") else ""
    return (f"CREATE QUERY {name} INTO parquet 'out/{name}' AS SELECT {SELECTED[name]} "
            f"FROM a A, b B WHERE A.k = B.k{asked} GROUP BY A.k "
            f"WINDOW {length} SECONDS SLIDE EXACTLY {slide} SECONDS;\n")


ROWS = {"rows": 7, "rows_go": 60, "rows_come": 25}


def together(seed: int, per_second: float) -> list[list[tuple]]:
    """Blocks of 25 seconds every half minute, so that the two streams stay together."""
    made = []
    for number in range(6):
        (block,) = test_joins.rows(seed + 1000 * number, per_second, 1)
        later = timedelta(seconds=30 * number)
        made.append([(ts and ts + later, *rest) for ts, *rest in block])
    return made


class Life:
    """What was told about a run: when queries began, and how far their answers had come."""

    def __init__(self) -> None:
        self.since: dict[str, int | None] = {}
        self.ends: dict[str, int] = {}
        self.failed: list[ev.Event] = []
        self.probes = 0

    def __call__(self, event: ev.Event) -> None:
        match event:
            case ev.QueryAdded(query=query, since=since):
                self.since.setdefault(query, since)
            case ev.JobFinished(result=ev.ProbeResult() | ev.RefreshResult() as result):
                self.probes += event.kind == "probe"
                self.ends.update(result.ends)
            case ev.JobFailed() | ev.QueryFailed():
                self.failed.append(event)

    def begun(self, query: str) -> datetime:
        """The time before which none of its pairs have their later rows."""
        return stamp(self.since[query] or 0)


def stamp(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / 1e6, UTC).replace(tzinfo=None)


def put(folder: Path, stream: str, number: int, block: Sequence[tuple]) -> None:
    """One more file, which is there from one moment to the next."""
    hidden = folder / f"new-{stream}"
    hidden.mkdir(exist_ok=True)
    test_joins.write(hidden, stream, [block])
    made = hidden / stream / "000.parquet"
    os.utime(made, (1_700_000_000 + number,) * 2)
    (folder / stream).mkdir(exist_ok=True)
    made.rename(folder / stream / f"{number:03}.parquet")


def had(folder: Path, query: str) -> pa.Table:
    return ds.dataset(folder / "out" / query).to_table()


@pytest.mark.parametrize("policy", [
    policy if policy in ("isolated", "mqt(merge=false)") else pytest.param(
        policy, marks=pytest.mark.long) for policy in EVERY])
def test_queries_that_come_and_go_have_what_their_own_joins_give(
    engine: Callable[..., Any], folder: Path, policy: str, small_outers: None
) -> None:
    seed = 70 + EVERY.index(policy)
    blocks = {"a": together(seed, 1.5), "b": together(100 + seed, 0.7)}
    told = Life()

    def feed(first: int, last: int) -> None:
        for number in range(first, last):
            for stream, some in blocks.items():
                put(folder, stream, number, some[number])

    def probed() -> None:
        """Some more probes have ended, so that those that come meet a join at work."""
        before = told.probes
        eventually(lambda: told.probes >= before + 3, "the join has gone on")

    with engine(on_event=told) as e:
        e.execute(f"SET trigger = '50 ms'; SET joins = '{policy}';" + STREAMS
                  + by_time("stays") + by_time("goes") + by_rows("rows", 7)
                  + by_rows("rows_go", 60)
                  + "".join(map(counting, ("counts", "counts_go", "odd"))), folder=folder)
        feed(0, 2)
        e.start()
        probed()
        e.execute(by_time("comes") + by_time("past", "earliest") + by_rows("rows_come", 25),
                  folder=folder)
        feed(2, 4)
        probed()
        eventually(lambda: told.ends.keys() >= set(GOING), "those who go have had something")
        e.execute("".join(f"DROP QUERY {name};" for name in GOING) + counting("counts_come")
                  + counting("odd_come"), folder=folder)
        feed(4, 5)
        probed()
        e.stop()
        e.execute(by_time("last"), folder=folder)
        feed(5, 6)
        summary = e.run()
    assert summary.accounting() == []
    assert told.failed == []
    sides = {stream: timely(stream, some) for stream, some in blocks.items()}
    check_pairs(folder, told, sides)
    check_rows(folder, told, sides)
    check_counts(folder, told, sides)


def check_pairs(folder: Path, told: Life, sides: dict[str, list[tuple]]) -> None:
    for name, condition in BY_TIME.items():
        since = f"GREATEST(A.ts, B.ts) >= TIMESTAMP '{told.begun(name)}'"
        whole = oracle(sides, f"{condition} AND {since}")
        found = pairs(had(folder, name))
        if name in GOING:
            upto = f"GREATEST(A.ts, B.ts) < TIMESTAMP '{stamp(told.ends.get(name, 0))}'"
            assert oracle(sides, f"{condition} AND {since} AND {upto}") <= found <= whole, name
        else:
            assert found == whole, name
        assert found.total() > 0, name
    assert told.begun("last") > told.begun("comes") > stamp(0)


def check_rows(folder: Path, told: Life, sides: dict[str, list[tuple]]) -> None:
    for name, rows in ROWS.items():
        with pytest.MonkeyPatch.context() as patched:
            patched.setitem(test_row_joins.ROWS, name, rows)
            whole = test_row_joins.expected(sides, name)
        begun = told.begun(name).isoformat()
        mine = Counter({pair: n for pair, n in whole.items() if max(pair[0], pair[2]) >= begun})
        found = pairs(had(folder, name))
        assert found <= mine if name in GOING else found == mine, name
        assert found.total() > 0, name


def check_counts(folder: Path, told: Life, sides: dict[str, list[tuple]]) -> None:
    for name, (length, slide) in COUNTS.items():
        with pytest.MonkeyPatch.context() as patched:
            asked = aggregated.CALLS["alike(A.v, B.v)"] if name.startswith("odd") else "true"
            patched.setitem(aggregated.SQL, name, (
                SELECTED[name], f"A.k = B.k AND {asked}", "A.k", length, slide))
            whole = aggregated.of_duckdb(sides, name, aggregated.multiples(sides, name))
        mine = {end: rows for end, rows in whole.items() if end > told.begun(name)}
        found = aggregated.answers(had(folder, name))
        if name in GOING:
            upto = stamp(told.ends[name])
            mine = {end: rows for end, rows in mine.items() if end <= upto}
        assert found and aggregated.same(found, mine), name
