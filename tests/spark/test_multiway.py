"""Multiway joins on Spark: each query's results are those of DuckDB, once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.engine.joins import department
from penstock.engine.joins.probe_orders import ProbeOrders
from penstock.events import kinds as ev
from penstock.language import bind
from penstock.planning import plan
from penstock.policies import filters
from penstock.spark.compile import multiway
from tests.spark import test_joins
from tests.spark.test_joins import BEGIN, bag, pairs, run, write

pytestmark = pytest.mark.spark
folder, small_outers = test_joins.folder, test_joins.small_outers


@pytest.fixture(autouse=True)
def always_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are probed, however few rows there are."""
    monkeypatch.setattr(department, "WORTH_PROBING", 0)
    monkeypatch.setattr(department, "MOST_FRESH", math.inf)


LATENESS = {"a": 4.0, "b": 2.0, "c": 0.0, "d": 1.0}
KEYS = {"a": "k INT, v INT", "b": "k INT, v INT", "c": "k INT, v INT", "d": "k INT, v INT"}
STREAMS = "".join(
    f"CREATE STREAM {name} (ts TIMESTAMP, {KEYS[name]}) FROM parquet '{name}' "
    f"OPTIONS (maxFilesPerTrigger = 1) TIME ts LATENESS {late:g} SECONDS;\n"
    for name, late in LATENESS.items()
) + """
    CREATE RELATION sites (id INT, site STRING) FROM csv 'sites.csv' OPTIONS (header = true);
    CREATE FUNCTION alike FROM 'join_functions:alike';
"""
QUERIES = {
    "star": ("a A, b B, c C", "A.k = B.k AND B.k = C.k", 6),
    "narrow": ("a A, b B, c C", "C.k = A.k AND C.k = B.k AND A.v < C.v", 2),
    "four": ("a A, b B, c C, d D", "A.k = B.k AND B.k = C.k AND C.k = D.k AND B.v > 2", 8),
    "chain": ("a A, b B, c C", "A.k = B.k AND B.v = C.v", 5),
    "longer": ("a A, b B, c C, d D", "A.k = B.k AND B.v = C.v AND C.k = D.k", 3),
    "cycle": ("a A, b B, c C", "A.k = B.k AND B.v = C.v AND A.v = C.k", 8),
    "twice": ("a A, b B, a C", "A.k = B.k AND B.k = C.v AND A.v <> C.v", 7),
    "both": ("a A, b B, d C", "A.k = B.k AND A.v = B.v AND C.k + 1 = B.k", 9),
}
"""By query: the streams, the condition, and the window in seconds."""


rows = partial(test_joins.rows, seconds=20.0, keys=(1, 1, *range(2, 12), None), values=9,
               pause=30.0)


def streams(seed: int, names: str = "abcd") -> dict[str, list[list[tuple]]]:
    rates = {"a": (1.5, 4), "b": (0.8, 5), "c": (2.0, 3), "d": (0.5, 6)}
    return {name: rows(seed + 100 * n, *rates[name]) for n, name in enumerate(names)}


def timely(blocks: Sequence[Sequence[tuple]], lateness: float) -> list[tuple]:
    """The rows that windows take."""
    found, seen = [], None
    for block in blocks:
        cutoff = None if seen is None else seen - timedelta(seconds=lateness)
        kept = [row for row in block if row[0] is None or cutoff is None or row[0] >= cutoff]
        found += kept
        times = [row[0] for row in kept if row[0] is not None]
        seen = max([*times, *([] if seen is None else [seen])], default=None)
    return found


def columns(tables: str) -> str:
    names = [table.split()[1] for table in tables.split(", ")]
    return ", ".join(f"{name}.ts AS t{name}, {name}.v AS v{name}" for name in names)


def near(tables: str, seconds: int) -> str:
    """What DuckDB must be told instead of the window."""
    times = ", ".join(f"{table.split()[1]}.ts" for table in tables.split(", "))
    named = " AND ".join(f"{table.split()[1]}.ts IS NOT NULL" for table in tables.split(", "))
    return (f"{named} AND GREATEST({times}) - LEAST({times}) < INTERVAL '{seconds} seconds'")


def oracle(
    sides: Mapping[str, Sequence[tuple]], tables: str, condition: str, seconds: int,
    select: str = "", more: str = "",
) -> Counter:
    with duckdb.connect() as connection:
        for name, found in sides.items():
            ts, k, v = zip(*found, strict=True) if found else ((), (), ())
            plain = [None if time is None else time.replace(tzinfo=None) for time in ts]
            connection.register(name, pa.table({
                "ts": pa.array(plain, pa.timestamp("us")), "k": pa.array(k, pa.int32()),
                "v": pa.array(v, pa.int32())}))
        connection.execute("CREATE TABLE sites AS SELECT * FROM (VALUES (1, 'x'), (1, 'y'), "
                           "(3, 'z')) AS t (id, site)")
        return bag(connection.execute(
            f"SELECT {select or columns(tables)} FROM {tables}{more} "
            f"WHERE {condition} AND {near(tables, seconds)}").fetchall())


