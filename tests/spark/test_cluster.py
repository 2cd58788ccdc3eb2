"""A standalone cluster on loopback: answers as on one machine, whoever dies in the middle."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyspark
import pytest

from penstock.events import kinds as ev
from penstock.events import read_events
from tests.spark.kit import eventually

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.long,
              pytest.mark.timeout(600)]

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
FILES, ROWS = 12, 400
APPLICATION = """
    SET operators = 'greedy';
    SET filters = 'a_greedy(p=1, enough=20)';
    CREATE STREAM numbers (n INT, name STRING) FROM parquet 'in' OPTIONS (maxFilesPerTrigger = 1);
    CREATE STREAM timed (ts TIMESTAMP, n INT) FROM parquet 'in' OPTIONS (maxFilesPerTrigger = 1)
        TIME ts LATENESS 1 SECOND;
    CREATE FUNCTION odd FROM 'clustered:odd';
    CREATE FUNCTION slow FROM 'clustered:slow';
    CREATE FUNCTION known FROM 'clustered:known';
    CREATE FUNCTION third FROM 'clustered:third';
    CREATE QUERY staged INTO parquet 'out/staged'
        AS SELECT n, name FROM numbers WHERE slow(n) AND odd(n);
    CREATE QUERY large INTO parquet 'out/large' AS
        SELECT n FROM numbers WHERE known(n) AND third(n) AND n >= 1000;
    CREATE QUERY thirds INTO parquet 'out/thirds' AS SELECT n FROM numbers
        WHERE known(n) AND third(n);
    CREATE QUERY cheap INTO parquet 'out/cheap' AS SELECT n FROM numbers WHERE n % 10 = 0;
    CREATE QUERY pairs INTO parquet 'out/pairs' AS SELECT A.n FROM numbers A, numbers B
        WHERE A.n = B.n WINDOW 1 HOUR;
    CREATE QUERY fives INTO parquet 'out/fives' AS
        SELECT A.n FROM numbers A, numbers B, numbers C, numbers D, numbers E
        WHERE A.n = B.n AND B.n = C.n AND C.n = D.n AND D.n = E.n WINDOW 1 HOUR;
    CREATE QUERY latest INTO parquet 'out/latest' AS SELECT A.n, B.n AS other
        FROM timed A, timed B WHERE A.n % 3 = B.n % 3 WINDOW 8 ROWS;
    CREATE QUERY counted INTO parquet 'out/counted' AS SELECT COUNT(*) AS n, SUM(A.n) AS total
        FROM timed A, timed B WHERE A.n % 40 = B.n % 40
        WINDOW 120 SECONDS SLIDE EXACTLY 60 SECONDS;
"""
FUNCTIONS = """
import time, penstock, pyarrow.compute as pc

@penstock.predicate
def odd(n):
    return pc.equal(pc.bit_wise_and(n, 1), 1)

@penstock.predicate
def slow(n):
    time.sleep(0.3)
    return pc.not_equal(n, 7)

@penstock.predicate
def known(n):
    time.sleep(0.1)
    return pc.greater_equal(n, 0)

@penstock.predicate
def third(n):
    return pc.equal(pc.subtract(n, pc.multiply(pc.divide(n, 3), 3)), 0)
