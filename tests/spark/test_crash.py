"""The driver is killed at many moments and started again: no row is lost, none comes twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.events import Summary, read_events

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

DRIVER = Path(__file__).with_name("crash_driver.py")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = 12
APPLICATION = """
SET retention = '2 seconds';
CREATE STREAM plain (ts TIMESTAMP, src INT, port INT, name STRING) FROM parquet 'plain'
    OPTIONS (maxFilesPerTrigger = 1) TIME ts LATENESS 5 SECONDS;
CREATE STREAM lines (ts TIMESTAMP, src INT, port INT, name STRING) FROM csv 'lines'
    OPTIONS (maxFilesPerTrigger = 1, header = true) TIME ts LATENESS 5 SECONDS;
CREATE RELATION hosts (id INT, site STRING) FROM csv 'hosts.csv' OPTIONS (header = true);
CREATE FUNCTION odd FROM 'crash_functions:odd';
CREATE QUERY m1 AS SELECT ts, src FROM plain WHERE port = 80;
CREATE QUERY m2 AS SELECT src, name FROM plain WHERE port IN (22, 443);
CREATE QUERY m3 AS SELECT src, 'p' AS kind FROM plain UNION ALL SELECT src, 'l' FROM lines;
CREATE QUERY own INTO parquet 'out/own' AS SELECT ts, src FROM plain;
CREATE QUERY far INTO parquet '{far}' AS SELECT src, name FROM plain WHERE port < 100;
CREATE QUERY s1 INTO parquet 'out/shared' AS SELECT src FROM plain WHERE src % 2 = 0;
CREATE QUERY s2 INTO parquet 'out/shared' AS SELECT src, name FROM lines WHERE port = 80;
CREATE QUERY text INTO csv 'out/text' AS SELECT ts, src, name FROM lines;
CREATE QUERY doc INTO json 'out/doc' AS SELECT src, port FROM lines WHERE port > 50;
CREATE QUERY joined INTO parquet 'out/joined'
    AS SELECT p.src, h.site FROM plain p JOIN hosts h ON p.port = h.id;
CREATE QUERY detected INTO json 'out/detected' AS SELECT src, name FROM lines WHERE odd(src);
"""
FUNCTIONS = """
import penstock
import pyarrow.compute as pc

@penstock.predicate
def odd(src):
    if pc.any(pc.equal(pc.bit_wise_and(src, 7), 5)).as_py():
        raise ValueError("five of eight")
    return pc.equal(pc.bit_wise_and(src, 1), 1)
