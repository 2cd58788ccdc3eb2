"""Reading the answers back: the memory sink keeps them as Parquet in the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from penstock.arrow import arrow_type
from penstock.errors import RunError
from penstock.model import Application, Query, name_key
from penstock.sinks import SINKS
from penstock.spark.delivery.delivery_log import Deliveries
from penstock.spark.delivery.write_jobs import QUERY
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.files import local_path


class Results:
    """The answers that a checkpoint holds, and those in Parquet folders."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Begin with nothing read."""
        self._checkpoint = checkpoint

    def table(self, application: Application, name: str) -> pa.Table:
        """All answers of a query so far."""
        query = application.queries.get(name)
        if query is None:
            raise RunError(f"there is no query '{name}'")
        if not SINKS[query.sink.kind].is_readable:
            readable = sorted(kind for kind, one in SINKS.items() if one.is_readable)
            raise RunError(f"query '{name}' delivers to {query.sink.kind}; results are kept for "
                           f"{' and '.join(readable)} sinks only")
        since = self._since(name)
        found = [table for folder in self._folders(query)
                 for table in self._read(folder, query, since)]
        found = [table for table in found if table.num_rows]  # an empty table may have other types
        return pa.concat_tables(found, promote_options="permissive") if found else _empty(query)

    def _folders(self, query: Query) -> list[str]:
        if not query.sink.folder:
            return sorted(str(path) for path in self._checkpoint.folder("results").iterdir())
        folder = local_path(query.sink.folder)
        return [str(folder)] if folder is not None and folder.exists() else []

    def _since(self, name: str) -> int:
        """The job after which answers under this name belong to the present query."""
        log = self._checkpoint.log(self._checkpoint.deliveries)
        position = Deliveries.look(log).positions.get(name)
        return position.since if position else 0

    def _read(self, folder: str, query: Query, since: int) -> Iterator[pa.Table]:
        """The query's rows in a folder; files of queries that share it may have other columns.

        Files of other checkpoints do not belong to its answers.
        """
        own = [str(path) for path in sorted(Path(folder).glob(f"run-*-{self._checkpoint.id}-*"))
               if int(path.name.split("-")[1]) > since]
        if not own:
            return
        data = ds.dataset(own, format="parquet")
        for schema, files in groupby(data.get_fragments(), lambda file: file.physical_schema):
            columns = _columns(query, schema.names)
            if columns is not None:
                alike = ds.FileSystemDataset(list(files), schema, data.format)
                yield alike.to_table(columns=columns, filter=_own_rows(query, schema.names))


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
