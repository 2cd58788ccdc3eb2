"""Relations that change while a run goes on: each block is joined with one version, also later."""

from __future__ import annotations

import os
from collections import Counter
from math import inf
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.engine import Note
from penstock.engine.blocks import Blocks
from penstock.engine.relation_versions import ChangingRelations
from penstock.events import kinds as ev
from tests.spark.kit import eventually

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

APP = """
    SET retention = '1 hour';
    CREATE STREAM s (ts TIMESTAMP, n INT) FROM parquet 's' OPTIONS (maxFilesPerTrigger = 1)
        TIME ts LATENESS 1 HOUR;
    CREATE STREAM t (ts TIMESTAMP, n INT) FROM parquet 't' OPTIONS (maxFilesPerTrigger = 1)
        TIME ts LATENESS 1 HOUR;
    CREATE RELATION sites (id INT, site STRING) FROM csv 'sites' OPTIONS (header = true)
        REFRESH ON DEMAND;
    CREATE FUNCTION small FROM 'sized:small';
    CREATE QUERY inner_ AS SELECT s.n, r.site FROM s JOIN sites r ON s.n % 4 = r.id;
    CREATE QUERY outer_ INTO parquet 'outer', json 'text'
        AS SELECT s.n, r.site FROM s LEFT JOIN sites r ON s.n % 4 = r.id WHERE s.n % 2 = 0;
    CREATE QUERY called AS SELECT s.n, r.site FROM s JOIN sites r ON s.n % 4 = r.id
        WHERE small(s.n);
    CREATE QUERY tally AS SELECT r.site, COUNT(*) AS n FROM s JOIN sites r ON s.n % 4 = r.id
        GROUP BY r.site, TUMBLE(ts, INTERVAL '1' DAY);
    CREATE QUERY pairs AS SELECT a.n, b.n AS other, r.site FROM s a JOIN t b
        ON a.n = b.n AND b.ts BETWEEN a.ts - INTERVAL '1' HOUR AND a.ts + INTERVAL '1' HOUR
        JOIN sites r ON a.n % 4 = r.id;
    CREATE QUERY latest AS SELECT a.n, b.n AS other, r.site FROM s a, t b
        JOIN sites r ON a.n % 4 = r.id WHERE a.n = b.n WINDOW 1000 ROWS;
    CREATE QUERY met AS SELECT r.site, COUNT(*) AS n FROM s a, t b
        JOIN sites r ON a.n % 4 = r.id WHERE a.n = b.n
        GROUP BY r.site WINDOW 1 DAY SLIDE EXACTLY 1 DAY;
"""
HEAD = APP.partition("    CREATE FUNCTION")[0]
FEWER = HEAD + """
    CREATE QUERY inner_ AS SELECT s.n, r.site FROM s JOIN sites r ON s.n % 4 = r.id;
    CREATE QUERY pairs AS SELECT a.n, b.n AS other, r.site FROM s a JOIN t b
        ON a.n = b.n AND b.ts BETWEEN a.ts - INTERVAL '1' HOUR AND a.ts + INTERVAL '1' HOUR
        JOIN sites r ON a.n % 4 = r.id;
"""
FUNCTIONS = """
import penstock
import pyarrow.compute as pc

@penstock.predicate
def small(n):
    return pc.less(n, 25)
"""
ROWS = 10


def feed(root: Path, stream: str, number: int) -> None:
    """The file of a block: the rows of block k are 10 k to 10 k + 9."""
    values = range(number * ROWS, (number + 1) * ROWS)
    table = pa.table({"ts": pa.array([v * 1_000_000 for v in values], pa.timestamp("us", "UTC")),
                      "n": pa.array(values, pa.int32())})
    folder = root / stream
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{number}"
    pq.write_table(table, hidden)
    os.utime(hidden, (1_700_000_000 + number,) * 2)
    hidden.rename(folder / f"{number:04d}.parquet")


def write_sites(root: Path, version: int) -> None:
    """Version v has v as a part of every name, and one more site than the one before."""
    folder = root / "sites"
    folder.mkdir(exist_ok=True)
    rows = [f"{number % 4},v{version}-{number}" for number in range(version + 1)]
    hidden = root / ".sites"
    hidden.write_text("\n".join(["id,site", *rows]) + "\n")
    hidden.rename(folder / "sites.csv")


def begin(root: Path) -> None:
    (root / "sized.py").write_text(FUNCTIONS)
    write_sites(root, 1)
    for stream in ("s", "t"):
        feed(root, stream, 0)


