"""From the start of a process to its first answer: `python -m benchmarks.latency.first_answer`.

The caches of a user lie in a folder of their own (`XDG_CACHE_HOME`), which is empty at first. So
the first process is cold, and the later ones find what it has kept there, an archive of Spark's
classes among it. Whoever still makes it after the first process has ended is waited for. Files that
the operating system has cached stay so: it is no boot.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.latency import answers
from benchmarks.latency.workloads import CASES, application
from benchmarks.live import MASTER, until

QUIET = 3.0
CASE = next(case for case in CASES if str(case) == "filters-5/callback/generated")


def measure(engine: str, cache: Path) -> float:
    """Seconds from the start of a process to the first answer of one of its queries."""
    began = time.time()
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks.latency.first_answer", engine], check=True,
        capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": str(cache)})
    return float(process.stdout.split()[-1]) - began


def settled(cache: Path) -> int:
    """Wait until nobody works on a cache folder any more; the bytes that are in it."""
    time.sleep(QUIET)  # who works on it may have to start first
    until(lambda: not _named(str(cache)), seconds=300, look=0.5)
    return sum(file.stat().st_size for file in cache.rglob("*") if file.is_file())


def _named(text: str) -> bool:
    """Whether the command line of any process has a text."""
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it may have ended
            if text.encode() in command.read_bytes():
                return True
    return False


def _penstock() -> float:
    from penstock import Engine

    with tempfile.TemporaryDirectory() as work, Engine(master=MASTER) as engine:
        engine.load(application(CASE, work, f"{answers.__name__}:take"), folder=work)
        engine.start()
        return _first()


def _native() -> float:
    from benchmarks.latency.measuring import start_native
    from benchmarks.native import streaming
    from penstock.spark.session import local_session

    spark = local_session(MASTER)
    try:
        with tempfile.TemporaryDirectory() as work, streaming(spark, Path(work)) as queries:
            start_native(CASE, queries, Path(work))
            return _first()
    finally:
        spark.stop()


def _first() -> float:
    until(lambda: answers.CALLED.count > 0, look=0.005)
    return min(answer.at for answer in answers.CALLED.all())


if __name__ == "__main__":
    print({"penstock": _penstock, "native": _native}[sys.argv[1]]())
