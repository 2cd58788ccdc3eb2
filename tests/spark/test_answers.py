"""The answers of whole applications are those of DuckDB, whatever the format and the block size.

Generated applications come from a fixed seed. To look further::

    PENSTOCK_SEED=7 PENSTOCK_EXAMPLES=9 python -m pytest tests/spark/test_answers.py -k generated

Several seeds find more than many examples of one: Hypothesis begins with the simplest application
and later varies what it has. A failure prints the application, and for each query what is missing
and what is too many; `PENSTOCK_SHRINK=1` makes Hypothesis look for a smaller one, which takes
minutes.
"""

from __future__ import annotations

import math
import os
import random
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, note, seed, settings

from penstock.api import Engine
from penstock.language import bind
from penstock.planning.passes import plan
from penstock.spark.compile.compiler import Compiler
from tests.spark.applications import Drawn, Feed, Question, applications
from tests.spark.expressions import NOON, POOLS, TYPES
from tests.spark.feeds import FORMATS
from tests.spark.oracle import Oracle, Table, answers, bag, difference

pytestmark = pytest.mark.spark

SEED = int(os.environ.get("PENSTOCK_SEED", "10"))
EXAMPLES = int(os.environ.get("PENSTOCK_EXAMPLES", "5"))
SHRINK = [Phase.shrink] if os.environ.get("PENSTOCK_SHRINK") else []


def check_books(summary, app: Drawn) -> None:
    """Every row is accounted for, and every query came to its end."""
    assert summary.accounting() == []
    assert not summary.warnings
    assert {m.name: m.state for m in summary.queries.values()} == {
        query.name: "done" for query in app.queries
    }
    assert summary.run.state == "drained"
    for feed in app.streams:
        measured = summary.streams.get(feed.table.name)
        if measured is not None:
            read, late = len(feed.table.rows), len(feed.table.rows) - len(feed.punctual().rows)
            assert (measured.read, measured.late, measured.rejected) == (read, late, 0), feed
            blocks = feed.blocks()
            assert not all(blocks) or measured.blocks == len(blocks), feed


def delivered(spark, folder: Path, app: Drawn) -> dict:
    """Run an application on the data in a folder; the answers of each query as Arrow."""
    with Engine(spark=spark, checkpoint=folder / "checkpoint") as engine:
        engine.execute(app.sql, folder=folder)
        summary = engine.run()
        check_books(summary, app)
        return {query.name: engine.results(query.name) for query in app.queries}


def check_answers(spark, folder: Path, app: Drawn) -> dict:
    """Run an application and compare it with the oracle."""
    app.write(folder)
    tables = delivered(spark, folder, app)
    oracle = Oracle(app.tables)
    faults = []
    for query in app.queries:
        found = difference(oracle.answer(query.select), answers(tables[query.name]))
        if found:
            faults.append(f"{query.name}: {query.select}\n{found}")
    oracle.close()
    assert not faults, "\n\n".join(faults)
    return tables


@pytest.mark.parametrize("format_", [
    name if name == "parquet" else pytest.param(name, marks=pytest.mark.long) for name in FORMATS])
def test_generated_applications_give_the_rows_of_duckdb(spark, tmp_path_factory, format_):
    @seed(SEED * len(FORMATS) + FORMATS.index(format_))
    @settings(
        max_examples=EXAMPLES,
        database=None,
        phases=[Phase.explicit, Phase.generate, *SHRINK],
        suppress_health_check=list(HealthCheck),
    )
    @given(applications(format_))
    def check(app: Drawn) -> None:
        note(f"-- PENSTOCK_SEED={SEED} PENSTOCK_EXAMPLES={EXAMPLES}\n{app.sql}")
        check_answers(spark, tmp_path_factory.mktemp("generated"), app)

    check()


# --- one application, several ways ---------------------------------------------------------------

COLUMNS = (("ts", "TIMESTAMP"), ("id", "BIGINT"), *(
    (f"{type_.split('(')[0].lower()}_", type_) for type_ in TYPES
))


