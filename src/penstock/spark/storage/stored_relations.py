"""The rows of relations that a Python program has given: the checkpoint keeps them.

A restart reads them without the program. Each time that rows are given, they go to a new folder.
The file given.json names the folders that count, so a crash leaves the old rows or the new.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from penstock.errors import CheckpointError, SourceError
from penstock.model import DATAFRAME, Relation
from penstock.spark.storage.checkpoint import Checkpoint, folder_name
from penstock.spark.storage.spool import Stored, changed, stored_file


class StoredRelations:
    """The relations of a checkpoint that came from a Python program."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Begin with nothing read."""
        self._checkpoint = checkpoint

    def keep(self, name: str, write: Callable[[Path], None]) -> None:
        """Have rows written into a folder of Parquet files, and make them the relation's rows.

        The rows before these stay until the next time: a question may be reading them.
        """
        held = self._held()
        version = held[name]["version"] + 1 if name in held else 0
        home = self._checkpoint.folder("given", name)
        folder = home / f"{version:08d}"
        shutil.rmtree(folder, ignore_errors=True)  # what a crash may have left
        write(folder)
        paths = sorted(folder.glob("*.parquet"))
        self._checkpoint.store.sync(paths, [folder, home])
        files = [asdict(stored_file(path.name, path, own=False)) for path in paths]
        self._checkpoint.write(self._checkpoint.given,
                               {**held, name: {"version": version, "files": files}})
        for old in home.iterdir():
            if old.name < f"{version - 1:08d}":
                shutil.rmtree(old, ignore_errors=True)

    def placed(self, relation: Relation) -> Relation:
        """The relation as one of Parquet files, if a program has given it; else as it is."""
        if relation.format != DATAFRAME:
            return relation
        entry = self._held().get(relation.name)
        if entry is None:
            raise SourceError(f"relation {relation.name} has no rows yet; a Python program gives "
                              f"them: engine.relation({relation.name!r}, df)")
        return replace(relation, format="parquet", path=str(self._folder(relation.name, entry)))

    def check(self) -> list[str]:
        """The names of all relations; CheckpointError if a file of theirs was changed."""
        held = self._held()
        for name, entry in held.items():
            self._folder(name, entry)
        return list(held)

    def _folder(self, name: str, entry: Mapping[str, Any]) -> Path:
        """The folder with the rows of a relation, as they were written."""
        home = self._checkpoint.root / "given" / folder_name(name)
        folder = home / f"{entry['version']:08d}"
        for file in entry["files"]:
            place = folder / file["path"]
            if fault := changed(Stored(**file), place):
                raise CheckpointError(
                    f"{place} {fault} since relation {name} was given; give it again: "
                    f"engine.relation({name!r}, df)")
        return folder

    def _held(self) -> dict[str, Any]:
        place = self._checkpoint.given
        return dict(self._checkpoint.read(place)) if self._checkpoint.has(place) else {}

