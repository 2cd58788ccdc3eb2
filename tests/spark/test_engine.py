"""The engine on Spark as a user sees it: answers, queries that come and go, stopping, resuming."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import RunError
from penstock.events import kinds as ev
from penstock.spark import defaults
from penstock.spark.session import tuned
from tests.spark.kit import eventually

pytestmark = pytest.mark.spark

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
PACKETS = "(ts TIMESTAMP, src INT, port INT, name STRING)"


def packets(start: int, count: int) -> pa.Table:
    """Rows that say where they stand: src counts on from ``start``."""
    numbers = range(start, start + count)
    return pa.table({
        "ts": pa.array([BEGIN + timedelta(seconds=n) for n in numbers], pa.timestamp("us", "UTC")),
        "src": pa.array(numbers, pa.int32()),
        "port": pa.array([(80, 443, 22)[n % 3] for n in numbers], pa.int32()),
        "name": [f"host {n}" for n in numbers],
    })  # fmt: skip


def put(folder: Path, number: int, start: int, count: int) -> None:
    """Let a file appear whole; Spark reads files in the order of their ages."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{number}"
    pq.write_table(packets(start, count), hidden)
    os.utime(hidden, (1_700_000_000 + number,) * 2)
    hidden.rename(folder / f"{number:03d}.parquet")


def stream(folder: Path, name: str = "packets", options: str = "") -> str:
    given = f"OPTIONS ({options})" if options else ""
    return f"CREATE STREAM {name} {PACKETS} FROM parquet '{folder}' {given} TIME ts;"


def sources(table: pa.Table) -> list[int]:
    return sorted(table["src"].to_pylist())


def read(folder: Path, kind: str) -> list[tuple]:
    reader = {"parquet": "read_parquet", "csv": "read_csv", "json": "read_json"}[kind]
    return duckdb.sql(f"SELECT src FROM {reader}('{folder}/*.{kind}*')").fetchall()


def flat(rows: Iterable[tuple]) -> list:
    return sorted(value for (value,) in rows)


@pytest.fixture
def module(tmp_path: Path) -> Callable[[str, str], None]:
    """Writes a Python module beside the application."""

    def write(name: str, text: str) -> None:
        sys.modules.pop(name, None)
        (tmp_path / f"{name}.py").write_text(text)

    return write


# --- answers ---------------------------------------------------------------------------------


