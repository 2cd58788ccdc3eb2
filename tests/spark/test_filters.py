"""Conjunctions on Spark: whatever order is decided, answers, rejects and books are the same."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.engine.instructions import Evaluation
from penstock.engine.paths import small_answers
from penstock.events import JobFinished, OrderChanged, Summary
from penstock.language import bind
from penstock.planning import plan
from penstock.spark.compile import (
    conjunction_worker,
    file_scans,
    shared_conjunction,
    worker_batches,
    worker_sinks,
)
from penstock.spark.compile.compiler import Compiler
from penstock.spark.compile.file_scans import FileScan, LocalFile, scan_of

pytestmark = pytest.mark.spark

FUNCTIONS = '''
import time
import penstock, pyarrow as pa, pyarrow.compute as pc

@penstock.predicate
def slow(a):
    time.sleep(2e-6 * len(a))
    return pc.not_equal(pc.bit_wise_and(a, 15), 3)

@penstock.predicate
def half(a):
    return pc.equal(pc.bit_wise_and(a, 1), 0)

@penstock.predicate(columns="pandas")
def few(b):
    return b % 8 == 1

@penstock.predicate
def fussy(b):
    if any(value is not None and value % 10 == 7 for value in b.to_pylist()):
        raise ValueError("it ends in seven")
    return pc.less(b, 100000)

@penstock.predicate
def broken(a):
    raise RuntimeError("broken")

@penstock.predicate(deterministic=False)
def sometimes(a):
    return pc.equal(pc.bit_wise_and(a, 3), 0)

@penstock.scalar("BIGINT")
def tenfold(a):
    return pc.multiply(a.cast(pa.int64()), 10)
'''
DECLARED = "".join(f"CREATE FUNCTION {name} FROM 'conjoined:{name}';" for name in (
    "slow", "half", "few", "fussy", "broken", "sometimes", "tenfold"))
STREAM = "CREATE STREAM s (id INT, a INT, b INT) FROM parquet 'in' {options};" + DECLARED
ROWS = 4000


def values(file: int) -> list[dict[str, int | None]]:
    return [{"id": n, "a": None if n % 31 == 5 else n * 7 % 1000,
             "b": None if n % 37 == 3 else n * 11 % 10_007}
            for n in range(file * ROWS, (file + 1) * ROWS)]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    sys.modules.pop("conjoined", None)
    (tmp_path / "conjoined.py").write_text(FUNCTIONS)
    (tmp_path / "in").mkdir()
    schema = pa.schema([("id", pa.int32()), ("a", pa.int32()), ("b", pa.int32())])
    for file in range(5):
        pq.write_table(pa.Table.from_pylist(values(file), schema),
                       tmp_path / "in" / f"{file}.parquet")
    yield tmp_path
    sys.modules.pop("conjoined", None)


class Raises(Exception):
    """What a predicate does in the oracle."""


def raises(b: int | None) -> bool:
    if b is not None and b % 10 == 7:
        raise Raises
    return b is not None and b < 100_000


MEANING: dict[str, Callable[[dict[str, Any]], bool]] = {
    "slow(a)": lambda row: row["a"] is not None and row["a"] & 15 != 3,
    "half(a)": lambda row: row["a"] is not None and row["a"] % 2 == 0,
    "few(b)": lambda row: row["b"] is not None and row["b"] % 8 == 1,
    "fussy(b)": lambda row: raises(row["b"]),
    "tenfold(a) > 90": lambda row: row["a"] is not None and row["a"] * 10 > 90,
    "tenfold(b) < 90000": lambda row: row["b"] is not None and row["b"] * 10 < 90_000,
    "NOT few(b)": lambda row: row["b"] is None or row["b"] % 8 != 1,
    "sometimes(a)": lambda row: row["a"] is not None and row["a"] & 3 == 0,
    "id % 3 > 0": lambda row: row["id"] % 3 > 0,
    "fragile(id)": lambda row: True,
}


def expected(conditions: tuple[str, ...], files: int = 5) -> tuple[list[int], list[int]]:
    """In plain Python: the ids of the answers and of the rejects."""
    answers: list[int] = []
    rejects: list[int] = []
    for row in (row for file in range(files) for row in values(file)):
        verdicts = []
        for condition in conditions:
            try:
                verdicts.append(MEANING[condition](row))
            except Raises:
                verdicts.append(None)
        if False not in verdicts:
            (rejects if None in verdicts else answers).append(row["id"])
    return answers, rejects


WRITTEN = ("slow(a)", "fussy(b)", "half(a)", "few(b)")
FILTERS = "a_greedy(p=0.2, window=400, enough=50)"


def application(
    conditions: tuple[str, ...] = WRITTEN, filters: str = FILTERS, operators: str = "fifo",
    files: int = 1,
) -> str:
    options = f"OPTIONS (maxFilesPerTrigger = {files})"
    return STREAM.format(options=options) + f"""
        SET filters = '{filters}'; SET operators = '{operators}'; SET slots = 1;
        CREATE QUERY q AS SELECT id FROM s WHERE {' AND '.join(conditions)};"""


def test_all_orders_give_the_same_answers_and_rejects(spark: Any, folder: Path) -> None:
    """The frames themselves, with NULLs and a predicate that raises, whole and in two parts.

    Rows that come whole are read by Spark. If a part is kept, workers have read them.
    """
    conditions = ("fussy(b)", "half(a)", "tenfold(a) > 90", "NOT few(b)")
    app = bind(application(conditions), folder=folder)
    made = plan(app)
    functions = {name: getattr(__import__("conjoined"), name) for name in
                 ("few", "half", "fussy", "tenfold")}
    compiler = Compiler(spark, app, made, lambda name: None, functions.__getitem__)
    (path,) = made.paths
    file = folder / "in" / "0.parquet"
    block = spark.read.parquet(str(file))
    assert path.movable == 3
    columns = compiler.columns_in_python(path, path.members)
    assert columns is not None and {column.name for column in columns} == {"id", "a", "b"}
    scan = scan_of([LocalFile(file, is_ours=False)], columns, ROWS, tasks=2)
    assert scan is not None
    answers, rejects = expected(conditions, files=1)
    for order in permutations(range(3)):
        for cut in (None, 1, 2):
            evaluation = Evaluation(order=order, rate=0.1, unasked=((1, 2), (2,), ()))
            frame, first = block, 0
            if cut is not None:
                part = compiler.part(path, path.members[0], scan.frame(spark), 0, cut, evaluation,
                                     scan)
                frame, first = part.frame.localCheckpoint(), cut
                evaluation = Evaluation(order=(*order[:cut], *reversed(order[cut:])))
            found = compiler.answers(path, path.members, frame, first, evaluation)
            got = found.frame.select("@error", *(c.alias(f"c{n}") for n, c in enumerate(
                found.shown()))).toArrow()
            ids = [json.loads(row["row"])["id"] for row in found.rejects().collect()]
            assert sorted(ids) == rejects, (order, cut)
            assert sorted(row["id"] for row in found.project(path.members).collect()) == answers
            assert set(got["@error"].to_pylist()) <= {None, "ValueError: it ends in seven"}


def played(engine: Any, folder: Path, sql: str) -> tuple[list[Any], Summary, Any]:
    """A drained run: its events, its summary, and the engine."""
    events: list[Any] = []
    one = engine(on_event=events.append)
    one.execute(sql, folder=folder)
    summary = one.run()
    assert (summary.run.state, summary.failures()) == ("drained", [])
    return events, summary, one


def orders(events: list[Any]) -> list[OrderChanged]:
    return [event for event in events if isinstance(event, OrderChanged)]


@pytest.mark.parametrize(("filters", "operators", "files"), [
    (FILTERS, "fifo", 1), (FILTERS, "chain", 1), (FILTERS, "round_robin", 2),
    ("sweep(p=0.2, window=400, enough=50)", "fifo", 1), ("static_greedy", "greedy", 5)])
def test_answers_rejects_and_books_are_those_of_plain_python(
    engine: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, filters: str, operators: str,
    files: int,
) -> None:
    scans = list[int]()
    frame = FileScan.frame
    monkeypatch.setattr(FileScan, "frame", lambda scan, spark: (
        scans.append(len(scan.tasks)), frame(scan, spark))[1])
    events, summary, one = played(engine, folder, application(WRITTEN, filters, operators, files))
    answers, rejects = expected(WRITTEN)
    assert sorted(one.results("q")["id"].to_pylist()) == answers
    assert summary.queries["q"].rejected == len(rejects) > 0
    assert not [event for event in events if type(event).__name__ == "JobFailed"]
    assert scans, "workers read the files themselves: nothing comes before the predicates"


def test_the_order_is_learnt_and_recorded(engine: Any, folder: Path) -> None:
    events, summary, one = played(engine, folder, application())
    assert orders(events), "the predicate that is written first is the slowest and drops least"
    change = orders(events)[0]
    assert set(change.order[:2]) == {"half(a)", "few(b)"}, "these drop most, and none sleeps"
    assert change.after < change.before / 2
    assert summary.conjunctions["q#0"].order == orders(events)[-1].order
    profiles = [event.result.profile for event in events if isinstance(event, JobFinished)]
    assert all(profile is not None and profile.passed >= 0 for profile in profiles)
    for measured in (event.result.measured for event in events if isinstance(event, JobFinished)):
        kept = {name: told.rows_out / told.rows_in for name, told in measured.items()}
        assert kept["q#0:python1"] > 0.8, "slow drops least, in whichever place it is"
        assert kept["q#0:python4"] < 0.3 < kept["q#0:python3"] < 0.6, "few drops more than half"
    slow = profiles[0].seconds[0]
    assert slow is not None and slow > 2e-6, "the sleep of the slow one"


def test_partitions_whose_rows_differ_have_orders_of_their_own(
    engine: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every second file `few` drops everything, in the others `half`; a task reads a file."""
    monkeypatch.setattr(conjunction_worker, "PART_ROWS", 400)
    schema = pa.schema([("id", pa.int32()), ("a", pa.int32()), ("b", pa.int32())])
    rows = [{"id": n, "a": n % 2 if file % 2 else 2, "b": 0 if file % 2 == 0 and n % 9 else 9}
            for file in range(6) for n in range(file * ROWS, (file + 1) * ROWS)]
    for file in range(6):
        some = rows[file * ROWS:(file + 1) * ROWS]
        pq.write_table(pa.Table.from_pylist(some, schema), folder / "in" / f"{file}.parquet")
    policy = "a_greedy(p=1, window=8000, enough=50, per_partition=0.2)"
    events, summary, one = played(
        engine, folder, application(("half(a)", "few(b)"), policy, files=2))
    assert sorted(one.results("q")["id"].to_pylist()) == [
        row["id"] for row in rows if row["a"] % 2 == 0 and row["b"] % 8 == 1]
    own = [order for event in events if isinstance(event, JobFinished)
           for order in event.result.profile.own]
    assert own and {len(order) for order in own} == {2}
    assert summary.profiling.partitions == len(own)
