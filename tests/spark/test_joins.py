"""Window joins on Spark: each query's pairs are those of DuckDB, once, and in order."""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.engine.joins import outers
from penstock.events import kinds as ev
from penstock.language import bind
from penstock.planning import plan
from penstock.rendering import render

pytestmark = pytest.mark.spark

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
LATENESS = {"a": 4.0, "b": 2.0}
FUNCTIONS = """
import penstock
import pyarrow.compute as pc

@penstock.predicate
def alike(one, other):
    if pc.any(pc.equal(one, 13)).as_py():
        raise ValueError("thirteen")
    return pc.equal(pc.bit_wise_and(one, 1), pc.bit_wise_and(other, 1))
"""
STREAMS = "".join(
    f"CREATE STREAM {name} (ts TIMESTAMP, k INT, v INT) FROM parquet '{name}' "
    f"OPTIONS (maxFilesPerTrigger = 1) TIME ts LATENESS {late:g} SECONDS;\n"
    for name, late in LATENESS.items()
) + """
    CREATE RELATION sites (id INT, site STRING) FROM csv 'sites.csv' OPTIONS (header = true);
    CREATE FUNCTION alike FROM 'join_functions:alike';
"""
COLUMNS = "A.ts AS at, A.v AS va, B.ts AS bt, B.v AS vb"
WITHIN = "B.ts - A.ts < INTERVAL '{0} seconds' AND A.ts - B.ts < INTERVAL '{0} seconds'"
QUERIES = {
    "tiny": ("A.k = B.k WINDOW 1 SECOND", f"A.k = B.k AND {WITHIN.format(1)}"),
    "small": ("A.k = B.k AND A.v > 20 WINDOW 5 SECONDS",
              f"A.k = B.k AND A.v > 20 AND {WITHIN.format(5)}"),
    "large": ("B.k = A.k AND A.v < B.v WINDOW 40 SECONDS",
              f"A.k = B.k AND A.v < B.v AND {WITHIN.format(40)}"),
    "after": ("A.k = B.k AND B.ts BETWEEN A.ts AND A.ts + INTERVAL 9 SECONDS",
              "A.k = B.k AND B.ts BETWEEN A.ts AND A.ts + INTERVAL 9 SECOND"),
    "loops": ("A.v < B.v - 30 WINDOW 2 SECONDS", f"A.v < B.v - 30 AND {WITHIN.format(2)}"),
}
EVERY = ("isolated", "lwo", "swf", "mqt", "swf(merge=false)", "mqt(merge=false)")


def rows(
    seed: int, per_second: float, blocks: int, seconds: float = 25.0,
    keys: Sequence[int | None] = (1, 1, 1, 2, 3, 4, None), values: int = 60, pause: float = 60.0,
) -> list[list[tuple]]:
    """Blocks of rows: duplicates, equal times, gaps, late rows, rows without a time, a hot key."""
    chance, made, now = random.Random(seed), [], 0.0
    for _ in range(blocks):
        block = []
        for _ in range(int(seconds * per_second)):
            now += chance.choice((0.0, 0.5, 1.0, 1.5)) / per_second
            time = now - chance.choice((0.0, 0.0, 0.0, 1.0, 3.0, 30.0))
            when = BEGIN + timedelta(seconds=round(max(time, 0.0), 1))
            key = chance.choice(keys)
            block.append((None if chance.random() < 0.02 else when, key, chance.randrange(values)))
        made.append(block + block[:2])
        now += chance.choice((0.0, 0.0, pause))
    return made


def write(folder: Path, stream: str, blocks: Sequence[Sequence[tuple]]) -> None:
    (folder / stream).mkdir(exist_ok=True)
    for number, block in enumerate(blocks):
        ts, k, v = zip(*block, strict=True) if block else ((), (), ())
        path = folder / stream / f"{number:03}.parquet"
        pq.write_table(pa.table({
            "ts": pa.array(ts, pa.timestamp("us", "UTC")), "k": pa.array(k, pa.int32()),
            "v": pa.array(v, pa.int32())}), path)
        os.utime(path, (1_700_000_000 + number,) * 2)


def timely(stream: str, blocks: Sequence[Sequence[tuple]]) -> list[tuple]:
    """The rows that windows take."""
    found, seen = [], None
    for block in blocks:
        cutoff = None if seen is None else seen - timedelta(seconds=LATENESS[stream])
        kept = [row for row in block if row[0] is None or cutoff is None or row[0] >= cutoff]
        found += kept
        times = [row[0] for row in kept if row[0] is not None]
        seen = max([*times, *([] if seen is None else [seen])], default=None)
    return found


