"""The archive of Spark's classes, which the JVM reads instead of 300 jars.

Java calls it class-data sharing. A process of its own makes the archive after the first run
(`penstock.rehearsal`), once for each Java and each PySpark, and keeps it in a cache folder. It
holds classes and no data. A start never waits for it and never needs it. An archive is not used if
it is missing, truncated, changed, or writable by others.

Measured on 2 cores: a session, a first aggregate and a first Parquet write take 9.4 s, and 6.0 s
with the archive (180 MB).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import pyspark
from pyspark.find_spark_home import _find_spark_home

from penstock.java import found_java, java_major, known_version, release

SWITCH = "PENSTOCK_CLASS_ARCHIVE"
"""The environment variable that switches it ``off``."""
MAKER = "penstock.rehearsal"
"""The module that makes an archive."""
ROOM = 2**30
"""Bytes of disk that must be free before an archive is made."""
UNUSED = 30 * 86400.0
"""Seconds after which an unused archive of another Java or PySpark is deleted, when a new one is
made."""
_CLASSPATH = ("CLASSPATH", "SPARK_CLASSPATH", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH",
              "HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Environment variables that change what Spark's JVM loads."""

State: TypeAlias = Literal["off", "there", "absent", "failed", "unusable"]


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """An archive in the cache folder, whether it exists or not."""

    path: Path

    @property
    def _note(self) -> Path:
        """What its maker noted about it; written last."""
        return self.path.with_suffix(".json")

    def state(self) -> tuple[State, str]:
        """Whether it can be used, and the reason if it cannot."""
        if os.environ.get(SWITCH, "").lower() in ("off", "0", "no", "false"):
            return "off", f"{SWITCH} is off"
        with suppress(OSError, ValueError, KeyError, TypeError):
            noted = json.loads(self._note.read_text(encoding="utf-8"))
            if failure := noted.get("failed"):
                return "failed", str(failure)
            found = self.path.stat()
            if fault := _shared(self.path.parent) or _shared(self.path):
                return "unusable", fault
            if (found.st_size, found.st_mtime_ns) == (noted["size"], noted["mtime"]):
                return "there", ""
        return "absent", "it has not been made yet"

    def is_usable(self) -> bool:
        """Whether the JVM may take classes from it."""
        return self.state()[0] == "there"

    def options(self) -> tuple[str, ...]:
        """The JVM's options for using it; none if it cannot be used.

        A JVM that finds that it does not fit its classes goes on without it, silently.
        """
        if not self.is_usable():
            return ()
        return f"-XX:SharedArchiveFile={self.path}", "-Xshare:auto", "-Xlog:cds=off"

    def forget(self) -> None:
        """Remove it: a JVM did not start with it."""
        for path in (self._note, self.path):
            with suppress(OSError):
                path.unlink()

    # --- making -------------------------------------------------------------------------------

    def make_in_background(self) -> bool:
        """Have another process make it, at low priority; return False if that is not wanted.

        Nobody waits for the process, and it outlives this one.
        """
        if self.state()[0] != "absent" or not self._has_room():
            return False
        with suppress(OSError):
            subprocess.Popen(
                [sys.executable, "-m", MAKER, str(self.path)], start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                cwd=self.path.parent)
            return True
        return False

    def _has_room(self) -> bool:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return (not _shared(self.path.parent) and os.access(self.path.parent, os.W_OK)
                    and shutil.disk_usage(self.path.parent).free > ROOM)
        except OSError:
            return False

    @contextmanager
    def making(self) -> Iterator[Path | None]:
        """A file into which a JVM may write the archive; None if another process is making it.

        Call `publish` once the file is written; a file that is not published is removed.
        """
        lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        fresh = self.path.with_suffix(f".{os.getpid()}.tmp")
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield None
                return
            yield None if self.state()[0] != "absent" else fresh
        finally:
            with suppress(OSError):
                fresh.unlink()
            os.close(lock)

    def publish(self, fresh: Path) -> None:
        """Let starts use the new archive; a concurrent reader sees the old one or the new one."""
        os.chmod(fresh, 0o600)
        with suppress(OSError):
            self._note.unlink()
        os.replace(fresh, self.path)
        made = self.path.stat()
        self._write({"size": made.st_size, "mtime": made.st_mtime_ns})
        self._clear_others(time.time())

    def fail(self, reason: str) -> None:
        """Note that it cannot be made here, so that it is not retried after every run."""
        self._write({"failed": reason})

    def _write(self, note: dict[str, object]) -> None:
        fresh = self._note.with_suffix(f".{os.getpid()}.tmp")
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(file, "w", encoding="utf-8") as out:
            json.dump(note, out)
        os.replace(fresh, self._note)

    def _clear_others(self, now: float) -> None:
        for other in self.path.parent.glob("spark-*.*"):
            with suppress(OSError):
                if other.stem != self.path.stem and other.stat().st_mtime < now - UNUSED:
                    other.unlink()


def class_archive(flags: Sequence[str]) -> ClassArchive | None:
    """The archive for this Java, this PySpark and these flags; None if none is possible."""
    java = found_java()
    if java is None:
        return None
    version = java_major(known_version(java))
    with suppress(OSError, RuntimeError):  # no folder of jars, or no home folder
        name = f"spark-{pyspark.__version__}-java-{version}-{_digest(java, flags)}.jsa"
        return ClassArchive(cache_folder() / name)
    return None


def cache_folder() -> Path:
    """Where this system keeps what can be made again."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "penstock"
    ours = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return Path.home() / ours / "penstock"


def _digest(java: str, flags: Sequence[str]) -> str:
    """A digest of everything that the content of an archive depends on."""
    jars = sorted((entry.name, entry.stat().st_size, entry.stat().st_mtime_ns)
                  for entry in os.scandir(Path(_find_spark_home()) / "jars"))
    known = [os.path.realpath(java), release(java), list(flags), jars,
             [os.environ.get(name, "") for name in _CLASSPATH]]
    return hashlib.sha256(repr(known).encode()).hexdigest()[:12]


def _shared(path: Path) -> str:
    """Why code must not be loaded from a file or folder: others could have put it there."""
    found = path.stat()
    if found.st_uid != os.geteuid():
        return f"{path} belongs to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"other users may write to {path}"
    return ""
