"""The sink folders: what each holds, and so which queries may write to it.

A folder holds one dataset: one format, one set of columns, with or without the column `query`. The
checkpoint remembers the folders that it has begun; in other folders the files are examined. A query
that does not fit is refused, since the folder could no longer be read as a whole.
"""

from __future__ import annotations

import contextlib
import csv
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.arrow import TYPES, arrow_type
from penstock.errors import PlanError, RunError
from penstock.language.types import parse_text
from penstock.model import (
    STRING,
    VOID,
    Application,
    Field,
    Query,
    Relation,
    Sink,
    Stream,
    Type,
    name_key,
)
from penstock.planning.outputs import dataset, merged
from penstock.sinks import folder_sinks
from penstock.spark.delivery.write_jobs import QUERY, check_shared
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.files import Files, canonical, local_path
from penstock.spark.storage.guarded import damaged


@dataclass(frozen=True, slots=True)
class Dataset:
    """What a folder holds."""

    format: str
    columns: tuple[Field, ...]
    """The columns without `query`."""
    owner: str = ""
    """The query that has the folder to itself; empty if rows carry the name of their query."""


class Folders:
    """The folders that a checkpoint delivers to."""

    def __init__(self, checkpoint: Checkpoint, files: Files) -> None:
        """Read what earlier runs have noted."""
        self._checkpoint, self._files = checkpoint, files
        self._root = canonical(str(checkpoint.root))
        self._datasets: dict[str, Dataset] = (
            _read(checkpoint) if checkpoint.has(checkpoint.folders) else {})

    @property
    def known(self) -> frozenset[str]:
        """The folders written so far."""
        return frozenset(self._datasets)

    @property
    def shared(self) -> dict[str, tuple[Field, ...]]:
        """The folders whose rows carry the name of their query, with the columns of each."""
        return {folder: held.columns for folder, held in self._datasets.items() if not held.owner}

    def forget_empty(self) -> None:
        """Forget what folders held whose files are gone; no file may be on its way there."""
        self._datasets = {folder: held for folder, held in self._datasets.items()
                          if not self._is_empty(folder)}

    def _is_empty(self, folder: str) -> bool:
        try:
            is_there = self._files.exists(folder)
            return not is_there or next(iter(self._files.data(folder)), None) is None
        except OSError:  # it cannot be known
            return False

    def adopt(self, application: Application) -> None:
        """Its queries deliver from now on; the contents of their folders are noted first."""
        self._datasets = self._datasets | self._looked_at(application)[1]  # jobs may read it
        self._checkpoint.write(self._checkpoint.folders, {
            folder: _noted(held) for folder, held in self._datasets.items()})

    def refused(self, application: Application) -> dict[str, str]:
        """The queries that cannot deliver to the folder they name, and why."""
        return self._looked_at(application)[0]

    def check(self, application: Application, queries: Iterable[Query]) -> None:
        """Raise `RunError` for the first of some queries that is refused."""
        refused = self.refused(application)
        for name in (query.name for query in queries if query.name in refused):
            raise RunError(f"query {name}: {refused[name]}")

    def _looked_at(
        self, application: Application
    ) -> tuple[dict[str, str], dict[str, Dataset]]:
        queries = [one for query in application.queries.values() for one in query.by_sink]
        faults, after = check_shared(queries), {}
        there: dict[str, list[Query]] = {}
        for query in queries:
            if query.sink.folder:
                there.setdefault(query.sink.folder, []).append(query)
        reads = _reads(application)
        for folder, together in there.items():
            if why := _misplaced(folder, self._root, reads):
                faults |= {query.name: f"{folder} {why}; name another folder" for query in together}
                continue
            fit = [query for query in together if query.name not in faults]
            if fit:
                held = self._held(folder, fit, alone=len(together) == 1)
                after[folder], unfit = _joined(held, fit)
                faults |= {name: f"{folder} {why}" for name, why in unfit.items()}
        return faults, after

    def _held(self, folder: str, queries: Sequence[Query], *, alone: bool) -> Dataset:
        """What a folder holds; if nothing, what these queries will put into it."""
        fresh = Dataset(queries[0].sink.kind, dataset(b for q in queries for b in q.branches),
                        queries[0].name if alone else "")
        return self._datasets.get(folder) or self._found(folder, fresh)

    def _found(self, folder: str, fresh: Dataset) -> Dataset:
        """What files of other checkpoints say about a folder; `fresh` if they say nothing."""
        local = local_path(folder)
        if local is None or not local.is_dir():
            return fresh
        files = sorted(path for path in local.glob("run-*") if path.suffix[1:] in folder_sinks())
        others = {path.suffix[1:] for path in files} - {fresh.format}
        if others:
            return replace(fresh, format=min(others))
        with contextlib.suppress(*_DAMAGED):  # such a file says nothing either
            return _of_file(str(files[0]), fresh) if files else fresh
        return fresh


