"""What a Python program gives its engine: functions, callbacks, DataFrames in and out."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.api import Engine
from penstock.errors import RunError, SourceError, TypeFault
from tests.spark.kit import eventually
from tests.spark.test_engine import put, sources

pytestmark = pytest.mark.spark

SCHEMA = "ts TIMESTAMP, src INT, port INT, name STRING"
SITES = pd.DataFrame({"port": [80, 443], "site": ["a", "b"],
                      "since": pd.to_datetime(["2026-01-01", "2026-02-01"])})


@pytest.fixture
def theirs(spark: SparkSession) -> SparkSession:
    """A session of the program's, with settings that are not ours."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    session.conf.set("spark.sql.ansi.enabled", "true")
    return session


def files(session: SparkSession, folder: Path) -> DataFrame:
    reader = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def odd(src: pa.Array) -> pa.Array:
    return pc.equal(pc.bit_wise_and(src, 1), 1)


def test_dataframes_go_in_and_come_out(engine, theirs: SparkSession, tmp_path: Path) -> None:
    """Of a stream with a state of its own, with times as the program's session read them."""
    for number in range(3):
        put(tmp_path / "in", number, number * 40, 60)  # every second row of two files is a copy
    told: list[tuple[str, list[int]]] = []
    rows = files(theirs, tmp_path / "in").select(
        "ts", F.to_timestamp_ntz(F.lit("2026-01-01 00:00:00")).alias("midnight"),
        F.lit("2026-01-01 00:00:00").cast("timestamp").alias("theirs"), "src", "port",
        F.struct(F.col("name").alias("a b"), F.array("port").alias("p")).alias("more"),
    ).dropDuplicates(["src"])
    hosts = theirs.createDataFrame([(22, "ssh"), (80, "web")], "port INT, host STRING")
    with engine() as e:
        e.stream("packets", rows, time="ts", lateness="1 hour", max_ahead="2 days")
        e.relation("sites", SITES)
        e.relation("hosts", hosts.where("port > 0"))
        e.function(odd)
        e.on("told", lambda query, table: told.append((query, table["src"].to_pylist())))
        e.execute("""
            CREATE QUERY all_ AS SELECT ts, midnight, theirs, src, more FROM packets;
            CREATE QUERY told INTO callback AS SELECT src FROM packets WHERE odd(src);
            CREATE QUERY joined AS SELECT p.src, s.site, h.host, s.since FROM packets p
                LEFT JOIN sites s ON p.port = s.port LEFT JOIN hosts h ON p.port = h.port;
            CREATE QUERY counted AS SELECT port, COUNT(*) AS n FROM packets
                GROUP BY port, TUMBLE(ts, INTERVAL '1' HOUR);
        """)
        application = e.application
        summary = e.run()
        assert (summary.run.state, summary.failures()) == ("drained", [])
        assert summary.streams["packets"].read == 140
        assert sources(e.results("all_")) == list(range(140))
        first = e.results("all_").slice(0, 1).to_pylist()[0]
        assert first["midnight"] == datetime(2026, 1, 1, tzinfo=UTC)
        assert first["theirs"] == datetime(2025, 12, 31, 15, tzinfo=UTC)
        assert first["more"] == {"a b": f"host {first['src']}",
                                 "p": [(80, 443, 22)[first["src"] % 3]]}
        assert {query for query, _ in told} == {"told"}
        assert sorted(src for _, some in told for src in some) == list(range(1, 140, 2))
        joined = e.results("joined")
        packets = pa.table({"src": range(140), "port": [(80, 443, 22)[n % 3] for n in range(140)]})
        known = {"packets": packets, "sites": SITES, "hosts": hosts.toArrow()}
        base = duckdb.connect()
        for name, table in known.items():
            base.register(name, table)
        wanted = base.sql("SELECT p.src, s.site, h.host FROM packets p LEFT JOIN sites s "
                          "ON p.port = s.port LEFT JOIN hosts h ON p.port = h.port").fetchall()
        assert Counter(zip(*(joined[c].to_pylist() for c in ("src", "site", "host")),
                           strict=True)) == Counter(wanted)
        assert datetime(2026, 2, 1, tzinfo=UTC) in joined["since"].to_pylist()

        frame = e.results("counted", to="spark")
        assert frame.join(hosts, "port").agg(F.sum("n")).first()[0] == 47 + 46
        assert e.results("counted", to="pandas")["n"].sum() == 140
        assert [len(t) for t in e.follow("counted", to="pandas")] == [3]
        asked = e.ask("SELECT COUNT(*) AS n FROM packets WHERE odd(src)", to="spark")
        assert asked.collect()[0]["n"] == 70
        with Engine(spark=e.session, checkpoint=e.checkpoint, reading=True) as reader:
            placed = reader.ask("SELECT s.site, COUNT(*) AS n FROM packets p JOIN sites s "
                                "ON p.port = s.port GROUP BY s.site ORDER BY s.site")
        assert placed.to_pydict() == {"site": ["a", "b"], "n": [47, 47]}
        assert theirs.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"

        e.relation("sites", SITES.assign(site="c"))  # from the next run on
        put(tmp_path / "in", 3, 140, 30)
        assert e.run().failures() == []
        assert e.application == application
        assert sources(e.results("all_")) == list(range(170))
        late = e.results("joined").filter(pc.field("src") >= 140)["site"]
        assert set(late.to_pylist()) == {"c", None}
        with pytest.raises(TypeFault, match="'packets' exists already and is declared differently"):
            e.stream("packets", rows.drop("more"), time="ts", lateness="1 hour")
        with pytest.raises(SourceError, match=r"column 'v': there is no type for INTERVAL DAY"):
            e.stream("odd", rows.select(F.expr("INTERVAL '1' DAY AS v")))
        with pytest.raises(SourceError, match="this one is not; engine.relation takes it, or"):
            e.stream("hosts", hosts)
        with pytest.raises(SourceError, match="is streaming: engine.stream.'more', df. takes it"):
            e.relation("more", rows)


