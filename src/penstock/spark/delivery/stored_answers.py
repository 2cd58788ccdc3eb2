"""Reading the answers back: from the checkpoint, where the memory sink keeps them, or from folders.

Only answers of committed jobs are read (`committed_files`), in the order of their jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from penstock.arrow import arrow_type
from penstock.errors import RunError
from penstock.model import Application, Query, name_key
from penstock.sinks import SINKS
from penstock.spark.delivery.committed_files import (
    TRIES,
    AnswerFile,
    committed_files,
    log_stamp,
)
from penstock.spark.delivery.delivery_log import Deliveries
from penstock.spark.delivery.text_answers import read_text
from penstock.spark.delivery.write_jobs import QUERY
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.files import canonical, local_path


class Results:
    """The committed answers of a checkpoint's queries."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Begin with nothing read."""
        self._checkpoint = checkpoint

    def table(self, application: Application, name: str, last: int | None = None) -> pa.Table:
        """All answers of a query so far, or the ``last`` rows of them."""
        query = readable(application, name)
        return self._latest(query, self._files(query), last)

    def _latest(
        self, query: Query, files: Sequence[AnswerFile], last: int | None
    ) -> pa.Table:
        """The rows of some files, or the ``last`` of them; no more files are read than needed."""
        if last is None:
            return self._rows(query, files)
        found: list[pa.Table] = []
        missing = last
        for file in reversed(files):
            if missing <= 0:
                break
            table = self._rows(query, [file])
            found.insert(0, table.slice(max(0, table.num_rows - missing)))
            missing -= table.num_rows
        return _whole(query, found)

    def looks(
        self, application: Application, name: str, is_running: Callable[[], bool],
        last: int | None = None,
    ) -> Iterator[pa.Table | None]:
        """The answers so far, and then more as jobs are committed, until nothing runs any more.

        None stands for nothing new: whoever reads on pauses before the next look.
        """
        query = readable(application, name)
        running, stamp = is_running(), log_stamp(self._checkpoint)
        files = self._files(query)
        seen = {file.name for file in files}
        yield self._latest(query, files, last)
        while running:
            yield None
            running = is_running()  # asked before the look: what came last is seen
            before, stamp = stamp, log_stamp(self._checkpoint)
            if stamp == before:
                continue
            fresh = [file for file in self._files(query) if file.name not in seen]
            seen |= {file.name for file in fresh}
            table = self._rows(query, fresh)
            if table.num_rows:
                yield table

    def _files(self, query: Query) -> list[AnswerFile]:
        since = self._since(query.name)
        found = (committed_files(self._checkpoint, [canonical(query.sink.folder)])
                 if query.sink.folder else
                 committed_files(self._checkpoint, [], str(self._checkpoint.root / "results")))
        return [file for file in found if file.job > since]

    def _since(self, name: str) -> int:
        """The job after which answers under this name belong to the present query."""
        log = self._checkpoint.log(self._checkpoint.deliveries)
        position = Deliveries.look(log).positions.get(name)
        return position.since if position else 0

    def _rows(self, query: Query, files: Sequence[AnswerFile]) -> pa.Table:
        """The query's rows in some files, which may be moved into place meanwhile."""
        for _ in range(TRIES):
            with suppress(FileNotFoundError):
                return _whole(query, self._read(query, files))
            now = {file.name: file for file in self._files(query)}
            files = [now.get(file.name, file) for file in files]
        return _whole(query, self._read(query, files))

    def _read(self, query: Query, files: Sequence[AnswerFile]) -> Iterator[pa.Table]:
        """The query's rows in some files; of queries that share a folder, each has some."""
        if query.sink.kind in ("csv", "json"):
            for file in files:
                yield read_text(query, file.path)
            return
        if not files:
            return
        data = ds.dataset([file.path for file in files], format="parquet")
        for schema, some in groupby(data.get_fragments(), lambda file: file.physical_schema):
            columns = _columns(query, schema.names)
            if columns is not None:
                alike = ds.FileSystemDataset(list(some), schema, data.format)
                yield alike.to_table(columns=columns, filter=_own_rows(query, schema.names))


def readable(application: Application, name: str) -> Query:
    """The query of this name, with the first of its sinks from which answers can be read back."""
    query = application.query(name)
    if query is None:
        raise RunError(f"there is no query '{name}'")
    keeping = [one for one in query.by_sink if SINKS[one.sink.kind].is_readable]
    if not keeping:
        kinds = sorted(kind for kind, one in SINKS.items() if one.is_readable)
        told = " and ".join(sink.kind for sink in query.sinks)
        raise RunError(f"query '{query.name}' delivers to {told}; results are kept for "
                       f"{', '.join(kinds[:-1])} and {kinds[-1]} sinks only")
    here = [one for one in keeping if not one.sink.folder or local_path(one.sink.folder)]
    if not here:
        raise RunError(f"query '{query.name}' delivers to {keeping[0].sink.folder}, which is on "
                       "another file system; read it there")
    return here[0]


def _whole(query: Query, tables: Iterator[pa.Table] | Sequence[pa.Table]) -> pa.Table:
    found = [table for table in tables if table.num_rows]  # an empty table may have other types
    return pa.concat_tables(found, promote_options="permissive") if found else _empty(query)


def _columns(query: Query, present: Sequence[str]) -> dict[str, pc.Expression] | None:
    """A query's columns in a file; None if the file lacks one and so has no row of the query."""
    spelt = {name_key(name): name for name in present}
    names = [output.name for output in query.branches[0].select]
    if not all(name_key(name) in spelt for name in names):
        return None
    return {name: pc.field(spelt[name_key(name)]) for name in names}


def _own_rows(query: Query, present: Sequence[str]) -> pc.Expression | None:
    shared = QUERY in present and QUERY not in (o.name for o in query.branches[0].select)
    return pc.field(QUERY) == query.name if shared or not query.sink.folder else None


def _empty(query: Query) -> pa.Table:
    fields = [(o.name, arrow_type(o.expression.type)) for o in query.branches[0].select]
    return pa.schema(fields).empty_table()