def test_sql_conditions_are_ordered_by_what_they_cost_and_drop(
    engine: Any, folder: Path, spark: Any
) -> None:
    """Two patterns look alike, and only one drops anything; every order gives the same answers."""
    for file in range(3):
        table = pq.read_table(folder / "in" / f"{file}.parquet")
        texts = pa.array([f"row {n} of many" for n in table["id"].to_pylist()])
        pq.write_table(table.append_column("text", texts), folder / "in" / f"{file}.parquet")
    for file in (3, 4):
        (folder / "in" / f"{file}.parquet").unlink()
    conditions = ("text LIKE '%o%m_n_'", "text LIKE '%7_ of%'", "b <> 11")
    sql = STREAM.replace("b INT)", "b INT, text STRING)").format(
        options="OPTIONS (maxFilesPerTrigger = 1)") + f"""
        SET filters = 'a_greedy(p=0.2, window=400, enough=50)'; SET slots = 1;
        CREATE QUERY q AS SELECT id FROM s WHERE {" AND ".join(conditions)};"""
    events, summary, one = played(engine, folder, sql)
    wanted = [row["id"] for file in range(3) for row in values(file)
              if f"{row['id']:05d}"[-2] == "7" and row["id"] >= 70 and row["b"] not in (11, None)]
    assert sorted(one.results("q")["id"].to_pylist()) == wanted
    (change, *_) = orders(events)
    assert "%7_ of%" in change.order[0] and change.rows >= 50 and change.after < change.before
    assert summary.conjunctions["s/fanout"].order == orders(events)[-1].order
    app = bind(sql, folder=folder)
    made = plan(app)
    compiler = Compiler(spark, app, made, lambda name: None, lambda name: None)
    (path,) = made.paths
    block = spark.read.parquet(str(folder / "in"))
    for order in permutations(range(3)):
        found = compiler.answers(path, path.members, block, evaluation=Evaluation(order=order))
        assert sorted(row["id"] for row in found.project(path.members).collect()) == wanted


