"""The driver is killed while a relation changes: every block keeps the version that it had."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from tests.spark.test_changing_relations import ROWS, feed, write_sites
from tests.spark.test_crash import CHANGES, DRIVER, QUICK_START, alive

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.slow,
              pytest.mark.timeout(900)]

APP = """
SET retention = '1 hour';
CREATE STREAM s (ts TIMESTAMP, n INT) FROM parquet 's' OPTIONS (maxFilesPerTrigger = 1)
    TIME ts LATENESS 1 HOUR;
CREATE RELATION sites (id INT, site STRING) FROM csv 'sites' OPTIONS (header = true)
    REFRESH EVERY 1 HOUR;
CREATE QUERY named INTO parquet 'named', json 'named-as-text'
    AS SELECT s.n, r.site FROM s LEFT JOIN sites r ON s.n % 4 = r.id;
CREATE QUERY tally INTO parquet 'tally' AS SELECT r.site, COUNT(*) AS n
    FROM s JOIN sites r ON s.n % 4 = r.id GROUP BY r.site, TUMBLE(ts, INTERVAL '10' SECOND);
CREATE QUERY pairs INTO parquet 'pairs' AS SELECT a.n, b.n AS other, r.site
    FROM s a JOIN s b ON a.n % 5 = b.n % 5
        AND b.ts BETWEEN a.ts - INTERVAL '1' HOUR AND a.ts + INTERVAL '1' HOUR
    JOIN sites r ON a.n % 4 = r.id;
"""
"""A run that drains answers the windows that are open, so the rows of each start have their own."""
ANSWERS = {
    "named": "SELECT n, site FROM s LEFT JOIN sites r ON n % 4 = id AND r.version = s.version",
    "tally": "SELECT site, COUNT(*) AS n FROM s JOIN sites r ON n % 4 = id "
             "AND r.version = s.version GROUP BY site, n // 10",
    "pairs": "SELECT a.n, b.n, site FROM s a JOIN s b ON a.n % 5 = b.n % 5 "
             "JOIN sites r ON a.n % 4 = id AND r.version = greatest(a.version, b.version)",
}
DELIVERED = {
    "named": "SELECT n, site FROM read_parquet('{root}/named/*')",
    "named as text": "SELECT n, site FROM read_json('{root}/named-as-text/*.json', "
                     "columns = {{n: 'INT', site: 'VARCHAR'}})",
    "tally": "SELECT site, n FROM read_parquet('{root}/tally/*')",
    "pairs": "SELECT n, other, site FROM read_parquet('{root}/pairs/*')",
}
FEW = ("in a job", "answers committed, nothing moved")
MORE = tuple(name for name in CHANGES if name not in FEW)


@pytest.mark.parametrize("moments", [
    FEW, pytest.param(MORE, marks=pytest.mark.long)], ids=["few", "more"])
def test_a_block_keeps_its_version_whenever_the_driver_is_killed(tmp_path: Path, moments) -> None:
    (tmp_path / "app.sql").write_text(APP)
    blocks_before: dict[int, int] = {}
    for step, moment in enumerate([*moments, ""], start=1):
        write_sites(tmp_path, step)
        feed(tmp_path, "s", step - 1)
        blocks_before[step] = len(list((tmp_path / "checkpoint" / "spool" / "s").glob("*.json")))
        child = start(tmp_path, "changes", moment) if moment else start(tmp_path)
        assert child.returncode == (-signal.SIGKILL if moment else 0), (
            f"{moment}\n{child.stdout}\n{child.stderr}")
    told = json.loads(child.stdout.splitlines()[-1])
    assert told == {"state": "drained", "failures": [], "accounting": []}
    versions = stored(tmp_path)
    for version, (content, since) in versions.items():
        expected = 0 if version == 1 else blocks_before[content]
        assert since == expected, f"version {version} holds for blocks that were there before"
    assert blocks_before[len(moments) + 1] > 0, "some block waited while the relation changed"
    for name, found in DELIVERED.items():
        answer = Counter(duckdb.sql(found.format(root=tmp_path)).fetchall())
        assert answer == expected_answers(name.split()[0], versions, len(moments) + 1), name
    folders = {path.name for path in (tmp_path / "checkpoint/relations/sites").iterdir()}
    assert folders == {f"{version:08d}" for version in versions}


def start(root: Path, *moment: str) -> subprocess.CompletedProcess[str]:
    """Run the application to its end, or to its death, and wait until its JVM is gone too."""
    with subprocess.Popen(
        [sys.executable, str(DRIVER), str(root), *moment], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"JAVA_TOOL_OPTIONS": QUICK_START},
    ) as child:
        try:
            out, errors = child.communicate(timeout=300)
        finally:
            for process in alive(child.pid):
                os.kill(process, signal.SIGKILL)
    return subprocess.CompletedProcess(child.args, child.returncode, out, errors)


def stored(root: Path) -> dict[int, tuple[int, int]]:
    """By version: which content it has, by its own rows, and the first block that sees it."""
    checkpoint = root / "checkpoint"
    text = (checkpoint / "relations.json").read_text()
    listed = json.JSONDecoder().raw_decode(text[text.index('{"sites"'):])[0]
    found = {}
    for number, _, _, since in listed["sites"]["versions"]:
        rows = duckdb.sql("SELECT site FROM read_parquet("
                          f"'{checkpoint}/relations/sites/{number:08d}/*.parquet')").fetchall()
        (content,) = {int(site[1:].split("-")[0]) for site, in rows}
        assert len(rows) == content + 1
        found[number] = content, since.get("s", 0)
    return found


def expected_answers(query: str, versions: dict[int, tuple[int, int]], blocks: int) -> Counter:
    """What DuckDB answers with the versions that are stored."""
    seen = [max(content for content, since in versions.values() if since <= block)
            for block in range(blocks)]
    rows = ", ".join(f"({block * ROWS + n}, {version})" for block, version in enumerate(seen)
                     for n in range(ROWS))
    sites = ", ".join(f"({v}, {n % 4}, 'v{v}-{n}')" for v in range(1, blocks + 1)
                      for n in range(v + 1))
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE s AS SELECT * FROM (VALUES {rows}) AS v(n, version)")
        connection.execute(
            f"CREATE TABLE sites AS SELECT * FROM (VALUES {sites}) AS v(version, id, site)")
        return Counter(connection.execute(ANSWERS[query]).fetchall())
