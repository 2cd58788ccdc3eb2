"""The driver is killed at many moments and started again: no row is lost, none comes twice."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
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

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.slow,
              pytest.mark.timeout(900)]

DRIVER = Path(__file__).with_name("crash_driver.py")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = 12
KILLS = 100
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that dies young should not compile much."""
SOURCES = """
SET retention = '2 seconds';
CREATE STREAM plain (ts TIMESTAMP, src INT, port INT, name STRING) FROM parquet 'plain'
    OPTIONS (maxFilesPerTrigger = 1) TIME ts LATENESS 5 SECONDS;
CREATE STREAM lines (ts TIMESTAMP, src INT, port INT, name STRING) FROM csv 'lines'
    OPTIONS (maxFilesPerTrigger = 1, header = true) TIME ts LATENESS 5 SECONDS;
CREATE RELATION hosts (id INT, site STRING) FROM csv 'hosts.csv' OPTIONS (header = true);
CREATE FUNCTION odd FROM 'crash_functions:odd';
CREATE FUNCTION light FROM 'crash_functions:light';
SET filters = 'a_greedy(p=1, enough=4, window=20)';
"""
FEW = """
CREATE QUERY own INTO parquet 'out/own' AS SELECT ts, src FROM plain;
CREATE QUERY text INTO csv 'out/text' AS SELECT ts, src, name FROM lines;
CREATE QUERY m1 AS SELECT src, 'p' AS kind FROM plain UNION ALL SELECT src, 'l' FROM lines;
"""
MORE = """
CREATE QUERY m2 AS SELECT src, name FROM plain WHERE port IN (22, 443);
CREATE QUERY far INTO parquet '{far}' AS SELECT src, name FROM plain WHERE port < 100;
CREATE QUERY s1 INTO parquet 'out/shared' AS SELECT src FROM plain WHERE src % 2 = 0;
CREATE QUERY s2 INTO parquet 'out/shared' AS SELECT src, name FROM lines WHERE port = 80;
CREATE QUERY doc INTO json 'out/doc' AS SELECT src, port FROM lines WHERE port > 50;
CREATE QUERY joined INTO parquet 'out/joined'
    AS SELECT p.src, h.site FROM plain p JOIN hosts h ON p.port = h.id;
CREATE QUERY detected INTO json 'out/detected' AS SELECT src, name FROM lines WHERE odd(src);
CREATE QUERY conjoined INTO parquet 'out/conjoined'
    AS SELECT src, port FROM plain WHERE odd(src) AND light(port);
CREATE QUERY both INTO parquet 'out/both', json '{far}-both', memory
    AS SELECT src, port FROM plain WHERE port > 50;
CREATE QUERY c1 INTO json 'out/common' AS SELECT src, port FROM lines WHERE light(src) AND src > 3;
CREATE QUERY c2 INTO json 'out/common' AS SELECT src, name FROM lines WHERE light(src);
"""
WINDOWED = """
CREATE QUERY hopping AS SELECT src % 3 AS k, COUNT(*) AS n, SUM(port) AS total, MAX(name) AS last
    FROM plain GROUP BY src % 3, HOP(ts, INTERVAL '4' SECOND, INTERVAL '12' SECOND);
CREATE QUERY e1 INTO parquet 'out/windows'
    AS SELECT COUNT(*) AS n, COUNT(DISTINCT port) AS ports
    FROM plain [WINDOW 10 SECONDS SLIDE EXACTLY 3 SECONDS];
CREATE QUERY e2 INTO parquet 'out/windows' AS SELECT port, COUNT(*) AS n, MEDIAN(src) AS middle
    FROM lines GROUP BY port, TUMBLE(ts, INTERVAL '6' SECOND) HAVING COUNT(*) > 1;
"""
"""Answered at the multiples of their slides only, so that it does not matter when."""
SESSIONS = """
CREATE QUERY sessions AS SELECT src % 3 AS k, COUNT(*) AS n, SUM(port) AS total, LAST(name) AS last
    FROM plain GROUP BY src % 3, SESSION(ts, INTERVAL '4' SECOND);
"""
"""A row of each key every three seconds, but for those without a time or late, so some sessions end
soon and one is cut."""
EMPTY = """
CREATE QUERY emptied AS SELECT src % 5 AS k, COUNT(*) AS n, SUM(port) AS total FROM plain
    WHERE src % 5 <> 3 OR src % 25 = 3 GROUP BY src % 5, TUMBLE(ts, INTERVAL '3' SECOND)
    EMPTY GROUPS FOR 12 SECONDS;
"""
"""A group that has a row every 25 seconds is known for half of them."""
JOINED = """
CREATE QUERY near INTO parquet 'out/near' AS SELECT p.src, l.src AS other FROM plain p, lines l
    WHERE p.port = l.port WINDOW 3 SECONDS;
CREATE QUERY wide AS SELECT p.src, l.src AS other, l.name AS name FROM plain p, lines l
    WHERE p.port = l.port AND p.src % 2 = 0 WINDOW 15 SECONDS;
CREATE QUERY next INTO json 'out/next' AS SELECT p.src, l.src AS other FROM plain p JOIN lines l
    ON p.port = l.port AND l.ts BETWEEN p.ts AND p.ts + INTERVAL 7 SECONDS;
CREATE QUERY itself AS SELECT p.src, q.src AS other FROM plain p, plain q
    WHERE p.port = q.port AND odd(q.src) WINDOW 4 SECONDS;
CREATE QUERY latest INTO json 'out/latest' AS SELECT p.src, l.src AS other FROM plain p, lines l
    WHERE p.port = l.port AND l.src % 2 = 1 WINDOW 5 ROWS;
CREATE QUERY tallied INTO parquet 'out/tallied' AS SELECT p.port, COUNT(*) AS n, SUM(l.src) AS total
    FROM plain p, lines l WHERE p.port = l.port GROUP BY p.port
    WINDOW 6 SECONDS SLIDE EXACTLY 3 SECONDS;
CREATE QUERY three INTO parquet 'out/three' AS SELECT p.src, l.src AS other, q.src AS more
    FROM plain p, lines l, plain q WHERE p.port = l.port AND l.port = q.port WINDOW 2 SECONDS;
"""
DERIVED = """
CREATE STREAM few TIME ts LATENESS 20 SECONDS AS SELECT ts, src, port FROM plain
    WHERE src % 2 = 0 AND ts >= TIMESTAMP '2026-01-01 00:00:00';
CREATE STREAM tens TIME window_end LATENESS 5 SECONDS AS
    SELECT port, COUNT(*) AS n, SUM(src) AS total FROM few GROUP BY port,
    TUMBLE(ts, INTERVAL '4' SECOND);
CREATE QUERY fewer INTO parquet 'out/fewer' AS SELECT src, port FROM few WHERE port < 100;
CREATE QUERY sums INTO parquet 'out/sums' AS SELECT port, COUNT(*) AS n, SUM(total) AS total
    FROM tens GROUP BY port, TUMBLE(window_end, INTERVAL '12' SECOND);
CREATE QUERY met INTO parquet 'out/met' AS SELECT l.src, t.n FROM lines l JOIN tens t
    ON l.port = t.port AND t.window_end BETWEEN l.ts AND l.ts + INTERVAL '4' SECOND;
"""
"""What is late on `few` would depend on how many blocks ride in a job, so it gets no late row."""
SLICED = "SET joins = 'swf(merge=false)';"
"""Every slice of a window is a job; what is undisturbed scans the largest window at once."""
STAGED = "SET operators = 'greedy';"
"""Paths through Python are left and taken up again; what is undisturbed runs them whole."""
FAR = "SET synopses = '1 byte';"
"""The panes of all window aggregates are on the executors."""
EVERYTHING = FEW + MORE + WINDOWED + SESSIONS + EMPTY + JOINED + DERIVED
QUERIES = {"ingest": FEW, "delivery": STAGED + FEW + MORE, "windows": WINDOWED + SESSIONS + EMPTY,
           "joins": SLICED + JOINED, "derived": DERIVED,
           "executors": FAR + WINDOWED + SESSIONS + EMPTY,
           "one": STAGED + SLICED + EVERYTHING, "other": FAR + EVERYTHING,
           "undisturbed": EVERYTHING}
