"""A start that is warm, and one from an archive that is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.api import Engine
from penstock.events import BlockArrived, Event, StartupStep
from penstock.spark import jvm, warm_up
from penstock.spark.class_archive import SWITCH
from tests.spark.kit import eventually

pytestmark = pytest.mark.spark

APP = """
CREATE STREAM sent (ts TIMESTAMP, port INT, length INT) FROM parquet 'sent' TIME ts;
CREATE FUNCTION long FROM 'marks:long';
CREATE QUERY web INTO parquet 'answers' AS SELECT ts, port FROM sent WHERE port = 80;
CREATE QUERY big INTO callback 'marks:called' AS SELECT ts, length FROM sent WHERE length > 100;
CREATE QUERY python AS SELECT ts FROM sent WHERE long(length);
CREATE QUERY sums AS SELECT port, SUM(length) AS bytes FROM sent [WINDOW 5 SECONDS] GROUP BY port;
"""
GENERATED = """
CREATE STREAM packets (ts TIMESTAMP, port INT, length INT) FROM onoff
  OPTIONS (rate = 2000, length = 0.1, seed = 3) TIME ts;
CREATE QUERY web AS SELECT ts, port FROM packets WHERE port = 80;
CREATE QUERY sums AS SELECT SUM(length) AS bytes FROM packets [WINDOW 1 SECOND];
"""
JOINED = """
CREATE STREAM a (ts TIMESTAMP, src INT) FROM onoff
  OPTIONS (rate = 200, length = 0.1, seed = 3, slice = 500) TIME ts;
CREATE STREAM b (ts TIMESTAMP, src INT) FROM onoff
  OPTIONS (rate = 200, length = 0.1, seed = 4, slice = 500) TIME ts;
CREATE QUERY near AS SELECT x.ts, y.src FROM a x, b y WHERE x.src = y.src WINDOW 5 SECONDS;
"""
MARKS = """
import sys

import penstock
import pyarrow.compute as pc

def called(query, table):
    sys.modules["calls_of_a_start"].append(table)

@penstock.predicate
def long(length):
    return pc.greater(length, 100)
"""


def live(
    engine: Callable[..., Engine], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Engine, list[Event]]:
    monkeypatch.syspath_prepend(folder)
    (folder / "marks.py").write_text(MARKS)
    (folder / "sent").mkdir()
    told: list[Event] = []
    running = engine(on_event=told.append)
    running.execute(APP, folder=folder)
    running.start()
    return running, told


def steps(told: list[Event]) -> list[str]:
    return [event.step for event in list(told) if isinstance(event, StartupStep)]


def test_paths_are_warm_before_the_first_row_and_nothing_of_it_is_seen(
    engine: Callable[..., Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warmed: list[str] = []
    run = warm_up._Doubles.run

    def counted(self: warm_up._Doubles, number: int, path: warm_up.Path) -> None:
        run(self, number, path)
        warmed.append(path.id)

    monkeypatch.setattr(warm_up._Doubles, "run", counted)
    calls: list[pa.Table] = []
    monkeypatch.setitem(sys.modules, "calls_of_a_start", calls)
    running, told = live(engine, tmp_path, monkeypatch)
    eventually(lambda: steps(told)[-1:] == [""], "the paths are warm", 400)
    assert len(warmed) == 3
    assert steps(told) == ["starting Spark", "compiling 3 paths", ""]
    seen = running.status()
    assert seen.waits_for() == "waiting for rows"
    assert (seen.run.decided, seen.run.jobs) == (0, 0)
    assert not list((tmp_path / "answers").rglob("*.parquet"))
    assert running.results("python").num_rows == 0
    assert calls == []
    pq.write_table(pa.table({
        "ts": pa.array([1_700_000_000_000_000], pa.timestamp("us", "UTC")),
        "port": pa.array([80], pa.int32()), "length": pa.array([500], pa.int32())}),
        tmp_path / "sent" / "one.parquet")
    eventually(lambda: all(running.status().queries[name].rows_out == 1
                           for name in ("web", "big", "python")), "all have answered")
    running.stop()
    assert [table.num_rows for table in calls] == [1]
    assert running.status().failures() == []


def test_joins_are_warm_before_the_first_row(
    engine: Callable[..., Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first probe is written by executors, later ones by the driver: both are compiled."""
    warmed: list[bool] = []
    probe = warm_up._Doubles.probe

    def counted(
        self: warm_up._Doubles, number: int, join: warm_up.SharedJoin, in_driver: bool
    ) -> None:
        probe(self, number, join, in_driver)
        warmed.append(in_driver)

    monkeypatch.setattr(warm_up._Doubles, "probe", counted)
    running = engine()
    running.execute(JOINED, folder=tmp_path)
    running.start()
    eventually(lambda: running.status().queries["near"].rows_out > 0, "it has pairs")
    running.close()
    assert warmed == [False, True]
    assert running.status().failures() == []
    assert running.status().accounting() == []


def test_a_new_generator_begins_when_the_paths_are_warm(
    engine: Callable[..., Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a restart its rows are due, and it waits for nothing."""
    warmed: list[str] = []
    run = warm_up._Doubles.run

    def slowly(self: warm_up._Doubles, number: int, path: warm_up.Path) -> None:
        time.sleep(0.5)
        run(self, number, path)
        warmed.append(path.id)

    monkeypatch.setattr(warm_up._Doubles, "run", slowly)
    for seen in (["packets/fanout", "packets/panes"], []):
        told: list[Event] = []
        running = engine(on_event=told.append, checkpoint=tmp_path / "checkpoint")
        running.execute(GENERATED, folder=tmp_path)
        running.start()
        eventually(lambda engine=running: engine.status().queries["web"].rows_out > 0,
                   "it has answered")
        running.close()
        assert warmed == seen
        assert running.status().failures() == []
        if seen:
            kinds = [kind for kind in map(type, told) if kind in (StartupStep, BlockArrived)]
            assert kinds[:4] == [StartupStep, StartupStep, StartupStep, BlockArrived]
        warmed.clear()


def test_a_failure_of_the_warm_up_is_no_failure_of_the_run(
    engine: Callable[..., Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(checkpoint: object, of: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(warm_up._Doubles, "on", broken)
    running, told = live(engine, tmp_path, monkeypatch)
    eventually(lambda: steps(told)[-1:] == [""], "the warm-up has given up")
    running.stop()
    assert running.status().run.state == "stopped"
    assert running.status().failures() == []
    assert not list(running.status().warnings)


@pytest.mark.processes
@pytest.mark.slow
def test_an_archive_that_is_none_breaks_no_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(SWITCH, "on")
    archive = jvm.archive()
    assert archive is not None
    archive.path.parent.mkdir(mode=0o700, parents=True)
    with archive.making() as fresh:
        assert fresh is not None
        fresh.write_bytes(os.urandom(100_000))
        archive.publish(fresh)
    code = ("from penstock.spark.session import local_session; import json; "
            "print(json.dumps(local_session('local[1]').range(7).count()))")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                         timeout=300, check=True)
    assert json.loads(ran.stdout) == 7
