"""Questions that order, limit, aggregate and join what is held, beside DuckDB on the same rows.

Rows come late, twice and with NULLs, and a question without a window is about all of them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.api import Engine
from penstock.errors import RunError
from tests.spark.applications import Feed
from tests.spark.asks import COLUMNS, HOSTS, LATENESS, generated
from tests.spark.feeds import write
from tests.spark.kit import eventually
from tests.spark.oracle import Oracle, Table, answers, bag

pytestmark = pytest.mark.spark

SEED, COUNT = 5, 240
SINKS = {"kept": "", "files": "INTO parquet 'out/files'", "text": "INTO csv 'out/text'",
         "lines": "INTO json 'out/lines'", "other": "INTO json 'out/lines'"}
BY_ROW = "SELECT ts, src, name, price, weight, port FROM packets"
QUERIES = {name: f"{BY_ROW} WHERE length > {100 if name == 'other' else 200}" for name in SINKS}

LOUD = ("CREATE VIEW loud AS SELECT src, port, name, length * 2 AS twice, site FROM packets "
        "LEFT JOIN hosts ON src = id WHERE length > 150;")

# What is ordered entirely is compared row by row; of the others, DuckDB says the same rows.
ORDERED = (
    "SELECT src, port, length FROM packets ORDER BY src NULLS LAST, port DESC NULLS FIRST, "
    "length DESC NULLS LAST, ts NULLS FIRST, name NULLS FIRST, weight NULLS FIRST",
    "SELECT src, length FROM packets ORDER BY 2 DESC NULLS LAST, 1 NULLS FIRST LIMIT 17 OFFSET 3",
    "SELECT DISTINCT src, port FROM packets ORDER BY port NULLS FIRST, src DESC NULLS LAST",
    "SELECT DISTINCT name FROM packets ORDER BY name DESC NULLS FIRST LIMIT 3",
    "SELECT src, COUNT(*) AS n, SUM(length) AS s FROM packets GROUP BY src "
    "ORDER BY COUNT(*) DESC, src NULLS FIRST",
    "SELECT port % 7 AS p, MAX(weight) FROM packets WHERE length > 40 GROUP BY port % 7 "
    "HAVING COUNT(*) > 2 ORDER BY p NULLS FIRST LIMIT 4",
    "SELECT a.src, b.length FROM packets a JOIN bare b ON a.src = b.src AND a.port = b.port "
    "WHERE a.length > 900 ORDER BY a.src NULLS LAST, b.length DESC NULLS LAST, a.length LIMIT 50",
    "SELECT name FROM packets UNION ALL SELECT name FROM bare ORDER BY name DESC NULLS LAST "
    "LIMIT 40",
    "SELECT k.src, COUNT(*) AS n FROM kept k GROUP BY k.src ORDER BY n, k.src NULLS FIRST",
    "SELECT src, twice FROM loud ORDER BY twice DESC NULLS LAST, src NULLS FIRST, port LIMIT 30",
    "WITH l AS (SELECT src, port FROM kept WHERE port > 9) SELECT src, COUNT(*) AS n FROM l "
    "GROUP BY src ORDER BY n DESC, src NULLS FIRST",
    "SELECT DISTINCT u.n FROM (SELECT name AS n FROM loud UNION ALL SELECT name FROM bare) AS u "
    "ORDER BY u.n DESC NULLS FIRST",
    *(f"SELECT * FROM {name} ORDER BY ts NULLS FIRST, src NULLS FIRST, name NULLS FIRST, "
      "price NULLS FIRST, weight NULLS FIRST, port NULLS FIRST" for name in SINKS),
)
UNORDERED = (
    "SELECT COUNT(*), COUNT(ts), COUNT(DISTINCT src), MIN(name), MAX(price) FROM packets",
    "SELECT COUNT(*) AS n, SUM(price) AS s, MAX(src) AS m FROM packets WHERE src > 1000",
    "SELECT SUM(length) + 1 AS s FROM packets WHERE src > 1000",
    "SELECT src, COUNT(*) FROM packets WHERE src > 1000 GROUP BY src",
    "SELECT COUNT(*) FROM packets HAVING COUNT(*) > 100000",
    "SELECT DISTINCT site, port FROM packets JOIN hosts ON src = id",
    "SELECT site, COUNT(*), SUM(length) FROM packets LEFT JOIN hosts ON src = id GROUP BY site",
    "SELECT COUNT(*), MAX(b.length) FROM packets a, bare b WHERE a.src = b.src AND "
    "a.port < b.port",
    "SELECT a.src, b.name FROM packets a JOIN packets b ON a.src = b.src AND a.ts < b.ts "
    "WHERE a.length > 700",
    "SELECT a.src, COUNT(*) FROM packets a, bare b, kept c WHERE a.src = b.src AND "
    "b.port = c.port AND a.length > 800 AND b.length > 800 GROUP BY a.src",
    "SELECT l.site, COUNT(*), MAX(k.p) FROM loud l "
    "JOIN (SELECT src AS s, port AS p FROM kept) AS k ON l.src = k.s GROUP BY l.site",
    "SELECT k.name, l.src FROM kept k JOIN lines l ON k.src = l.src AND k.ts = l.ts",
)


def tables() -> tuple[Table, Table]:
    chance = random.Random(SEED)
    rows = generated(chance, COUNT)
    twice = (*rows, *chance.sample(rows, 20))
    return (Table("packets", COLUMNS, twice),
            Table("bare", COLUMNS[1:], tuple(row[1:] for row in rows[::2])))


@pytest.fixture(scope="module")
def home(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a drained run of all queries, in ``state``."""
    folder = tmp_path_factory.mktemp("asked")
    packets, bare = tables()
    feeds = (Feed(packets, "parquet", (80, 150), lateness=LATENESS), Feed(bare, "parquet", (50,)))
    for feed in feeds:
        write(feed.table, folder / feed.table.name, "parquet", feed.cuts)
    write(HOSTS, folder / "hosts", "parquet")
    text = "\n".join([
        *(feed.statement("STREAM") for feed in feeds),
        "CREATE RELATION hosts (id INT, site STRING) FROM parquet 'hosts';",
        LOUD,
        *(f"CREATE QUERY {name} {SINKS[name]} AS {select};" for name, select in QUERIES.items()),
        "CREATE QUERY nowhere INTO noop AS SELECT src FROM bare;"])
    (folder / "app.sql").write_text(text)
    with Engine(spark=spark, checkpoint=folder / "state") as engine:
        engine.execute(text, folder=folder)
        engine.run()
    return folder


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    found = Oracle([*tables(), HOSTS])
    found._duckdb.execute(LOUD)
    for name, select in QUERIES.items():
        found._duckdb.execute(f"CREATE TABLE {name} AS {select}")
    yield found
    found.close()


