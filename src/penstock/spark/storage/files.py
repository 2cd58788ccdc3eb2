"""Files wherever Spark can write them: local ones directly, others through Hadoop."""

from __future__ import annotations

import glob
import os
import posixpath
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from penstock.spark.storage.local_store import LOCAL, taken


def local_path(path: str) -> Path | None:
    """The path on this machine, or None if it is on another file system.

    >>> str(local_path("file:///tmp/a%20b")), local_path("s3a://bucket/x")
    ('/tmp/a b', None)
    """
    parts = urlparse(path)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return Path(path) if not parts.scheme or len(parts.scheme) == 1 else None


def canonical(path: str) -> str:
    """The canonical spelling of a folder: absolute, without ``..``, links or a trailing slash.

    >>> canonical("file:///proc/../data/"), canonical("s3a://lake//a/../b/")
    ('/data', 's3a://lake/b')
    """
    local = local_path(path)
    if local is not None:
        return os.path.realpath(local)
    parts = urlparse(path)
    return parts._replace(path=posixpath.normpath(parts.path).replace("//", "/")).geturl()


GLOB = "*?[{"
"""The characters that make a path a pattern, unless a file or a folder has just this name."""


def as_pattern(path: str) -> str:
    r"""The pattern that matches this path and nothing else: Spark's readers take only patterns.

    >>> as_pattern("/run [1]/a.csv")
    '/run \\[1\\]/a.csv'
    """
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file as a listing shows it; one of another size or time is another version of it."""

    path: str
    size: int
    modified: int
    """When it was last written, in nanoseconds since 1970."""


class Files:
    """List, move, make and delete."""

    def __init__(self, spark: SparkSession | None) -> None:
        """``spark`` is used only for paths that are not local; without it there are none."""
        self._spark = spark

    def make(self, folder: str) -> None:
        """Make a folder and all above it; OSError if a file could not be written there."""
        local = local_path(folder)
        if local is None:
            with _as_os_error():
                if not self._hadoop(folder).mkdirs(self._path(folder)):
                    raise OSError(f"cannot make {folder}")
            return
        local.mkdir(parents=True, exist_ok=True)
        probe = local / f"._penstock_{os.getpid()}"
        probe.touch()
        probe.unlink()

    def move(self, source: str, target: str) -> None:
        """Rename a file, so that it appears whole; an existing file is never replaced.

        A move that a crash interrupted can be repeated.
        """
        local_source, local_target = local_path(source), local_path(target)
        if local_source is not None and local_target is not None:
            local_target.parent.mkdir(parents=True, exist_ok=True)
            LOCAL.move(local_source, local_target)
            return
        if self.exists(target):  # not every store refuses to rename onto a file
            raise taken(target)
        with _as_os_error():
            if not self._hadoop(target).rename(self._path(source), self._path(target)):
                raise OSError(f"cannot rename {source} to {target}")

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder."""
        local = local_path(path)
        if local is not None:
            return local.exists()
        with _as_os_error():
            return bool(self._hadoop(path).exists(self._path(path)))

    def remove(self, folder: str) -> None:
        """Delete a folder and everything below it, if it exists."""
        local = local_path(folder)
        if local is not None:
            shutil.rmtree(local, ignore_errors=True)
        else:
            with _as_os_error():
                self._hadoop(folder).delete(self._path(folder), True)

    def remove_empty(self, folder: str) -> None:
        """Delete a folder unless something is in it."""
        local = local_path(folder)
        with suppress(OSError), _as_os_error():
            if local is not None:
                local.rmdir()
            else:
                self._hadoop(folder).delete(self._path(folder), False)

    def data(self, folder: str) -> Iterator[tuple[str, int]]:
        """The data files below a folder and their sizes, without Spark's hidden ones."""
        return ((file.path, file.size) for file in self._below(folder))

    def listing(self, folder: str) -> Iterator[ListedFile]:
        """The data files of a source.

        A path that does not exist as it is written may be a pattern of paths.
        """
        if any(c in folder for c in GLOB) and not self.exists(folder):
            for match in self._matches(folder):
                yield from self._below(match)
        else:
            yield from self._below(folder)

    def _below(self, folder: str) -> Iterator[ListedFile]:
        local = local_path(folder)
        if local is None:
            yield from self._remote_data(folder)
        elif local.is_file():
            yield from _listed(str(local))
        else:
            yield from walk(str(local), {})

    def _matches(self, pattern: str) -> list[str]:
        local = local_path(pattern)
        if local is not None:
            return sorted(glob.glob(str(local)))
        with _as_os_error():
            found = self._hadoop(pattern).globStatus(self._path(pattern)) or []
            return sorted(str(status.getPath().toString()) for status in found)

    def _remote_data(self, folder: str) -> Iterator[ListedFile]:
        with _as_os_error():
            root = str(self._path(folder).toUri().getPath())
            listing = self._hadoop(folder).listFiles(self._path(folder), True)
            while listing.hasNext():
                status = listing.next()
                below = str(status.getPath().toUri().getPath()).removeprefix(root)
                if not any(map(_hidden, below.split("/"))):
                    yield ListedFile(str(status.getPath().toString()), int(status.getLen()),
                                 int(status.getModificationTime()) * 1_000_000)

    def ends(self, file: ListedFile, count: int) -> tuple[bytes, bytes]:
        """The first and the last bytes of a file."""
        local = local_path(file.path)
        if local is not None:
            with open(local, "rb") as opened:
                head = opened.read(count)
                opened.seek(max(0, file.size - count))
                return head, opened.read(count)
        with _as_os_error():
            stream = self._hadoop(file.path).open(self._path(file.path))
            try:
                head = bytes(stream.readNBytes(count))
                stream.seek(max(0, file.size - count))
                return head, bytes(stream.readNBytes(count))
            finally:
                stream.close()

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    def _hadoop(self, path: str) -> Any:
        assert self._spark is not None, f"{path} is on another file system"
        configuration = self._spark.sparkContext._jsc.hadoopConfiguration()
        return self._path(path).getFileSystem(configuration)

    @property
    def _jvm(self) -> Any:
        assert self._spark is not None
        return self._spark.sparkContext._jvm


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Raise Hadoop's errors as OSError, so that callers need not know where a file is."""
    try:
        yield
    except Py4JJavaError as error:
        raise OSError(str(error.java_exception.toString())) from error