def test_a_program_changes_what_it_gave_while_it_runs(
    engine, theirs: SparkSession, tmp_path: Path
) -> None:
    put(tmp_path / "in", 0, 0, 20)
    with engine() as e:
        e.execute("SET trigger = '50 ms'")
        e.stream("packets", files(theirs, tmp_path / "in"), time="ts")
        e.relation("sites", SITES)

        @e.function
        def chosen(src):
            return odd(src)

        e.execute("CREATE QUERY q AS SELECT src FROM packets WHERE chosen(src)")
        e.start()
        eventually(lambda: e.status().queries["q"].rows_in == 20, "the first file is answered")
        with pytest.raises(RunError, match="the engine is reading stream packets; stop it first"):
            e.stream("packets", files(theirs, tmp_path / "in"), time="ts")
        with pytest.raises(RunError, match="the engine is reading relation sites; stop it first"):
            e.relation("sites", SITES)
        with pytest.raises(RunError, match=r"give it: engine.on\('told', function\)"):
            e.execute("CREATE QUERY told INTO callback AS SELECT src FROM packets")
        assert set(e.application.queries) == {"q"}
        told: list[int] = []

        @e.on("told")
        def tell(query, table):
            if "21" in map(str, table["src"].to_pylist()):
                raise KeyError("no 21")
            told.extend(table["src"].to_pylist())

        @e.function
        def chosen(src):  # noqa: F811
            return pc.invert(odd(src))

        e.execute("CREATE QUERY told INTO callback AS SELECT src FROM packets WHERE src > 20")

        async def watch() -> list[int]:
            seen: list[int] = []
            async for table in e.follow("q"):
                seen += table["src"].to_pylist()
                if len(seen) == 10:
                    put(tmp_path / "in", 1, 20, 20)
                if len(seen) == 20:
                    break
            return seen

        seen = asyncio.run(asyncio.wait_for(watch(), 120))
        assert sorted(seen) == [*range(1, 20, 2), *range(20, 40, 2)]
        eventually(lambda: bool(e.status().failures()), "the callback has raised")
        assert e.status().failures() == [("query told", "its callback raised KeyError: 'no 21'")]
        shown = e._repr_html_()
        assert "Engine, running" in shown and "its callback raised" in shown
        following = e.follow("q")
        assert next(following).num_rows == 20
        e.stop()
        assert list(following) == []