@pytest.fixture(scope="module")
def reader(spark: Any, home: Path) -> Iterator[Engine]:
    with Engine(spark=spark, checkpoint=home / "state", reading=True) as engine:
        yield engine


def in_order(rows: list[tuple[Any, ...]]) -> list[Any]:
    """Rows in their order, as `bag` settles their values."""
    return [next(iter(bag([row]))) for row in rows]


@pytest.mark.parametrize("question", ORDERED)
def test_an_ordered_question_is_answered_as_by_duckdb(
    reader: Engine, oracle: Oracle, question: str
) -> None:
    table = reader.ask(question)
    found = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    expected = oracle.rows(question.replace("SUM(length)", "SUM(length)::BIGINT"))
    assert in_order(found) == in_order(expected)


@pytest.mark.parametrize("question", UNORDERED)
def test_a_question_without_a_window_is_about_all_that_is_held(
    reader: Engine, oracle: Oracle, question: str
) -> None:
    duck = question
    for whole in ("SUM(length)", "SUM(length) + 1"):
        duck = duck.replace(whole, f"({whole})::BIGINT") if whole in question else duck
    duck = duck.replace("(SUM(length))::BIGINT + 1", "(SUM(length) + 1)::BIGINT")
    assert answers(reader.ask(question)) == oracle.answer(duck)


def test_null_comes_first_and_last_of_a_descending_order_as_in_spark(reader: Engine) -> None:
    for question, place in (("", 0), ("DESC", -1), ("DESC NULLS FIRST", 0), ("NULLS LAST", -1)):
        names = reader.ask(f"SELECT name FROM packets ORDER BY name {question}")["name"]
        assert names.to_pylist()[place] is None


def test_what_was_not_kept_is_refused(reader: Engine) -> None:
    with pytest.raises(RunError, match="'nowhere' delivers to noop; results are kept for csv, "):
        reader.ask("SELECT * FROM nowhere")


def test_results_of_every_readable_sink_are_the_rows_that_were_asked_for(
    reader: Engine, oracle: Oracle
) -> None:
    for name, select in QUERIES.items():
        whole = reader.results(name)
        assert answers(whole) == oracle.answer(select), name
        assert reader.results(name, last=7).to_pylist() == whole.to_pylist()[-7:], name
        assert reader.results(name, last=10**6).num_rows == whole.num_rows, name
        assert pa.concat_tables(reader.follow(name)).num_rows == whole.num_rows  # nothing runs


def test_a_live_run_is_asked_and_followed(engine, home: Path, oracle: Oracle) -> None:
    live = engine()
    live.execute((home / "app.sql").read_text(), folder=home)
    live.execute("CREATE QUERY twice AS SELECT src FROM bare WHERE src = 1", folder=home)
    live.start()
    eventually(lambda: live.status().queries["kept"].rows_out > 0, "answers")
    asked = live.ask("SELECT name, COUNT(*) AS n FROM packets GROUP BY name ORDER BY n DESC")
    assert asked["n"].to_pylist() == sorted(asked["n"].to_pylist(), reverse=True)
    with Engine(spark=live.session, checkpoint=live.checkpoint, reading=True) as other:
        following = other.follow("kept")
        got = [next(following)]
        expected = oracle.answer(QUERIES["kept"])
        while sum(map(len, got)) < expected.total():
            got.append(next(following))
        live.close()  # the run ends, and so does what follows it
        assert list(following) == []
    found: Counter[Any] = sum(map(answers, got), Counter())
    assert found == expected


