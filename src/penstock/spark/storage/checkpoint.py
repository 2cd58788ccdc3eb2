"""The checkpoint folder: where everything that must outlive the driver is kept.

::

    checkpoint/
      checkpoint.json     the checkpoint's id, and the versions of the files beside it
      application.json    the statements in force
      offsets/STREAM/     how far each source was read: files.jsonl, or Structured Streaming's own
      spool/STREAM/       the decoded blocks and a manifest for each; first tells the oldest
      merged/STREAM/      copies of small blocks in larger files; made again when they are missing
      late/NAME/          rows that came too late for the windows over a stream, or of a query
      rejects/NAME/       rows that could not be read, or that a Python function raised for; of a
                          stream also files.json, the files that were set aside
      folders.json        the sink folders written so far: by whom, in which format, which columns
      given/NAME/         the rows of relations that a Python program has given
      given.json          which of these rows count
      large.json          groups of window aggregates that were too large for the driver
      relations.json      the versions of relations that change, and which blocks see which
      relations/NAME/     the rows of each of these versions
      deliveries.jsonl    what each query has delivered; deliveries.end how far that log had come
      staging/RUN/        answers on their way to a sink
      results/            answers of the memory sink
      feeds/STREAM/       answers for a derived stream that are in none of its blocks yet
      outbox/             answers for Kafka that were not sent yet
      runs/STAMP/         the record of each run
      spark.log           what Spark's JVM printed

A log such as deliveries.jsonl or files.jsonl has a file .end beside it, which tells how far it had
come.

Every file that a restart needs carries the checkpoint's id and a checksum. So a file that was
damaged, belongs to another checkpoint or is an older copy is refused by name.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from penstock.errors import CheckpointError
from penstock.spark.storage.guarded import Log, damaged, sealed, unsealed
from penstock.spark.storage.local_store import LOCAL
from penstock.spark.storage.store import Ownership, Store

FORMAT = 2
"""The format of what is written; any other is refused."""
LONGEST_NAME = 180
"""The most characters of a folder's name; a longer one is cut and gets a digest."""