def test_what_must_stay_is_evaluated_once_for_each_row_in_its_place(
    engine: Any, folder: Path
) -> None:
    conditions = ("slow(a)", "few(b)", "sometimes(a)", "half(a)", "id % 3 > 0")
    events, _, one = played(engine, folder, application(conditions))
    assert sorted(one.results("q")["id"].to_pylist()) == expected(conditions)[0]
    for change in orders(events):
        assert set(change.order) == {"slow(a)", "few(b)"}


def test_a_broken_predicate_stops_only_its_own_query(engine: Any, folder: Path) -> None:
    sql = application() + """
        CREATE QUERY bad WITH (rejects = 'fail') AS
            SELECT id FROM s WHERE broken(a) AND half(a) AND few(b);"""
    one = engine()
    one.execute(sql, folder=folder)
    summary = one.run()
    assert summary.queries["q"].state != "failed" and summary.queries["bad"].state == "failed"
    assert "broken" in summary.queries["bad"].reason
    assert sorted(one.results("q")["id"].to_pylist()) == expected(WRITTEN)[0]


def test_a_window_aggregate_over_a_conjunction_counts_the_same_rows(
    engine: Any, folder: Path
) -> None:
    sql = STREAM.format(options="OPTIONS (maxFilesPerTrigger = 1)").replace(
        "b INT)", "b INT, ts TIMESTAMP)").replace("parquet 'in'", "parquet 'timed'").replace(
        "OPTIONS (maxFilesPerTrigger = 1);", "OPTIONS (maxFilesPerTrigger = 1) TIME ts;")
    (folder / "timed").mkdir()
    for file in range(3):
        table = pq.read_table(folder / "in" / f"{file}.parquet")
        stamps = pa.array([n * 1000 for n in table["id"].to_pylist()], pa.timestamp("us", "UTC"))
        pq.write_table(table.append_column("ts", stamps), folder / "timed" / f"{file}.parquet")
    _, _, one = played(engine, folder, sql + f"""
        SET filters = '{FILTERS}';
        CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [WINDOW 4 SECONDS SLIDE EXACTLY 4 SECONDS]
        WHERE {' AND '.join(WRITTEN)};""")
    counted = [row["n"] for row in one.results("q").to_pylist()]
    answers, _ = expected(WRITTEN, files=3)
    assert sum(counted) == len(answers)


