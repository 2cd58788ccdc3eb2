"""A query with several sinks on Spark: one computation, and every sink has the same answers."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.engine.paths import small_answers
from penstock.events import kinds as ev

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

ROWS = 500
FUNCTIONS = """
import sys

import penstock
import pyarrow.compute as pc

@penstock.predicate
def odd(n):
    return pc.equal(pc.bit_wise_and(n, 1), 1)

def told(query, table): sys.modules["calls_of_several_sinks"].append((query, table))

def fails(query, table):
    if max(table["n"].to_pylist(), default=0) >= sys.modules["limit_of_several_sinks"]:
        raise ValueError("too much")
"""
INTO = "INTO parquet '{0}', csv '{0}-csv', json '{0}-json', memory, callback 'functions:told', noop"
QUERIES = {
    "plain": "SELECT n, k FROM s WHERE n % 3 = 0",
    "other": "SELECT n, k FROM s WHERE n > 250",
    "called": "SELECT n, k FROM s WHERE odd(n)",
    "counted": "SELECT k, COUNT(*) AS n FROM s GROUP BY k, TUMBLE(ts, INTERVAL '1' DAY)",
    "paired": "SELECT a.n, b.k FROM s a JOIN s b ON a.n = b.n AND b.ts BETWEEN a.ts AND a.ts",
}
ORACLE = {
    "called": "SELECT n, k FROM s WHERE n % 2 = 1",
    "counted": "SELECT k, COUNT(*) AS n FROM s GROUP BY k",
    "paired": "SELECT n, k FROM s",
}
STREAM = """
CREATE STREAM s (ts TIMESTAMP, n INT, k INT) FROM parquet 'in' OPTIONS (maxFilesPerTrigger = 1)
    TIME ts LATENESS 1 HOUR;
CREATE FUNCTION odd FROM 'functions:odd';
"""


def write_input(root: Path) -> None:
    (root / "functions.py").write_text(FUNCTIONS)
    (root / "in").mkdir()
    for part in range(2):
        numbers = range(part * ROWS // 2, (part + 1) * ROWS // 2)
        pq.write_table(pa.table({
            "ts": pa.array([n * 1_000_000 for n in numbers], pa.timestamp("us", "UTC")),
            "n": pa.array(numbers, pa.int32()), "k": pa.array([n % 7 for n in numbers], pa.int32()),
        }), root / "in" / f"{part}.parquet")


@pytest.mark.parametrize("by", ["the driver", "executors"])
def test_every_sink_has_what_duckdb_answers(engine: Any, tmp_path: Path, monkeypatch, by) -> None:
    calls: list[tuple[str, pa.Table]] = []
    monkeypatch.setitem(sys.modules, "calls_of_several_sinks", calls)  # type: ignore[arg-type]
    if by == "executors":
        monkeypatch.setattr(small_answers, "MOST_ROWS", -1)
    write_input(tmp_path)
    events: list[ev.Event] = []
    with engine(on_event=events.append) as e:
        e.execute(STREAM + "".join(
            f"CREATE QUERY {name} {INTO.format(name)} AS {select};\n"
            for name, select in QUERIES.items()), folder=tmp_path)
        summary = e.run()
        assert summary.failures() == []
        kept = {name: e.results(name) for name in QUERIES}
    assert not [event for event in events if isinstance(event, ev.JobFailed)]
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE s AS SELECT * FROM read_parquet('{tmp_path}/in/*')")
        for name, select in QUERIES.items():
            want = Counter(connection.execute(ORACLE.get(name, select)).fetchall())
            columns = "k, n" if name == "counted" else "n, k"
            assert summary.queries[name].rows_out == want.total(), name
            for reader in (f"read_parquet('{tmp_path}/{name}/*')",
                           f"read_csv('{tmp_path}/{name}-csv/*', header = true)",
                           f"read_json('{tmp_path}/{name}-json/*')"):
                found = connection.execute(f"SELECT {columns} FROM {reader}").fetchall()
                assert Counter(found) == want, (name, reader)
            told = [table for query, table in calls if query == name]
            for table in (kept[name], pa.concat_tables(told)):
                rows = table.select(columns.split(", ")).to_pylist()
                assert Counter(tuple(row.values()) for row in rows) == want, name


def test_a_sink_that_fails_stops_its_query_alone_and_no_other_sink_gets_the_job(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "limit_of_several_sinks", 400)  # type: ignore[arg-type]
    write_input(tmp_path)
    with engine() as e:
        e.execute(STREAM + """
            SET retention = '1 hour';
            CREATE QUERY bad INTO parquet 'bad', callback 'functions:fails', memory
                AS SELECT n FROM s;
            CREATE QUERY good INTO parquet 'good', memory AS SELECT n FROM s;""", folder=tmp_path)
        summary = e.run()
        assert [name for name, _ in summary.failures()] == ["query bad"]
        assert summary.queries["bad"].reason == (
            "its callback functions:fails raised ValueError: too much")
        bad = sorted(e.results("bad")["n"].to_pylist())
        assert len(bad) == summary.queries["bad"].rows_out < ROWS and max(bad, default=0) < 400
        assert sorted(e.results("good")["n"].to_pylist()) == list(range(ROWS))
    monkeypatch.setitem(sys.modules, "limit_of_several_sinks", 4000)  # type: ignore[arg-type]
    with engine() as e:  # what was not delivered is delivered now, once
        assert e.run().failures() == []
        assert sorted(e.results("bad")["n"].to_pylist()) == list(range(ROWS))
    found = duckdb.sql(f"SELECT n FROM read_parquet('{tmp_path}/bad/*')").fetchall()
    assert sorted(n for n, in found) == list(range(ROWS))


def test_a_query_may_add_a_sink_by_another_name_while_the_run_goes_on(
    engine: Any, tmp_path: Path
) -> None:
    write_input(tmp_path)
    with engine() as e:
        e.execute(STREAM + "CREATE QUERY one INTO memory, noop AS SELECT n FROM s;",
                  folder=tmp_path)
        e.run()
        e.execute("""CREATE QUERY two INTO json 'two', parquet 'two-too' WITH (start = 'earliest')
            AS SELECT n FROM s;""", folder=tmp_path)
        assert e.run().failures() == []
        assert e.results("two").num_rows == e.results("one").num_rows == ROWS
        assert len(pq.read_table(tmp_path / "two-too")) == ROWS
