"""The Spark session: a tuned local one, or the user's own with settings of ours on a clone."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from pyspark.sql import SparkSession

from penstock.errors import SetupError
from penstock.spark import onoff

Session: TypeAlias = SparkSession
"""A Spark session, for those who must not import pyspark themselves."""

JAVA_REMEDY = (
    "Penstock needs Java 17 or newer: install a JDK (for example openjdk-17-jre-headless"
    " on Debian and Ubuntu, or temurin with Homebrew) and set JAVA_HOME if it is not on the PATH."
)

_CONTEXT = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # The history that Spark keeps for its pages would grow for as long as a run lasts.
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.sql.streaming.ui.enabled": "false",
    "spark.cleaner.periodicGC.interval": "5min",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
}

_SESSION = {
    "spark.sql.session.timeZone": "UTC",
    # Small jobs of known shape: re-planning between their stages costs a third and gains nothing.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.caseSensitive": "false",
    # One task writes many folders at once instead of sorting its rows by folder first.
    "spark.sql.maxConcurrentOutputFileWriters": "256",
    "spark.sql.streaming.metricsEnabled": "false",
}


def local_session(master: str | None = None) -> SparkSession:
    """A session of our own: on all cores of this machine unless ``master`` names a cluster."""
    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    builder = SparkSession.builder.appName("penstock").master(master or "local[*]")
    for key, value in {**_CONTEXT, "spark.driver.memory": driver_memory()}.items():
        builder = builder.config(key, value)
    with warnings.catch_warnings(), _jvm_output_aside():
        warnings.simplefilter("ignore")
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("FATAL")  # what fails is reported as an event, with its reason
    return session


@contextmanager
def _jvm_output_aside() -> Iterator[None]:
    """Let a JVM started meanwhile write to a file of its own instead of the user's terminal.

    What it has to say at start is of no use to anybody, and what fails later is reported as an
    event. The file goes when the program ends well.
    """
    path = Path(tempfile.gettempdir()) / f"penstock-spark-{os.getpid()}.log"
    sys.stdout.flush()
    sys.stderr.flush()
    before = os.dup(1), os.dup(2)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(log, 1)
        os.dup2(log, 2)
        yield
    finally:
        os.dup2(before[0], 1)
        os.dup2(before[1], 2)
        for descriptor in (*before, log):
            os.close(descriptor)
    atexit.register(path.unlink, missing_ok=True)


def tuned(session: SparkSession) -> SparkSession:
    """A clone of the session that shares its context and storage but has settings of our own."""
    clone = session.newSession()
    cores = session.sparkContext.defaultParallelism
    for key, value in {**_SESSION, "spark.sql.shuffle.partitions": str(cores)}.items():
        clone.conf.set(key, value)
    onoff.register(clone)
    return clone


def driver_memory() -> str:
    """Half of the machine's memory, between 1 and 4 gigabytes."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return "2g"
    return f"{max(1, min(4, total // 2**31))}g"


def check_java() -> None:
    """Raise one clear sentence when there is no usable Java."""
    version = java_version()
    if version is None:
        raise SetupError(f"no Java was found. {JAVA_REMEDY}")
    if version < 17:
        raise SetupError(f"Java {version} is too old. {JAVA_REMEDY}")


def java_version() -> int | None:
    """The major version of the Java that Spark would start, or None."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        return None
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return _major(answer.stderr + answer.stdout)


def _major(text: str) -> int | None:
    """The major version in what `java -version` prints.

    >>> _major('openjdk version "17.0.15" 2025-04-15'), _major('java version "1.8.0_40"')
    (17, 8)
    """
    try:
        version = text.split('"')[1].removeprefix("1.")
        return int(version.split(".")[0].split("-")[0])
    except (IndexError, ValueError):
        return None
