"""Queries over views, WITH and queries in FROM give the rows of DuckDB, which has them itself."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.spark import feeds
from tests.spark.oracle import Oracle, Table, answers, difference

pytestmark = pytest.mark.spark

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
HOSTS = Table("hosts", (("id", "INT"), ("site", "STRING")),
              ((0, "a"), (1, "b"), (1, "c"), (3, None), (None, "d")))
DECLARED = """
CREATE STREAM packets (ts TIMESTAMP, src INT, port INT, length INT) FROM parquet 'packets'
  OPTIONS (maxFilesPerTrigger = 1) TIME ts LATENESS 1 HOUR;
CREATE RELATION hosts (id INT, site STRING) FROM parquet 'hosts';
"""
VIEWS = (
    "CREATE VIEW web AS SELECT ts, src, length * 8 AS bits FROM packets WHERE port IN (80, 443)",
    "CREATE VIEW placed AS SELECT w.*, h.site FROM web w LEFT JOIN hosts h ON w.src = h.id "
    "WHERE w.bits > 800",
    "CREATE VIEW either AS SELECT ts, src, 'web' AS kind FROM web UNION ALL "
    "SELECT ts, src + 100, CAST(port AS STRING) FROM packets WHERE port = 22",
)
QUERIES = {
    "filtered": "SELECT src, bits FROM web WHERE bits > 3000 AND src = 1",
    "over_views": "SELECT p.src, p.site, h.site AS other FROM placed p JOIN hosts h "
                  "ON h.id = p.src WHERE p.bits < 9000",
    "of_union": "SELECT kind, src + 1 AS next FROM either WHERE src > 1",
    "with_ctes": "WITH loud AS (SELECT * FROM web WHERE bits > 4000), "
                 "sites AS (SELECT l.src, h.site FROM loud l JOIN hosts h ON l.src = h.id) "
                 "SELECT site, src FROM sites WHERE site <> 'b'",
    "in_from": "SELECT t.n FROM (SELECT src AS n FROM packets WHERE src IS NOT NULL UNION ALL "
               "SELECT length FROM packets WHERE length < 40) AS t WHERE t.n % 2 = 0",
}
WINDOWED = {
    "per_site": ("SELECT site, COUNT(*) AS n, SUM(bits) AS bits FROM placed GROUP BY site, "
                 "TUMBLE(ts, INTERVAL '10' SECOND)",
                 "SELECT {start}, site, COUNT(*), SUM(bits)::BIGINT FROM placed GROUP BY ALL"),
    "per_kind": ("SELECT w.kind, COUNT(*) AS n FROM (SELECT ts, port > 100 AS kind FROM packets "
                 "WHERE length > 9) w GROUP BY w.kind, TUMBLE(ts, INTERVAL '10' SECOND)",
                 "SELECT {start}, port > 100, COUNT(*) FROM packets WHERE length > 9 GROUP BY ALL"),
}
PAIRS = ("SELECT a.ts AS first, b.ts AS second, a.bits FROM web a JOIN placed b ON a.src = b.src "
         "AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' SECOND")
START = "time_bucket(INTERVAL 10 SECOND, ts)"


def packets(folder: Path) -> Table:
    chance, rows = random.Random(4), []
    for number in range(600):
        at = BEGIN + timedelta(milliseconds=50 * number + chance.randrange(2000))
        rows.append((at, chance.choice([0, 1, 1, 2, 3, None]),
                     chance.choice([22, 80, 80, 443, None]), chance.choice([None, *range(1500)])))
    table = Table("packets", (("ts", "TIMESTAMP"), ("src", "INT"), ("port", "INT"),
                              ("length", "INT")), tuple(rows))
    feeds.write(table, folder / "packets", "parquet", (150, 151, 400))
    feeds.write(HOSTS, folder / "hosts", "parquet")
    return table


def test_queries_over_queries_give_the_rows_of_duckdb(engine, tmp_path):
    table = packets(tmp_path)
    texts = QUERIES | {name: ours for name, (ours, _) in WINDOWED.items()} | {"pairs": PAIRS}
    with engine() as e:
        e.execute(DECLARED + ";".join(VIEWS) + ";" + "".join(
            f"CREATE QUERY {name} AS {text};" for name, text in texts.items()), folder=tmp_path)
        summary = e.run()
        found = {name: e.results(name) for name in texts}
        asked = e.ask(QUERIES["with_ctes"])
    assert summary.failures() == []
    oracle = Oracle([table, HOSTS])
    for view in VIEWS:
        oracle.declare(view)
    faults = []
    for name, text in (QUERIES | {"pairs": PAIRS}).items():
        if told := difference(oracle.answer(text), answers(found[name])):
            faults.append(f"{name}: {told}")
    for name, (_, theirs) in WINDOWED.items():
        got = answers(found[name].drop_columns(["window_end"]))
        if told := difference(oracle.answer(theirs.format(start=START)), got):
            faults.append(f"{name}: {told}")
    if told := difference(oracle.answer(QUERIES["with_ctes"]), answers(asked)):
        faults.append(f"asked: {told}")
    oracle.close()
    assert not faults, "\n\n".join(faults)
    assert all(table.num_rows for table in found.values())


def test_a_view_that_changes_makes_its_query_another(engine, tmp_path):
    """The checkpoint binds views again; a query over another view begins anew."""
    packets(tmp_path)
    first = "CREATE VIEW v AS SELECT src FROM packets WHERE port = 22;"
    second = "CREATE VIEW v AS SELECT src + 1000 AS src FROM packets WHERE port = 22;"
    query = "CREATE QUERY q WITH (start = 'earliest') AS SELECT src FROM v WHERE src >= 0;"
    with engine() as e:
        e.load(DECLARED + first + query, folder=tmp_path)
        e.run()
        values = e.results("q")["src"].to_pylist()
        e.close()
    with engine() as e:
        assert list(e.application.views) == ["v"]
        assert e.application.queries["q"].views == ("v",)
        e.run()
        assert e.results("q").num_rows == len(values) > 0, "nothing comes twice"
        e.load(DECLARED + second + query, folder=tmp_path)
        e.run()
        others = e.results("q")["src"].to_pylist()
    assert sorted(others) == sorted(value + 1000 for value in values)
