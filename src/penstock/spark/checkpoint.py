"""The checkpoint folder: where everything that must outlive the driver is kept.

::

    checkpoint/
      checkpoint.json     the checkpoint's id, and the versions of the files beside it
      application.json    the statements in force
      offsets/STREAM/     how far each source was read: files.jsonl, or Structured Streaming's own
      spool/STREAM/       the decoded blocks and a manifest for each
      late/NAME/          rows that came too late for the windows over a stream, or of a query
      rejects/NAME/       rows that could not be read, or that a Python function raised for
      folders.json        the sink folders written so far: by whom, in which format, which columns
      deliveries.jsonl    what each query has delivered
      staging/RUN/        answers on their way to a sink
      results/            answers of the memory sink
      runs/STAMP/         the record of each run
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from penstock.errors import CheckpointError

FORMAT = 1
"""The form of what is written; another one is refused."""


@dataclass(slots=True)
class Checkpoint:
    """A checkpoint folder, owned by one engine at a time."""

    root: Path
    temporary: bool = False
    """Whether it goes when the engine is closed."""
    id: str = ""
    """What tells it from every other checkpoint: each file of it carries this."""
    _lock: IO[str] | None = field(default=None, repr=False)

    @classmethod
    def open(cls, folder: str | Path | None) -> Checkpoint:
        """Take a folder, or a temporary one; refused while another engine has it."""
        if folder is None:
            checkpoint = cls(Path(tempfile.mkdtemp(prefix="penstock-")), temporary=True)
        else:
            checkpoint = cls(Path(folder).expanduser().resolve())
        try:
            checkpoint.root.mkdir(parents=True, exist_ok=True)
            checkpoint._take()
            checkpoint._identify()
        except OSError as error:
            raise CheckpointError(
                f"the checkpoint folder {checkpoint.root} cannot be used: {error.strerror}"
            ) from error
        return checkpoint

    @classmethod
    def look(cls, folder: str | Path | None) -> Checkpoint:
        """A folder to be read only, whoever has it; refused where there is no checkpoint."""
        if folder is None:
            raise CheckpointError("name the checkpoint that is to be read")
        checkpoint = cls(Path(folder).expanduser().resolve())
        if not checkpoint.application.is_file():
            raise CheckpointError(f"{checkpoint.root} is not a checkpoint: it holds no application")
        checkpoint._identify()
        return checkpoint

    @property
    def is_own(self) -> bool:
        """Whether it was taken, and not only looked at."""
        return self._lock is not None

    @property
    def is_taken(self) -> bool:
        """Whether some engine has it now."""
        try:
            with open(self.root / "lock") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # no lock, no engine
            return False
        return False

    def _take(self) -> None:
        self._lock = open(self.root / "lock", "w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise CheckpointError(
                f"another engine is running on {self.root}; stop it, or name another --checkpoint"
            ) from None

    def _identify(self) -> None:
        """Learn the id; a new checkpoint gets one."""
        place = self.root / "checkpoint.json"
        if place.exists():
            self.id = read_json(place)["id"]
        elif self.is_own:
            self.id = secrets.token_hex(6)
            write_json(place, {"id": self.id, "format": FORMAT})

    def close(self) -> None:
        """Let the folder go."""
        if self._lock:
            self._lock.close()
            self._lock = None

    def folder(self, *parts: str) -> Path:
        """A folder below the root, made when missing; a part may be any name a user thinks of."""
        path = self.root.joinpath(*map(folder_name, parts))
        path.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def application(self) -> Path:
        """The file that holds the statements in force."""
        return self.root / "application.json"

    @property
    def folders(self) -> Path:
        """The file that tells which sink folders were written, by whom and with which columns."""
        return self.root / "folders.json"

    @property
    def deliveries(self) -> Path:
        """The log of what was delivered."""
        return self.root / "deliveries.jsonl"


def folder_name(name: str) -> str:
    """A name as that of a folder, which must not lead elsewhere.

    >>> folder_name("packets"), folder_name("../a b"), folder_name("..")
    ('packets', '..%2Fa%20b', '%2E.')
    """
    quoted = quote(name, safe="")
    return "%2E" + quoted[1:] if quoted in (".", "..") else quoted


def write_json(path: Path, content: Any) -> None:
    """Write a file so that a crash leaves the old one or the new one, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    with open(temporary, "w") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def read_json(path: Path) -> Any:
    """The content of a file written by `write_json`."""
    with open(path) as file:
        return json.load(file)
