"""The Spark session: a tuned local one, or a clone of the user's own with our settings."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakSet

import py4j.java_gateway
from py4j.java_gateway import JavaObject
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import SetupError
from penstock.java import require_java
from penstock.spark import jvm
from penstock.spark.submit_options import NONE, SubmitOptions

Session: TypeAlias = SparkSession
"""A Spark session, for modules that must not import pyspark themselves."""
Frame: TypeAlias = DataFrame
"""A DataFrame of Spark, for the same."""

# Failures are reported as events: Py4J would print traces of its own if no logging is set up.
logging.getLogger("py4j").addHandler(logging.NullHandler())
# What Py4J logs it also raises. If Spark has given the root a handler, it would be a traceback.
logging.getLogger("py4j").propagate = False
# Py4J gives some of it to the root itself.
logging.getLogger().addFilter(lambda record: record.pathname != py4j.java_gateway.__file__)

_CONTEXT = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.scheduler.allocation.file": (Path(__file__).parent / "pools.xml").as_uri(),
    # There are many short tasks that call Python: 60 of them took 0.9 s, and 2.0 s over TCP.
    "spark.python.unix.domain.socket.enabled": "true",
    # With a heap of 4 GB, the page of a hash table or a sort is 64 MB, however few rows it has.
    # Rows that wait behind a join hold its table. A burst filled the heap with them, and jobs took
    # half as long again. A task may have 8,192 pages.
    "spark.buffer.pageSize": "1m",
    # The history that Spark keeps for its web pages would grow for as long as a run lasts.
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
    # Statistics leave NaN out, which Spark orders above every number: rows would be pruned wrongly.
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.inMemoryColumnarStorage.partitionPruning": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # With a limit, Spark checks the size of all columns after every row that goes to Python. That
    # takes 1.1 microseconds a row, and 0.7 without. A batch has 10,000 rows anyway.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.caseSensitive": "false",
    # A file that vanishes or breaks between its check and its reading must not go unnoticed.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # One task writes many folders at once instead of sorting its rows by folder first.
    "spark.sql.maxConcurrentOutputFileWriters": "256",
    "spark.sql.streaming.metricsEnabled": "false",
    # A train has up to 64 small blocks. A Spark job with a task for each folder would list more
    # than 32 of them: 1.3 s where the driver takes 0.03.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    # A micro-batch logs three small files. Beside each, Hadoop would keep a checksum file, and it
    # starts a chmod for every file: 0.13 s per micro-batch, and 0.09 s without them.
    "fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}


_FREE = ("spark.ui.", "spark.driver.memory")
"""How settings begin that a user may choose although we do."""
ARCHIVE_WITHIN = 600.0
"""Seconds that a JVM may take to write its archive and end."""


def is_alone(master: str | None) -> bool:
    """Whether Spark is one JVM, which no other machine has to reach."""
    return master is None or re.fullmatch(r"local(\[.*\])?", master) is not None


def local_session(
    master: str | None = None, log: Path | None = None, *, brief: bool = False,
    more: SubmitOptions = NONE,
) -> SparkSession:
    """A session of our own: on all cores of this machine unless ``master`` names a cluster.

    What Spark's JVM prints goes to ``log``, or nowhere: its messages would break the live view, and
    failures are reported as events with their reason. A ``brief`` session answers a question and
    ends. ``more`` are packages, jars and settings of the user's.
    """
    return SessionStart(master, log, brief=brief, more=more).session()


class SessionStart:
    """A session that is starting: its JVM starts while the caller does something else."""

    def __init__(
        self, master: str | None = None, log: Path | None = None, *, brief: bool = False,
        more: SubmitOptions = NONE,
    ) -> None:
        """Start the JVM, unless this process has one, or was started by one."""
        require_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYTHONWARNINGS", "ignore")
        self._conf = configured(master or "local[*]", more)
        there = SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ
        self._jvm = None if there else jvm.JvmStart(self._conf, log, brief=brief)
        self._made: Future[SparkSession] | None = None

    def in_background(self) -> SessionStart:
        """Have another thread start Spark as soon as the JVM has started."""
        made: Future[SparkSession] = Future()
        self._made = made

        def work() -> None:
            try:
                made.set_result(self._session())
            except BaseException as error:
                made.set_exception(error)

        threading.Thread(target=work, name="penstock-spark", daemon=True).start()
        return self

    def session(self) -> SparkSession:
        """The session, once it has started."""
        return self._session() if self._made is None else self._made.result()

    def _session(self) -> SparkSession:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self._jvm is not None:
                SparkContext(conf=self._conf, gateway=self._jvm.gateway())
            session = SparkSession.builder.config(conf=self._conf).getOrCreate()
        session.sparkContext.setLogLevel("FATAL")  # failures are reported as events
        return session

    def abandon(self) -> None:
        """The session is no longer wanted: end what was started for it."""
        if self._jvm is not None:
            self._jvm.abandon()
        if self._made is not None:
            made = None if self._made.exception() else self._made.result()
            if self._jvm is not None:
                forget(made)
            elif made is not None:
                made.stop()


@contextmanager
def session_for_archive(fresh: Path) -> Iterator[SparkSession]:
    """A session whose JVM writes the classes it has loaded into a file, and is waited for."""
    conf = configured("local[2]")
    gateway = jvm.gateway_for_archive(conf, fresh)
    session = SparkSession(SparkContext(conf=conf, gateway=gateway))
    try:
        session.sparkContext.setLogLevel("FATAL")
        yield session
    finally:
        session.stop()
        gateway.proc.stdin.close()  # the JVM ends when it can no longer be reached
        gateway.proc.wait(timeout=ARCHIVE_WITHIN)


def configured(master: str, more: SubmitOptions = NONE) -> SparkConf:
    """The configuration of a session of our own; SetupError for a setting that must stay ours."""
    given = {**_CONTEXT, "spark.driver.memory": driver_memory()}
    if master.startswith("local"):  # no other machine needs to reach the driver
        given |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if is_alone(master):  # then Spark makes a secret of its own
        given["spark.authenticate"] = "true"
    for name in more.conf:
        if name in {**given, **_SESSION} and not name.startswith(_FREE):
            raise SetupError(f"{name} is set by Penstock and cannot be another; leave out --conf "
                             f"{name}")
    given |= more.settings
    conf = SparkConf().setAppName("penstock").setMaster(master)
    return conf.setAll(list(given.items()))


def tuned(session: SparkSession) -> SparkSession:
    """A clone of the session that shares its context and storage but has our settings."""
    clone = session.newSession()
    _bear_loss(session)
    cores = session.sparkContext.defaultParallelism
    for key, value in {**_SESSION, "spark.sql.shuffle.partitions": str(cores)}.items():
        clone.conf.set(key, value)
    return clone


def _bear_loss(session: SparkSession) -> None:
    """Keep PySpark's accumulator server silent when the JVM that it listens to has died."""
    server: Any = session.sparkContext._accumulatorServer
    complain = server.handle_error

    def handle_error(request: Any, address: Any) -> None:
        if not lost(session):
            complain(request, address)

    server.handle_error = handle_error


