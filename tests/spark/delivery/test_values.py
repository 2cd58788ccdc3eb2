"""What is written is what was answered: values and names of every kind, read back by others."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.spark

HOSTILE = [
    "  lead", "trail  ", " ", "\t", "\x01", "\x00", "a\x00b", "\x1b[31m", "\x7f", "\x85", "\u2028",
    'q"uote', '"', '""', ' "x" ', "'", "\\", '\\"', "a\\", "\\n", "new\nline", "\n", "cr\rhere",
    "\r", "crlf\r\nx", "a,b", ",", ";", "#hash", "=1+1", "", None, "NULL", "\\N", "-", "é", "😀",
    "\ufeffbom",
]
TIMES = [datetime(2024, 1, 2, 3, 4, 5, micros, UTC) for micros in (0, 1, 123456, 999999, 120000)]
ROWS = [(n, HOSTILE[n % len(HOSTILE)], TIMES[n % len(TIMES)], HOSTILE[-1 - n % len(HOSTILE)])
        for n in range(len(HOSTILE) * 2)]
STREAM = "CREATE STREAM s (n INT, word STRING, ts TIMESTAMP, other STRING) FROM parquet 'in'"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / "a.parquet", ROWS)
    return tmp_path


def write(path: Path, rows: list) -> None:
    numbers, words, times, others = zip(*rows, strict=True)
    pq.write_table(pa.table({
        "n": pa.array(numbers, pa.int32()), "word": pa.array(words, pa.string()),
        "ts": pa.array(times, pa.timestamp("us", "UTC")), "other": pa.array(others, pa.string()),
    }), path)


def lines(folder: Path) -> list[dict]:
    found = []
    for path in sorted(folder.rglob("*.json")):
        with open(path, newline="\n", encoding="utf-8") as file:
            found += [json.loads(line) for line in file]
    return found


def stamped(time: datetime) -> str:
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


def test_csv_and_json_keep_every_value(engine, spark, place):
    with engine() as e:
        e.execute(STREAM + """;
            CREATE QUERY text INTO csv 'text' AS SELECT n, word, ts, other FROM s;
            CREATE QUERY lines INTO json 'lines' AS SELECT n, word, ts, other FROM s;
            CREATE QUERY single INTO csv 'single' AS SELECT word FROM s;
            CREATE QUERY odd INTO csv 'odd' AS SELECT n AS `a "b", c`, CAST(word AS BINARY) AS raw
                FROM s WHERE n = 0;
            CREATE QUERY straight INTO csv 'names' AS SELECT n AS straße, n + 1 AS strasse FROM s;
            CREATE QUERY kept AS SELECT n AS straße, n + 1 AS strasse FROM s WHERE n = 0;
            CREATE QUERY held INTO parquet 'held' AS SELECT COUNT(*) AS n, MAX(n) AS straße,
                MIN(n) AS strasse FROM s [WINDOW 1 DAY];
            CREATE QUERY computed INTO parquet 'computed' AS SELECT COUNT(*) AS n, MAX(n) AS straße,
                MIN(n) AS strasse FROM s [WINDOW 1 DAY] HAVING COUNT(*) > 0;
        """, folder=place)
        assert e.run().failures() == []
        assert e.results("kept").to_pylist() == [{"straße": 0, "strasse": 1}]

    wanted = [(n, word, stamped(ts), other) for n, word, ts, other in ROWS]
    assert sorted(map(tuple, by_python(place / "text"))) == sorted(
        (str(n), word or "", ts, other or "") for n, word, ts, other in wanted)
    assert sorted(by_duckdb(place / "text")) == wanted
    read = spark.read.schema("n INT, word STRING, ts TIMESTAMP, other STRING").options(
        header="true", escape='"', multiLine="true", nullValue="(null)").csv(str(place / "text"))
    assert read.where("ts = timestamp'2024-01-02 03:04:05.123456Z'").count() == sum(
        ts == TIMES[2] for _, _, ts, _ in ROWS)
    assert sorted((row.n, row.word, row.other) for row in read.collect()) == [
        (n, word, other) for n, word, _, other in wanted]

    rows = sorted(lines(place / "lines"), key=lambda row: row["n"])
    assert [(r["n"], r.get("word"), r["ts"], r.get("other")) for r in rows] == wanted
    read = spark.read.schema("n INT, word STRING, ts TIMESTAMP").json(str(place / "lines"))
    assert sorted((row.n, row.word) for row in read.collect()) == [(r[0], r[1]) for r in wanted]

    alone = [word or "" for (word,) in by_python(place / "single")]
    assert sorted(alone) == sorted(word or "" for _, word, _, _ in ROWS)
    (path,) = (place / "odd").glob("*.csv")
    with open(path, newline="") as file:
        assert list(csv.reader(file)) == [['a "b", c', "raw"], ["0", "ICBsZWFk"]]
    header = next((place / "names").glob("*.csv")).read_text().splitlines()[0]
    assert header == "straße,strasse"
    held, computed = (next((place / name).glob("*.parquet")) for name in ("held", "computed"))
    assert pq.read_schema(held).equals(pq.read_schema(computed), check_metadata=False)
    assert pq.read_table(held)["straße"].to_pylist() == [len(ROWS) - 1]
    assert pq.read_table(held)["strasse"].to_pylist() == [0]


def by_python(folder: Path) -> list[list[str]]:
    found = []
    for path in folder.glob("*.csv"):
        with open(path, newline="", encoding="utf-8") as file:
            found += list(csv.reader(file))[1:]
    return found


def by_duckdb(folder: Path) -> list[tuple]:
    return duckdb.sql(f"""
        SELECT n, word, ts, other FROM read_csv('{folder}/*.csv', auto_detect = false,
            header = true, delim = ',', quote = '"', escape = '"', allow_quoted_nulls = false,
            columns = {{'n': 'INT', 'word': 'VARCHAR', 'ts': 'VARCHAR', 'other': 'VARCHAR'}})
    """).fetchall()


def test_late_rows_and_rejects_keep_microseconds(engine, place):
    (place / "picky.py").write_text(
        "import penstock\n"
        "@penstock.predicate\n"
        "def picky(ts): raise ValueError('no')\n")
    (place / "text").mkdir()
    (place / "text" / "a.csv").write_text(
        "2024-01-02T03:04:05.123456Z,1\n2024-01-05T00:00:00.000001Z,2\n,3\n")
    with engine() as e:
        e.execute("""
            CREATE STREAM c (ts TIMESTAMP, n INT) FROM csv 'text' TIME ts;
            CREATE FUNCTION picky FROM 'picky:picky';
            CREATE QUERY w AS SELECT COUNT(*) AS n FROM c [WINDOW 1 SECOND];
            CREATE QUERY p AS SELECT ts FROM c WHERE picky(ts) AND n = 2;
        """, folder=place)
        e.run()
        (place / "text" / "b.csv").write_text("2024-01-02T03:04:05.123456Z,4\n")
        e.run()
        (reject,) = lines(e.checkpoint / "rejects" / "p")
        assert json.loads(reject["row"])["ts"] == "2024-01-05T00:00:00.000001Z"
        late = lines(e.checkpoint / "late")
        assert [row["ts"] for row in late] == ["2024-01-02T03:04:05.123456Z"]
