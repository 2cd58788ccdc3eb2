"""Window aggregates over joins on Spark: answers are those of DuckDB over the pairs in windows."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from penstock.events import kinds as ev
from tests.spark import test_joins
from tests.spark.test_joins import BEGIN, STREAMS, WITHIN, oracle, run, timely, write

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
    "ordered": ("A.k, COUNT_IF(A.v > B.v) AS n, FIRST(A.v) AS f, LAST(B.v) AS l, "
                "MAX_BY(A.v, B.v) AS m, COLLECT_LIST(B.v, 2) AS c, MIN_BY(B.v, A.v) AS lb, "
                "VARIANCE(A.v) AS var, VAR_POP(B.v) AS vp, STDDEV_POP(A.v) AS sp, "
                "PERCENTILE(B.v, 0.9) AS p, BOOL_AND(A.v > 2) AS ba, BOOL_OR(B.v > 57) AS bo",
                "A.k = B.k", "A.k", 10, 5),
    "loops": ("COUNT(*) AS n", "A.v < B.v - 40", "", 4, 2),
    "placed": ("s.site, COUNT(*) AS n", "A.k = B.k AND A.k = s.id", "s.site", 8, 4),
}
"""By query: the SELECT list, the condition, GROUP BY, and window and slide in seconds."""
LATER = "greatest(A.ts, B.ts)"
FUNCTIONS = {
    "MEDIAN(B.v)": "quantile_cont(B.v, 0.5)", "4 SECONDS": "4 SECOND",
    "FIRST(A.v)": f"(list(A.v ORDER BY {LATER}, A.v) FILTER (WHERE A.v IS NOT NULL))[1]",
    "LAST(B.v)": f"(list(B.v ORDER BY {LATER} DESC, B.v DESC) FILTER (WHERE B.v IS NOT NULL))[1]",
    "MAX_BY(A.v, B.v)": "(list(A.v ORDER BY B.v DESC, A.v DESC) FILTER (WHERE A.v IS NOT NULL "
                        "AND B.v IS NOT NULL))[1]",
    "MIN_BY(B.v, A.v)": "(list(B.v ORDER BY A.v, B.v) FILTER (WHERE A.v IS NOT NULL "
                        "AND B.v IS NOT NULL))[1]",
    "PERCENTILE(B.v, 0.9)": "quantile_cont(B.v, 0.9)",
    "COLLECT_LIST(B.v, 2)": f"(list(B.v ORDER BY {LATER}, B.v) FILTER (WHERE B.v IS NOT NULL))"
                            "[1:2]",
}


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
        select, where, group = (text.replace(ours, theirs) for text in (select, where, group))
    tables, third = "a A, b B, sites s" if "s.id" in where else "a A, b B", ""
    if "C." in where:
        tables = "a A, b B, a C"
        third = f" AND C.ts < e AND C.ts >= e - INTERVAL {length} SECOND"
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
            f"AND A.ts >= e - INTERVAL {length} SECOND AND B.ts >= e - INTERVAL {length} SECOND"
            f"{third} GROUP BY e{by}").fetchall()
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


def test_sketches_and_lists_over_pairs_and_a_question(engine, folder):
    blocks = {"a": test_joins.rows(5, 2.0, 3), "b": test_joins.rows(105, 1.0, 3)}
    for stream, some in blocks.items():
        write(folder, stream, some)
    sides = {stream: timely(stream, some) for stream, some in blocks.items()}
    sql = STREAMS + written("counts") + """
        CREATE QUERY lists AS SELECT A.k, TOPK(A.v, 3) AS top, APPROX_COUNT_DISTINCT(B.v) AS d,
            TOPK(A.v, 1, B.v) AS heavy, APPROX_PERCENTILE(B.v, 0.5) AS middle,
            APPROX_TOPK(A.v, 1) AS often, APPROX_F2(A.v) AS squares
            FROM a A, b B WHERE A.k = B.k GROUP BY A.k HAVING COUNT(*) > 5
            WINDOW 10 SECONDS SLIDE EXACTLY 10 SECONDS;
    """
    with engine() as e:
        e.execute(sql, folder=folder)
        e.run()
        lists = e.results("lists").to_pylist()
        asked = e.ask("SELECT COUNT(*) AS n, SUM(A.v) AS s FROM a A, b B WHERE A.k = B.k "
                      "WINDOW 10 SECONDS SLIDE 4 SECONDS").to_pylist()
    assert lists
    for row in lists[:6]:
        begin, end = row["window_start"], row["window_end"]
        held = [(a, b) for a in sides["a"] for b in sides["b"]
                if a[0] and b[0] and a[1] is not None and a[1] == b[1] == row["k"]
                and begin <= min(a[0], b[0]) and max(a[0], b[0]) < end]
        assert len(held) > 5
        counted = Counter(a[2] for a, _ in held)
        assert sorted((top["count"] for top in row["top"]), reverse=True) == [
            count for _, count in counted.most_common(3)]
        assert all(counted[top["value"]] == top["count"] for top in row["top"])
        heavy: Counter[int] = Counter()
        for a, b in held:
            heavy[a[2]] += b[2]
        (most,) = row["heavy"]
        assert heavy[most["value"]] == most["sum"] == max(heavy.values())
        (often,) = row["often"]
        assert counted[often["value"]] == often["count"] == max(counted.values())
        below = sum(b[2] < row["middle"] for _, b in held)
        upto = sum(b[2] <= row["middle"] for _, b in held)
        assert below <= 0.55 * len(held) and upto >= 0.45 * len(held)
        assert row["squares"] == pytest.approx(sum(n * n for n in counted.values()), rel=0.4)
        distinct = len({b[2] for _, b in held})
        assert abs(row["d"] - distinct) <= max(2, 0.1 * distinct)
    newest = max(row[0] for rows in sides.values() for row in rows if row[0])
    end = BEGIN + timedelta(seconds=((newest - BEGIN).total_seconds() // 2 + 1) * 2)
    assert (BEGIN.timestamp() % 2, len(asked)) == (0, 1)
    held = [(a, b) for a in sides["a"] for b in sides["b"]
            if a[0] and b[0] and a[1] is not None and a[1] == b[1]
            and end - timedelta(seconds=10) <= min(a[0], b[0]) and max(a[0], b[0]) < end]
    assert asked == [{"n": len(held), "s": sum(a[2] for a, _ in held),
                      "window_start": end - timedelta(seconds=10), "window_end": end}]


def test_files_that_come_after_a_drain_meet_the_rows_before_in_their_windows(
    engine, folder, small_outers
):
    blocks = {"a": test_joins.rows(21, 2.0, 4), "b": test_joins.rows(121, 2.0, 4)}
    sql = STREAMS + "".join(map(written, SQL))
    for stream, some in blocks.items():
        write(folder, stream, some[:2])
    first, _, _ = run(engine, folder, sql)
    for stream, some in blocks.items():
        write(folder, stream, some)
    tables, _, _ = run(engine, folder, sql)
    early = {stream: timely(stream, some[:2]) for stream, some in blocks.items()}
    sides = {stream: timely(stream, some) for stream, some in blocks.items()}
    for name in SQL:
        before = of_duckdb(early, name, multiples(early, name))
        assert same(answers(first[name]), before), name
        after = of_duckdb(sides, name, multiples(sides, name))
        new = {end: rows for end, rows in after.items() if end > max(before)}
        found = {end: rows for end, rows in answers(tables[name]).items() if end > max(before)}
        assert new.keys() >= found.keys() and same(
            found, {end: rows for end, rows in new.items() if end in found}), name
        last_closed = max(early_end(early, name), max(before))
        assert found.keys() == {end for end in new if end > last_closed}, name


def early_end(sides: dict[str, Sequence[tuple]], name: str) -> datetime:
    """The end up to which a drain has closed the windows: no pair came for some of them."""
    _, _, _, length, slide = SQL[name]
    last = max(pair_times(sides, name))
    return (last + timedelta(seconds=length)).replace(tzinfo=None)


def pair_times(sides: dict[str, Sequence[tuple]], name: str) -> list[datetime]:
    return [max(a[0], b[0]) for a in sides["a"] for b in sides["b"] if a[0] and b[0]]


def test_an_empty_stream_gives_no_answer(engine, folder):
    write(folder, "a", test_joins.rows(5, 1.0, 2))
    write(folder, "b", [[]])
    tables, _, summary = run(engine, folder, STREAMS + written("counts") + written("keyed"))
    assert {table.num_rows for table in tables.values()} == {0}
    assert summary.run.state == "drained"


PYTHON = {
    "odd": ("COUNT(*) AS n, SUM(A.v) AS s", "A.k = B.k AND alike(A.v, B.v)", "", 10, 4),
    "wide": ("COUNT(*) AS n, MAX(B.v) AS hi", "A.k = B.k AND alike(A.v, B.v)", "", 24, 4),
    "tens": ("tens(A.v) AS t, MAX(tens(B.v)) AS hi, COUNT(*) AS n",
             "A.k = B.k AND A.v < B.v AND B.ts >= A.ts", "tens(A.v)", 12, 6),
    "three": ("COUNT(*) AS n", "A.k = B.k AND B.k = C.k AND alike(A.v, C.v)", "", 4, 2),
    "none": ("COUNT(*) AS n", "A.k = B.k AND A.v = 13 AND alike(A.v, B.v)", "", 10, 4),
}
"""Queries that call Python, and what the functions stand for."""
CALLS = {"alike(A.v, B.v)": "A.v <> 13 AND A.v % 2 = B.v % 2", "tens(A.v)": "A.v // 10",
         "alike(A.v, C.v)": "A.v <> 13 AND A.v % 2 = C.v % 2", "tens(B.v)": "B.v // 10"}


def test_python_functions_over_pairs_select_group_and_are_aggregated(
    engine, folder, small_outers, monkeypatch
):
    blocks = {"a": test_joins.rows(31, 2.0, 2), "b": test_joins.rows(131, 1.0, 2)}
    for stream, some in blocks.items():
        write(folder, stream, some)
    with (folder / "join_functions.py").open("a") as file:
        file.write("""