def lost(session: SparkSession) -> str:
    """Why Spark is gone, if it is: its JVM has ended, or someone has stopped it."""
    context = session.sparkContext
    process = getattr(context._gateway, "proc", None)
    status = process.poll() if process is not None else None
    if status is None:
        try:
            stopped = context._jsc is None or context._jsc.sc().isStopped()
            return "Spark was stopped" if stopped else ""
        except Exception:  # the connection is gone; the process may need another moment
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(2) if process is not None else None
    if status is None:
        return "Spark's JVM does not answer any more"
    number = -status if status < 0 else status - 128
    how = f"by signal {number}" if 0 < number < 65 else f"with status {status}"
    return f"Spark's JVM has ended {how}" + (
        ", perhaps for want of memory" if number == signal.SIGKILL else "")


def forget(session: SparkSession | None) -> None:
    """Let PySpark start another JVM in this process, after one has died."""
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if session is not None:
            session.stop()
    SparkContext._gateway = SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def know_onoff(session: SparkSession) -> None:
    """Register our own source, once and only where it is used: this starts a Python worker."""
    with _REGISTERING:  # streams begin in parallel, and Spark refuses a second registration
        if session not in _KNOW_ONOFF:
            from penstock.spark.ingest import onoff  # late: it needs NumPy and Arrow

            activate(session)  # with an earlier clone in this place, Spark would refuse it as known
            onoff.register(session)
            _KNOW_ONOFF.add(session)


_REGISTERING = threading.Lock()
_KNOW_ONOFF: WeakSet[SparkSession] = WeakSet()


def activate(session: SparkSession) -> None:
    """Make a session this thread's current one, which the use of a clone may have changed."""
    SparkSession._activeSession = session
    java: Any = SparkSession._get_j_spark_session_class(session._jvm)
    java.setActiveSession(session._jsparkSession)


def guard_callbacks(session: SparkSession) -> None:
    """Let only Spark's own JVM call functions in this process.

    Spark calls `foreachBatch` through a port of this machine. PySpark opens it without a token, so
    every user of the machine could call what is registered there. Py4J can require a token, but its
    JVM side forgets the token when it learns the port. So it is given back here.
    """
    gateway: Any = session.sparkContext._gateway
    parameters = gateway.callback_server_parameters
    if parameters.auth_token is not None:
        return
    token = gateway.gateway_parameters.auth_token
    if gateway.__dict__.get("_callback_server") is None:
        parameters.auth_token = token
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        _give_token(gateway, token)
    else:  # the user's own callbacks keep working: the JVM knows the token before it is required
        _give_token(gateway, token)
        parameters.auth_token = token


def _give_token(gateway: Any, token: str) -> None:
    client = JavaObject("GATEWAY_SERVER", gateway._gateway_client).getCallbackClient()
    kind = client.getClass()
    while kind.getName() != "py4j.CallbackClient":
        kind = kind.getSuperclass()
    field = kind.getDeclaredField("authToken")
    field.setAccessible(True)
    field.set(client, token)


def driver_memory() -> str:
    """Half of the machine's memory, between 1 and 4 gigabytes."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return "2g"
    return f"{max(1, min(4, total // 2**31))}g"