def oracle(sides: dict[str, list[tuple]], condition: str, join: str = "a A, b B",
           columns: str = COLUMNS) -> Counter:
    """What DuckDB pairs."""
    with duckdb.connect() as connection:
        for name, found in sides.items():
            ts, k, v = zip(*found, strict=True) if found else ((), (), ())
            plain = [None if time is None else time.replace(tzinfo=None) for time in ts]
            connection.register(name, pa.table({
                "ts": pa.array(plain, pa.timestamp("us")), "k": pa.array(k, pa.int32()),
                "v": pa.array(v, pa.int32())}))
        connection.execute("CREATE TABLE sites AS SELECT * FROM (VALUES (1, 'x'), (1, 'y'), "
                           "(3, 'z')) AS t (id, site)")
        found = connection.execute(f"SELECT {columns} FROM {join} WHERE {condition}")
        return bag(found.fetchall())


def bag(found: Iterable[tuple]) -> Counter:
    return Counter(tuple(value.replace(tzinfo=None).isoformat() if isinstance(value, datetime)
                         else value for value in row) for row in found)


def pairs(table: pa.Table) -> Counter:
    """The rows of an answer as a multiset."""
    return bag(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    sys.modules.pop("join_functions", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "join_functions.py").write_text(FUNCTIONS)
    (tmp_path / "sites.csv").write_text("id,site\n1,x\n1,y\n3,z\n")
    return tmp_path


def application(policy: str) -> str:
    queries = "".join(
        f"CREATE QUERY {name} AS SELECT {COLUMNS} FROM a A, b B WHERE {condition};\n"
        for name, (condition, _) in QUERIES.items())
    return f"{STREAMS}{queries} SET joins = '{policy}';"


def run(
    engine: Callable[..., Any], folder: Path, sql: str, name: str = "checkpoint",
    readable: bool = True,
) -> tuple[dict[str, pa.Table], list[ev.Event], Any]:
    events: list[ev.Event] = []
    with engine(name, on_event=events.append) as e:
        e.execute(sql, folder=folder)
        summary = e.run()
        assert summary.accounting() == []
        assert summary.failures() == []
        found = {query: e.results(query) for query in summary.queries if readable}
        return found, events, summary


@pytest.fixture
def small_outers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows probe in many small groups, not all at once as in a drain of few rows."""
    monkeypatch.setattr(outers, "MOST_ROWS", 120)


@pytest.mark.parametrize("policy", EVERY)
def test_each_query_gets_the_pairs_of_duckdb_once(engine, folder, policy, small_outers):
    seed = EVERY.index(policy)
    blocks = {"a": rows(seed, 3.0, 5), "b": rows(100 + seed, 0.7, 8)}
    for stream, some in blocks.items():
        write(folder, stream, some)
    tables, events, summary = run(engine, folder, application(policy))
    sides = {stream: timely(stream, some) for stream, some in blocks.items()}
    late = sum(len(some) for some in blocks["a"]) - len(sides["a"])
    late += sum(len(some) for some in blocks["b"]) - len(sides["b"])
    for name, (_, condition) in QUERIES.items():
        expected = oracle(sides, condition)
        assert expected.total() > 0, name
        assert pairs(tables[name]) == expected, name
        assert summary.queries[name].late == late > 0
    probes = [e.work for e in events if isinstance(e, ev.JobDecided)]
    assert all(isinstance(work, ev.ProbeWork) for work in probes)
    assert len({(work.join, work.outer) for work in probes}) > 6


@pytest.mark.parametrize("policy", ["isolated", "lwo", "mqt(merge=false)"])
def test_pairs_that_are_only_counted_are_as_many_as_those_of_duckdb(
    engine, folder, policy, small_outers
):
    sides = sides_of(folder, 41)
    sql = application(policy).replace(" AS SELECT", " INTO noop AS SELECT") + f"""
        CREATE QUERY early INTO noop AS SELECT A.v FROM a A, b B WHERE A.k = B.k
            AND B.ts BETWEEN A.ts - INTERVAL 7 SECONDS AND A.ts - INTERVAL 2 SECONDS;
        CREATE QUERY site INTO noop AS SELECT {COLUMNS}, s.site FROM a A JOIN b B ON A.k = B.k
            JOIN sites s ON A.k = s.id WINDOW 3 SECONDS;
    """
    summary = run(engine, folder, sql, readable=False)[2]
    before = "A.k = B.k AND B.ts BETWEEN A.ts - INTERVAL 7 SECOND AND A.ts - INTERVAL 2 SECOND"
    conditions = {name: condition for name, (_, condition) in QUERIES.items()}
    for name, condition in {**conditions, "early": before}.items():
        expected = oracle(sides, condition).total()
        assert summary.queries[name].rows_out == expected > 0, name
    assert summary.queries["site"].rows_out == oracle(
        sides, f"A.k = B.k AND A.k = s.id AND {WITHIN.format(3)}", "a A, b B, sites s").total()


def sides_of(folder: Path, seed: int) -> dict[str, list[tuple]]:
    blocks = {"a": rows(seed, 2.0, 4), "b": rows(100 + seed, 1.0, 5)}
    for stream, some in blocks.items():
        write(folder, stream, some)
    return {stream: timely(stream, some) for stream, some in blocks.items()}


def test_rows_that_no_query_wants_are_left_out_before_the_join(engine, folder, small_outers):
    sides = sides_of(folder, 43)
    asked = {"high": "A.v > 30 AND B.v < 50", "higher": "A.v > 40 AND B.v < 40", "low": "A.v <= 5",
             "few": "A.v IN (3, 9) AND B.v % 2 = 1 AND A.v < B.v"}
    sql = STREAMS + "".join(
        f"CREATE QUERY {name}{number} {sink} AS SELECT {COLUMNS} FROM a A, b B WHERE A.k = B.k "
        f"AND {condition} WINDOW {window};\n"
        for number, (sink, window) in enumerate((
            ("", "9 SECONDS"), ("INTO noop", "20 SECONDS"), ("", "1000000 ROWS")))
        for name, condition in asked.items())
    tables, _, summary = run(engine, folder, sql, readable=False)
    assert {render(one) for join in plan(bind(sql, folder=folder)).joins
            for side in join.where for one in side} == {"(v > 30) OR (v <= 5) OR (v IN (3, 9))"}
    with engine() as e:
        tables = {name: e.results(name) for name in summary.queries if not name.endswith("1")}
    for name, condition in asked.items():
        close, wide = (oracle(sides, f"A.k = B.k AND {condition} AND {WITHIN.format(length)}")
                       for length in (9, 20))
        assert pairs(tables[f"{name}0"]) == close, name
        assert summary.queries[f"{name}1"].rows_out == wide.total() > 0, name
        known = "A.ts IS NOT NULL AND B.ts IS NOT NULL"
        assert pairs(tables[f"{name}2"]) == oracle(sides, f"A.k = B.k AND {condition} AND {known}")


def test_lookups_python_and_a_stream_with_itself_over_pairs(engine, folder):
    sides = sides_of(folder, 7)
    sql = STREAMS + f"""
        CREATE QUERY placed AS SELECT {COLUMNS}, s.site FROM a A JOIN b B ON A.k = B.k
            JOIN sites s ON A.k = s.id WHERE s.site <> 'y' WINDOW 6 SECONDS;
        CREATE QUERY maybe AS SELECT {COLUMNS}, s.site FROM a A JOIN b B ON A.k = B.k
            LEFT JOIN sites s ON B.k = s.id AND A.v > 30 WINDOW 2 SECONDS;
        CREATE QUERY python AS SELECT {COLUMNS} FROM a A, b B
            WHERE A.k = B.k AND alike(A.v, B.v) WINDOW 6 SECONDS;
        CREATE QUERY called AS SELECT {COLUMNS} FROM a A, b B WHERE alike(A.v, B.v) WINDOW 2 s;
        CREATE QUERY counted AS SELECT {COLUMNS} FROM a A, b B
            WHERE alike(A.v, B.v) AND B.v > 20 WINDOW 3 ROWS;
        CREATE QUERY itself AS SELECT {COLUMNS} FROM a A, a B
            WHERE A.k = B.k AND A.v > 10 AND B.v > 50 WINDOW 3 SECONDS;
        CREATE QUERY never AS SELECT {COLUMNS} FROM a A, b B
            WHERE A.k = B.k AND A.v > 99 WINDOW 1 s;
    """
    tables, _, summary = run(engine, folder, sql)
    near = f"A.k = B.k AND {WITHIN.format(6)}"
    columns = f"{COLUMNS}, s.site"
    assert pairs(tables["placed"]) == oracle(
        sides, f"{near} AND A.k = s.id AND s.site <> 'y'", "a A, b B, sites s", columns)
    assert pairs(tables["maybe"]) == oracle(
        sides, WITHIN.format(2), "a A JOIN b B ON A.k = B.k LEFT JOIN sites s ON B.k = s.id "
        "AND A.v > 30", columns)
    assert pairs(tables["python"]) == oracle(sides, f"{near} AND A.v <> 13 AND A.v % 2 = B.v % 2")
    assert summary.queries["python"].rejected == oracle(sides, f"{near} AND A.v = 13").total() > 0
    assert pairs(tables["called"]) == oracle(
        sides, f"{WITHIN.format(2)} AND A.v <> 13 AND A.v % 2 = B.v % 2")
    assert 0 < tables["counted"].num_rows < 6 * len(sides["a"])
    assert all(row["vb"] > 20 and row["va"] % 2 == row["vb"] % 2 and row["va"] != 13
               for row in tables["counted"].to_pylist())
    assert pairs(tables["itself"]) == oracle(
        sides, f"A.k = B.k AND A.v > 10 AND B.v > 50 AND {WITHIN.format(3)}", "a A, a B")
    assert tables["never"].num_rows == 0


def test_every_query_gets_its_pairs_in_the_order_of_the_later_rows(
    engine, folder, monkeypatch, small_outers
):
    from penstock.spark.delivery.commit import Delivery

    sides_of(folder, 11)
    seen: dict[str, list[tuple[int, list[datetime]]]] = {name: [] for name in QUERIES}
    deliver = Delivery.deliver

    def watched(self, job, plan, answers):
        held = answers.persisted()
        for member in job.members:
            table = held.project([member]).toArrow()
            later = [max(row["at"], row["bt"]) for row in table.to_pylist()]
            seen[member.query].append((job.outer, later))
        return deliver(self, job, plan, held)

    monkeypatch.setattr(Delivery, "deliver", watched)
    run(engine, folder, application("swf(merge=false)") + "SET slots = 1;")
    for query, parts in seen.items():
        # The pairs of one outer may come in parts, but none before those of an earlier one.
        assert [outer for outer, _ in parts] == sorted(outer for outer, _ in parts), query
        found: dict[int, list[datetime]] = {}
        for outer, later in parts:
            found.setdefault(outer, []).extend(later)
        parted = [later for later in found.values() if later]
        assert len(parted) > 1 and all(
            max(one) < min(other) for one, other in pairwise(parted)), query


def test_files_that_come_after_a_drain_are_joined_with_those_before(
    engine, folder, small_outers
):
    blocks = {"a": rows(21, 2.0, 4), "b": rows(121, 2.0, 4)}
    for stream, some in blocks.items():
        write(folder, stream, some[:2])
    run(engine, folder, application("mqt(merge=false)"))
    for stream, some in blocks.items():
        write(folder, stream, some)
    tables, _, _ = run(engine, folder, application("mqt(merge=false)"))
    last = max(row[0] for some in blocks.values() for block in some[:2] for row in block if row[0])
    sides = {stream: timely(stream, some) for stream, some in blocks.items()}
    early = {stream: timely(stream, some[:2]) for stream, some in blocks.items()}
    stamp = f"TIMESTAMP '{last.replace(tzinfo=None)}'"
    for name, (_, condition) in QUERIES.items():
        after = f"{condition} AND GREATEST(A.ts, B.ts) > {stamp}"
        assert pairs(tables[name]) == oracle(early, condition) + oracle(sides, after), name


def test_streams_without_a_time_are_joined_by_the_arrival_of_their_blocks(engine, folder):
    for stream in ("a", "b"):
        write(folder, stream, [[(None, key, key) for key in (1, 2)] for _ in range(2)])
    sql = """
        CREATE STREAM a (k INT, v INT) FROM parquet 'a';
        CREATE STREAM b (k INT, v INT) FROM parquet 'b';
        CREATE QUERY q AS SELECT A.v, B.v AS w FROM a A, b B WHERE A.k = B.k WINDOW 1 HOUR;
    """
    tables, _, _ = run(engine, folder, sql)
    assert pairs(tables["q"]) == Counter({(1, 1): 4, (2, 2): 4})


def test_an_empty_stream_has_no_pairs(engine, folder):
    write(folder, "a", rows(5, 1.0, 2))
    write(folder, "b", [[]])
    tables, _, summary = run(engine, folder, application("mqt"))
    assert {table.num_rows for table in tables.values()} == {0}
    assert summary.run.state == "drained"


def test_a_question_pairs_what_the_spool_holds(engine, folder):
    sides = sides_of(folder, 31)
    with engine() as e:
        e.execute(application("mqt"), folder=folder)
        e.run()
        found = e.ask(f"SELECT {COLUMNS} FROM a A, b B WHERE A.k = B.k AND A.v < 30 WINDOW 8 s")
    assert pairs(found) == oracle(sides, f"A.k = B.k AND A.v < 30 AND {WITHIN.format(8)}")
