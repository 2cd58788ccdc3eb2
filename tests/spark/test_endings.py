"""How `penstock run` ends when Spark dies, or work under way does not end: in processes apart."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.events import Summary, read_events
from tests.spark.kit import eventually

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.slow,
              pytest.mark.timeout(300)]

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that dies young should not compile much."""
APP = """
CREATE STREAM packets (ts TIMESTAMP, src INT, port INT) FROM onoff OPTIONS (rate = 200, seed = 3)
    TIME ts LATENESS 5 SECONDS;
CREATE FUNCTION spins FROM 'spinning:spins';
CREATE QUERY web AS SELECT ts, src FROM packets WHERE port = 443;
"""
SPINNING = """
import penstock

@penstock.predicate
def spins(src):
    open("MARK/spins", "w").close()
    while True:
        pass
"""


@contextmanager
def running(folder: Path, sql: str) -> Iterator[subprocess.Popen[str]]:
    """`penstock run` in a process group of its own."""
    (folder / "app.sql").write_text(sql)
    (folder / "spinning.py").write_text(SPINNING.replace("MARK", str(folder)))
    command = [sys.executable, "-m", "penstock.cli", "run", "app.sql", "--checkpoint", "state",
               "--master", "local[2]"]
    environment = {**os.environ, "JDK_JAVA_OPTIONS": QUICK_START}
    process = subprocess.Popen(command, cwd=folder, env=environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def summary(folder: Path) -> Summary:
    try:
        return Summary.of(read_events(folder / "state"))
    except Exception:  # there is no record yet
        return Summary()


def jvm(process: subprocess.Popen[str]) -> int:
    """The Java process that a driver has started."""
    children = Path(f"/proc/{process.pid}/task").glob("*/children")
    found = [int(pid) for path in children for pid in path.read_text().split()]
    (java,) = (pid for pid in found if b"java" in Path(f"/proc/{pid}/cmdline").read_bytes())
    return java


def has_begun(folder: Path) -> bool:
    known = summary(folder).queries.get("web")
    return known is not None and known.rows_in > 0


def test_a_dead_jvm_is_one_sentence_an_account_and_a_status(tmp_path):
    with running(tmp_path, APP) as process:
        eventually(lambda: has_begun(tmp_path), "it runs")
        os.kill(jvm(process), signal.SIGKILL)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "Traceback" not in out + err and "py4j" not in (out + err).lower()
    assert out.count("Spark's JVM has ended by signal 9") == 1
    assert "accounting balanced" in out
    assert summary(tmp_path).run.state == "broken"


def test_a_signal_to_the_whole_group_is_a_stop(tmp_path):
    with running(tmp_path, APP) as process:
        eventually(lambda: has_begun(tmp_path), "it runs")
        os.killpg(process.pid, signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "Traceback" not in out + err
    assert "accounting balanced" in out and "to go on from here" in out


def test_ctrl_c_ends_soon_though_a_function_never_does(tmp_path):
    stuck = "CREATE QUERY stuck AS SELECT src FROM packets WHERE spins(src);"
    with running(tmp_path, APP + stuck) as process:
        eventually((tmp_path / "spins").exists, "the function is called")
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        took = time.monotonic() - began
    assert process.returncode == 0, err
    assert "Traceback" not in out + err
    assert "were cancelled; nothing of them was delivered" in out
    assert "accounting balanced" in out
    assert took < 15, f"it took {took:.1f} s"
    record = json.dumps([str(event) for event in read_events(tmp_path / "state")])
    assert "QueryFailed" not in record