def walk(
    folder: str, entered: dict[str, int], skip: Callable[[str], bool] = lambda path: False
) -> Iterator[ListedFile]:
    """The files below a local folder, by name; a link that leads back is not followed again.

    ``entered`` collects every folder with its time before it was listed. Paths for which ``skip``
    is true are not examined.
    """
    real = os.path.realpath(folder)
    if real in entered:
        return
    with suppress(FileNotFoundError):  # it may vanish meanwhile
        entered[real] = os.stat(folder).st_mtime_ns
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if not skip(entry.path)]
        for entry in sorted(found, key=lambda entry: entry.name):
            if _hidden(entry.name):
                continue
            if entry.is_dir():
                yield from walk(entry.path, entered, skip)
            else:
                yield from _listed(entry.path)


def _listed(path: str) -> Iterator[ListedFile]:
    with suppress(FileNotFoundError):
        known = os.stat(path)
        yield ListedFile(path, known.st_size, known.st_mtime_ns)


def _hidden(name: str) -> bool:
    """Hidden as Spark sees it: a folder such as ``_day=1`` is a partition."""
    return (name.startswith(".") or name.endswith("._COPYING_")
            or (name.startswith("_") and "=" not in name))


def same_device(one: str, other: str) -> bool:
    """Whether a file can be renamed from one folder to the other without copying."""
    a, b = local_path(one), local_path(other)
    if a is None or b is None:
        return False
    return _device(a) == _device(b)


def _device(path: Path) -> int:
    """The device of a path, or the one it would be on once it is made."""
    for place in (path, *path.absolute().parents):
        try:
            return os.stat(place).st_dev
        except OSError:
            continue
    return -1