FUNCTIONS = """
import penstock
import pyarrow.compute as pc

@penstock.predicate
def odd(src):
    if pc.any(pc.equal(pc.bit_wise_and(src, 7), 5)).as_py():
        raise ValueError("five of eight")
    return pc.equal(pc.bit_wise_and(src, 1), 1)

@penstock.predicate
def light(port):
    return pc.less(pc.bit_wise_and(port, 15), 11)
"""
RESULTS = "read_parquet('{root}/checkpoint/results/*/*.parquet', union_by_name = true)"
ASIDE = "read_json('{{root}}/checkpoint/{}/*/*.json', hive_partitioning = false)"
OUTPUTS = {
    "m1": f"SELECT src, kind FROM {RESULTS} WHERE query = 'm1'",
    "m2": f"SELECT src, name FROM {RESULTS} WHERE query = 'm2'",
    "own": "SELECT * FROM read_parquet('{root}/out/own/*')",
    "far": "SELECT * FROM read_parquet('{far}/*.parquet')",
    "shared": "SELECT * FROM read_parquet('{root}/out/shared/*', union_by_name = true)",
    "text": "SELECT * FROM read_csv('{root}/out/text/*', header = true)",
    "doc": "SELECT * FROM read_json('{root}/out/doc/*')",
    "joined": "SELECT * FROM read_parquet('{root}/out/joined/*')",
    "detected": "SELECT * FROM read_json('{root}/out/detected/*')",
    "conjoined": "SELECT * FROM read_parquet('{root}/out/conjoined/*')",
    "common": "SELECT * FROM read_json('{root}/out/common/*')",
    "both": "SELECT src, port FROM read_parquet('{root}/out/both/*')",
    "json of both": "SELECT src, port FROM read_json('{far}-both/*.json')",
    "memory of both": f"SELECT src, port FROM {RESULTS} WHERE query = 'both'",
    "rejected by conjoined": "SELECT * FROM read_json('{root}/checkpoint/rejects/conjoined/*')",
    "hopping": f"SELECT window_start, window_end, k, n, total, last FROM {RESULTS} "
               "WHERE query = 'hopping'",
    "sessions": f"SELECT window_start, window_end, k, n, total, last FROM {RESULTS} "
                "WHERE query = 'sessions'",
    "emptied": f"SELECT window_start, window_end, k, n, total FROM {RESULTS} "
               "WHERE query = 'emptied'",
    "windows": "SELECT * FROM read_parquet('{root}/out/windows/*', union_by_name = true)",
    "near": "SELECT src, other FROM read_parquet('{root}/out/near/*')",
    "wide": f"SELECT src, other, name FROM {RESULTS} WHERE query = 'wide'",
    "next": "SELECT src, other FROM read_json('{root}/out/next/*')",
    "latest": "SELECT src, other FROM read_json('{root}/out/latest/*')",
    "tallied": "SELECT * FROM read_parquet('{root}/out/tallied/*')",
    "three": "SELECT src, other, more FROM read_parquet('{root}/out/three/*')",
    "fewer": "SELECT src, port FROM read_parquet('{root}/out/fewer/*')",
    "sums": "SELECT * FROM read_parquet('{root}/out/sums/*')",
    "met": "SELECT * FROM read_parquet('{root}/out/met/*')",
    "itself": f"SELECT src, other FROM {RESULTS} WHERE query = 'itself'",
    "rejected by itself": "SELECT * FROM read_json('{root}/checkpoint/rejects/itself/*')",
    "rejected by detected": "SELECT * FROM read_json('{root}/checkpoint/rejects/detected/*')",
    "malformed lines": f"SELECT * FROM {ASIDE.format('rejects/lines')}",
    "late plain": f"SELECT * FROM {ASIDE.format('late/plain')}",
    "late lines": f"SELECT * FROM {ASIDE.format('late/lines')}",
}
"""The rows of every output, told by somebody else."""