"""
OUTPUTS = {
    "results": ("checkpoint/results/*/*.parquet", "read_parquet('{}', union_by_name = true)"),
    "own": ("out/own/*", "read_parquet('{}')"),
    "far": ("{far}/*.parquet", "read_parquet('{}')"),
    "shared": ("out/shared/*", "read_parquet('{}', union_by_name = true)"),
    "text": ("out/text/*", "read_csv('{}', header = true)"),
    "doc": ("out/doc/*", "read_json('{}')"),
    "joined": ("out/joined/*", "read_parquet('{}')"),
    "detected": ("out/detected/*", "read_json('{}')"),
    "rejected by Python": ("checkpoint/rejects/detected/*", "read_json('{}')"),
    "malformed": ("checkpoint/rejects/lines/*/*.json", "read_json('{}')"),
    "late": ("checkpoint/late/*/*/*.json", "read_json('{}')"),
}
HEADERS = 2
"""Lines of the log that say where all queries stand."""


def _driver():
    spec = spec_from_file_location("crash_driver", DRIVER)
    module = module_from_spec(spec)
    sys.modules["crash_driver"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


CHAINS = _driver().CHAINS
STEPS = max(len(chain) for chain in CHAINS.values())


class Site:
    """A folder with an application, its input and its output."""

    def __init__(self, root: Path, elsewhere: Path) -> None:
        self.root, self.far, self.steps = root, elsewhere, 0
        (root / "plain").mkdir(parents=True)
        (root / "lines").mkdir()
        (root / "app.sql").write_text(APPLICATION.format(far=elsewhere))
        (root / "hosts.csv").write_text("id,site\n80,a\n22,b\n22,c\n")
        (root / "crash_functions.py").write_text(FUNCTIONS)

    def feed(self) -> None:
        """One more file for every stream, with a late row, one without a time and a bad one."""
        first = self.steps * ROWS
        at = [BEGIN + timedelta(seconds=n) for n in range(first, first + ROWS)]
        late = BEGIN - timedelta(hours=1)
        rows = [
            (late if n == 3 else None if n == 4 else at[n], first + n, (80, 443, 22)[n % 3],
             f"name, \"{n}\"")
            for n in range(ROWS)
        ]  # fmt: skip
        ts, src, port, name = zip(*rows, strict=True)
        table = pa.table({
            "ts": pa.array(ts, pa.timestamp("us", "UTC")), "src": pa.array(src, pa.int32()),
            "port": pa.array(port, pa.int32()), "name": name,
        })  # fmt: skip
        pq.write_table(table, self._next("plain"))
        text = [f'{row[0] or ""},{row[1]},{row[2]},"{row[1]} and, {row[2]}"' for row in rows]
        bad = f"{at[0]},no number {self.steps},1,x"
        lines = "\n".join(["ts,src,port,name", *text, bad]) + "\n"
        self._next("lines").write_text(lines.replace("+00:00", "Z"))
        for stream in ("plain", "lines"):
            file = self._next(stream)
            os.utime(file, (1_700_000_000 + self.steps,) * 2)
            file.rename(file.with_name(file.name[1:]))
        self.steps += 1

    def _next(self, stream: str) -> Path:
        suffix = "parquet" if stream == "plain" else "csv"
        return self.root / stream / f".{self.steps:04d}.{suffix}"

    def start(self, *moment: str) -> subprocess.CompletedProcess[str]:
        """Run the application to its end, or to its death at a moment."""
        environment = os.environ | {
            "JAVA_TOOL_OPTIONS": os.environ.get("JTO", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")}
        command = [sys.executable, str(DRIVER), str(self.root), *moment]
        log = self.root / f"log-{self.steps}.txt"
        with log.open("w") as err, subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=err, text=True, start_new_session=(os.environ.get("NOSESS") is None),
            env=environment,
        ) as child:  # fmt: skip
            try:
                out, _ = child.communicate(timeout=150)
            finally:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
        return subprocess.CompletedProcess(command, child.returncode, out, log.read_text())

    def contents(self) -> dict[str, Counter]:
        """The rows of every output."""
        found = {}
        for name, (place, reader) in OUTPUTS.items():
            pattern = str(self.root / place.format(far=self.far))
            with duckdb.connect() as connection:
                rows = connection.execute(f"SELECT * FROM {reader.format(pattern)}").fetchall()
            found[name] = Counter(map(repr, rows))
        return found


def processes_of(session: int) -> list[int]:
    """The processes that a child has started and that still live."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(entry.name))
    return found


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[dict[str, Site]]:
    other = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else tmp_path
    elsewhere = other / f"penstock-{os.getpid()}"
    yield {name: Site(tmp_path / name, elsewhere / name) for name in (*CHAINS, "undisturbed")}
    shutil.rmtree(elsewhere, ignore_errors=True)


def test_a_driver_killed_at_any_moment_loses_nothing_and_repeats_nothing(sites):
    with ThreadPoolExecutor(len(CHAINS)) as pool:
        chains = {name: pool.submit(killed_again_and_again, sites[name], name) for name in CHAINS}
        for name, chain in chains.items():
            assert chain.result() == list(CHAINS[name])
    for _ in range(STEPS):
        sites["undisturbed"].feed()
    drained(sites["undisturbed"])
    expected = sites["undisturbed"].contents()
    assert len(expected["own"]) == STEPS * (ROWS - 1) + 1, "all but the late rows"
    assert sum(expected["malformed"].values()) == STEPS
    for name in CHAINS:
        site = sites[name]
        found = site.contents()
        for output in OUTPUTS:
            assert found[output] == expected[output], f"{output} after the chain {name}"
        assert_nothing_is_left(site)


def killed_again_and_again(site: Site, chain: str) -> list[str]:
    """Kill the driver at every moment of a chain, then let it finish; the moments reached."""
    reached = []
    for moment in CHAINS[chain]:
        site.feed()
        child = site.start(chain, moment)
        assert child.returncode == -signal.SIGKILL, (
            f"{moment}: not reached\n{child.stdout}\n{child.stderr}")
        reached.append(moment)
    while site.steps < STEPS:
        site.feed()
    drained(site)
    return reached


def drained(site: Site) -> None:
    child = site.start()
    assert child.returncode == 0, child.stderr
    told = json.loads(child.stdout.splitlines()[-1])
    assert told == {"state": "drained", "failures": [], "accounting": []}


def assert_nothing_is_left(site: Site) -> None:
    checkpoint = site.root / "checkpoint"
    assert list((checkpoint / "staging").iterdir()) == []
    assert not (site.far / "_penstock").exists()
    for stream in ("plain", "lines"):
        spool = checkpoint / "spool" / stream
        blocks = {path.stem for path in spool.glob("*.json")}
        assert {path.name for path in spool.iterdir() if path.is_dir()} <= blocks
    for record in (checkpoint / "runs").iterdir():
        if (record / "events.jsonl").exists():
            assert Summary.of(read_events(record)).accounting() == [], record
    _, *deliveries = [json.loads(line) for line in (checkpoint / "deliveries.jsonl").open()]
    runs = [line["run"] for line in deliveries if "run" in line]
    assert len(runs) == len(set(runs))
