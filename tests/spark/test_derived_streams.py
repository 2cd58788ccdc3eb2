"""Streams made of the answers of queries, on Spark: what DuckDB says of the same steps."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.spark.kit import eventually
from tests.spark.oracle import Oracle, Table, answers, difference

pytestmark = pytest.mark.spark

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = (("ts", "TIMESTAMP"), ("src", "INT"), ("port", "INT"), ("length", "INT"))
HOSTS = Table("hosts", (("id", "INT"), ("site", "STRING")), ((0, "a"), (1, "b"), (1, "c")))
APPLICATION = """
CREATE STREAM packets (ts TIMESTAMP, src INT, port INT, length INT) FROM parquet 'packets'
  OPTIONS (maxFilesPerTrigger = 1) TIME ts LATENESS 1 HOUR;
CREATE RELATION hosts (id INT, site STRING) FROM parquet 'hosts';
CREATE STREAM web TIME ts LATENESS 1 HOUR AS SELECT ts, src, length * 8 AS bits FROM packets
  WHERE port = 80;
CREATE VIEW loud AS SELECT * FROM web WHERE bits > 2000;
CREATE STREAM per_second TIME second LATENESS 1 MINUTE AS
  SELECT window_start AS second, src, COUNT(*) AS n, SUM(bits) AS bits FROM web
  GROUP BY src, TUMBLE(ts, INTERVAL '1' SECOND);
CREATE QUERY plain AS SELECT ts, src, bits FROM loud;
CREATE QUERY sites AS SELECT p.second, h.site, p.n FROM per_second p JOIN hosts h ON h.id = p.src;
CREATE QUERY busiest AS SELECT src, MAX(n) AS most, SUM(bits) AS bits, COUNT(*) AS seconds
  FROM per_second GROUP BY src, TUMBLE(second, INTERVAL '10' SECOND);
CREATE QUERY pairs AS SELECT a.ts, b.second, b.n FROM packets a JOIN per_second b
  ON a.src = b.src AND b.second BETWEEN a.ts AND a.ts + INTERVAL '1' SECOND;