def test_every_sink_gets_its_answers(engine, module, tmp_path, capsys):
    put(tmp_path / "in", 0, 0, 60)
    put(tmp_path / "in", 1, 60, 40)
    put(tmp_path / "more", 0, 1000, 10)
    (tmp_path / "hosts.csv").write_text("id,site\n1,a\n2,b\n2,c\n3,d\n")
    module("sinks_called", (
        "import penstock, pyarrow.compute as pc\n"
        "CALLS = []\n"
        "def got(query, table): CALLS.append((query, table.num_rows))\n"
        "@penstock.predicate\n"
        "def odd(src): return pc.equal(pc.bit_wise_and(src, 1), 1)\n"
    ))  # fmt: skip
    with engine() as e:
        e.execute(f"""
            {stream(tmp_path / "in", options="maxFilesPerTrigger = 1")}
            {stream(tmp_path / "more", "more")}
            CREATE RELATION hosts (id INT, site STRING) FROM csv 'hosts.csv'
                OPTIONS (header = true);
            CREATE FUNCTION odd FROM 'sinks_called:odd';
            CREATE QUERY m AS SELECT ts, src, name FROM packets WHERE port = 80 AND src < 50;
            CREATE QUERY own INTO parquet 'own'
                AS SELECT src, port + 1 AS p FROM packets WHERE src >= 90;
            CREATE QUERY text INTO csv 'text'
                AS SELECT src, name FROM packets WHERE src IN (5, 77);
            CREATE QUERY lines INTO json 'lines'
                AS SELECT src FROM packets WHERE src BETWEEN 58 AND 61;
            CREATE QUERY one INTO parquet 'both' AS SELECT src FROM packets WHERE src < 3;
            CREATE QUERY two INTO parquet 'both'
                AS SELECT src, name FROM packets WHERE odd(src) AND src < 4;
            CREATE QUERY shown INTO console AS SELECT src FROM packets WHERE src = 42;
            CREATE QUERY called INTO callback 'sinks_called:got'
                AS SELECT src FROM packets WHERE src < 70;
            CREATE QUERY counted INTO noop AS SELECT src FROM packets WHERE src < 10;
            CREATE QUERY joined
                AS SELECT p.src, h.site FROM packets p JOIN hosts h ON p.src = h.id;
            CREATE QUERY union_
                AS SELECT src FROM packets WHERE src > 97 UNION ALL SELECT src FROM more;
            CREATE QUERY none AS SELECT src FROM packets WHERE src < 0;
        """, folder=tmp_path)
        summary = e.run()

        assert (summary.run.state, summary.failures()) == ("drained", [])
        assert sources(e.results("m")) == list(range(0, 50, 3))
        assert e.results("m").schema.names == ["ts", "src", "name"]
        frame = e.results("m", to="pandas")
        assert list(frame.sort_values("src")["name"])[:2] == ["host 0", "host 3"]
        assert sources(e.results("own")) == list(range(90, 100))
        assert flat(read(tmp_path / "text", "csv")) == [5, 77]
        assert flat(read(tmp_path / "lines", "json")) == [58, 59, 60, 61]
        assert sources(e.results("one")) == [0, 1, 2]
        assert sources(e.results("two")) == [1, 3]
        rows = Counter(zip(*e.results("joined").to_pydict().values(), strict=True))
        assert rows == Counter([(1, "a"), (2, "b"), (2, "c"), (3, "d")])
        assert sources(e.results("union_")) == [98, 99, *range(1000, 1010)]
        assert e.results("none").num_rows == 0
        assert sources(e.results("text")) == [5, 77]
        assert sources(e.results("lines")) == [58, 59, 60, 61]
        for query in ("shown", "counted"):
            with pytest.raises(RunError, match="results are kept for csv, json, memory and parque"):
                e.results(query)
        with pytest.raises(RunError, match="no query 'nothing'"):
            e.results("nothing")

    assert "shown: src=42" in capsys.readouterr().out
    assert sum(rows for _, rows in sys.modules["sinks_called"].CALLS) == 70
    measures = summary.queries
    assert [measures[q].rows_out for q in ("m", "called", "counted", "none")] == [17, 70, 10, 0]
    assert (measures["m"].rows_in, measures["m"].filtered) == (100, 83)
    assert measures["union_"].rows_in == 110
    assert (summary.streams["packets"].read, summary.streams["more"].read) == (100, 10)


def test_a_join_that_multiplies_rows_is_accounted_for(engine, tmp_path):
    put(tmp_path / "in", 0, 0, 2)
    (tmp_path / "sites.json").write_text("".join(
        json.dumps({"id": 1, "site": f"s{n}"}) + "\n" for n in range(7)))
    with engine() as e:
        e.execute(f"""
            {stream(tmp_path / "in")}
            CREATE RELATION sites (id INT, site STRING) FROM json 'sites.json';
            CREATE QUERY many AS SELECT p.src, s.site FROM packets p JOIN sites s ON p.src = s.id;
            CREATE QUERY outer_
                AS SELECT p.src, s.site FROM packets p LEFT JOIN sites s ON p.src = s.id;
        """, folder=tmp_path)
        summary = e.run()
        assert e.results("many").num_rows == 7
        assert Counter(e.results("outer_")["site"].to_pylist())[None] == 1
    many, outer = summary.queries["many"], summary.queries["outer_"]
    assert (many.rows_in, many.rows_out, many.added) == (2, 7, 5)
    assert (outer.rows_in, outer.rows_out, outer.added) == (2, 8, 6)