"""


class Cluster:
    """A master and two workers with one core each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"spark://127.0.0.1:{free_port()}"
        self.page = free_port()
        self.master = self._start("master.Master", "--host", "127.0.0.1", "--port",
                                  self.url.rpartition(":")[2], "--webui-port", str(self.page))
        self.workers = [self._start("worker.Worker", "--host", "127.0.0.1", "--webui-port", "0",
                                    "--cores", "1", "--memory", "1g", "--work-dir",
                                    str(folder / f"work{n}"), self.url) for n in range(2)]
        self._await_workers()

    def _start(self, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = open(self.folder / "cluster.log", "ab")
        with log:
            return subprocess.Popen(
                [SPARK_CLASS, f"org.apache.spark.deploy.{kind}", *arguments], stdout=log,
                stderr=log, start_new_session=True,
                env={**os.environ, "PYSPARK_PYTHON": sys.executable})

    def _await_workers(self) -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.page}/json/", timeout=2) as r:
                    if b'"aliveworkers" : 2' in r.read():
                        return
            except OSError:
                pass
            time.sleep(0.2)
        raise AssertionError((self.folder / "cluster.log").read_text()[-3000:])

    def stop(self) -> None:
        for process in (*self.workers, self.master):
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """As by `kill -9`, with everything the process has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.stop()


def start(folder: Path, master: str) -> subprocess.Popen[bytes]:
    log = open(folder / "driver.log", "ab")
    with log:
        return subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", "run", "app.sql", "--until-drained",
             "--checkpoint", "state", "--master", master],
            cwd=folder, stdout=log, stderr=log, start_new_session=True)


def delivered(folder: Path) -> int:
    log = folder / "state" / "deliveries.jsonl"
    return log.read_text().count('"job"') if log.exists() else 0


def reached(condition: Callable[[], bool], process: subprocess.Popen[bytes], folder: Path) -> None:
    """The driver gets there before it ends."""
    eventually(lambda: condition() or process.poll() is not None, "the driver gets there", 200)
    assert condition(), (folder / "driver.log").read_text()[-3000:]


def events(folder: Path) -> list[ev.Event]:
    """The records of all runs so far."""
    return [event for record in sorted(folder.glob("state/runs/*/events.jsonl"))
            for event in read_events(record)]


def five_ways(folder: Path) -> bool:
    """Whether a probe of the join of five streams has begun."""
    return any(isinstance(event, ev.JobDecided) and isinstance(event.work, ev.ProbeWork)
               and event.work.join.count("*") == 4 for event in events(folder))


def answers(folder: Path, query: str) -> list[int]:
    return sorted(ds.dataset(folder / "out" / query).to_table(columns=["n"])["n"].to_pylist())


def pairs_within(numbers: range) -> tuple[int, int]:
    """How many pairs a window with these numbers has, a second for each, and their sum."""
    found = [a for a in numbers for b in numbers if a % 40 == b % 40]
    return len(found), sum(found)


def test_killing_a_worker_and_then_the_driver_changes_no_answer(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "app.sql").write_text(APPLICATION)
    (tmp_path / "clustered.py").write_text(FUNCTIONS)
    for file in range(FILES):
        values = range(file * ROWS, (file + 1) * ROWS)
        times = pa.array([v * 1_000_000 for v in values], pa.timestamp("us", "UTC"))
        table = pa.table({"n": pa.array(values, pa.int32()), "name": [f"<{v}>" for v in values],
                          "ts": times})
        pq.write_table(table, tmp_path / "in" / f"{file:03d}.parquet")
    driver = start(tmp_path, cluster.url)
    try:
        reached(lambda: delivered(tmp_path) >= 1 and five_ways(tmp_path), driver, tmp_path)
        kill(cluster.workers[0])
        before = delivered(tmp_path)
        reached(lambda: delivered(tmp_path) > before or driver.poll() == 0, driver, tmp_path)
    finally:
        kill(driver)
    again = start(tmp_path, cluster.url)
    try:
        assert again.wait(timeout=300) == 0, (tmp_path / "driver.log").read_text()[-3000:]
    finally:
        kill(again)
    everything = range(FILES * ROWS)
    assert answers(tmp_path, "staged") == [n for n in everything if n % 2 and n != 7]
    assert answers(tmp_path, "thirds") == list(everything[::3])
    assert answers(tmp_path, "large") == [n for n in everything[::3] if n >= 1000]
    assert answers(tmp_path, "cheap") == [n for n in everything if n % 10 == 0]
    assert answers(tmp_path, "pairs") == list(everything)
    assert answers(tmp_path, "fives") == list(everything)
    latest = ds.dataset(tmp_path / "out" / "latest").to_table(columns=["n", "other"])
    assert sorted(zip(*latest.to_pydict().values(), strict=True)) == sorted(
        (a, b) for a in everything for b in range(max(a - 7, 0), min(a + 8, len(everything)))
        if a % 3 == b % 3)
    counted = ds.dataset(tmp_path / "out" / "counted").to_table().to_pylist()
    assert sorted((row["window_end"].timestamp(), row["n"], row["total"]) for row in counted) == [
        (float(end), *pairs_within(range(max(end - 120, 0), min(end, len(everything)))))
        for end in range(60, len(everything) + 120, 60)]
    found = events(tmp_path)
    changed = {event.path for event in found if isinstance(event, ev.OrderChanged)}
    assert changed == {"staged#0", "large#0+"}, "a conjunction that is cut, and a shared one"
    assert any(isinstance(event, ev.JobFinished) and isinstance(event.result, ev.ProbeResult)
               and event.result.profiles for event in found), "keys were asked for"