# --- queries that share predicates ---------------------------------------------------------------

SHARING = {
    "a1": ("slow(a)", "half(a)", "fussy(b)", "few(b)"), "a2": ("fussy(b)", "half(a)", "id % 3 > 0"),
    "a3": ("few(b)", "fussy(b)"), "a4": ("half(a)", "tenfold(b) < 90000"),
    "a5": ("half(a)", "few(b)"),
}


def sharing(more: str = "", **queries: tuple[str, ...]) -> str:
    return STREAM.format(options="OPTIONS (maxFilesPerTrigger = 1)") + "".join(
        f"CREATE QUERY {name} INTO parquet 'out' AS SELECT id, b AS {name} FROM s "
        f"WHERE {' AND '.join(conditions)};" for name, conditions in queries.items()) + more


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Answers are too many for the driver. The members of the jobs whose workers hand them over."""
    jobs = list[int]()
    monkeypatch.setattr(small_answers, "MOST_ROWS_IN", 0)
    monkeypatch.setattr(shared_conjunction, "handed", lambda *args: (
        jobs.append(args[-1]), worker_sinks.handed(*args))[1])
    return jobs


@pytest.mark.parametrize(("by_workers", "without"), [(False, ""), (True, ""), (True, "a2")])
def test_queries_that_share_predicates_get_what_each_would_get_alone(
    engine: Any, folder: Path, request: pytest.FixtureRequest, by_workers: bool, without: str
) -> None:
    """The driver writes the answers, or workers that get the rows from Spark or read the files."""
    handed = request.getfixturevalue("handed") if by_workers else []
    asked = {name: conditions for name, conditions in SHARING.items() if name != without}
    sql = sharing(f"SET filters = '{FILTERS}'; SET slots = 1;", **asked)
    events, summary, one = played(engine, folder, sql)
    assert set(handed) == ({len(asked)} if by_workers else set())
    table = pq.read_table(folder / "out").to_pylist()
    for name, conditions in asked.items():
        answers, rejects = expected(conditions)
        mine = [row for row in table if row["query"] == name]
        assert sorted(row["id"] for row in mine) == answers, name
        assert all(row[name] == row["id"] * 11 % 10_007 for row in mine if row["id"] % 37 != 3)
        assert summary.queries[name].rejected == len(rejects), name
    jobs = [event for event in events if isinstance(event, JobFinished)]
    assert len(jobs) <= 5, "one trip for all of them"
    assert orders(events) and orders(events)[0].path == "a1#0+"


@pytest.mark.parametrize("by_workers", [False, True])
def test_rejects_of_shared_predicates_are_kept_with_the_columns_of_each_query(
    engine: Any, folder: Path, request: pytest.FixtureRequest, by_workers: bool
) -> None:
    handed = request.getfixturevalue("handed") if by_workers else [0]
    _, _, one = played(engine, folder, sharing(**SHARING))
    assert handed
    for name in ("a2", "a3"):
        files = sorted((one.checkpoint / "rejects" / name).rglob("*.json"))
        found = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        assert {line["error"] for line in found} == {"ValueError: it ends in seven"}
        shown = {frozenset(json.loads(line["row"])) for line in found}
        assert shown == {frozenset({"a", "b", "id"} if name == "a2" else {"b", "id"})}


def test_workers_count_the_answers_that_nobody_keeps(
    engine: Any, folder: Path, handed: list[int]
) -> None:
    sql = sharing(**SHARING).replace("INTO parquet 'out'", "INTO noop")
    _, summary, _ = played(engine, folder, sql)
    assert handed
    for name, conditions in SHARING.items():
        answers, rejects = expected(conditions)
        told = summary.queries[name]
        assert (told.rows_out, told.rejected) == (len(answers), len(rejects)), name


def test_a_worker_that_dies_while_it_hands_answers_over_leaves_none_behind(
    engine: Any, folder: Path, handed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has written some files by then; nobody ever sees them."""
    monkeypatch.setattr(conjunction_worker, "PART_ROWS", 500)
    monkeypatch.setattr(file_scans, "PART_ROWS", 500)
    monkeypatch.setattr(worker_batches, "MOST_ROWS", 100)
    died = folder / "died"
    with (folder / "conjoined.py").open("a") as module:
        module.write(f"""
import os

@penstock.predicate
def fragile(a):
    if 3500 <= (a[0].as_py() or 0) < 4000:
        try:
            os.close(os.open({str(died)!r}, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            os._exit(3)
    return pc.is_valid(a)
""")
    asked = {"a1": ("half(a)", "fragile(id)"), "a3": ("fragile(id)", "fussy(b)")}
    one = engine()
    one.execute(sharing(**asked).replace(
        "CREATE QUERY", "CREATE FUNCTION fragile FROM 'conjoined:fragile'; CREATE QUERY", 1),
        folder=folder)
    summary = one.run()
    assert died.exists() and handed
    assert (summary.run.state, summary.failures(), summary.accounting()) == ("drained", [], [])
    table = pq.read_table(folder / "out").to_pylist()
    for name, conditions in asked.items():
        answers, rejects = expected(conditions)
        assert sorted(row["id"] for row in table if row["query"] == name) == answers
        assert summary.queries[name].rejected == len(rejects)


