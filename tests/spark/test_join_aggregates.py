"""Window aggregates over joins on Spark: each answer is that of DuckDB over the pairs in its window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from penstock.engine.joins import outers
from penstock.events import kinds as ev
from tests.spark import test_joins
from tests.spark.test_joins import BEGIN, STREAMS, run, timely, write

pytestmark = pytest.mark.spark
folder, small_outers = test_joins.folder, test_joins.small_outers

SQL = {
    "counts": ("COUNT(*) AS n, COUNT(A.v) AS na, SUM(A.v) AS s, AVG(B.v) AS m, MIN(A.v) AS lo, "
               "MAX(B.v) AS hi", "A.k = B.k", "", 10, 4),
    "keyed": ("A.k, COUNT(*) AS n, SUM(A.v - B.v) AS d, STDDEV(A.v) AS spread",
              "A.k = B.k AND A.v > 10", "A.k", 10, 5),
    "longer": ("A.k, MAX(A.v) AS hi, COUNT(*) AS n", "A.k = B.k AND A.v > 10", "A.k", 35, 5),
    "values": ("B.k, COUNT(DISTINCT A.v) AS d, MEDIAN(B.v) AS m", "A.k = B.k AND B.v < 50", "B.k",
               14, 3),
    "after": ("COUNT(*) AS n, SUM(B.v) AS s",
              "A.k = B.k AND B.ts BETWEEN A.ts AND A.ts + INTERVAL 4 SECONDS", "", 20, 5),
    "loops": ("COUNT(*) AS n", "A.v < B.v - 40", "", 4, 2),
    "placed": ("s.site, COUNT(*) AS n", "A.k = B.k AND A.k = s.id", "s.site", 8, 4),
}
"""By query: the SELECT list, the condition, GROUP BY, and window and slide in seconds."""
FUNCTIONS = {"MEDIAN(B.v)": "quantile_cont(B.v, 0.5)", "4 SECONDS": "4 SECOND"}


def written(name: str, exactly: str = "") -> str:
    select, where, group, length, slide = SQL[name]
    tables = "a A, b B"
    if "s.id" in where:
        tables, where = "a A JOIN b B ON A.k = B.k JOIN sites s ON A.k = s.id", "A.k = B.k"
    by = f"GROUP BY {group} " if group else ""
    return (f"CREATE QUERY {name} AS SELECT {select} FROM {tables} WHERE {where} {by}"
            f"WINDOW {length} SECONDS SLIDE {exactly}{slide} SECONDS;\n")


def answers(table: pa.Table) -> dict[datetime, list[tuple]]:
    """By end, the rows of an answer without the ends of the window, in order."""
    found: dict[datetime, list[tuple]] = {}
    for row in table.to_pylist():
        end, start = row.pop("window_end"), row.pop("window_start")
        assert start < end
        found.setdefault(end.replace(tzinfo=None), []).append(tuple(row.values()))
    return {end: sorted(rows, key=repr) for end, rows in found.items()}


def of_duckdb(
    sides: dict[str, Sequence[tuple]], name: str, ends: Sequence[datetime]
) -> dict[datetime, list[tuple]]:
    """The answer for each end whose window has one."""
    select, where, group, length, _ = SQL[name]
    for ours, theirs in FUNCTIONS.items():
        select, where = select.replace(ours, theirs), where.replace(ours, theirs)
    tables = "a A, b B, sites s" if "s.id" in where else "a A, b B"
    with duckdb.connect() as connection:
        for side, rows in sides.items():
            ts, k, v = zip(*rows, strict=True) if rows else ((), (), ())
            plain = [None if time is None else time.replace(tzinfo=None) for time in ts]
            connection.register(side, pa.table({
                "ts": pa.array(plain, pa.timestamp("us")), "k": pa.array(k, pa.int32()),
                "v": pa.array(v, pa.int32())}))
        connection.execute("CREATE TABLE sites AS SELECT * FROM (VALUES (1, 'x'), (1, 'y'), "
                           "(3, 'z')) AS t (id, site)")
        connection.register("ends", pa.table({"e": pa.array(ends, pa.timestamp("us"))}))
        by = f", {group}" if group else ""
        found = connection.execute(
            f"SELECT e, {select} FROM ends, {tables} WHERE {where} AND A.ts < e AND B.ts < e "
            f"AND A.ts >= e - INTERVAL {length} SECOND AND B.ts >= e - INTERVAL {length} SECOND "
            f"GROUP BY e{by}").fetchall()
    told: dict[datetime, list[tuple]] = {}
    for end, *row in found:
        told.setdefault(end, []).append(tuple(row))
    return {end: sorted(rows, key=repr) for end, rows in told.items()}


def multiples(sides: dict[str, Sequence[tuple]], name: str) -> list[datetime]:
    """The ends at which a drained query is answered."""
    length, slide = SQL[name][3:]
    times = [row[0] for rows in sides.values() for row in rows if row[0] is not None]
    if not times:
        return []
    first = int(min(times).timestamp()) // slide * slide
    last = int(max(times).timestamp()) + length + 2 * slide
    return [datetime.fromtimestamp(t, UTC).replace(tzinfo=None)
            for t in range(first, last, slide)]


def near(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, float(other), rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other)


def same(ours: dict[datetime, list[tuple]], theirs: dict[datetime, list[tuple]]) -> bool:
    return ours.keys() == theirs.keys() and all(
        len(ours[end]) == len(theirs[end]) and all(
            near(a, b) for one, other in zip(ours[end], theirs[end], strict=True)
            for a, b in zip(one, other, strict=True)) for end in ours)


def check(tables: dict[str, pa.Table], sides: dict[str, Sequence[tuple]]) -> None:
    for name in SQL:
        expected = of_duckdb(sides, name, multiples(sides, name))
        assert same(answers(tables[name]), expected), name


@pytest.mark.parametrize("seed", [1, 2])
def test_each_answer_is_that_of_duckdb_over_the_pairs_in_its_window(
    engine, folder, seed, small_outers
):
    blocks = {"a": test_joins.rows(seed, 3.0, 4), "b": test_joins.rows(100 + seed, 0.7, 6)}
    for stream, some in blocks.items():
        write(folder, stream, some)
    tables, events, summary = run(engine, folder, STREAMS + "".join(map(written, SQL)))
    sides = {stream: timely(stream, some) for stream, some in blocks.items()}
    check(tables, sides)
    assert all(len(answers(tables[name])) > 5 for name in SQL)
    late = sum(len(some) for rows in blocks.values() for some in rows)
    late -= sum(len(rows) for rows in sides.values())
    assert {query.late for query in summary.queries.values()} == {late}
    probes = [e.work for e in events if isinstance(e, ev.JobDecided) and e.kind == "probe"]
    assert len({(work.join, work.outer) for work in probes}) > 12
    assert len({work.join for work in probes}) == len(SQL) - 1  # two differ in their windows only