@dataclass(slots=True)
class Checkpoint:
    """A checkpoint folder, owned by one engine at a time."""

    root: Path
    temporary: bool = False
    """Whether it is deleted when the engine is closed."""
    id: str = ""
    """Identifies the checkpoint; each of its files carries it."""
    _known: dict[str, int] = field(default_factory=dict, repr=False)
    """By file that must be there, its version."""
    _writing: threading.Lock = field(default_factory=threading.Lock, repr=False)
    """Streams begin their logs in threads of their own."""
    store: Store = field(default=LOCAL, repr=False)
    """Where its files are."""
    _ownership: Ownership | None = field(default=None, repr=False)

    @classmethod
    def open(cls, folder: str | Path | None, store: Store = LOCAL) -> Checkpoint:
        """Take a folder, or a temporary one; refused while another engine owns it."""
        temporary = folder is None
        root = Path(tempfile.mkdtemp(prefix="penstock-") if folder is None else folder)
        checkpoint = cls(root.expanduser().resolve(), temporary, store=store)
        try:
            checkpoint.store.make(checkpoint.root)
            checkpoint._take()
            checkpoint._identify()
        except OSError as error:
            checkpoint.close()
            raise CheckpointError(
                f"the checkpoint folder {checkpoint.root} cannot be used: {error.strerror}"
            ) from error
        except CheckpointError:
            checkpoint.close()
            raise
        return checkpoint

    @classmethod
    def look(cls, folder: str | Path | None) -> Checkpoint:
        """A folder for reading only, even if an engine owns it; refused if it is no checkpoint."""
        if folder is None:
            raise CheckpointError("name the checkpoint that is to be read")
        checkpoint = cls(Path(folder).expanduser().resolve())
        if not checkpoint.begun:
            raise CheckpointError(f"{checkpoint.root} is not a checkpoint: it holds no application")
        checkpoint._identify()
        return checkpoint

    # --- who has it --------------------------------------------------------------------------

    @property
    def is_own(self) -> bool:
        """Whether this object owns it, instead of only reading it."""
        return self._ownership is not None

    @property
    def is_taken(self) -> bool:
        """Whether some engine owns it now."""
        return self.store.is_owned(self.root)

    def _take(self) -> None:
        try:
            self._ownership = self.store.own(self.root)
        except BlockingIOError:
            raise CheckpointError(
                f"another engine is running on {self.root}; stop it, or name another --checkpoint"
            ) from None

    def check_own(self) -> None:
        """Refuse to go on if the folder was taken away: another engine may own it now."""
        if self._ownership is not None and self._ownership.is_lost():
            raise CheckpointError(
                f"{self._ownership.path} was moved, deleted or replaced while the engine ran, so "
                "another engine may have the checkpoint; stop the others and start again")

    def close(self) -> None:
        """Release the folder."""
        if self._ownership is not None:
            self._ownership.release()
            self._ownership = None

    # --- what it holds -----------------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """Whether an engine has written here before."""
        return any(self.store.has(self.root / name) for name in
                   ("checkpoint.json", "application.json", "deliveries.jsonl", "spool", "offsets"))

    @property
    def identity(self) -> Path:
        """The file with the id and the list of required files."""
        return self.root / "checkpoint.json"

    def _identify(self) -> None:
        """Learn the id and the required files; a new checkpoint gets an id."""
        if self.store.has(self.identity):
            text = self.store.read(self.identity)
            _, content = unsealed(text, self.identity, None)
            if content["format"] != FORMAT:
                raise damaged(self.identity, f"has the form {content['format']}, which this "
                              f"version does not read: it reads {FORMAT}")
            self.id, self._known = content["id"], content["files"]
            unsealed(text, self.identity, self.id)
        elif self.begun:
            raise damaged(self.identity, "is missing")
        elif self.is_own:
            self.id = secrets.token_hex(6)
            self.store.create(self.identity, self._identity())

    def _identity(self) -> bytes:
        content = {"id": self.id, "format": FORMAT, "files": self._known}
        return sealed(content, self.id).encode()

    def require(self, path: Path, version: int = 0) -> None:
        """Remember that a file is required from now on, at least in this version."""
        name = path.relative_to(self.root).as_posix()
        with self._writing:
            if self._known.get(name, -1) < version:
                self._known[name] = version
                self.store.write(self.identity, self._identity())

    def _version(self, path: Path) -> int | None:
        return self._known.get(path.relative_to(self.root).as_posix())

    def folder(self, *parts: str) -> Path:
        """A folder below the root, made if missing; a part may be any name that a user chooses."""
        path = self.root
        for part in map(folder_name, parts):
            path /= part
            self.store.make(path)
        return path

    def has(self, path: Path) -> bool:
        """Whether a file exists; refused if it is required and missing."""
        if self.store.has(path):
            return True
        if self._version(path) is not None:
            raise damaged(path, "is missing")
        return False

    def write(self, path: Path, content: Any) -> None:
        """Write a file of this checkpoint as JSON, whole or not at all.

        Files in the root are rewritten often, so they have versions by which an older copy is
        recognised.
        """
        ours = path.parent == self.root
        version = (self._version(path) or 0) + 1 if ours else 0
        self.store.make(path.parent)
        self.store.write(path, sealed(content, self.id, version).encode())
        if ours:
            self.require(path, version)

    def create(self, path: Path, content: Any) -> None:
        """Write a file that must not exist yet: no other engine may write it."""
        self.store.make(path.parent)
        try:
            self.store.create(path, sealed(content, self.id).encode())
        except FileExistsError:
            raise CheckpointError(
                f"{path} is there already: another engine has written to the checkpoint; stop the "
                "others and start again") from None

    def read(self, path: Path) -> Any:
        """The content of a file of this checkpoint; a damaged file is refused by name."""
        try:
            text = self.store.read(path)
        except IsADirectoryError:
            raise damaged(path, "is a folder, and should be a file") from None
        version, content = unsealed(text, path, self.id)
        if version < (self._version(path) or 0):
            raise damaged(path, "is an older copy than the one that was written last")
        return content

    def log(self, path: Path) -> Log:
        """A log of this checkpoint; once it has a first line it must be there."""
        self.has(path)
        return Log(path, self.id, lambda: self.require(path), self.check_own,
                   self.store)

    @property
    def application(self) -> Path:
        """The file that holds the statements in force."""
        return self.root / "application.json"

    @property
    def folders(self) -> Path:
        """The file that lists the sink folders: which query wrote each, and with which columns."""
        return self.root / "folders.json"

    @property
    def large(self) -> Path:
        """The file that lists groups of window aggregates that were too large for the driver."""
        return self.root / "large.json"

    @property
    def versions(self) -> Path:
        """The file that lists the versions of relations, and from which blocks on each holds."""
        return self.root / "relations.json"

    @property
    def given(self) -> Path:
        """The file that tells which rows of the relations of a Python program count."""
        return self.root / "given.json"

    @property
    def deliveries(self) -> Path:
        """The log of what was delivered."""
        return self.root / "deliveries.jsonl"


def folder_name(name: str) -> str:
    """A name as that of a folder, which must not lead elsewhere or be too long.

    >>> folder_name("packets"), folder_name("../a b"), folder_name("..")
    ('packets', '..%2Fa%20b', '%2E.')
    >>> len(folder_name("long" * 100))
    180
    """
    quoted = quote(name, safe="", errors="surrogatepass")
    if len(quoted) > LONGEST_NAME:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        quoted = re.sub("%.?$", "", quoted[: LONGEST_NAME - 17]) + "-" + digest
    return "%2E" + quoted[1:] if quoted in (".", "..") else quoted


def remove_torn(store: Store, offsets: Path) -> None:
    """Remove what a crash left of the first entry of a Spark log, which Spark needs whole."""
    for log in (offsets / "offsets", offsets / "commits"):
        entries = store.list(log)
        if not any(entry.name.isdigit() for entry in entries):
            for entry in entries:
                store.remove(entry)
