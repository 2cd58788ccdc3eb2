"""Few answers take one Spark job, and the driver writes the values that executors would write."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.engine.paths import small_answers
from penstock.events import kinds as ev
from penstock.spark.compile import compiler
from penstock.spark.delivery.sinks import staged_files
from tests.spark.delivery.test_values import HOSTILE

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

COLUMNS: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "flag": ("BOOLEAN", pa.bool_(), [True, False, None]),
    "tiny": ("TINYINT", pa.int8(), [-128, 127, None]),
    "short": ("SMALLINT", pa.int16(), [-32768, None, 32767]),
    "whole": ("INT", pa.int32(), [-2**31, 2**31 - 1, None]),
    "long": ("BIGINT", pa.int64(), [-2**63, 2**63 - 1, 0, None]),
    "single": ("FLOAT", pa.float32(), [0.1, 1.0, 3e38, 1e-45, -0.0, math.nan, -math.inf, None]),
    "real": ("DOUBLE", pa.float64(), [0.1, 1.0, 1e7, 123456789.5, 1e300, 5e-324, 1e-5, -0.0,
                                      math.nan, math.inf, -math.inf, None]),
    "money": ("DECIMAL(10, 2)", pa.decimal128(10, 2), [Decimal("0.00"), Decimal("-1.20"), None]),
    "exact": ("DECIMAL(38, 18)", pa.decimal128(38, 18), [
        Decimal("1E-18"), Decimal("-99999999999999999999.999999999999999999"), Decimal(0), None]),
    "word": ("STRING", pa.string(), HOSTILE),
    "raw": ("BINARY", pa.binary(), [b"", b"\xff\x00", b"=" * 100, None]),
    "day": ("DATE", pa.date32(), [date(1, 1, 1), date(1582, 10, 4), date(9999, 12, 31), None]),
    "ts": ("TIMESTAMP", pa.timestamp("us", "UTC"), [
        datetime(1, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, 3, 4, 5, 120_000, UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC), None]),
}
NESTED: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "list": ("ARRAY<STRING>", pa.list_(pa.string()), [[], ['a "b"', None, "\n"], None]),
    "map": ("MAP<STRING, DOUBLE>", pa.map_(pa.string(), pa.float64()), [
        [], [("k, \\", math.nan), ("z", None)], None]),
    "struct": ("STRUCT<a: INT, b: ARRAY<DECIMAL(4, 1)>>", pa.struct(
        {"a": pa.int32(), "b": pa.list_(pa.decimal128(4, 1))}), [
            {"a": 1, "b": None}, {"a": None, "b": [Decimal("1.5"), None]}, None]),
    "times": ("ARRAY<TIMESTAMP>", pa.list_(pa.timestamp("us", "UTC")), [
        [datetime(2024, 1, 2, tzinfo=UTC)], None]),
}
ALL = COLUMNS | NESTED
COUNT = len(HOSTILE) * 2
FUNCTIONS = """
import sys

import penstock
import pyarrow.compute as pc

@penstock.predicate
def odd(n):
    if pc.any(pc.equal(pc.bit_wise_and(n, 7), 5)).as_py():
        raise ValueError("five of eight")
    return pc.equal(pc.bit_wise_and(n, 1), 1)

def first(query, table): sys.modules["calls_of_one_job"].append((query, table))
"""
APP = f"""
CREATE STREAM s (n INT, {", ".join(f"`{name}` {kind}" for name, (kind, _, _) in ALL.items())})
    FROM parquet 'in';
CREATE FUNCTION odd FROM 'functions:odd';
CREATE QUERY text INTO csv 'text' AS SELECT n, {", ".join(COLUMNS)} FROM s;
CREATE QUERY lines INTO json 'lines'
    AS SELECT n, {", ".join(name for name in ALL if name != "times")} FROM s;
CREATE QUERY exact INTO parquet 'exact' AS SELECT n, {", ".join(ALL)} FROM s;
CREATE QUERY alone INTO csv 'alone' AS SELECT word FROM s;
CREATE QUERY s1 INTO parquet 'shared' AS SELECT n, short AS value FROM s WHERE n < 40;
CREATE QUERY s2 INTO parquet 'shared' AS SELECT n, long AS value, word FROM s WHERE n > 20;
CREATE QUERY kept AS SELECT n, money AS value FROM s WHERE n < 5
    UNION ALL SELECT n, exact FROM s WHERE n > 70;