def rows(count: int, seed_: int = 5) -> tuple[tuple, ...]:
    """Rows with every type, NULLs, extremes, and times a little out of order."""
    chance = random.Random(seed_)
    return tuple(
        (NOON + timedelta(seconds=number - chance.randrange(20)), number,
         *(None if chance.random() < 0.1 else chance.choice(POOLS[type_]) for type_ in TYPES))
        for number in range(count)
    )


LOOKUP = Table(
    "lookup", (("key", "INT"), ("site", "STRING")),
    ((1, "x"), (1, "y"), (1, "y"), (2, "z"), (None, "nobody"), (9, None), (80, "web")),
)

SELECTS = (
    "SELECT * FROM {s}",
    "SELECT id FROM {s} WHERE int_ = 80",
    "SELECT id FROM {s} WHERE int_ = 443",
    "SELECT id FROM {s} WHERE int_ = 443 AND double_ > 0",
    "SELECT id, int_ FROM {s} WHERE int_ IN (1, 2, 80, 1)",
    "SELECT id FROM {s} WHERE int_ NOT IN (1, NULL)",
    "SELECT id FROM {s} WHERE NOT int_ IN (1, 2)",
    "SELECT id FROM {s} WHERE int_ BETWEEN 1 AND 3",
    "SELECT id FROM {s} WHERE int_ > 2 AND int_ <= 80 AND string_ IS NOT NULL",
    "SELECT id FROM {s} WHERE bigint_ >= 9007199254740993",
    "SELECT id FROM {s} WHERE bigint_ = -9223372036854775808 OR bigint_ = 5",
    "SELECT id, double_ FROM {s} WHERE double_ = 0",
    "SELECT id FROM {s} WHERE double_ > 1e300",
    "SELECT id FROM {s} WHERE double_ < 0.1",
    "SELECT id FROM {s} WHERE double_ = CAST('NaN' AS DOUBLE)",
    "SELECT id FROM {s} WHERE decimal_ BETWEEN 0.01 AND 2",
    "SELECT id FROM {s} WHERE decimal_ = 2.25",
    "SELECT id, string_ FROM {s} WHERE string_ = ''",
    "SELECT id FROM {s} WHERE string_ = 'it''s'",
    "SELECT id FROM {s} WHERE string_ = 'back\\\\slash'",
    "SELECT id FROM {s} WHERE string_ LIKE 'a%' AND boolean_",
    "SELECT id FROM {s} WHERE string_ IN ('é', '日本語', '😀')",
    "SELECT id FROM {s} WHERE NOT boolean_",
    "SELECT id FROM {s} WHERE boolean_ IS NULL OR date_ IS NULL",
    "SELECT id FROM {s} WHERE date_ = DATE '2024-02-29'",
    "SELECT id FROM {s} WHERE date_ < DATE '1970-01-01'",
    "SELECT id FROM {s} WHERE timestamp_ > TIMESTAMP '2024-02-29 12:00:00'",
    "SELECT id FROM {s} WHERE ts >= TIMESTAMP '2024-02-29 12:00:30'",
    "SELECT id, /*try*/(int_ + 1) AS more, 'rule' AS rule FROM {s} WHERE /*try*/(int_ + 1) IS NULL",
    "SELECT id, 17 AS rule FROM {s} WHERE /*try*/(int_ * int_) = 49",
    "SELECT id, UPPER(string_) AS loud FROM {s} WHERE LENGTH(string_) = 2",
    "SELECT id, site FROM {s} JOIN lookup ON int_ = key",
    "SELECT id, site FROM {s} JOIN lookup ON int_ = key WHERE site = 'y'",
    "SELECT id, site, key FROM {s} LEFT JOIN lookup ON int_ = key",
    "SELECT id, site FROM {s} LEFT JOIN lookup ON int_ = key WHERE site IS NULL",
    "SELECT id, site FROM {s} LEFT JOIN lookup ON int_ = key AND site <> 'y' WHERE id < 40",
    "SELECT id FROM {s} WHERE int_ = 1 UNION ALL SELECT id FROM {s} WHERE int_ < 3",
)


def questions(stream: str, prefix: str = "q") -> tuple[Question, ...]:
    return tuple(
        Question(f"{prefix}{number}", select.format(s=stream))
        for number, select in enumerate(SELECTS)
    )


