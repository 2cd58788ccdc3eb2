"""Reading the answers back: the memory sink keeps them as Parquet in the checkpoint."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from penstock.arrow import arrow_type
from penstock.errors import RunError
from penstock.model import Application, Query
from penstock.spark.checkpoint import Checkpoint
from penstock.spark.datasets import QUERY
from penstock.spark.files import local_path


class Results:
    """The answers that a checkpoint holds, and those in Parquet folders."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Nothing is read yet."""
        self._checkpoint = checkpoint

    def table(self, application: Application, name: str) -> pa.Table:
        """All answers of a query so far."""
        query = application.queries.get(name)
        if query is None:
            raise RunError(f"there is no query '{name}'")
        if query.sink.kind not in ("memory", "parquet"):
            raise RunError(f"query '{name}' delivers to {query.sink.kind}; results are kept for "
                           "memory and parquet sinks only")
        tables = [self._read(folder, query) for folder in self._folders(query)]
        found = [table for table in tables if table is not None]
        return pa.concat_tables(found, promote_options="permissive") if found else _empty(query)

    def _folders(self, query: Query) -> list[str]:
        if query.sink.kind == "memory":
            return sorted(str(path) for path in self._checkpoint.folder("results").iterdir())
        folder = local_path(query.sink.target or "")
        return [str(folder)] if folder is not None and folder.exists() else []

    def _read(self, folder: str, query: Query) -> pa.Table | None:
        data = ds.dataset(folder, format="parquet")
        names = [output.name for output in query.branches[0].select]
        present = {name.casefold(): name for name in data.schema.names}
        if not all(name.casefold() in present for name in names):
            return None
        wanted = None
        if query.sink.kind == "memory" or (QUERY in data.schema.names and QUERY not in names):
            wanted = pc.field(QUERY) == query.name
        columns = {name: pc.field(present[name.casefold()]) for name in names}
        return data.to_table(columns=columns, filter=wanted)


def _empty(query: Query) -> pa.Table:
    fields = [(o.name, arrow_type(o.expression.type)) for o in query.branches[0].select]
    return pa.schema(fields).empty_table()