CREATE QUERY c1 INTO callback 'functions:first' AS SELECT n, word FROM s WHERE n < 20;
CREATE QUERY c2 INTO callback 'functions:first' AS SELECT n, `list`, `map` FROM s WHERE n < 3;
CREATE QUERY none INTO noop AS SELECT n FROM s WHERE n < 7;
"""
PYTHON = """
CREATE QUERY detected INTO json 'detected' AS SELECT n, word FROM s WHERE odd(n);
"""
LEFT_TO_SPARK = """
CREATE QUERY nested INTO json 'nested' AS SELECT n, times FROM s;
"""


def write_input(folder: Path) -> None:
    (folder / "in").mkdir(parents=True)
    (folder / "functions.py").write_text(FUNCTIONS)
    columns = {name: pa.array([values[n % len(values)] for n in range(COUNT)], kind)
               for name, (_, kind, values) in ALL.items()}
    pq.write_table(pa.table({"n": pa.array(range(COUNT), pa.int32())} | columns),
                   folder / "in" / "a.parquet")


@pytest.fixture
def run(engine: Any, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    def run(name: str, sql: str) -> dict[str, Any]:
        """Run an application in a folder of its own; what it delivered, and its jobs."""
        events: list[ev.Event] = []
        write_input(tmp_path / name)
        with engine(f"{name}/checkpoint", on_event=events.append) as e:
            e.execute(sql, folder=tmp_path / name)
            assert e.run().failures() == []
            kept = e.results("kept").to_pylist() if "QUERY kept" in sql else []
        return {"root": tmp_path / name, "kept": kept,
                "failed": [event for event in events if isinstance(event, ev.JobFailed)],
                "jobs": [event for event in events if isinstance(event, ev.JobFinished)]}

    return run


@pytest.fixture(autouse=True)
def calls(monkeypatch):
    """What callbacks were called with, wherever their module is."""
    found = []
    monkeypatch.setitem(sys.modules, "calls_of_one_job", found)
    return found


def by_answers(jobs: list[ev.JobFinished]) -> list[ev.JobFinished]:
    """Jobs that overlap may end in either order."""
    return sorted(jobs, key=lambda job: sorted(job.rows_out))


def test_driver_and_executors_write_the_same_values(run, monkeypatch):
    by_driver, by_spark_jobs = [], []  # every engine has a module of its own, and finds these
    monkeypatch.setitem(sys.modules, "calls_of_one_job", by_driver)
    few = run("few", APP + PYTHON + LEFT_TO_SPARK)
    monkeypatch.setitem(sys.modules, "calls_of_one_job", by_spark_jobs)
    monkeypatch.setattr(small_answers, "MOST_ROWS", -1)
    many = run("many", APP + PYTHON + LEFT_TO_SPARK)
    assert (few["failed"], many["failed"]) == ([], [])
    # One Spark job for the fan-out, one more for what is left to Spark; one for the Python path.
    assert sorted(job.spark_jobs for job in few["jobs"]) == [1, 2]
    assert max(job.spark_jobs for job in many["jobs"]) > 5
    for one, other in zip(by_answers(few["jobs"]), by_answers(many["jobs"]), strict=True):
        assert (one.rows_out, one.result.rejected) == (other.rows_out, other.result.rejected)
        assert one.result.errors == other.result.errors
    for folder in ("text", "lines", "exact", "alone", "shared", "detected", "nested"):
        names = [path.name for path in (few["root"] / folder).iterdir()]
        by_spark = folder == "nested"
        assert all(("-c000" in name) == by_spark for name in names), names
        by_spark = folder not in ("exact", "shared")
        names = [path.name for path in (many["root"] / folder).iterdir()]
        assert all(("-c000" in name) == by_spark for name in names), names

    assert rows_of_csv(few["root"] / "text") == rows_of_csv(many["root"] / "text")
    assert nulls_of_csv(few["root"] / "text") == nulls_of_csv(many["root"] / "text")
    for folder in ("lines", "detected", "nested", "checkpoint/rejects/detected"):
        found = rows_of_json(few["root"] / folder)
        assert found == rows_of_json(many["root"] / folder) and found, folder
    alone = [sorted(row[0] for path in (one["root"] / "alone").iterdir() for row in read_csv(path))
             for one in (few, many)]
    assert alone[0] == alone[1] and len(alone[0]) == COUNT + 1
    for folder in ("exact", "shared"):
        one, other = (pq.read_table(run["root"] / folder).sort_by(
            [("n", "ascending"), *((("query", "ascending"),) if folder == "shared" else ())])
            for run in (few, many))
        assert one.schema.equals(other.schema, check_metadata=False)
        assert repr(one.to_pylist()) == repr(other.to_pylist())
    key = [sorted(map(repr, run["kept"])) for run in (few, many)]
    assert key[0] == key[1] and len(key[0]) == 5 + COUNT - 71
    told = [{query: (table.schema.names, sorted(map(repr, table.to_pylist())))
             for query, table in calls} for calls in (by_driver, by_spark_jobs)]
    assert told[0] == told[1] and told[0].keys() == {"c1", "c2"}


def test_python_workers_write_the_same_values_as_spark(run, monkeypatch):
    monkeypatch.setattr(small_answers, "MOST_ROWS", -1)
    by_workers = run("workers", APP)
    monkeypatch.setattr(staged_files, "_are_arrows", lambda schema: False)
    by_spark = run("spark", APP)
    for folder in ("exact", "shared"):
        order = [("n", "ascending"), *((("query", "ascending"),) if folder == "shared" else ())]
        one, other = (pq.read_table(run["root"] / folder).sort_by(order)
                      for run in (by_workers, by_spark))
        assert all("-c000" in path.name for path in (by_spark["root"] / folder).iterdir())
        assert one.schema.equals(other.schema, check_metadata=False)
        assert repr(one.to_pylist()) == repr(other.to_pylist()) and one.num_rows
    assert sorted(map(repr, by_workers["kept"])) == sorted(map(repr, by_spark["kept"]))
    for one, other in zip(by_answers(by_workers["jobs"]), by_answers(by_spark["jobs"]),
                          strict=True):
        assert one.rows_out == other.rows_out


def test_years_that_spark_writes_in_its_own_way_are_written_by_spark(engine, tmp_path):
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"n": pa.array([0, 1], pa.int32()), "day": pa.array(
        [19_000, 2_932_897], pa.date32())}), tmp_path / "in" / "a.parquet")
    with engine() as e:
        e.execute("""
            CREATE STREAM s (n INT, day DATE) FROM parquet 'in';
            CREATE QUERY usual INTO csv 'usual' AS SELECT n, day FROM s WHERE n = 0;
            CREATE QUERY far INTO csv 'far' AS SELECT n, day AS far FROM s WHERE n = 1;
        """, folder=tmp_path)
        assert e.run().failures() == []
    (usual,), (far,) = ((tmp_path / name).glob("*.csv") for name in ("usual", "far"))
    assert usual.read_text().splitlines()[1] == "0,2022-01-08"
    assert far.read_text().splitlines()[1] == "1,+10000-01-01"
    assert ("-c000" in usual.name, "-c000" in far.name) == (False, True)


def test_answers_that_were_not_few_are_written_by_executors_after_all(run, monkeypatch):
    monkeypatch.setattr(compiler, "MOST_COLLECTED", 10)
    found = run("more", APP)
    (failed,) = found["failed"]
    assert "more than 10 answers" in failed.reason
    assert len(rows_of_csv(found["root"] / "text")) == COUNT
    assert all("-c000" in path.name for path in (found["root"] / "text").iterdir())


def read_csv(path: Path) -> list[list[str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def rows_of_csv(folder: Path) -> list[tuple[Any, ...]]:
    """The values, numbers by their value: Java and Arrow write them with other digits."""
    found = []
    for path in folder.iterdir():
        header, *rows = read_csv(path)
        assert header == ["n", *COLUMNS]
        found += [tuple(number(name, text) for name, text in zip(header, row, strict=True))
                  for row in rows]
    return sorted(found, key=lambda row: int(row[0]))


def number(name: str, text: str) -> Any:
    if text and name in ("money", "exact"):
        return Decimal(text)
    if text and name in ("single", "real"):
        return repr(np.float32(text) if name == "single" else float(text))
    return text


def nulls_of_csv(folder: Path) -> list[tuple[Any, ...]]:
    """Which values are NULL and not an empty text, as somebody else reads them."""
    columns = ", ".join(f"'{name}': 'VARCHAR'" for name in ("n", *COLUMNS))
    asked = ", ".join(f"{name} IS NULL" for name in COLUMNS)
    return duckdb.sql(f"""
        SELECT n, {asked} FROM read_csv('{folder}/*.csv', auto_detect = false, header = true,
            delim = ',', quote = '"', escape = '"', allow_quoted_nulls = false,
            columns = {{{columns}}}) ORDER BY CAST(n AS INT)
    """).fetchall()


def rows_of_json(folder: Path) -> list[dict[str, Any]]:
    found = []
    for path in sorted(folder.rglob("*.json")):
        with open(path, newline="\n", encoding="utf-8") as file:
            found += [{name: number(name, str(value)) if isinstance(value, Decimal) else value
                       for name, value in json.loads(line, parse_float=Decimal).items()}
                      for line in file]
    return sorted(found, key=lambda row: row.get("n", repr(row)))