def _driver():
    spec = spec_from_file_location("crash_driver", DRIVER)
    module = module_from_spec(spec)
    sys.modules["crash_driver"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


CHAINS, CHANGES, found = _driver().CHAINS, _driver().CHANGES, _driver().found
STEPS = max(len(chain) for chain in CHAINS.values())


class Site:
    """A folder with an application, its input and its output."""

    def __init__(self, name: str, root: Path, far: Path) -> None:
        self.name, self.root, self.far = name, root, far
        self.steps = 0
        self.sessions: list[int] = []
        (root / "plain").mkdir(parents=True)
        (root / "lines").mkdir()
        (root / "app.sql").write_text(SOURCES + QUERIES[name].format(far=far))
        (root / "hosts.csv").write_text("id,site\n80,a\n22,b\n22,c\n")
        (root / "crash_functions.py").write_text(FUNCTIONS)

    def feed(self) -> None:
        """One more file for every stream, with a late row, one without a time and a bad one.

        Killed as it begins, Spark may read two files as one block; the first ones have no late row,
        since in the first block nothing is late.
        """
        first = self.steps * ROWS
        at = [BEGIN + timedelta(seconds=n) for n in range(first, first + ROWS)]
        rows = [(at[n], first + n, (80, 443, 22)[n % 3], f'name, "{n}"') for n in range(ROWS)]
        rows[4] = (None, *rows[4][1:])
        if self.steps > 4:
            rows[3] = (BEGIN - timedelta(hours=1), *rows[3][1:])
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
        """Run the application to its end, or to its death at a moment of a chain."""
        command = [sys.executable, str(DRIVER), str(self.root), *moment]
        log = self.root / f"log-{self.steps}.txt"
        with log.open("w") as errors, subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
            env=os.environ | {"JAVA_TOOL_OPTIONS": QUICK_START},
        ) as child:
            self.sessions.append(child.pid)
            try:
                out, _ = child.communicate(timeout=900)
            finally:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
        return subprocess.CompletedProcess(command, child.returncode, out, log.read_text())

    def rows(self, output: str) -> Counter[str]:
        """The rows of an output, as a multiset."""
        with duckdb.connect() as connection:
            found = connection.execute(OUTPUTS[output].format(root=self.root, far=self.far))
            return Counter(map(repr, found.fetchall()))

    def outputs(self) -> list[str]:
        """Those that the application has; only windows leave late rows aside."""
        queries = QUERIES[self.name]
        return [name for name in OUTPUTS if name.split()[-1] in queries
                and (not name.startswith("late") or WINDOWED in queries or JOINED in queries)]