def at_home(application: Application) -> Application:
    """The application with every sink's folder in canonical spelling."""
    queries = {
        name: replace(query, sink=_at_home(query.sink), also=tuple(map(_at_home, query.also)))
        if any(sink.folder for sink in query.sinks) else query
        for name, query in application.queries.items()}
    return replace(application, queries=queries)


def _at_home(sink: Sink) -> Sink:
    return replace(sink, target=canonical(sink.folder)) if sink.folder else sink


def _reads(application: Application) -> list[tuple[str, str]]:
    """What the application reads: its name, and its path as a pattern or canonical folder."""
    sources: list[Stream | Relation] = [
        *application.streams.values(), *application.relations.values()]
    return [(f"{'stream' if isinstance(source, Stream) else 'relation'} {source.name}", path)
            for source in sources if source.path for path in spellings(source.path)]


def _misplaced(folder: str, checkpoint: str, reads: Iterable[tuple[str, str]]) -> str:
    """Why answers must not go to a folder: they would be read again, or mixed with our files."""
    if _is_within(folder, checkpoint) or _is_within(checkpoint, folder):
        return f"and the checkpoint {checkpoint} must not lie in each other"
    for who, path in reads:
        holds = who.startswith("stream") and _is_within(path, folder)
        if holds or _is_within(folder, path):
            return f"is where {who} reads ({path})" if not holds or folder == path else (
                f"holds {path}, where {who} reads")
    return ""


def _is_within(inner: str, outer: str) -> bool:
    """Whether a path equals another or lies below it; the other may be a pattern.

    >>> _is_within("/a/b/c", "/a/*"), _is_within("/a/bc", "/a/b"), _is_within("/a", "/a/b")
    (True, False, False)
    """
    above, below = outer.rstrip("/").split("/"), inner.rstrip("/").split("/")
    return len(above) <= len(below) and all(
        one == other or fnmatchcase(one, other)
        for one, other in zip(below, above, strict=False))


def spellings(path: str) -> list[str]:
    """The folders that a source's path may mean: itself, or each of the alternatives in braces.

    >>> spellings("/data/{a,b}/c")
    ['/data/{a,b}/c', '/data/a/c', '/data/b/c']
    """
    found = re.search(r"\{([^{}]*)\}", path)
    if found is None:
        return [canonical(path)]
    each = (path[:found.start()] + one + path[found.end():] for one in found[1].split(","))
    return [canonical(path), *(spelt for one in each for spelt in spellings(one))]


def _joined(held: Dataset, queries: Sequence[Query]) -> tuple[Dataset, dict[str, str]]:
    """A folder with these queries in it, and why some do not fit."""
    faults: dict[str, str] = {}
    if held.owner and held.owner not in (query.name for query in queries):
        held = _taken_over(held, queries)
    alike: set[object] = set()  # of queries that look alike, one stands for all
    for query in queries:
        looks = query.sink.kind, tuple(branch.outputs for branch in query.branches)
        if not held.owner and looks in alike:
            continue
        try:
            held = _with(held, query)
            alike.add(looks)
        except PlanError as error:
            faults[query.name] = str(error)
    return held, faults


def _taken_over(held: Dataset, queries: Sequence[Query]) -> Dataset:
    """A folder whose query is gone goes to the first query with the same columns."""
    for query in queries:
        with contextlib.suppress(PlanError):
            return _with(replace(held, owner=query.name), query)
    return replace(held, owner=queries[0].name)