EXPECTED = {
    "inner_": "SELECT n, site FROM s JOIN sites r ON n % 4 = id AND r.version = s.version",
    "outer_": "SELECT n, site FROM s LEFT JOIN sites r ON n % 4 = id AND r.version = s.version "
              "WHERE n % 2 = 0",
    "called": "SELECT n, site FROM s JOIN sites r ON n % 4 = id AND r.version = s.version "
              "WHERE n < 25",
    "tally": "SELECT site, COUNT(*) AS n FROM s JOIN sites r ON n % 4 = id "
             "AND r.version = s.version GROUP BY site",
    "pairs": "SELECT s.n, t.n AS other, site FROM s JOIN t ON s.n = t.n JOIN sites r "
             "ON s.n % 4 = id AND r.version = greatest(s.version, t.version)",
}
EXPECTED["latest"] = EXPECTED["pairs"]
EXPECTED["met"] = f"SELECT site, COUNT(*) AS n FROM ({EXPECTED['pairs']}) GROUP BY site"


def expected(query: str, blocks: dict[str, list[int]], versions: int) -> Counter[Any]:
    """What DuckDB answers, if block k of a stream is joined with ``blocks[stream][k]``."""
    with duckdb.connect() as connection:
        for stream, seen in blocks.items():
            rows = ", ".join(f"({k * ROWS + n}, {version})" for k, version in enumerate(seen)
                             for n in range(ROWS))
            connection.execute(f"CREATE TABLE {stream} AS SELECT * FROM (VALUES {rows}) "
                               "AS v(n, version)")
        sites = ", ".join(f"({v}, {n % 4}, 'v{v}-{n}')" for v in range(1, versions + 1)
                          for n in range(v + 1))
        connection.execute(
            f"CREATE TABLE sites AS SELECT * FROM (VALUES {sites}) AS v(version, id, site)")
        return Counter(connection.execute(EXPECTED[query]).fetchall())


def rows(engine: Any, query: str) -> Counter[Any]:
    table = engine.results(query)
    names = [name for name in table.column_names if not name.startswith("window_")]
    return Counter(tuple(row[name] for name in names) for row in table.to_pylist())


def refreshed(engine: Any, version: int) -> None:
    """Have the relation read, and wait until its change is decided."""
    engine.execute("REFRESH RELATION sites")
    eventually(lambda: engine.status().relations["sites"].version == version,
               f"version {version} holds")


def decided_again(events: list[ev.Event]) -> list[tuple[int, dict[str, int]]]:
    """What a core without Spark decides about the relations, if it is told of the same events."""
    found = []
    for event in events:
        if isinstance(event, ev.EngineStarted):
            blocks = Blocks(0.0)
            relations = ChangingRelations(blocks)
            relations.adopt((("sites", inf),))
        elif isinstance(event, ev.BlockArrived | ev.BlockHeld):
            blocks.hold(event.block)
        elif isinstance(event, ev.RelationRead | ev.RelationAsked) or (
                isinstance(event, ev.RelationChanged) and event.earlier):
            found += [one.event for one in relations.take(event) if isinstance(one, Note)]
    return [(one.version, dict(one.since)) for one in found]


def test_every_block_is_joined_with_the_version_that_held_when_it_came(engine, tmp_path):
    begin(tmp_path)
    events: list[ev.Event] = []
    with engine(on_event=events.append) as e:
        e.execute(APP, folder=tmp_path)
        e.start()

        def held(stream: str, blocks: int) -> None:
            eventually(lambda: e.status().streams[stream].blocks >= blocks,
                       f"{stream} has {blocks} blocks")

        for stream in ("s", "t"):
            held(stream, 1)
        write_sites(tmp_path, 2)
        refreshed(e, 2)
        feed(tmp_path, "s", 1)  # version 2
        held("s", 2)
        e.execute("REFRESH RELATION sites")  # the same rows: no version
        write_sites(tmp_path, 3)
        refreshed(e, 3)
        feed(tmp_path, "t", 1)  # version 3 meets version 2
        held("t", 2)
        for number in (2, 3):
            feed(tmp_path, "s", number)
            feed(tmp_path, "t", number)
        held("s", 4), held("t", 4)
        asked = e.ask("SELECT s.n, r.site FROM s JOIN sites r ON s.n % 4 = r.id")
        e.stop()
        e.run()
        assert e.status().failures() == []
        blocks = {"s": [1, 2, 3, 3], "t": [1, 3, 3, 3]}
        for query in EXPECTED:
            assert rows(e, query) == expected(query, blocks, 3), query
        text = duckdb.sql(f"SELECT n, site FROM read_json('{tmp_path}/text/*.json', "
                          "columns = {n: 'INT', site: 'VARCHAR'})").fetchall()
        assert Counter(text) == expected("outer_", blocks, 3)
        assert {row["site"][:2] for row in asked.to_pylist()} == {"v3"}
    changes = [(c.version, dict(c.since)) for c in events
               if isinstance(c, ev.RelationChanged) and not c.earlier]
    assert changes == [(1, {}), (2, {"s": 1, "t": 1}), (3, {"s": 2, "t": 1})]
    assert decided_again(events) == [(c.version, dict(c.since)) for c in events
                                     if isinstance(c, ev.RelationChanged) and not c.earlier]
    kept = [sorted(path.name for path in (tmp_path / "checkpoint/relations/sites").iterdir())]
    assert kept == [["00000001", "00000002", "00000003"]], "the spool has blocks of all of them"


