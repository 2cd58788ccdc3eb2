"""Which files of a folder make the next batch: decided from a listing and a log, without I/O.

Files are taken in the order of their modification times, and those of one time in the order of
their names. A file is taken once. Later changes to it are noticed but not read: its first rows have
already been answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from penstock.clock import Clock
from penstock.spark.storage.files import ListedFile


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How much one batch may hold; None means no limit."""

    files: int | None = None
    bytes: int | None = None

    def admits(self, files: int, bytes_: int) -> bool:
        """Whether a batch of this size may grow; the first file is always admitted."""
        return files == 0 or not (
            (self.files is not None and files >= self.files)
            or (self.bytes is not None and bytes_ >= self.bytes))


@dataclass(slots=True)
class KnownFiles:
    """What became of the files seen so far.

    >>> known = KnownFiles()
    >>> early, late = ListedFile("b", 1, modified=5), ListedFile("a", 1, modified=9)
    >>> [file.path for file in known.fresh([late, early])]
    ['b', 'a']
    >>> known.take([early])
    >>> known.set_aside(late)
    >>> list(known.fresh([late, early])), list(known.fresh([ListedFile("a", 7, modified=10)]))
    ([], [ListedFile(path='a', size=7, modified=10)])
    >>> known.changed([ListedFile("b", 2, modified=11)])
    [ListedFile(path='b', size=2, modified=11)]
    """

    taken: dict[str, ListedFile] = field(default_factory=dict)
    aside: dict[str, ListedFile] = field(default_factory=dict)
    """The version of each file that was set aside; another version is a new file."""

    def take(self, files: Iterable[ListedFile]) -> None:
        """Note that these files are in a batch."""
        for file in files:
            self.taken[file.path] = file
            self.aside.pop(file.path, None)

    def set_aside(self, file: ListedFile) -> None:
        """Do not read this version of a file."""
        self.aside[file.path] = file
        self.taken.pop(file.path, None)

    def has(self, path: str) -> bool:
        """Whether some version of a file was taken or set aside."""
        return path in self.taken or path in self.aside

    def fresh(self, listing: Iterable[ListedFile]) -> Iterator[ListedFile]:
        """The files that are not decided on yet, in reading order."""
        return iter(sorted(
            (file for file in listing
             if file.path not in self.taken and self.aside.get(file.path) != file),
            key=lambda file: (file.modified, file.path)))

    def changed(self, listing: Iterable[ListedFile]) -> list[ListedFile]:
        """The files that were written to after they were read; each change is listed once."""
        found = [file for file in listing if self.taken.get(file.path, file) != file]
        for file in found:
            self.taken[file.path] = file
        return found


class Ages:
    """How many seconds ago files were last written to, even if the clock is changed meanwhile.

    The clock is read once for each version of a file, when it is first seen. From then on `passed`
    counts the seconds, which cannot be set back.

    >>> from penstock.clock import VirtualClock
    >>> wall, seconds = VirtualClock(110.0), iter([5.0, 6.0])
    >>> ages = Ages(wall, lambda: next(seconds))
    >>> half = ListedFile("a", 10, modified=100 * 10**9)
    >>> ages.of(half)
    10.0
    >>> wall.time = 0.0
    >>> ages.of(half)
    11.0
    """

    def __init__(self, clock: Clock, passed: Callable[[], float]) -> None:
        """``clock`` is the clock that file times are based on."""
        self._clock, self._passed = clock, passed
        self._written: dict[str, tuple[ListedFile, float]] = {}
        """The version of each file that was seen, and when it was written to, in terms of `passed`.
        """

    def of(self, file: ListedFile) -> float:
        """The age of a file; one whose time is in the future was written to just now."""
        version, written = self._written.get(file.path, (None, 0.0))
        now = self._passed()
        if version != file:
            written = now - max(0.0, self._clock.now() - file.modified / 1e9)
            self._written[file.path] = file, written
        return now - written

    def forget(self, file: ListedFile) -> None:
        """Forget a file that will not be asked for again."""
        self._written.pop(file.path, None)