def application(into: str = "") -> str:
    return STREAMS + "".join(
        f"CREATE QUERY {name}{into} AS SELECT {columns(tables)} FROM {tables} WHERE {condition} "
        f"WINDOW {seconds} SECONDS;\n" for name, (tables, condition, seconds) in QUERIES.items())


def written(folder, seed: int) -> dict[str, list[tuple]]:
    """Write streams, and tell what windows take of them."""
    made = streams(seed)
    for stream, blocks in made.items():
        write(folder, stream, blocks)
    return {stream: timely(blocks, LATENESS[stream]) for stream, blocks in made.items()}


def check(tables: Mapping[str, pa.Table], sides: Mapping[str, Sequence[tuple]]) -> None:
    for name, (streams_, condition, seconds) in QUERIES.items():
        expected = oracle(sides, streams_, condition, seconds)
        assert expected.total() > 0, name
        assert pairs(tables[name]) == expected, name


@pytest.mark.parametrize("seed", [1, 2])
def test_each_query_gets_the_results_of_duckdb_once(engine, folder, seed, small_outers):
    sides = written(folder, seed)
    tables, events, summary = run(engine, folder, application())
    check(tables, sides)
    probes = [e for e in events if isinstance(e, ev.JobFinished) and e.kind == "probe"]
    profiles = [profile for e in probes for profile in e.result.profiles]
    assert any(profile.probed[0] > profile.left > 0 for profile in profiles)
    assert any(profile.dropped for profile in profiles)
    late = sum(len(block) for block in streams(seed)["a"]) - len(sides["a"])
    assert summary.queries["twice"].late > late > 0, "a stream that is read twice is late twice"


def test_results_that_are_only_counted_are_as_many_as_those_of_duckdb(
    engine, folder, small_outers
):
    sides = written(folder, 3)
    summary = run(engine, folder, application(" INTO noop"), readable=False)[2]
    for name, (tables, condition, seconds) in QUERIES.items():
        expected = oracle(sides, tables, condition, seconds).total()
        assert summary.queries[name].rows_out == expected, name


def test_rows_that_are_too_many_to_be_broadcast_are_joined_alike(
    engine, folder, monkeypatch, small_outers
):
    monkeypatch.setattr(multiway, "FEW", 0)
    sides = written(folder, 4)
    check(run(engine, folder, application())[0], sides)


def test_so_few_rows_that_they_are_not_worth_probing_are_joined_alike(
    engine, folder, monkeypatch, small_outers
):
    monkeypatch.setattr(department, "WORTH_PROBING", 1_000_000)
    sides = written(folder, 9)
    tables, events, _ = run(engine, folder, application())
    check(tables, sides)
    assert not any(e.result.profiles for e in events
                   if isinstance(e, ev.JobFinished) and e.kind == "probe")


def test_lookups_and_python_see_the_rows_of_all_streams(engine, folder):
    sides = written(folder, 5)
    join = "a A JOIN b B ON A.k = B.k JOIN c C ON C.k = B.k"
    sql = STREAMS + f"""
        CREATE QUERY placed AS SELECT A.v, C.v AS w, s.site FROM {join} JOIN sites s ON A.k = s.id
          WINDOW 6 SECONDS;
        CREATE QUERY checked AS SELECT A.v, B.v AS u, C.v AS w FROM {join} WHERE alike(A.v, C.v)
          WINDOW 6 SECONDS;
    """
    tables = run(engine, folder, sql)[0]
    streams_, condition = "a A, b B, c C", "A.k = B.k AND B.k = C.k"
    assert pairs(tables["placed"]) == oracle(
        sides, streams_, f"{condition} AND A.k = s.id", 6, "A.v, C.v, s.site", ", sites s")
    assert pairs(tables["checked"]) == oracle(
        sides, streams_, f"{condition} AND A.v % 2 = C.v % 2", 6, "A.v, B.v, C.v")


def test_an_aggregate_covers_the_results_whose_rows_all_lie_in_its_window(
    engine, folder, small_outers
):
    sides = written(folder, 6)
    sql = STREAMS + """
        CREATE QUERY q AS SELECT A.k, COUNT(*) AS n, SUM(C.v) AS total FROM a A, b B, c C
          WHERE A.k = B.k AND B.k = C.k GROUP BY A.k WINDOW 8 SECONDS SLIDE EXACTLY 4 SECONDS;
    """
    found = run(engine, folder, sql)[0]["q"].to_pylist()
    assert found
    for row in found:
        inside = {name: [one for one in some if one[0] is not None
                         and row["window_start"] <= one[0] < row["window_end"]]
                  for name, some in sides.items()}
        expected = oracle(inside, "a A, b B, c C", "A.k = B.k AND B.k = C.k", 8, "A.k, C.v")
        mine = [v for k, v in expected.elements() if k == row["k"]]
        assert (row["n"], row["total"]) == (len(mine), sum(mine)), row
    every = oracle(sides, "a A, b B, c C", "A.k = B.k AND B.k = C.k", 4, "A.k")
    assert {k for (k,) in every} <= {row["k"] for row in found}