@penstock.scalar("INT")
def tens(value):
    return pc.divide(value, 10)
""")
    monkeypatch.setattr(sys.modules[__name__], "SQL", PYTHON)
    monkeypatch.setattr(sys.modules[__name__], "FUNCTIONS", CALLS)
    sql = STREAMS + "CREATE FUNCTION tens FROM 'join_functions:tens';" + "".join(
        map(written, PYTHON)).replace("FROM a A, b B WHERE A.k = B.k AND B.k",
                                      "FROM a A, b B, a C WHERE A.k = B.k AND B.k")
    tables, events, summary = run(engine, folder, sql)
    sides = {stream: timely(stream, some) for stream, some in blocks.items()}
    for name in PYTHON:
        expected = of_duckdb(sides, name, multiples(sides, name))
        assert same(answers(tables[name]), expected), name
        assert len(expected) > 3 or name == "none"
    work = [e.work for e in events if isinstance(e, ev.JobDecided) and e.kind == "probe"]
    assert len({one.join for one in work}) == 4, "two differ in windows and aggregates only"
    rejected = oracle(sides, f"A.k = B.k AND A.v = 13 AND {WITHIN.format(24)}").total()
    assert summary.queries["odd"].rejected == summary.queries["wide"].rejected == rejected > 0
    assert summary.queries["tens"].rejected == 0 < summary.queries["three"].rejected
    warned = [e for e in events if isinstance(e, ev.Warned) and "rejected every row" in e.text]
    assert [e.subject for e in warned] == ["query none"]
    with engine() as e:
        asked = e.ask("SELECT COUNT(*) AS n FROM a A, b B WHERE A.k = B.k AND alike(A.v, B.v) "
                      "WINDOW 40 SECONDS SLIDE EXACTLY 20 SECONDS").to_pylist()
    (answer,) = asked
    begin, end = answer["window_start"], answer["window_end"]
    assert answer["n"] == sum(
        1 for a in sides["a"] for b in sides["b"] if a[0] and b[0] and a[1] is not None
        and a[1] == b[1] and begin <= min(a[0], b[0]) and max(a[0], b[0]) < end
        and a[2] != 13 and a[2] % 2 == b[2] % 2) > 0
    assert {"ValueError: thirteen"} == {
        text for e in events if isinstance(e, ev.JobFinished)
        for text in getattr(e.result, "errors", {}).values()}


def test_panes_that_do_not_fit_into_the_driver_stop_their_queries_with_a_reason(engine, folder):
    for stream in ("a", "b"):
        write(folder, stream, test_joins.rows(7, 2.0, 2))
    with engine() as e:
        e.execute(STREAMS + written("values") + "SET synopses = '1 KB';", folder=folder)
        summary = e.run()
    assert "do not fit into the driver; SET synopses" in summary.queries["values"].reason
