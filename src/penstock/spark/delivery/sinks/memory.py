"""memory: answers are kept in the checkpoint, and read with `penstock.Engine.results`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.plan import Member, Plan
from penstock.spark.delivery.sinks.staged_files import StagedFiles
from penstock.spark.delivery.write_jobs import WriteJob, columns_by_columns


class MemorySink(StagedFiles):
    """Parquet files in the checkpoint: they outlive the driver, unlike its memory."""

    def split(self, plan: Plan, members: Sequence[Member]) -> Iterable[WriteJob]:
        """Queries share folders as far as their columns allow."""
        return columns_by_columns(plan, members, self.tools.results)
