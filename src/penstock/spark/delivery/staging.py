"""Staged files: where they wait, where they go, and a check that they go nowhere else.

A job's files wait in ``staging/JOB`` of the checkpoint. If the sink is on another device, they wait
in the sink's own folder ``_penstock``. ``moves.json`` says where each goes. Paths inside the
checkpoint are relative to it, so that a checkpoint may be moved. What is read back is checked:
files leave only these places, and go only to folders of the checkpoint and to known sinks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from penstock.errors import CheckpointError
from penstock.spark.storage.checkpoint import Checkpoint, folder_name
from penstock.spark.storage.files import Files, local_path, same_device

OUTSIDE = "_penstock"
"""The folder inside a sink's own where files wait that cannot be renamed from the checkpoint."""
_OWN = ("results", "rejects", "late", "feeds", "outbox")
"""The folders of the checkpoint that files are delivered to."""
_RUN = re.compile("[0-9]{8,}")


@dataclass(frozen=True, slots=True)
class Move:
    """A staged file and its destination."""

    source: str
    """Relative to the place of its job: ``UNIT/...``, where UNIT is that of `Staging.place`."""
    folder: str
    """A sink's folder, or one of the checkpoint's, relative to it."""
    name: str
    queries: tuple[str, ...] = ()
    size: int = 0
    is_durable: bool = False
    """Whether the file already survives a power cut; its name in the folder may not."""