def test_what_spark_has_to_compute_or_convert_is_not_handed_over(
    engine: Any, folder: Path, handed: list[int]
) -> None:
    """An expression is computed, and a folder that two queries share has one type per column."""
    one, other = ("half(a)", "fussy(b)"), ("half(a)", "few(b)")
    _, _, ran = played(engine, folder, STREAM.format(options="") + f"""
        CREATE QUERY one AS SELECT id, a + 1 AS n FROM s WHERE {" AND ".join(one)};
        CREATE QUERY other INTO parquet 'out' AS SELECT id FROM s WHERE {" AND ".join(other)};
        CREATE QUERY wide INTO parquet 'out' AS
            SELECT CAST(id AS BIGINT) AS id FROM s WHERE {" AND ".join(other)};""")
    assert not handed
    assert sorted(ran.results("one")["id"].to_pylist()) == expected(one)[0]
    assert sorted(pq.read_table(folder / "out")["id"].to_pylist()) == sorted(
        2 * expected(other)[0])


def test_a_broken_function_stops_only_the_queries_that_ask_for_it(
    engine: Any, folder: Path
) -> None:
    more = """CREATE QUERY bad WITH (rejects = 'fail') AS
              SELECT id FROM s WHERE broken(a) AND half(a);"""
    one = engine()
    one.execute(sharing(more, **SHARING), folder=folder)
    summary = one.run()
    states = {name: query.state for name, query in summary.queries.items()}
    assert states == {**dict.fromkeys(SHARING, "done"), "bad": "failed"}
    table = pq.read_table(folder / "out").to_pylist()
    for name, conditions in SHARING.items():
        assert sorted(row["id"] for row in table if row["query"] == name) == expected(conditions)[0]


def test_a_function_that_ends_its_worker_stops_only_the_queries_that_ask_for_it(
    engine: Any, folder: Path
) -> None:
    with (folder / "conjoined.py").open("a") as module:
        module.write("\nimport os\n\n@penstock.predicate\ndef deadly(a):\n    os._exit(3)\n")
    more = """CREATE FUNCTION deadly FROM 'conjoined:deadly';
              CREATE QUERY bad AS SELECT id FROM s WHERE half(a) AND deadly(a);"""
    one = engine()
    one.execute(sharing(more, a1=SHARING["a1"], a4=SHARING["a4"]), folder=folder)
    summary = one.run()
    assert summary.queries["bad"].state == "failed"
    table = pq.read_table(folder / "out").to_pylist()
    for name in ("a1", "a4"):
        assert sorted(row["id"] for row in table if row["query"] == name) == expected(
            SHARING[name])[0]
