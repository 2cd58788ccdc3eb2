"""parquet, csv, json: answers are files in a folder that the query names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.model import Query
from penstock.plan import Member, Plan
from penstock.spark.delivery.sinks.staged_files import StagedFiles
from penstock.spark.delivery.write_jobs import WriteJob, folder_by_folder
from penstock.spark.ingest.sources import plain
from penstock.spark.storage.files import same_device


class FileSink(StagedFiles):
    """Files appear whole, by a rename, and are never changed or replaced afterwards."""

    def fault(self, query: Query) -> str:
        """Why files cannot be written there, if so; `Folders.refused` says which queries fit."""
        try:
            self.tools.files.make(query.sink.folder)
        except OSError as error:
            return f"its folder {query.sink.folder} cannot be written: {plain(error)}"
        return ""

    def split(self, plan: Plan, members: Sequence[Member]) -> Iterable[WriteJob]:
        """Queries with the same columns are written by one job, whichever folders they name."""
        folders = {plan.query(member.query).sink.folder for member in members}
        alone = {folder: not same_device(self.tools.results, folder) for folder in folders}
        return folder_by_folder(plan, members, self.tools.folders.shared, alone)