@dataclass(frozen=True, slots=True)
class Staging:
    """The files of jobs that are not yet in place."""

    checkpoint: Checkpoint
    files: Files
    sinks: Callable[[], Collection[str]]
    """The sink folders that this checkpoint has written to."""

    def place(self, run: int, unit: str, folder: str) -> str:
        """Where files of a unit wait that go to this folder: on the same device."""
        if same_device(str(self.checkpoint.folder("staging")), folder):
            return str(self._of(run) / unit)
        self.checkpoint.write(self._of(run) / f"outside-{unit}.json", folder)
        return self._outside(run, unit, folder)

    def moves(self, run: int, unit: str, place: str) -> Iterator[Move]:
        """The files that wait in a place; their folders are still to be named."""
        below = "/" + "/".join(place.split("/")[-2:]) + "/"
        for path, size in self.files.data(place):
            within = path[path.rindex(below) + len(below):]
            yield self.move(run, unit, within, size=size)

    def move(self, run: int, unit: str, within: str, **about: Any) -> Move:
        """The move of one file of a unit, by its path within the place of the unit."""
        name = f"{self._prefix(run)}{within.rsplit('/', 1)[-1]}"
        return replace(Move(f"{unit}/{within}", "", name), **about)

    def seen(self, folder: str) -> str:
        """A folder as `Move` names it: one of the checkpoint's is relative to it."""
        root = str(self.checkpoint.root) + "/"
        return folder.removeprefix(root)

    def own_folder(self, kind: str, query: str) -> str:
        """The checkpoint's folder for rows of a query that are not answers."""
        return str(self.checkpoint.folder(kind, query))

    def write(self, run: int, moves: Sequence[Move]) -> None:
        """Note durably where the files of a job go, before the job counts."""
        sources = ((move, local_path(self._source(run, move))) for move in moves)
        local = [(move, source) for move, source in sources if source is not None]
        written = [source for move, source in local if not move.is_durable]
        self.checkpoint.store.sync(written, {source.parent for _, source in local})
        self.checkpoint.write(self._of(run) / "moves.json",
                              [[m.source, m.folder, m.name] for m in moves])

    def note(self, run: int, name: str, content: Any) -> None:
        """Note durably what a sink needs to publish after a crash; it is removed with the job."""
        self.checkpoint.write(self._note(run, name), content)

    def noted(self, run: int, name: str) -> Any:
        """What was noted under a name; None if nothing was."""
        path = self._note(run, name)
        return self.checkpoint.read(path) if self.checkpoint.store.has(path) else None

    def _note(self, run: int, name: str) -> Path:
        return self._of(run) / f"note-{folder_name(name)}.json"

    def finish(self, run: int, move: Move) -> None:
        """Put a file into place."""
        self.files.move(self._source(run, move), self._target(move))

    def redo(self, run: int, warn: Callable[[str], None]) -> None:
        """Finish the moves of a job that counts; OSError if a file cannot be moved yet.

        A folder that refuses a file does not hold up the others. Finished moves are forgotten, so
        that repeating this finds nothing.
        """
        noted = self._of(run) / "moves.json"
        moves = [self._checked(run, noted, move) for move in self.checkpoint.read(noted)] if (
            self.checkpoint.store.has(noted)) else []
        refused = [error for move in moves if (error := self._again(run, move, warn))]
        if refused:
            raise refused[0]
        places = [place for place in self._places(run) if self.files.exists(place)]
        left = next((path for place in places for path, _ in self.files.data(place)
                     if not path.endswith(".json") or Path(path).parent != self._of(run)), None)
        if left is not None:
            raise OSError(f"the destination of {left} is unknown; see {noted}")
        self.checkpoint.store.remove(noted)

    def pending(self, run: int) -> list[tuple[str, str]]:
        """Where the files of a job wait, and where they go; some may be in place already."""
        noted = self._of(run) / "moves.json"
        try:
            moves = self.checkpoint.read(noted) if self.checkpoint.store.has(noted) else []
        except FileNotFoundError:  # the job was settled meanwhile
            moves = []
        checked = (self._checked(run, noted, move) for move in moves)
        return [(self._source(run, move), self._target(move)) for move in checked]

    def _again(self, run: int, move: Move, warn: Callable[[str], None]) -> OSError | None:
        source, target = self._source(run, move), self._target(move)
        try:
            if self.files.exists(source):
                self.files.move(source, target)
            elif not self.files.exists(target):
                warn(f"{target} of job {run} is not in its folder and no longer staged: it was "
                     "taken away, or is lost")
        except OSError as error:
            return error
        return None

    def clear(self, run: int) -> None:
        """Remove what is left of a job."""
        for place in self._places(run)[1:]:
            self.files.remove(place)
            self.files.remove_empty(place.rsplit("/", 1)[0])
        self.files.remove(str(self._of(run)))

    def runs(self) -> list[int]:
        """The jobs that have files here; what is not ours is left alone."""
        found = self.checkpoint.store.list(self._root)
        return sorted(int(here.name) for here in found if _RUN.fullmatch(here.name))

    # --- where things are --------------------------------------------------------------------

    @property
    def _root(self) -> Path:
        return self.checkpoint.root / "staging"

    def _of(self, run: int) -> Path:
        return self._root / f"{run:08d}"

    def _prefix(self, run: int) -> str:
        return f"run-{run:08d}-{self.checkpoint.id}-"

    def _outside(self, run: int, unit: str, folder: str) -> str:
        return f"{folder}/{OUTSIDE}/{self.checkpoint.id}-{run:08d}-{unit}"

    def _places(self, run: int) -> list[str]:
        """Where files of a job may wait: in the checkpoint, and in sinks on other devices."""
        noted = self.checkpoint.store.list(self._of(run), "outside-*.json")
        return [str(self._of(run)), *(self._outside_of(run, path) for path in noted)]

    def _outside_of(self, run: int, noted: Path) -> str:
        folder = self.checkpoint.read(noted)
        if folder not in self.sinks():
            raise self._refusal(noted, f"the folder {folder}, which no query of it has written")
        return self._outside(run, noted.stem.removeprefix("outside-"), folder)

    def _source(self, run: int, move: Move) -> str:
        unit, _, within = move.source.partition("/")
        here = self._of(run)
        noted = here / f"outside-{unit}.json"
        is_outside = self.checkpoint.store.has(noted)
        place = self._outside_of(run, noted) if is_outside else f"{here}/{unit}"
        return f"{place}/{within}"

    def _target(self, move: Move) -> str:
        is_own = move.folder.split("/")[0] in _OWN
        folder = str(self.checkpoint.root / move.folder) if is_own else move.folder
        return f"{folder}/{move.name}"

    # --- what is read back is not believed ---------------------------------------------------

    def _checked(self, run: int, noted: Path, entry: Any) -> Move:
        try:
            source, folder, name = map(str, entry)
        except (TypeError, ValueError):
            raise self._refusal(noted, f"{entry!r}, which is no move") from None
        move = Move(source, folder, name)
        if not _is_below(source) or not self._stays(run, move):
            raise self._refusal(noted, f"{source}, which is not a staged file")
        if "/" in name or not name.startswith(self._prefix(run)):
            raise self._refusal(noted, f"{name}, which is no name of a file of this run")
        own = _is_below(folder) and folder.split("/")[0] in _OWN
        if not own and folder not in self.sinks():
            raise self._refusal(noted, f"the folder {folder}, which no query of it has written")
        return move

    def _stays(self, run: int, move: Move) -> bool:
        """Whether no link leads a file of the checkpoint out of it."""
        if self.checkpoint.store.has(self._of(run) / f"outside-{move.source.split('/')[0]}.json"):
            return True
        return Path(os.path.realpath(self._source(run, move))).is_relative_to(self._of(run))

    def _refusal(self, noted: Path, what: str) -> CheckpointError:
        return CheckpointError(f"{noted} names {what}; nothing was moved. Restore the checkpoint, "
                               "or remove this file if its answers are not wanted")


def _is_below(path: str) -> bool:
    """Whether a relative path stays below its start."""
    parts = PurePosixPath(path).parts
    return bool(parts) and ".." not in parts and not path.startswith("/")
