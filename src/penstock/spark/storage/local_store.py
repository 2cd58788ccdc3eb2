"""The store on a mounted file system: by link, rename, fsync and a lock on the folder."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from penstock.events.record import write_all

PRIVATE = 0o600
"""Who may read and write what a checkpoint holds: its owner alone."""
OWNER_ONLY = 0o700
"""The same for a folder."""
_AT_ONCE = 16
"""Files that are synced at the same time."""
_SYNCS = ThreadPoolExecutor(_AT_ONCE, "penstock-sync")
"""Threads that wait for the disk; they are started when needed, and kept."""
_WITHOUT_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
"""How a file system says that it cannot give a file a second name."""


class LocalStore:
    """A `penstock.spark.storage.store.Store` of local files."""

    def read(self, path: Path) -> bytes:
        """The whole content of a file."""
        return path.read_bytes()

    def write(self, path: Path, data: bytes) -> None:
        """Write and sync a file beside it, then rename: a crash leaves the old or the new."""
        temporary, file = _synced_beside(path, data)
        os.close(file)
        os.replace(temporary, path)
        sync_folder(path.parent)

    def create(self, path: Path, data: bytes) -> None:
        """Write and sync a file beside it, then `move` it."""
        temporary, file = _synced_beside(path, data)
        os.close(file)
        try:
            self.move(temporary, path)
        except FileExistsError:
            os.unlink(temporary)
            raise
        sync_folder(path.parent)

    def append(self, path: Path, keep: int) -> LocalAppender:
        """Open a file for appending, cut to a length."""
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, PRIVATE)
        os.ftruncate(file, keep)
        sync_folder(path.parent)
        return LocalAppender(file)

    def begin(self, path: Path, data: bytes) -> LocalAppender:
        """Open the file before it has its name: nothing can fail once the old one is gone."""
        temporary, file = _synced_beside(path, data)
        try:
            os.replace(temporary, path)
            sync_folder(path.parent)
        except OSError:
            os.close(file)
            raise
        return LocalAppender(file)

    def stamp(self, path: Path) -> LocalStamp:
        """Open a small file."""
        return LocalStamp(os.open(path, os.O_WRONLY))

    def has(self, path: Path) -> bool:
        """Whether there is a file or a folder."""
        return path.exists()

    def list(self, folder: Path, pattern: str = "*") -> list[Path]:
        """What is in a folder, also names that begin with a dot."""
        found = folder.iterdir() if folder.is_dir() else ()
        return sorted(path for path in found if fnmatchcase(path.name, pattern))

    def make(self, folder: Path) -> None:
        """Make a folder and sync the one above."""
        if not folder.is_dir():
            folder.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
            sync_folder(folder.parent)

    def move(self, source: Path, target: Path) -> None:
        """Link, then unlink the old name: unlike a rename, a link refuses a name in use."""
        try:
            os.link(source, target)
        except FileExistsError:
            if not os.path.samefile(source, target):  # or a crash came between the two steps
                raise taken(str(target)) from None
        except OSError as error:
            if error.errno not in _WITHOUT_LINKS:
                raise
            if os.path.lexists(target):
                raise taken(str(target)) from None
            os.rename(source, target)
            return
        os.unlink(source)

    def remove(self, path: Path) -> None:
        """Remove a file."""
        path.unlink(missing_ok=True)

    def sync(self, files: Collection[Path], folders: Collection[Path] = ()) -> None:
        """A disk takes many requests at once for hardly more than the cost of one."""
        for one, paths in ((sync_file, files), (sync_folder, folders)):
            for _ in _SYNCS.map(one, paths) if len(paths) > 1 else map(one, paths):
                pass  # whatever it raised is raised here

    def own(self, folder: Path) -> LocalOwnership:
        """Lock a folder."""
        return LocalOwnership(*_locked(folder, fcntl.LOCK_EX))

    def is_owned(self, folder: Path) -> bool:
        """Whether a folder is locked."""
        try:
            file, _ = _locked(folder, fcntl.LOCK_SH)
        except BlockingIOError:
            return True
        except OSError:  # no lock, no engine
            return False
        os.close(file)
        return False


@dataclass(frozen=True, slots=True)
class LocalAppender:
    """An open file."""

    file: int

    def add(self, data: bytes) -> None:
        """Write and sync; what the disk refuses is cut off again."""
        before = os.fstat(self.file).st_size
        try:
            write_all(self.file, data)
            os.fsync(self.file)
        except OSError:
            # Refused data must never count, and the next line must not follow half of it.
            os.ftruncate(self.file, before)
            raise

    def close(self) -> None:
        """Close the file."""
        os.close(self.file)


@dataclass(frozen=True, slots=True)
class LocalStamp:
    """An open file, overwritten in place: a disk writes a block whole."""

    file: int

    def write(self, data: bytes, durable: bool) -> None:
        """Overwrite it, and sync it if it must last."""
        os.pwrite(self.file, data, 0)
        if durable:
            os.fsync(self.file)

    def close(self) -> None:
        """Close the file."""
        os.close(self.file)


@dataclass(frozen=True, slots=True)
class LocalOwnership:
    """A lock, which the system releases when the process dies."""

    file: int
    path: Path

    def is_lost(self) -> bool:
        """Whether the path no longer leads to the locked folder."""
        held = os.fstat(self.file)
        try:
            there = os.stat(self.path)
        except OSError:
            return True
        return (there.st_dev, there.st_ino) != (held.st_dev, held.st_ino)

    def release(self) -> None:
        """Unlock."""
        os.close(self.file)


LOCAL = LocalStore()
"""The store of this machine, and of whatever is mounted on it."""


def taken(target: str) -> FileExistsError:
    """The error that a file of this name already exists."""
    return FileExistsError(errno.EEXIST, "a file of this name is there already", target)


def private(path: str, flags: int) -> int:
    """Open a file that only its owner may read and write."""
    return os.open(path, flags, PRIVATE)


def sync_folder(folder: Path) -> None:
    """Make everything created, renamed or deleted in a folder survive a power cut."""
    with suppress(OSError):  # some file systems do not support it
        _sync(folder)


def sync_file(path: Path) -> None:
    """Make what another process wrote into a file survive a power cut."""
    _sync(path)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _synced_beside(path: Path, data: bytes) -> tuple[Path, int]:
    """A hidden file beside ``path`` with this content, on the disk and still open.

    A crash may have left one. It is removed, not overwritten: if `create` was cut short it is a
    second name of the file that was created.
    """
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    file = os.open(temporary, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, PRIVATE)
    try:
        write_all(file, data)
        os.fsync(file)
    except OSError:
        os.close(file)
        raise
    return temporary, file


def _locked(root: Path, how: int) -> tuple[int, Path]:
    """A lock on the folder itself, which nobody can delete; or on a file, if it takes none.

    NFS locks only what can be written to.
    """
    try:
        return _lock_of(root, os.O_RDONLY, how), root
    except BlockingIOError:
        raise
    except OSError:
        lock = root / "lock"
        return _lock_of(lock, os.O_RDWR | os.O_CREAT, how), lock


def _lock_of(path: Path, flags: int, how: int) -> int:
    file = os.open(path, flags, PRIVATE)
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file


def write_new(path: str, content: bytes) -> None:
    """Write a file that must not exist yet; it is on disk when this returns."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        write_all(file, content)
        os.fsync(file)
    finally:
        os.close(file)
