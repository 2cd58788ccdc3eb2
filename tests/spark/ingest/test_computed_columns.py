"""Columns that are computed where a stream is read: from text, from Parquet, from packets."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.oracle import Oracle, Table, answers, difference

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
EVENTS = """
CREATE STREAM events (value STRING,
    ts TIMESTAMP AS (FROM_JSON(value, 'at TIMESTAMP').at),
    page AS (FROM_JSON(value, 'page STRING').page))
  FROM text 'events' OPTIONS (maxFilesPerTrigger = 1) TIME ts LATENESS 1 HOUR;
CREATE STREAM odd (ns TIMESTAMP, n INT, ms BIGINT AS (UNIX_TIMESTAMP(ns) * 1000), twice AS (n + n))
  FROM parquet 'odd' TIME ms UNIT MILLISECONDS;
CREATE STREAM packets (ts TIMESTAMP, length INT, large BOOLEAN AS (length > 700),
    later TIMESTAMP AS (ts + INTERVAL '1' HOUR))
  FROM onoff OPTIONS (rows = 3000, rate = 1000, seed = 3) TIME later;
CREATE QUERY all_pages AS SELECT ts, page FROM events;
CREATE QUERY views AS SELECT page, COUNT(*) AS n FROM events
  GROUP BY page, TUMBLE(ts, INTERVAL '10' SECOND);
CREATE QUERY twice AS SELECT n, twice, ms FROM odd;
CREATE QUERY per_second AS SELECT SUM(twice) AS n FROM odd GROUP BY TUMBLE(ms, INTERVAL '1' SECOND);
CREATE QUERY large AS SELECT ts, length, later FROM packets WHERE large;
CREATE QUERY bare AS SELECT ts, length, large FROM packets;
"""


def write(root: Path) -> Table:
    """JSON lines, of which some have no time that can be read; Parquet that Spark cannot read."""
    chance, rows = random.Random(5), []
    folder = root / "events"
    folder.mkdir()
    for file in range(3):
        lines = []
        for number in range(120):
            at = BEGIN + timedelta(seconds=40 * file, milliseconds=chance.randrange(60_000))
            row = {"at": at.isoformat(), "page": chance.choice(["/", "/a", None])}
            lines.append(chance.choice([
                "{", json.dumps({"page": "/"}), '{"at": "soon"}']) if number % 10 == 0
                else json.dumps(row))
            if number % 10:
                rows.append((at, row["page"]))
        (folder / f"{file}.txt").write_text("\n".join(lines) + "\n")
    (root / "odd").mkdir()
    for file, kind in enumerate((pa.timestamp("ns"), pa.timestamp("us", "UTC"))):
        times = pa.array([BEGIN.replace(tzinfo=None) + timedelta(seconds=n) for n in range(4)])
        pq.write_table(pa.table({"ns": times.cast(kind), "n": pa.array(range(4), pa.int32()),
                                 "ms": ["not this column"] * 4}), root / "odd" / f"{file}.parquet")
    return Table("events", (("ts", "TIMESTAMP"), ("page", "STRING")), tuple(rows))


@pytest.mark.spark
def test_queries_see_computed_columns_as_any_other(engine, tmp_path):
    table = write(tmp_path)
    with engine() as e:
        e.execute(EVENTS, folder=tmp_path)
        summary = e.run()
        found = {name: e.results(name) for name in e.application.queries}
        asked = e.ask("SELECT MAX(ts) AS latest, COUNT(*) AS n FROM events [WINDOW 1 DAY]")
    assert summary.failures() == []
    assert (summary.streams["events"].read, summary.streams["events"].rejected) == (360, 36)
    assert asked["n"].to_pylist() == [len(table.rows)]
    oracle = Oracle([table])
    begins = "time_bucket(INTERVAL 10 SECOND, ts)"
    for name, columns, text in (
        ("all_pages", ["ts", "page"], "SELECT ts, page FROM events"),
        ("views", ["window_start", "page", "n"], f"SELECT {begins}, page, COUNT(*) FROM events "
                                                 "GROUP BY ALL")):
        assert not difference(oracle.answer(text), answers(found[name].select(columns))), name
    oracle.close()
    first = round(BEGIN.timestamp() * 1000)
    assert Counter(map(tuple, (row.values() for row in found["twice"].to_pylist()))) == Counter(
        (n, 2 * n, first + 1000 * n) for n in range(4) for _ in range(2))
    assert sorted(found["per_second"]["n"].to_pylist()) == [0, 4, 8, 12]
    bare, large = (found[name].to_pylist() for name in ("bare", "large"))
    assert len(bare) == 3000 and all(row["large"] == (row["length"] > 700) for row in bare)
    assert Counter((row["ts"], row["length"]) for row in large) == Counter(
        (row["ts"], row["length"]) for row in bare if row["large"])
    assert all(row["later"] - row["ts"] == timedelta(hours=1) for row in large)
