"""stream: answers are the rows of a derived stream, which takes them from its feed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.plan import Member, Plan
from penstock.spark.delivery.sinks.staged_files import StagedFiles
from penstock.spark.delivery.write_jobs import WriteJob, query_by_query


class StreamSink(StagedFiles):
    """Parquet files in the feed of the stream; `penstock.spark.ingest.feed` takes them away."""

    def split(self, plan: Plan, members: Sequence[Member]) -> Iterable[WriteJob]:
        """A job and a folder for each stream."""
        for job in query_by_query(plan, members):
            folder = self.tools.staging.own_folder("feeds", job.members[0].query)
            yield WriteJob(job.kind, job.members, "parquet", (folder,), (0,) * len(job.members))