def alive(session: int) -> list[int]:
    """The processes that a child has started and that still live."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, of, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(of) == session and state != "Z":
            found.append(int(entry.name))
    return found


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[dict[str, Site]]:
    other = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else tmp_path
    far = other / f"penstock-{os.getpid()}"
    made = {name: Site(name, tmp_path / name, far / name) for name in QUERIES}
    yield made
    shutil.rmtree(far, ignore_errors=True)
    sessions = [session for site in made.values() for session in site.sessions]
    for process in [process for session in sessions for process in alive(session)]:
        os.kill(process, signal.SIGKILL)


@pytest.mark.parametrize("chains", [
    ("delivery", "windows"), ("joins", "derived"),
    pytest.param(("ingest",), marks=pytest.mark.long),
    pytest.param(("executors",), marks=pytest.mark.long)])
def test_a_driver_killed_at_any_moment_loses_nothing_and_repeats_nothing(sites, chains):
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(killed_again_and_again, sites[name]) for name in chains]
        runs.append(pool.submit(undisturbed, sites["undisturbed"]))
        for run in runs:
            run.result()
    expected = sites["undisturbed"]
    assert sum(expected.rows("own").values()) == STEPS * ROWS
    for stream in ("plain", "lines"):
        assert sum(expected.rows(f"late {stream}").values()) == STEPS - 5
    assert sum(expected.rows("malformed lines").values()) == STEPS
    assert any(", 0, None)" in row for row in expected.rows("emptied"))
    assert all(expected.rows(output) for output in (
        "sessions", "near", "wide", "next", "latest", "tallied", "three", "fewer", "sums", "met"))
    for name in chains:
        site = sites[name]
        for output in site.outputs():
            assert site.rows(output) == expected.rows(output), f"{output} after the chain {name}"
        assert_nothing_is_left(site)
    both = expected.rows("both")
    assert both and both == expected.rows("json of both") == expected.rows("memory of both")


def killed_again_and_again(site: Site) -> None:
    """Kill the driver at every moment of a chain, then let it finish."""
    for name, moment in CHAINS[site.name].items():
        site.feed()
        child = site.start(site.name, name)
        told = f"{name}: not reached\n{child.stdout}\n{child.stderr}"
        assert child.returncode == -signal.SIGKILL, told
        if not moment.alone:
            vanished(site.sessions[-1])
    while site.steps < STEPS:
        site.feed()
    drained(site)


@pytest.mark.long
@pytest.mark.timeout(5400)
def test_a_hundred_kills_over_the_whole_run_and_every_kind_of_query_change_nothing(sites):
    storms = [sites["one"], sites["other"]]
    with ThreadPoolExecutor(2) as pool:
        kills = list(pool.map(killed_at_random, storms, (1, 2)))
    steps = max(site.steps for site in storms)
    print({name: sum(kill[name] for kill in kills) for name in kills[0] | kills[1]})
    assert sum(kill.total() for kill in kills) >= KILLS
    assert len(kills[0] | kills[1]) >= 0.8 * sum(map(len, CHAINS.values()))
    undisturbed(sites["undisturbed"], steps)
    for site in storms:
        while site.steps < steps:
            site.feed()
        drained(site)
        for output in site.outputs():
            assert site.rows(output) == sites["undisturbed"].rows(output), (site.name, output)
        assert_nothing_is_left(site)


def killed_at_random(site: Site, seed: int) -> Counter[str]:
    """Kill the driver at every moment of all chains, in any order, when it comes once or again.

    A moment that does not come (a second recovery, say) lets the driver stop by itself.
    """
    chance = random.Random(seed)
    moments = [(chain, name) for chain, named in CHAINS.items() for name in named]
    kills: Counter[str] = Counter()
    while kills.total() < KILLS / 2:
        for chain, name in chance.sample(moments, len(moments)):
            site.feed()
            child = site.start(chain, name, str(chance.choice((1, 1, 1, 2))))
            assert child.returncode in (0, -signal.SIGKILL), f"{name}\n{child.stderr}"
            kills[name] += child.returncode != 0
            vanished(site.sessions[-1])
            if kills.total() >= KILLS / 2:
                break
    return +kills


def undisturbed(site: Site, steps: int = STEPS) -> None:
    for _ in range(steps):
        site.feed()
    drained(site)


def drained(site: Site) -> None:
    child = site.start()
    assert child.returncode == 0, child.stderr
    told = json.loads(child.stdout.splitlines()[-1])
    assert told == {"state": "drained", "failures": [], "accounting": []}


def vanished(session: int, seconds: float = 30) -> None:
    """Wait until the JVM and its Python workers are gone too."""
    deadline = time.monotonic() + seconds
    while alive(session):
        assert time.monotonic() < deadline, f"processes {alive(session)} have stayed behind"
        time.sleep(0.02)


def assert_nothing_is_left(site: Site) -> None:
    for session in site.sessions:
        vanished(session)
    checkpoint = site.root / "checkpoint"
    assert list((checkpoint / "staging").iterdir()) == []
    assert not (site.far / "_penstock").exists()
    for stream in ("plain", "lines"):
        spool = checkpoint / "spool" / stream
        blocks = {path.stem for path in spool.glob("*.json")}
        assert {path.name for path in spool.iterdir() if path.is_dir()} <= blocks
    assert [path for path in (checkpoint / "feeds").rglob("*") if path.is_file()] == []
    for record in checkpoint.glob("runs/*/events.jsonl"):
        assert Summary.of(read_events(record)).accounting() == [], record
