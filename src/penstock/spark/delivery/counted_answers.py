"""Counted answers: their sinks only count them, so nobody needs the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.errors import PlanError
from penstock.plan import Member
from penstock.spark.jobs.rows_read import ProbeReading


@dataclass(frozen=True, slots=True)
class CountedAnswers:
    """The pairs of a probe, as `penstock.spark.delivery.answers.Answers`."""

    counted: Mapping[Member, int]
    reading: ProbeReading
    has_rejects: bool = False

    def persisted(self) -> CountedAnswers:
        """The same object."""
        return self

    def unpersist(self) -> None:
        """Nothing to do."""

    def told(self) -> None:
        """No worker has handed them to a sink."""

    def rows(self, members: Sequence[Member]) -> dict[str, int]:
        """Rows that each query gets."""
        counts: dict[str, int] = {}
        for member in members:
            if self.counted[member]:
                counts[member.query] = counts.get(member.query, 0) + self.counted[member]
        return counts

    def table(self, members: Sequence[Member]) -> pa.Table | None:
        """There are no rows in the driver."""
        return None

    def project(self, members: Sequence[Member]) -> DataFrame:
        """Refused: the rows were not made."""
        raise PlanError("answers that were only counted have no rows")

    def rejects(self) -> pa.Table:
        """None: no Python function saw them."""
        return pa.table({"row": [], "error": []})

    def rejected(self) -> int:
        """None."""
        return 0

    def check(self) -> None:
        """Refuse them if rows of a block were not read."""
        self.reading.check()

    def counts(self) -> dict[str, int]:
        """No operators were counted."""
        return {}
