"""Which files of a folder make the next batch: decided from a listing and a log, without I/O.

Files are taken in the order of their modification times, those of one time in the order of their
names. A file is taken once. What changes afterwards is noticed, not read: its first rows have been
answered for already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from penstock.spark.storage.files import Listed


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one batch may hold; None: as much as there is."""

    files: int | None = None
    bytes: int | None = None

    def admits(self, files: int, bytes_: int) -> bool:
        """Whether a batch of this size may grow; the first file is always admitted."""
        return files == 0 or not (
            (self.files is not None and files >= self.files)
            or (self.bytes is not None and bytes_ >= self.bytes))


@dataclass(slots=True)
class Known:
    """What became of the files seen so far.

    >>> known = Known()
    >>> early, late = Listed("b", 1, modified=5), Listed("a", 1, modified=9)
    >>> [file.path for file in known.fresh([late, early])]
    ['b', 'a']
    >>> known.take([early])
    >>> known.set_aside(late)
    >>> list(known.fresh([late, early])), list(known.fresh([Listed("a", 7, modified=10)]))
    ([], [Listed(path='a', size=7, modified=10)])
    >>> known.changed([Listed("b", 2, modified=11)])
    [Listed(path='b', size=2, modified=11)]
    """

    taken: dict[str, Listed] = field(default_factory=dict)
    aside: dict[str, Listed] = field(default_factory=dict)
    """The version of each file that was set aside; another version is a new file."""

    def take(self, files: Iterable[Listed]) -> None:
        """Note that these files are in a batch."""
        for file in files:
            self.taken[file.path] = file
            self.aside.pop(file.path, None)

    def set_aside(self, file: Listed) -> None:
        """Do not read this version of a file."""
        self.aside[file.path] = file
        self.taken.pop(file.path, None)

    def fresh(self, listing: Iterable[Listed]) -> Iterator[Listed]:
        """The files nobody has decided on yet, in the order in which they are to be read."""
        return iter(sorted(
            (file for file in listing
             if file.path not in self.taken and self.aside.get(file.path) != file),
            key=lambda file: (file.modified, file.path)))

    def changed(self, listing: Iterable[Listed]) -> list[Listed]:
        """The files that were written to after they were read; each change is told once."""
        found = [file for file in listing if self.taken.get(file.path, file) != file]
        for file in found:
            self.taken[file.path] = file
        return found


@dataclass(slots=True)
class Patience:
    """How long a file that is not whole is tried again.

    >>> patience = Patience(60.0)
    >>> half = Listed("a", 10, modified=100 * 10**9)
    >>> patience.is_over(half, now=101.0), patience.is_over(half, now=161.0)
    (False, True)
    >>> patience.is_over(Listed("old", 10, modified=0), now=101.0)
    True
    """

    seconds: float
    _seen: dict[str, tuple[Listed, float]] = field(default_factory=dict)
    """The version of each file that waits, and when it was first seen."""

    def is_over(self, file: Listed, now: float) -> bool:
        """Whether nobody has written to it for too long, going by its time or by our clock."""
        version, since = self._seen.get(file.path, (None, now))
        if version != file:
            since = now
            self._seen[file.path] = file, now
        if now - min(since, file.modified / 1e9) < self.seconds:
            return False
        del self._seen[file.path]
        return True
