"""How Spark's JVM is started: with which flags, from which classes, and where its output goes.

PySpark can start it too, but waits for it. Here it starts while the application is read, and can be
abandoned if the application turns out to be wrong.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark import SparkConf
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from penstock.errors import SetupError
from penstock.spark.class_archive import ClassArchive, class_archive

FLAGS: tuple[str, ...] = ()
"""Flags of every JVM: an archive is made for these."""
BRIEF = ("-XX:TieredStopAtLevel=1",)
"""Flags of a JVM for one question or a run of a minute: its second compiler would never pay off.
With them the demonstration's first answer came after 7.4 s instead of 9.0, and its blocks were
answered after 1.3 s instead of 2.6 (p50 of eight seconds of packets)."""
OPTIONS = "spark.driver.defaultJavaOptions"
"""Spark puts these before ``spark.driver.extraJavaOptions``, which are left to the user."""
GLANCE = 0.02
"""Seconds between two checks whether a JVM has started."""
_LAUNCHER = "-XX:TieredStopAtLevel=1"
"""Flags of the small JVM that only prints the command for the large one."""
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_CONNECTING = threading.Lock()


def archive() -> ClassArchive | None:
    """The archive of Spark's classes for the JVMs that are started here."""
    return class_archive(FLAGS)


class JvmStart:
    """A JVM that is starting; what it and its Python workers print goes to a log, or nowhere."""

    def __init__(self, conf: SparkConf, log: Path | None, *, brief: bool = False) -> None:
        """Start the JVM without waiting for it."""
        self._conf, self._log = conf, log
        self._flags = (*FLAGS, *(BRIEF if brief else ()))
        self._archive = archive()
        self._shared = self._archive.options() if self._archive is not None else ()
        self._abandoned = False
        self._process = _Process(conf, (*self._flags, *self._shared), log)

    def gateway(self) -> Any:
        """Wait until it has started, and connect.

        If it does not start with the archive, the archive is removed, and it is started without.
        """
        connected = self._process.connected()
        if connected is None and self._shared and not self._abandoned:
            assert self._archive is not None
            self._archive.forget()
            self._process = _Process(self._conf, self._flags, self._log)
            connected = self._process.connected()
        if connected is None:
            said = f", and {self._log} has what it said" if self._log else ""
            packages = self._conf.get("spark.jars.packages")
            why = f"; can {packages} be downloaded?" if packages else ""
            raise SetupError(
                f"Spark's JVM does not start{why or '; `penstock doctor` looks for the reason'}"
                f"{said}")
        return connected

    def abandon(self) -> None:
        """End it: it is no longer wanted."""
        self._abandoned = True
        self._process.kill()


def gateway_for_archive(conf: SparkConf, fresh: Path) -> Any:
    """A JVM that writes the classes it has loaded into a file when it ends."""
    found = _Process(conf, (*FLAGS, f"-XX:ArchiveClassesAtExit={fresh}"), None).connected()
    if found is None:
        raise SetupError("Spark's JVM does not start")
    return found


class _Process:
    """One JVM, which writes its port and secret to a file."""

    def __init__(self, conf: SparkConf, flags: Sequence[str], log: Path | None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-jvm-")
        self._told = Path(self._folder.name) / "connection"
        given = [*conf.getAll(), (OPTIONS, " ".join(flags))]
        # What the user submits applications with applies here too.
        submitted = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        with open(log or os.devnull, "ab", opener=_private) as output:
            self._process = subprocess.Popen(
                [f"{_find_spark_home()}/bin/spark-submit",
                 *(part for key, value in given for part in ("--conf", f"{key}={value}")),
                 *submitted],
                stdin=subprocess.PIPE,  # it ends when this pipe breaks
                stdout=output, stderr=output, preexec_fn=_ignore_interrupts,
                env={"SPARK_LAUNCHER_OPTS": _LAUNCHER, **os.environ, "SPARK_CONNECT_MODE": "0",
                     "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._told)})

    def connected(self) -> Any:
        """PySpark's gateway to it, once it has started; None if it has ended before."""
        try:
            while not self._told.exists():
                if self._process.poll() is not None:
                    self.kill()
                    return None
                time.sleep(GLANCE)
            with self._told.open("rb") as told:
                port = read_int(told)  # type: ignore[no-untyped-call]
                secret = UTF8Deserializer().loads(told)  # type: ignore[no-untyped-call]
        finally:
            self._folder.cleanup()
        return _connected(self._process, str(port), secret)

    def kill(self) -> None:
        """End it at once, and leave no trace."""
        self._process.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


def _connected(process: subprocess.Popen[bytes], port: str, secret: str) -> Any:
    """Have PySpark connect to a running JVM."""
    with _CONNECTING:
        os.environ |= {_PORT: port, _SECRET: secret}
        try:
            gateway = launch_gateway()  # type: ignore[no-untyped-call]
        finally:
            for name in (_PORT, _SECRET):
                os.environ.pop(name, None)
    gateway.proc = process
    return gateway


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _ignore_interrupts() -> None:
    """Ctrl-C is for this process, which stops Spark when its work is done."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