def _with(held: Dataset, query: Query) -> Dataset:
    if held.owner and query.name != held.owner:
        raise PlanError(f"is already written by query {held.owner} alone, without a column "
                        f"'{QUERY}'; name another folder")
    if query.sink.kind != held.format:
        raise PlanError(f"holds {held.format} files and cannot hold {query.sink.kind} too; name "
                        "another folder, or move its files away before the next start")
    mine = dataset(query.branches)
    if not held.owner and any(name_key(column.name) == QUERY for column in mine):
        raise PlanError(f"has a column '{QUERY}' of its own; give yours another name with AS, or "
                        "name another folder")
    columns = _widened(held, mine)
    if columns is None:
        raise PlanError(f"holds files with the columns {_told(held.columns)}, and query "
                        f"{query.name} delivers {_told(mine)}; name another folder, or move its "
                        "files away before the next start")
    return replace(held, columns=columns)


def _widened(held: Dataset, mine: tuple[Field, ...]) -> tuple[Field, ...] | None:
    """The columns of a folder and of a query; None if the files in it no longer fit.

    A dataset that queries share may get more columns, which are NULL before. A csv file may not:
    its columns are identified by position.
    """
    if held.owner:
        same = _ordered(held.format, held.columns) == _ordered(held.format, mine)
        return held.columns if same else None
    try:
        together = merged((*held.columns, *mine))
    except PlanError:
        return None
    if together[:len(held.columns)] != held.columns:
        return None
    return together if held.format != "csv" or together == held.columns else None


def _ordered(format_: str, columns: Sequence[Field]) -> list[tuple[str, str]]:
    """Columns in the order that counts: their own for csv, sorted for the others."""
    told = [(column.name, str(column.type)) for column in columns]
    return told if format_ == "csv" else sorted(told)


def _told(columns: Iterable[Field], most: int = 12) -> str:
    told = [f"{column.name} {column.type}" for column in columns]
    more = [f"... and {len(told) - most} more"] if len(told) > most else []
    return ", ".join(told[:most] + more)


# --- what a folder says of itself ----------------------------------------------------------------


_DAMAGED = (OSError, ValueError, TypeError, StopIteration, csv.Error, pa.ArrowException)


def _of_file(path: str, fresh: Dataset) -> Dataset:
    """The dataset that a file belongs to, as far as the file shows it."""
    found, mine = _columns_of(path, fresh.format), {c.name: c for c in fresh.columns}
    shared = QUERY in found and QUERY not in mine
    columns = tuple(_field(name, kind, mine.get(name)) for name, kind in found.items()
                    if not (shared and name == QUERY))
    if fresh.format == "json" and {column.name for column in columns} <= mine.keys():
        columns = fresh.columns  # a row shows only what is not NULL
    return Dataset(fresh.format, columns, "" if shared else fresh.owner or "another run")


def _columns_of(path: str, format_: str) -> dict[str, Any]:
    """Names, and Arrow types if the file has types."""
    if format_ == "parquet":
        schema = pq.read_schema(path)
        return dict(zip(schema.names, schema.types, strict=True))
    with open(path, newline="", encoding="utf-8") as file:
        text = file.readline() if format_ == "json" else ""
        return dict.fromkeys(json.loads(text) if text else next(csv.reader(file)))


def _field(name: str, kind: Any, mine: Field | None) -> Field:
    if kind is None:
        return mine or Field(name, STRING)
    if mine is not None and (arrow_type(mine.type) == kind or kind.num_fields):
        return mine
    if kind.num_fields:
        raise ValueError(f"{name} is nested")
    if pa.types.is_decimal(kind):
        return Field(name, Type("DECIMAL", precision=kind.precision, scale=kind.scale))
    known = [type_ for type_, arrow in TYPES.items() if arrow == kind]
    return Field(name, Type(known[0] if known else str(kind)))


# --- folders.json --------------------------------------------------------------------------------


def _noted(held: Dataset) -> dict[str, Any]:
    return {"format": held.format, "owner": held.owner,
            "columns": [[column.name, str(column.type)] for column in held.columns]}


def _read(checkpoint: Checkpoint) -> dict[str, Dataset]:
    content = checkpoint.read(checkpoint.folders)
    try:
        return {folder: Dataset(held["format"], tuple(
            Field(name, VOID if kind == "VOID" else parse_text(kind))
            for name, kind in held["columns"]), held["owner"])
            for folder, held in content.items()}
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise damaged(checkpoint.folders, "is not one that this version knows") from error