@pytest.mark.parametrize("empty", ["a", "b", "d"])
def test_without_rows_of_one_stream_there_are_no_results(engine, folder, empty):
    for stream, blocks in streams(7).items():
        write(folder, stream, [[]] if stream == empty else blocks)
    tables, _, summary = run(engine, folder, STREAMS + f"""
        CREATE QUERY q AS SELECT {columns(QUERIES['four'][0])} FROM {QUERIES['four'][0]}
          WHERE {QUERIES['four'][1]} WINDOW 8 SECONDS;
    """)
    assert tables["q"].num_rows == 0
    assert summary.run.state == "drained"


def test_a_question_joins_what_the_spool_holds(engine, folder):
    sides = written(folder, 8)
    tables, condition, seconds = QUERIES["chain"]
    with engine() as e:
        e.execute(application(), folder=folder)
        e.run()
        found = e.ask(f"SELECT {columns(tables)} FROM {tables} WHERE {condition} AND A.v < 5 "
                      f"WINDOW {seconds} SECONDS")
    assert pairs(found) == oracle(sides, tables, f"{condition} AND A.v < 5", seconds)


def test_the_stream_that_drops_the_most_comes_first_and_results_stay_the_same(
    engine, folder, small_outers
):
    # Every key is on a and b, and only one in nine is on c.
    made = {name: [[(BEGIN + timedelta(seconds=n + number / 20), 40 * n + number, number % 9)
                    for number in range(40) if name != "c" or number % 9 == 0]
                   for n in range(0, 60, 2)] for name in "abcd"}
    for stream, blocks in made.items():
        write(folder, stream, blocks)
    policy = "a_greedy(p=1, enough=30)"
    sql = STREAMS + f"""
        SET filters = '{policy}';
        CREATE QUERY q AS SELECT A.v, B.v AS u, C.v AS w FROM a A, b B, c C
          WHERE A.k = B.k AND B.k = C.k WINDOW 3 SECONDS;
    """
    tables, events, summary = run(engine, folder, sql)
    assert tables["q"].num_rows == sum(map(len, made["c"]))
    told = [e for e in events if isinstance(e, ev.ProbesReordered)]
    assert ("a", ("c", "b")) in [(one.stream, one.order) for one in told]
    assert all(one.after < one.before for one in told)
    (known,) = summary.probes.values()
    assert known["b"].order == ("c", "a") and known["b"].matrix
    # The record alone leads to the same decisions.
    (join,) = plan(bind(sql)).joins
    again = ProbeOrders(filters.policy(policy), join)
    found = [one for e in events if isinstance(e, ev.JobFinished)
             for one in again.take(e.at, e.result.profiles)]
    assert found == told


def test_a_hot_key_and_rows_of_one_time_are_joined_once(engine, folder, small_outers):
    made = {name: [[(BEGIN + timedelta(seconds=2 * n + row % 2), 1 if row % 3 else row, row)
                    for row in range(9)] for n in range(8)] for name in "abcd"}
    for stream, blocks in made.items():
        write(folder, stream, blocks)
    tables, condition, _ = QUERIES["star"]
    sql = STREAMS + (f"CREATE QUERY q AS SELECT {columns(tables)} FROM {tables} "
                     f"WHERE {condition} WINDOW 2 SECONDS;")
    found = run(engine, folder, sql)[0]["q"]
    sides = {name: timely(blocks, LATENESS[name]) for name, blocks in made.items()}
    assert pairs(found) == oracle(sides, tables, condition, 2)


def test_keys_that_are_equal_in_sql_are_equal_as_hashes(engine, folder):
    keys = {"a": [0.0, math.nan, 1.5, None], "b": [-0.0, math.nan, 2.5, None],
            "c": [0.0, math.nan, 1.5, None]}
    for name, some in keys.items():
        (folder / name).mkdir()
        pq.write_table(pa.table({
            "ts": pa.array([BEGIN] * len(some), pa.timestamp("us", "UTC")),
            "k": pa.array(some, pa.float64()), "v": pa.array(range(len(some)), pa.int32())}),
            folder / name / "0.parquet")
    sql = "".join(f"CREATE STREAM {name} (ts TIMESTAMP, k DOUBLE, v INT) FROM parquet '{name}' "
                  "TIME ts;\n" for name in keys)
    tables = run(engine, folder, sql + """
        CREATE QUERY q AS SELECT A.v, B.v AS u, C.v AS w FROM a A, b B, c C
          WHERE A.k = B.k AND B.k = C.k WINDOW 1 SECOND;
    """)[0]
    assert pairs(tables["q"]) == Counter([(0, 0, 0), (1, 1, 1)])
