"""Files that show when they were damaged: a checksum, an owner, numbers without gaps, a witness.

A *sealed* text is JSON with the id of its checkpoint, a number, and a checksum over all of it. A
`Log` is a file of sealed lines with consecutive numbers. A `Witness` is a small file beside others
that says how far they had come. It shows if a file was cut, deleted or replaced by an older copy.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from penstock.errors import CheckpointError
from penstock.spark.storage.local_store import LOCAL
from penstock.spark.storage.store import Appender, Stamp, Store

REMEDY = "restore the whole checkpoint from one copy, or start over with another --checkpoint"
_WITNESS = 160
"""Bytes of a witness: it is overwritten in place, so it is always whole."""


def damaged(path: Path, what: str) -> CheckpointError:
    """The error that names a damaged file, what is wrong with it, and what to do."""
    return CheckpointError(f"{path} {what}; {REMEDY}")


def sealed(content: Any, owner: str, number: int = 0) -> str:
    """Content as a line that shows every change to it.

    >>> sealed({"a": 1}, "5e1f", 3)
    '{"checkpoint": "5e1f", "n": 3, "crc": "2427650a", "content": {"a": 1}}'
    """
    text = json.dumps(content)
    return (f'{{"checkpoint": {json.dumps(owner)}, "n": {number}, '
            f'"crc": "{_crc(owner, number, text)}", "content": {text}}}')


def unsealed(text: str | bytes, path: Path, owner: str | None, where: str = "") -> tuple[int, Any]:
    """The number and the content of a sealed text; any owner is accepted if it is None."""
    try:
        fields = json.loads(text)
        found, number, content = fields["checkpoint"], fields["n"], fields["content"]
        whole = fields["crc"] == _crc(found, number, json.dumps(content))
    except (ValueError, LookupError, TypeError, AttributeError):
        whole = False
    if not whole:
        empty = "is empty" if not text.strip() else "is damaged: its checksum does not fit"
        raise damaged(path, f"{where}{empty}")
    if owner is not None and found != owner:
        raise damaged(path, f"{where}belongs to another checkpoint: to {found}, not to {owner}")
    return number, content


def _crc(owner: str, number: int, text: str) -> str:
    return f"{zlib.crc32(f'{owner} {number} {text}'.encode()):08x}"


@dataclass(slots=True)
class Witness:
    """A number that survives a crash and only grows; after a power cut it may lag, never lead."""

    path: Path
    owner: str
    store: Store = LOCAL
    _stamp: Stamp | None = None

    def read(self) -> int | None:
        """The number; None if there is no witness."""
        try:
            text = self.store.read(self.path)
        except FileNotFoundError:
            return None
        number, _ = unsealed(text, self.path, self.owner)
        if len(text) != _WITNESS:
            raise damaged(self.path, f"is damaged: it has {len(text)} bytes, not {_WITNESS}")
        return number

    def begin(self, number: int) -> None:
        """Make the file, durably; afterwards it is only overwritten."""
        self.store.write(self.path, self._text(number))
        self._stamp = self.store.stamp(self.path)

    def write(self, number: int, sync: bool = False) -> None:
        """Take a later number; with ``sync`` it survives a power cut."""
        if self._stamp is None:
            self._stamp = self.store.stamp(self.path)
        self._stamp.write(self._text(number), durable=sync)

    def close(self) -> None:
        """Write no more."""
        if self._stamp is not None:
            self._stamp.close()
            self._stamp = None

    def _text(self, number: int) -> bytes:
        return (sealed(None, self.owner, number).ljust(_WITNESS - 1) + "\n").encode()


class Log:
    """A file of sealed lines, each a commit, and a witness of the last one.

    A line counts once it is on disk; only then does the witness take its number. So a crash leaves
    at most a torn last line that the witness does not know. A line that the witness knows and the
    file lacks was taken away.
    """

    def __init__(
        self, path: Path, owner: str, begun: Callable[[], None] = lambda: None,
        check: Callable[[], None] = lambda: None, store: Store = LOCAL,
    ) -> None:
        """The log at ``path`` of the checkpoint ``owner``.

        ``begun`` is called when it has a first line; ``check`` may refuse each further one.
        """
        self.path, self._owner, self._begun, self._check = path, owner, begun, check
        self._store = store
        self._witness = Witness(path.with_suffix(".end"), owner, store)
        self._lines: Appender | None = None
        self.last = 0
        """The number of the last line."""
        self.lines = 0
        """Lines in the file."""
        self._whole = 0
        """Bytes of the lines that were read."""

    def read(self) -> Iterator[Any]:
        """The content of the lines; a line that is not whole raises an error that names it."""
        known = self._witness.read()  # before the file, to which a run may be adding lines
        if not self._store.has(self.path):
            if known:
                raise damaged(self.path, f"is missing: {self._witness.path.name} knows of "
                              f"{known} lines")
            return
        if known is None:
            raise damaged(self._witness.path, f"is missing, which tells how far {self.path.name} "
                          "had come")
        for place, line in enumerate(BytesIO(self._store.read(self.path)), start=1):
            if not line.endswith(b"\n"):
                break  # torn by a crash: it was never a commit
            self._whole += len(line)
            yield self._line(line, place)
        if self.last < known:
            raise damaged(self.path, f"ends with number {self.last}, but {known} were written: "
                          "it was cut, or replaced by an older copy")

    def _line(self, line: bytes, place: int) -> Any:
        where = f"line {place} "
        number, content = unsealed(line, self.path, self._owner, where)
        if self.lines and number != self.last + 1:
            raise damaged(self.path, f"{where}has the number {number} after {self.last}: lines "
                          "are missing")
        self.last, self.lines = number, self.lines + 1
        return content

    def open(self) -> None:
        """Append after the lines that were read; a torn line is cut off."""
        if self._witness.read() is None:
            self._witness.begin(self.last)
        self._lines = self._store.append(self.path, self._whole)
        self._begun()

    def append(self, content: Any) -> None:
        """Add a line, durably; a line that the disk refuses was never written."""
        assert self._lines is not None
        self._check()
        self._lines.add(self._text(content))
        self._count(self.lines + 1)

    def rewrite(self, content: Any) -> None:
        """Replace all lines by one; if it fails the old ones stay."""
        if self._witness.read() is None:
            self._witness.begin(self.last)
        fresh = self._store.begin(self.path, self._text(content))
        self._close_lines()
        self._lines = fresh
        self._count(1)
        self._begun()

    def _text(self, content: Any) -> bytes:
        return (sealed(content, self._owner, self.last + 1) + "\n").encode()

    def _count(self, lines: int) -> None:
        self.last, self.lines = self.last + 1, lines
        with suppress(OSError):  # the line counts, so nothing may fail any more
            self._witness.write(self.last)

    def close(self) -> None:
        """Write no more."""
        self._close_lines()
        self._witness.close()

    def _close_lines(self) -> None:
        if self._lines is not None:
            self._lines.close()
            self._lines = None