def test_what_nobody_can_answer_is_no_obstacle(engine, tmp_path):
    """Relations, files and conditions without a row must not leave a count that never comes."""
    put(tmp_path / "in", 0, 0, 5)
    put(tmp_path / "in", 1, 5, 0)
    (tmp_path / "empty.csv").write_text("id,site\n")
    with engine() as e:
        e.execute(f"""
            {stream(tmp_path / "in", options="maxFilesPerTrigger = 1")}
            CREATE RELATION nobody (id INT, site STRING) FROM csv 'empty.csv'
                OPTIONS (header = true);
            CREATE QUERY joined
                AS SELECT p.src, n.site FROM packets p JOIN nobody n ON p.src = n.id;
            CREATE QUERY never INTO parquet 'never' AS SELECT src FROM packets WHERE 1 = 0;
            CREATE QUERY unknown INTO csv 'unknown' AS SELECT src FROM packets WHERE src = NULL;
            CREATE QUERY all_ AS SELECT src FROM packets;
        """, folder=tmp_path)
        summary = e.run()
        assert sources(e.results("all_")) == [0, 1, 2, 3, 4]
        assert e.results("never").num_rows == e.results("joined").num_rows == 0
    assert summary.run.state == "drained"
    assert [summary.queries[q].filtered for q in ("joined", "never", "unknown")] == [5, 5, 5]


