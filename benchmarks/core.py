"""Core: what a job costs the engine's core, with few and with many paths that call Python.

Every query that calls Python has a path and queues of its own. The core runs on virtual time, so
what is timed is the core and its test host alone, in seconds of one processor.
"""

from __future__ import annotations

import gc
import time
from pathlib import Path

from harness.findings import Report
from harness.program import Progress
from penstock.engine.settings import Settings
from penstock.policies import operators
from penstock.testing import FakeHost

PATHS = (10, 2000)
POLICIES = (*operators.POLICIES, "chain_flush(latency=60)", "edf(latency=60)", "mixed(gamma=0.1)")
"""Every one. Left out are the forms that must look at all queues: `mixed` with a latency, and
`chain_flush` with exact."""
MOST = 2.0
"""A job may cost so many times as much with many paths as with few."""
JOBS = 2000
"""Of each round."""
FULL, QUICK = 9, 5
"""Rounds. The first ones make the stages known; of the later ones the best counts."""
WARM = 3
SECONDS = 0.25
"""Virtual seconds of a job."""


def host(paths: int, policy: str) -> FakeHost:
    """So many queries of one stream that call Python."""
    queries = "".join(f"CREATE QUERY q{n} AS SELECT a FROM s WHERE f(a, b + {n});"
                      for n in range(paths))  # they have no predicate in common
    return FakeHost.of(f"""
        CREATE STREAM s (a INT, b INT) FROM rate;
        CREATE FUNCTION f FROM 'penstock.demo.detectors:looks_like_a_scan';
        {queries}
    """, policy, settings=Settings(), cost=lambda run: SECONDS)


def spent(host: FakeHost, paths: int) -> float:
    """Seconds per job of a round in which every block is through before the next comes."""
    before, apart = len(host.runs), 3 * SECONDS * paths
    for number in range(max(1, JOBS // paths)):
        host.arrive("s", at=host.clock.now() + 1.0 + number * apart)
    gc.disable()
    began = time.process_time()
    host.run()
    seconds = time.process_time() - began
    gc.enable()
    return seconds / (len(host.runs) - before)


def run(quick: bool, out: Path, progress: Progress) -> Report:
    report = Report("core")
    for policy in POLICIES:
        found = {}
        for paths in PATHS:
            progress(f"{policy}: {paths} paths")
            made = host(paths, policy)
            rounds = [spent(made, paths) for _ in range(QUICK if quick else FULL)]
            found[paths] = min(rounds[WARM:])
        few, many = found.values()
        report.rows.append({"policy": policy,
                            **{f"us, {paths} paths": round(each * 1e6)
                               for paths, each in found.items()},
                            "ratio": round(many / few, 2)})
    worst = max(report.rows, key=lambda row: row["ratio"])
    report.check(
        "paths", f"times what a job costs the core with {PATHS[1]} paths over {PATHS[0]}, at most",
        f"<= {MOST:g}", f"{worst['ratio']} ({worst['policy']})", worst["ratio"] <= MOST)
    return report