def feed(name: str, format_: str, data: tuple[tuple, ...], files: int, block: int) -> Feed:
    cuts = tuple(len(data) * k // files for k in range(1, files))
    return Feed(Table(name, COLUMNS, data), format_, cuts, block, lateness=60)


def test_formats_and_block_sizes_do_not_change_the_answers(spark, tmp_path):
    data = rows(120)
    queries = [q for f in FORMATS for q in questions(f"from_{f}", f"{f}_")]
    streams = tuple(feed(f"from_{f}", f, data, files=4, block=1) for f in FORMATS)
    small = Drawn(streams, (Feed(LOOKUP, "csv"),), tuple(queries))
    tables = check_answers(spark, tmp_path / "small", small)
    whole = replace(small, streams=tuple(replace(s, block=4) for s in streams))
    large = check_answers(spark, tmp_path / "large", whole)
    for name, table in tables.items():
        assert answers(table) == answers(large[name]), name
    for f in FORMATS:
        # Exactly the numbers written, -0.0 too, which equals 0.0 in a comparison.
        kept = sorted(rows_of(tables[f"{f}_0"]), key=lambda row: row[1])
        assert [list(map(repr, row[2:6])) for row in kept] == [
            list(map(repr, row[2:6])) for row in data
        ]


def alone(spark, folder: Path, app: Drawn) -> dict[str, Counter]:
    """The answers of each query by itself, without an engine, from a Parquet stream at rest."""
    found: dict[str, Counter] = defaultdict(Counter)
    with Engine(spark=spark) as engine:
        session = engine.session
        blocks = {s.table.name: session.read.parquet(str(folder / s.table.name))
                  for s in app.streams}  # fmt: skip
        relations = {r.table.name: session.createDataFrame(r.table.arrow()) for r in app.relations}
        bound = bind(app.sql, folder=folder)
        made = plan(bound)
        compiler = Compiler(
            session, bound, made, lambda name, _: relations[name], lambda name: None)
        for path in made.paths:
            for member in path.members:
                answer = compiler.answers(path, (member,), blocks[path.reads]).project([member])
                found[member.query] += answers(answer.drop("@member").toArrow())
    return found


def check_alike(app: Drawn, one: dict[str, Counter], other: dict[str, Counter]) -> None:
    differences = [
        f"{query.select}\n{text}" for query in app.queries
        if (text := difference(one[query.name], other[query.name]))
    ]  # fmt: skip
    assert not differences, "\n\n".join(differences)


def test_a_query_in_a_shared_plan_answers_as_alone(spark, tmp_path):
    app = Drawn((feed("s", "parquet", rows(150, 7), files=2, block=1),), (Feed(LOOKUP, "json"),),
                questions("s"))  # fmt: skip
    shared = check_answers(spark, tmp_path, app)
    check_alike(app, alone(spark, tmp_path, app), {n: answers(t) for n, t in shared.items()})


def test_filters_of_a_query_alone_find_nan_and_both_zeros_in_parquet(spark, tmp_path):
    """A row group's statistics leave NaN out, and its dictionary takes -0.0 and 0.0 for two."""
    data = [(1.0, -0.0), (2.0, -0.0), (math.nan, -0.0), (0.0, 0.0), (-0.0, 0.0), (None, None)]
    conditions = (
        "x > 5", "x >= 5", "x <= 5", "NOT x <= 5", "x = CAST('NaN' AS DOUBLE)", "x <> 1",
        "x IN (CAST('NaN' AS DOUBLE), 7)", "x BETWEEN 5 AND CAST('NaN' AS DOUBLE)",
        "y = 0", "y >= 0", "y <= 0", "y < 0", "y <> 0", "y IN (0, 5)", "y BETWEEN 0 AND 1",
        "y IS NOT DISTINCT FROM 0", "y <= -0.0e0", "NOT y <> 0",
    )  # fmt: skip
    queries = tuple(Question(f"q{n}", f"SELECT x, y FROM s WHERE {condition}")
                    for n, condition in enumerate(conditions))  # fmt: skip
    stream = Feed(Table("s", (("x", "DOUBLE"), ("y", "DOUBLE")), tuple(data)), "parquet")
    app = Drawn((stream,), (), queries)
    (tmp_path / "s").mkdir()
    for number, rows_ in enumerate((data[:3], data[3:])):
        pq.write_table(stream.table.arrow(rows_), tmp_path / "s" / f"{number}.parquet")
    oracle = Oracle(app.tables)
    check_alike(app, {q.name: oracle.answer(q.select) for q in queries},
                alone(spark, tmp_path, app))  # fmt: skip


def test_filters_find_nan_and_both_zeros_in_blocks_held_in_memory(spark, tmp_path):
    """Several paths keep a block hot; Spark's statistics of what it holds leave NaN out, too."""
    data = ((1.0, -0.0), (2.0, -0.0), (math.nan, -0.0))
    columns = (("x", "DOUBLE"), ("y", "DOUBLE"))
    stream = Feed(Table("s", columns, data), "csv")
    keys = Feed(Table("keys", (("k", "DOUBLE"), ("v", "DOUBLE")), data), "json")
    froms = ("FROM s JOIN keys ON x = k", "FROM s LEFT JOIN keys ON y = v")
    conditions = ("x > 5", "y = 0")
    queries = tuple(
        Question(f"q{n}_{k}", f"SELECT x, y {source} WHERE {condition}")
        for n, source in enumerate(froms) for k, condition in enumerate(conditions)
    )  # fmt: skip
    lone = Question("lone", "SELECT x, y FROM s WHERE x > 5")  # the one member of its path
    check_answers(spark, tmp_path, Drawn((stream,), (keys,), (lone, *queries)))


def test_a_thousand_queries_give_the_rows_of_duckdb(spark, tmp_path):
    chance = random.Random(11)
    columns = (("port", "INT"), ("length", "INT"), ("host", "STRING"))
    data = tuple(
        (None if chance.random() < 0.02 else chance.randrange(1100), chance.randrange(1500),
         f"host-{chance.randrange(50)}")
        for _ in range(6000)
    )
    table = Table("packets", columns, data)
    queries = tuple(
        Question(f"port_{c}", f"SELECT port, length, host FROM packets WHERE port = {c}",
                 " INTO parquet 'out'")
        for c in range(1000)
    )
    app = Drawn((Feed(table, "parquet", (2500, 2500, 4000), block=2),), (), queries)
    app.write(tmp_path)
    with Engine(spark=spark, checkpoint=tmp_path / "checkpoint") as engine:
        engine.execute(app.sql, folder=tmp_path)
        check_books(engine.run(), app)
    got = defaultdict(list)
    for row in ds.dataset(tmp_path / "out", partitioning="hive").to_table().to_pylist():
        got[row["query"]].append((row["port"], row["length"], row["host"]))
    oracle = Oracle(app.tables)
    for query in queries:
        found = difference(oracle.answer(query.select), bag(got[query.name]))
        assert not found, f"{query.select}\n{found}"


def test_transcendental_functions_agree_to_the_last_digits(spark, tmp_path):
    """Libraries differ in the last bit, so these are compared to within 1e-14 of the value."""
    numbers = (0.5, 1.0, 2.5, 10.0, 1e-300, 1e300, 0.0, -1.0, 700.0, 710.0, math.inf, None)
    table = Table("s", (("id", "INT"), ("x", "DOUBLE")), tuple(enumerate(numbers)))
    functions = ("LN(x)", "EXP(x)", "POWER(x, 2)", "POWER(2, x)", "SQRT(ABS(x))")
    items = ", ".join(f"/*try*/({f}) AS f{n}" for n, f in enumerate(functions))
    query = Question("q", f"SELECT id, {items} FROM s")
    app = Drawn((Feed(table, "json"),), (), (query,))
    app.write(tmp_path)
    got = sorted(map(tuple, rows_of(delivered(spark, tmp_path, app)["q"])))
    expected = sorted(map(tuple, Oracle(app.tables).rows(query.select)))
    assert len(got) == len(expected) == len(numbers)
    for ours, theirs in zip(got, expected, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert a == b or math.isclose(a, b, rel_tol=1e-14), (ours, theirs)


def rows_of(table) -> list[tuple]:
    return [tuple(row.values()) for row in table.to_pylist()]