def test_names_may_hold_any_character(engine, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.csv").write_text("1,a\n2,b\nx,c\n")
    with engine("deep/checkpoint") as e:
        e.execute("""
            CREATE STREAM `../../odd [s]*` (`src` INT, `@é "x"` STRING) FROM csv 'in';
            CREATE QUERY `../q` AS SELECT src, `@é "x"` FROM `../../odd [s]*`;
        """, folder=tmp_path)
        summary = e.run()
        assert sources(e.results("../q")) == [1, 2]
        assert summary.streams["../../odd [s]*"].rejected == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "in"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["checkpoint"]


# --- life ------------------------------------------------------------------------------------


def test_queries_come_and_go_while_it_runs_and_a_resumed_run_goes_on(engine, tmp_path):
    folder = tmp_path / "in"
    put(folder, 0, 0, 10)
    failed = []

    def watch(event: ev.Event) -> None:
        if isinstance(event, ev.JobFailed):
            failed.append(event)

    def had(query: str, rows: int) -> None:
        eventually(lambda: e.status().queries[query].rows_in >= rows, f"{query} had {rows}")

    with engine(on_event=watch) as e:
        e.execute(f"""
            SET trigger = '50 ms';
            {stream(folder)}
            CREATE QUERY kept AS SELECT src FROM packets;
            CREATE QUERY gone INTO parquet '{tmp_path}/gone' AS SELECT src FROM packets;
        """)
        e.start()
        assert not e.wait(0)
        had("kept", 10)
        had("gone", 10)
        e.execute("CREATE QUERY fresh AS SELECT src FROM packets;"
                  "CREATE QUERY past WITH (start = 'earliest') AS SELECT src FROM packets;")
        had("past", 10)
        e.execute("DROP QUERY gone;")
        put(folder, 1, 10, 10)
        had("past", 20)
        had("fresh", 10)
        e.execute("DROP QUERY kept; CREATE QUERY kept WITH (start = 'earliest') AS "
                  "SELECT src, 'anew' AS word FROM packets WHERE src < 15;")
        had("kept", 20)
        e.stop()
        assert e.status().run.state == "stopped"
        assert e.status().queries["gone"].state == "dropped"

        put(folder, 2, 20, 5)
        assert e.run().run.state == "drained"
        assert sources(e.results("past")) == list(range(25))
        assert sources(e.results("fresh")) == list(range(10, 25))
        assert sources(e.results("kept")) == list(range(15))
        assert flat(read(tmp_path / "gone", "parquet")) == list(range(10))
        assert e.status().queries["past"].delivered_before == 20
    with engine() as e:
        assert set(e.application.queries) == {"kept", "fresh", "past"}
        assert e.run().queries["past"].rows_out == 0, "nothing is left to deliver"
        assert sources(e.results("past")) == list(range(25))
    assert failed == []


def test_half_an_entry_in_the_log_of_files_is_no_obstacle(engine, tmp_path):
    put(tmp_path / "in", 0, 0, 5)
    log = tmp_path / "checkpoint" / "offsets" / "packets" / "files.jsonl"
    with engine() as e:
        e.execute(f"{stream(tmp_path / 'in')} CREATE QUERY q AS SELECT src FROM packets;")
        assert e.run().failures() == []
        with log.open("a") as file:
            file.write('{"checkpoint": "5e')  # the driver was killed as it wrote the next one
        put(tmp_path / "in", 1, 5, 5)
        assert e.run().failures() == []
        assert sources(e.results("q")) == list(range(10))


def test_a_stop_in_the_middle_of_a_backlog_is_clean(engine, module, tmp_path):
    for number in range(6):
        put(tmp_path / "in", number, number * 10, 10)
    module("dawdling", (
        "import time, penstock, pyarrow as pa\n"
        "@penstock.predicate\n"
        "def slow(src):\n"
        "    time.sleep(0.3)\n"
        "    return pa.array([True] * len(src))\n"
    ))  # fmt: skip
    with engine() as e:
        e.execute(f"""
            {stream(tmp_path / "in", options="maxFilesPerTrigger = 1")}
            CREATE FUNCTION slow FROM 'dawdling:slow';
            CREATE QUERY a INTO parquet 'a' AS SELECT src FROM packets WHERE slow(src);
            CREATE QUERY b AS SELECT src FROM packets WHERE slow(src) AND src > 5;
        """, folder=tmp_path)
        e.start()  # a drain would batch all blocks into one job
        eventually(lambda: e.status().queries["a"].rows_in > 0, "the first answer is there")
        e.stop()
        assert e.status().run.state == "stopped", e.status().run.reason
        had = [query.rows_in for query in e.status().queries.values()]
        assert sum(had) < 120, "something was left to do"
        e.run()
        assert sources(e.results("a")) == list(range(60))
        assert sources(e.results("b")) == list(range(6, 60))


def test_a_query_replaced_in_the_middle_of_its_run_leaves_nothing_to_its_namesake(
    engine, module, tmp_path
):
    put(tmp_path / "in", 0, 0, 10)
    module("replaced", (
        "import time, penstock, pyarrow as pa\n"
        "@penstock.predicate\n"
        "def slow(src):\n"
        "    time.sleep(1)\n"
        "    return pa.array([True] * len(src))\n"
    ))  # fmt: skip
    under_way, failed = threading.Event(), []

    def watch(event: ev.Event) -> None:
        if isinstance(event, ev.JobDecided) and event.work.segment.startswith("name"):
            under_way.set()
        if isinstance(event, ev.JobFailed | ev.QueryFailed):
            failed.append(event)

    with engine(on_event=watch) as e:
        e.execute(f"""
            SET trigger = '50 ms';
            {stream(tmp_path / "in")}
            CREATE FUNCTION slow FROM 'replaced:slow';
            CREATE QUERY name AS SELECT src FROM packets WHERE slow(src);
            CREATE QUERY gone INTO parquet 'gone' AS SELECT src FROM packets WHERE slow(src);
            CREATE QUERY other AS SELECT src FROM packets;
        """, folder=tmp_path)
        e.start()
        assert under_way.wait(60)
        e.execute("DROP QUERY gone; DROP QUERY name; CREATE QUERY name WITH (start = 'earliest') "
                  "AS SELECT src FROM packets WHERE slow(src) AND src < 4;", folder=tmp_path)
        eventually(lambda: e.status().queries["name"].rows_in == 10, "the namesake has answered")
        eventually(lambda: e.status().queries["other"].rows_in == 10, "the other one too")
        e.stop()
        assert sources(e.results("name")) == [0, 1, 2, 3]
        assert e.status().queries["name"].rows_out == 4
        assert sources(e.results("other")) == list(range(10))
        put(tmp_path / "in", 1, 20, 1)
        assert e.run().queries["name"].delivered_before == 4
        assert sources(e.results("name")) == [0, 1, 2, 3]
    assert failed == []


def test_a_query_ends_with_its_lifetime(engine, tmp_path):
    put(tmp_path / "in", 0, 0, 10)
    with engine() as e:
        e.execute(f"""
            SET trigger = '50 ms';
            {stream(tmp_path / "in")}
            CREATE QUERY brief WITH (lifetime = '2 seconds') AS SELECT src FROM packets;
            CREATE QUERY lasting AS SELECT src FROM packets;
        """)
        e.start()
        eventually(lambda: e.status().queries["brief"].state == "dropped", "its time is over")
        assert "lifetime" in e.status().queries["brief"].reason
        put(tmp_path / "in", 1, 10, 10)
        eventually(lambda: e.status().queries["lasting"].rows_in == 20, "the other one goes on")
        e.stop()
        assert len(sources(e.results("brief"))) in (0, 10)
        assert sources(e.results("lasting")) == list(range(20))


def test_an_engine_says_what_it_cannot_do(engine, tmp_path):
    with engine() as e:
        with pytest.raises(RunError, match="no query to run"):
            e.start()
        put(tmp_path / "in", 0, 0, 1)
        e.execute(stream(tmp_path / "in") + "CREATE QUERY q AS SELECT src FROM packets;")
        e.start()
        with pytest.raises(RunError, match="running already"):
            e.start()
        e.stop()
        e.stop()
        assert repr(e) == f"Engine(1 queries, checkpoint={tmp_path}/checkpoint)"


def test_the_users_session_is_left_as_it_was(spark, tmp_path):
    from penstock.api import Engine

    def settings() -> dict[str, str]:
        return {row.key: row.value for row in spark.sql("SET").collect()}

    put(tmp_path / "in", 0, 0, 5)
    before = settings()
    with Engine(spark=spark) as e:
        e.execute(stream(tmp_path / "in") + "CREATE QUERY q AS SELECT src FROM packets;")
        e.run()
        folder = e.checkpoint
        assert e.session.conf.get("spark.sql.session.timeZone") == "UTC"
    assert settings() == before
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert spark.range(3).count() == 3, "it still works"
    assert not folder.exists(), "a temporary checkpoint goes with its engine"


def test_a_file_that_goes_before_it_is_read_is_missed_whatever_the_users_session_says(
    spark, tmp_path
):
    for number in range(2):
        put(tmp_path / "in", number, number * 5, 5)
    given = spark._jsparkSession.sharedState().conf()  # what spark-defaults.conf would set
    lenient = ["spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles"]
    for name in lenient:
        given.set(name, "true")
    try:
        theirs, ours = spark.newSession(), tuned(spark)
        assert [theirs.conf.get(name) for name in lenient] == ["true", "true"]
        assert [ours.conf.get(name) for name in lenient] == ["false", "false"]
    finally:
        for name in lenient:
            given.remove(name)
    read = [session.read.parquet(str(tmp_path / "in")) for session in (theirs, ours)]
    next((tmp_path / "in").glob("*.parquet")).unlink()
    assert read[0].count() == 5
    with pytest.raises(Exception, match="FILE_NOT_EXIST"):
        read[1].count()


# --- time ------------------------------------------------------------------------------------


def test_late_rows_are_delivered_and_rows_without_a_time_are_not_late(engine, tmp_path):
    (tmp_path / "in").mkdir()
    blocks = [["10:00:00", "10:00:30"], ["10:00:24", "10:00:25", ""], ["10:01:00", "10:00:26"]]
    for number, times in enumerate(blocks):
        rows = [f"{f'2026-01-01 {at}' if at else ''},{number}{n}" for n, at in enumerate(times)]
        path = tmp_path / "in" / f"{number}.csv"
        path.write_text("\n".join(["ts,src", *rows]) + "\n")
        os.utime(path, (1_700_000_000 + number,) * 2)
    with engine() as e:
        e.execute("""
            CREATE STREAM s (ts TIMESTAMP, src STRING) FROM csv 'in'
                OPTIONS (header = true, maxFilesPerTrigger = 1) TIME ts LATENESS 5 SECONDS;
            CREATE QUERY all_ AS SELECT ts, src FROM s;
        """, folder=tmp_path)
        summary = e.run()
        # 10:00:24 is six seconds behind 10:00:30; 10:00:26 is judged by the blocks before its own
        assert sources(e.results("all_")) == ["00", "01", "10", "11", "12", "20", "21"]
        assert e.results("all_")["ts"].null_count == 1
        assert not (e.checkpoint / "late").exists(), "no window has left them out"
    measured = summary.streams["s"]
    assert (measured.read, measured.kept, measured.late) == (7, 7, 1)


def test_late_rows_in_parquet_are_delivered_and_nothing_is_copied(engine, tmp_path):
    put(tmp_path / "in", 0, 100, 5)
    put(tmp_path / "in", 1, 98, 5)
    with engine() as e:
        e.execute(f"""
            {stream(tmp_path / "in", options="maxFilesPerTrigger = 1")}
            CREATE QUERY q AS SELECT src FROM packets;
            CREATE QUERY r INTO parquet 'r' AS SELECT src FROM packets WHERE port = 80;
        """, folder=tmp_path)
        summary = e.run()
        assert sources(e.results("q")) == sorted([*range(100, 105), *range(98, 103)])
        assert summary.streams["packets"].late == 5
    assert not list((tmp_path / "checkpoint" / "spool" / "packets").rglob("*.parquet"))


# --- the spool and memory --------------------------------------------------------------------


def test_blocks_leave_the_spool_when_their_retention_is_over(engine, tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.json").write_text(f'{{"src": {number}}}\n')
    with engine() as e:
        e.execute("""
            SET retention = '1 second'; SET trigger = '50 ms';
            CREATE STREAM s (src INT) FROM json 'in' OPTIONS (maxFilesPerTrigger = 1);
            CREATE QUERY q AS SELECT src FROM s;
        """, folder=tmp_path)
        spool = e.checkpoint / "spool" / "s"
        e.start()
        eventually(lambda: e.status().queries["q"].rows_in == 3, "all rows are there")
        eventually(lambda: not list(spool.rglob("*.parquet")), "the blocks are gone")
        e.stop()
        assert [path.name for path in spool.glob("*.json")] == ["00000002.json"]
        (tmp_path / "in" / "3.json").write_text('{"src": 3}\n')
        e.run()
        assert sources(e.results("q")) == [0, 1, 2, 3]


def test_a_block_that_several_paths_read_is_hot_while_they_need_it(
    spark, engine, module, tmp_path, monkeypatch
):
    monkeypatch.setattr(defaults, "KEEP_FROM", 0)
    for number in range(2):
        put(tmp_path / "in", number, number * 10, 10)
    module("hot_paths", (
        "import penstock, pyarrow as pa\n"
        "@penstock.predicate\n"
        "def everything(src): return pa.array([True] * len(src))\n"
        "@penstock.predicate\n"
        "def each(src): return pa.array([True] * len(src))\n"
        "@penstock.predicate\n"
        "def all_of(src): return pa.array([True] * len(src))\n"
    ))  # fmt: skip
    events, persistent = [], []

    def watch(event: ev.Event) -> None:
        events.append(event)
        if isinstance(event, ev.BlockHot):
            persistent.append(spark.sparkContext._jsc.getPersistentRDDs().size())

    before = spark.sparkContext._jsc.getPersistentRDDs().size()
    with engine(on_event=watch) as e:
        e.execute(f"""
            {stream(tmp_path / "in", options="maxFilesPerTrigger = 1")}
            CREATE FUNCTION everything FROM 'hot_paths:everything';
            CREATE FUNCTION each FROM 'hot_paths:each';
            CREATE FUNCTION all_of FROM 'hot_paths:all_of';
            CREATE QUERY a AS SELECT src FROM packets WHERE everything(src);
            CREATE QUERY b AS SELECT src FROM packets WHERE each(src) AND src > 3;
            CREATE QUERY c AS SELECT src FROM packets WHERE all_of(src) AND port = 80;
            CREATE QUERY d AS SELECT src FROM packets;
        """, folder=tmp_path)
        summary = e.run()
        assert sources(e.results("a")) == sources(e.results("d")) == list(range(20))
        assert sources(e.results("b")) == list(range(4, 20))
    hot = [event.number for event in events if isinstance(event, ev.BlockHot)]
    cold = [event.number for event in events if isinstance(event, ev.BlockCold)]
    assert hot and sorted(hot) == sorted(cold)
    assert all(size > before for size in persistent)
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == before
    measured = summary.streams["packets"]
    assert measured.hot_bytes == 0 < measured.hot_peak