"""
STEPS = {
    "web": "SELECT ts, src, (length * 8)::INT AS bits FROM packets WHERE port = 80",
    "per_second": "SELECT date_trunc('second', ts) AS second, src, COUNT(*) AS n, "
                  "SUM(bits)::BIGINT AS bits FROM web GROUP BY ALL",
}
EXPECTED = {
    "plain": "SELECT ts, src, bits FROM web WHERE bits > 2000",
    "sites": "SELECT p.second, h.site, p.n FROM per_second p JOIN hosts h ON h.id = p.src",
    "busiest": "SELECT date_trunc('minute', second) + INTERVAL 10 SECOND * "
               "(date_part('second', second)::INT // 10) AS start, src, MAX(n), "
               "SUM(bits)::BIGINT, COUNT(*) FROM per_second GROUP BY ALL",
    "pairs": "SELECT a.ts, b.second, b.n FROM packets a JOIN per_second b ON a.src = b.src "
             "AND b.second BETWEEN a.ts AND a.ts + INTERVAL 1 SECOND",
}


def table(seed: int, count: int, start: int = 0) -> Table:
    chance, rows = random.Random(seed), []
    for number in range(start, start + count):
        at = BEGIN + timedelta(milliseconds=40 * number + chance.randrange(500))
        rows.append((at, chance.choice([0, 1, 1, 2]), chance.choice([22, 80, 80, None]),
                     chance.choice([None, *range(1500)])))
    return Table("packets", COLUMNS, tuple(rows))


def put(rows: Table, folder: Path, first: int, files: int) -> None:
    folder.mkdir(exist_ok=True)
    size = -(-len(rows.rows) // files)
    for number in range(files):
        path = folder / f"{first + number}.parquet"
        pq.write_table(rows.arrow(rows.rows[number * size : (number + 1) * size]), path)
        os.utime(path, (1_700_000_000 + first + number,) * 2)


def faults(found: dict, rows: tuple) -> list[str]:
    oracle = Oracle([Table("packets", COLUMNS, rows), HOSTS])
    for name, text in STEPS.items():
        oracle.declare(f"CREATE VIEW {name} AS {text}")
    told = {name: difference(oracle.answer(text), answers(found[name]))
            for name, text in EXPECTED.items()}
    oracle.close()
    return [f"{name}: {fault}" for name, fault in told.items() if fault]


def results(e) -> dict:
    found = {name: e.results(name) for name in EXPECTED}
    found["busiest"] = found["busiest"].drop_columns(["window_end"])
    return found


def test_a_chain_of_derived_streams_gives_the_rows_of_duckdb(engine, tmp_path):
    rows = table(4, 500)
    put(rows, tmp_path / "packets", 0, 4)
    put(HOSTS, tmp_path / "hosts", 0, 1)
    with engine() as e:
        e.execute(APPLICATION, folder=tmp_path)
        summary = e.run()
        found = results(e)
        assert summary.failures() == [] and summary.run.state == "drained"
        assert not faults(found, rows.rows), "\n\n".join(faults(found, rows.rows))
        assert all(one.num_rows for one in found.values())
        feeds = [path for path in (e.checkpoint / "feeds").rglob("*") if path.is_file()]
        assert feeds == [], "what is in a block is in no feed any more"
        counted = summary.streams["web"].read, summary.queries["web"].rows_out
        assert counted[0] == counted[1] > 0
        e.close()
    with engine() as e:
        again = e.run()
        assert {name: one.num_rows for name, one in results(e).items()} == {
            name: one.num_rows for name, one in found.items()}, "nothing comes twice"
        assert again.failures() == []


def test_a_run_that_is_stopped_goes_on_with_its_derived_streams(engine, tmp_path):
    """Live and stopped after each piece; the last run drains. All rows are answered for, once."""
    pieces = [table(seed, 150, 150 * seed) for seed in range(3)]
    put(HOSTS, tmp_path / "hosts", 0, 1)
    rows: tuple = ()
    for number, piece in enumerate(pieces):
        put(piece, tmp_path / "packets", 10 * number, 2)
        rows += piece.rows
        with engine() as e:
            e.load(APPLICATION, folder=tmp_path)
            if number < len(pieces) - 1:
                e.start()
                wanted = sum(one[2] == 80 for one in piece.rows)
                eventually(partial(_has_read, e, wanted), "web has been read")
                e.stop()
            else:
                summary = e.run()
                assert summary.failures() == []
                found = results(e)
            e.close()
    assert not faults(found, rows), "\n\n".join(faults(found, rows))


def _has_read(e, rows: int) -> bool:
    return "web" in e.status().streams and e.status().streams["web"].read >= rows


def test_what_is_derived_during_a_run_that_drains_is_drained_too(engine, tmp_path):
    """All rows that come after it are answered for, in the windows over it too."""
    with engine() as e:
        e.execute("""
            CREATE STREAM packets (ts TIMESTAMP, src INT, length INT)
              FROM onoff OPTIONS (rate = 200, rows = 1200, seed = 5) TIME ts LATENESS 1 HOUR;
            CREATE QUERY first AS SELECT ts FROM packets;
        """, folder=tmp_path)
        e.start(until_drained=True)
        eventually(lambda: "packets" in e.status().streams
                   and e.status().streams["packets"].read > 0, "rows come")
        e.execute("""
            CREATE STREAM small TIME ts LATENESS 1 HOUR AS
              SELECT ts, src FROM packets WHERE length < 1000;
            CREATE QUERY counted AS SELECT COUNT(*) AS n FROM small
              GROUP BY TUMBLE(ts, INTERVAL '1' SECOND);
        """)
        assert e.wait(60)
        summary = e.status()
        assert (summary.run.state, summary.failures()) == ("drained", [])
        assert summary.accounting() == []
        derived = summary.queries["small"].rows_out
        assert 0 < derived == summary.streams["small"].read
        assert sum(e.results("counted")["n"].to_pylist()) == derived