PROGRAM = '''
import os
import signal
import sys
from pathlib import Path

import pandas as pd
import pyarrow.compute as pc

import penstock

folder = Path(sys.argv[1])
LIMIT = 90
engine = penstock.Engine(checkpoint=folder / "checkpoint", master="local[2]")


@engine.function
def below(src):
    return pc.less(src, LIMIT)  # a global of __main__ goes with it


def doubled(src):
    return pc.multiply(src, 2)


@engine.on("told")
def tell(query, table):
    with open(folder / "told.txt", "a") as file:
        file.writelines(f"{src}\\n" for src in table["src"].to_pylist())


engine.function(doubled, returns="INT")
engine.relation("sites", pd.DataFrame({"port": [80, 443], "site": ["a", "b"]}))
rows = engine.session.readStream.schema("ts TIMESTAMP, src INT, port INT, name STRING")
engine.stream("packets", rows.option("maxFilesPerTrigger", 1).parquet(str(folder / "in")))
engine.execute("""
    SET trigger = '50 ms';
    CREATE QUERY q AS SELECT p.src, doubled(p.src) AS twice, s.site FROM packets p
        JOIN sites s ON p.port = s.port WHERE below(p.src);
    CREATE QUERY told INTO callback AS SELECT src FROM packets;
""")
engine.start()
had = 0
for table in engine.follow("q"):
    had += table.num_rows
    if had > 20:
        os.kill(os.getpid(), signal.SIGKILL)
'''


@pytest.mark.processes
@pytest.mark.slow
def test_a_program_that_was_killed_is_told_what_to_give_again_and_nothing_is_lost(
    engine, spark: SparkSession, tmp_path: Path
) -> None:
    for number in range(12):
        put(tmp_path / "in", number, number * 10, 10)
    (tmp_path / "program.py").write_text(PROGRAM)
    died = subprocess.run([sys.executable, "program.py", str(tmp_path)], cwd=tmp_path,
                          stderr=subprocess.PIPE, text=True, timeout=240)
    assert died.returncode == -9, died.stderr
    with engine() as e:
        before = e.results("q").num_rows
        assert 20 < before <= 60
        with pytest.raises(RunError) as refused:
            e.run()
        for call in ("function(below)", "function(doubled)", "stream('packets', df)",
                     "on('told', function)"):
            assert f"give it: engine.{call}" in str(refused.value)
        assert e.ask("SELECT COUNT(*) AS n FROM packets")["n"][0].as_py() > 0  # the spool has them
        with pytest.raises(Exception, match=r"give it: engine.function\(below\)"):
            e.ask("SELECT src FROM packets WHERE below(src)")
        told: list[int] = []
        e.function(lambda src: pc.less(src, 90), name="below")
        e.function(lambda src: pc.multiply(src, 2), name="doubled", returns="INT")
        e.on("told", lambda query, table: told.extend(table["src"].to_pylist()))
        e.stream("packets", files(spark, tmp_path / "in"))
        summary = e.run()
        assert (summary.run.state, summary.failures()) == ("drained", [])
        answers = e.results("q").to_pylist()
    wanted = [{"src": n, "twice": 2 * n, "site": "ab"[n % 3]} for n in range(90) if n % 3 < 2]
    assert sorted(answers, key=lambda row: row["src"]) == wanted
    earlier = [int(line) for line in (tmp_path / "told.txt").read_text().splitlines()]
    assert set(earlier) | set(told) == set(range(120))
    assert max(Counter([*earlier, *told]).values()) <= 2, "at least once, and again after a kill"


def test_a_stream_of_a_program_fails_alone(engine, spark: SparkSession, tmp_path: Path) -> None:
    """A frame that Structured Streaming refuses: an aggregate without a watermark."""
    put(tmp_path / "in", 0, 0, 10)
    rows: Any = files(spark, tmp_path / "in")
    with engine() as e:
        e.stream("packets", rows)
        e.stream("counts", rows.groupBy("port").count())
        e.execute("CREATE QUERY a AS SELECT src FROM packets;"
                  "CREATE QUERY b AS SELECT * FROM counts")
        summary = e.run()
        assert sources(e.results("a")) == list(range(10))
    assert [name for name, _ in summary.failures()] == ["stream counts", "query b"]
    assert "watermark" in summary.streams["counts"].reason