def test_a_relation_is_read_again_by_itself_and_one_that_is_gone_goes_on(engine, tmp_path):
    begin(tmp_path)
    sql = HEAD.replace("ON DEMAND", "EVERY 300 MILLISECONDS") + """
        CREATE QUERY inner_ AS SELECT s.n, r.site FROM s JOIN sites r ON s.n % 4 = r.id;"""
    with engine() as e:
        e.execute(sql, folder=tmp_path)
        e.start()
        eventually(lambda: e.status().queries["inner_"].rows_in == ROWS, "the first block is done")
        (tmp_path / "sites").rename(tmp_path / "gone")
        eventually(lambda: any("its version 1 goes on" in w.text for w in e.status().warnings),
                   "somebody warns")
        feed(tmp_path, "s", 1)
        eventually(lambda: e.status().queries["inner_"].rows_in == 2 * ROWS, "the second is done")
        write_sites(tmp_path, 2)
        eventually(lambda: e.status().relations["sites"].version == 2, "the change is seen")
        feed(tmp_path, "s", 2)
        eventually(lambda: e.status().queries["inner_"].rows_in == 3 * ROWS, "the third is done")
        e.stop()
        assert rows(e, "inner_") == expected("inner_", {"s": [1, 1, 2], "t": [1]}, 2)


def test_a_relation_that_cannot_be_read_at_first_stops_its_query_alone(engine, tmp_path):
    begin(tmp_path)
    (tmp_path / "sites" / "sites.csv").unlink()
    (tmp_path / "sites").rmdir()
    with engine() as e:
        e.execute(HEAD + """
            CREATE QUERY inner_ AS SELECT s.n, r.site FROM s JOIN sites r ON s.n % 4 = r.id;
            CREATE QUERY other AS SELECT n FROM s;""", folder=tmp_path)
        summary = e.run()
        assert [name for name, _ in summary.failures()] == ["query inner_"]
        assert "there is no file or folder" in summary.queries["inner_"].reason
        assert e.results("other").num_rows == ROWS


def test_a_start_reads_again_and_what_is_owed_keeps_its_version(engine, tmp_path):
    """A query that comes later sees earlier blocks as the others saw them."""
    begin(tmp_path)
    with engine() as e:
        e.execute(FEWER, folder=tmp_path)
        e.run()
    write_sites(tmp_path, 2)
    feed(tmp_path, "s", 1)
    with engine() as e:
        e.execute("""CREATE QUERY called_late WITH (start = 'earliest')
            AS SELECT s.n, r.site FROM s JOIN sites r ON s.n % 4 = r.id;""", folder=tmp_path)
        assert e.run().failures() == []
        blocks = {"s": [1, 2], "t": [1]}
        assert rows(e, "inner_") == expected("inner_", blocks, 2)
        assert rows(e, "called_late") == expected("inner_", blocks, 2)
        assert rows(e, "pairs") == expected("pairs", blocks, 2)


def test_large_relations_change_too(engine, tmp_path, monkeypatch):
    from penstock.spark.compile import relation_versions, relations

    monkeypatch.setattr(relations, "LOCAL_ROWS", 1)
    monkeypatch.setattr(relation_versions, "LOCAL_ROWS", 1)
    test_a_start_reads_again_and_what_is_owed_keeps_its_version(engine, tmp_path)


def test_versions_that_no_block_needs_leave_the_checkpoint(engine, tmp_path):
    begin(tmp_path)
    sql = HEAD.replace("'1 hour'", "'100 ms'") + """
        CREATE QUERY inner_ AS SELECT s.n, r.site FROM s JOIN sites r ON s.n % 4 = r.id;"""
    folder = tmp_path / "checkpoint" / "relations" / "sites"
    with engine() as e:
        e.execute(sql, folder=tmp_path)
        e.start()
        for version in (2, 3, 4):
            blocks = version - 1
            eventually(lambda n=blocks: e.status().queries["inner_"].rows_in == n * ROWS, "done")
            write_sites(tmp_path, version)
            refreshed(e, version)
            feed(tmp_path, "s", blocks)
        eventually(lambda: e.status().queries["inner_"].rows_in == 4 * ROWS, "all is done")
        eventually(lambda: [p.name for p in folder.iterdir()] == ["00000004"], "only one is left")
        e.stop()
        assert rows(e, "inner_") == expected("inner_", {"s": [1, 2, 3, 4], "t": [1]}, 4)
    stray = folder / "00000009"
    stray.mkdir()
    with engine() as e:
        e.run()
        assert not stray.exists(), "what nothing names is removed"
