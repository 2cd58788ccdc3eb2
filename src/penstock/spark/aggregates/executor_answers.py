"""Answers of window aggregates that the executors compute from their panes.

Only counts, and the rows for console and callback sinks, pass through the driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.storagelevel import StorageLevel

from penstock.errors import PlanError
from penstock.model import ANSWER, Branch, Column, Expression
from penstock.plan import Member
from penstock.planning.check import MEMBER
from penstock.planning.outputs import distinct, merged
from penstock.planning.shapes import substitute
from penstock.spark.aggregates.driver_answers import Shape, computed, shape_of
from penstock.spark.compile.columns import ours


@dataclass(frozen=True)
class ExecutorAnswers:
    """The answers of one refresh, as `penstock.spark.delivery.answers.Answers`."""

    frame: DataFrame
    branches: Mapping[Member, Branch]
    """The members in the order in which ``@member`` numbers them."""
    _columns: Mapping[Member, Sequence[int]]
    """Where the frame holds the aggregates of each member."""
    has_rejects: bool = False
    jobs: int = 0
    """Spark jobs that have computed answers for the driver: none does."""

    def persisted(self) -> ExecutorAnswers:
        """The same answers, computed once however often they are used, until `unpersist`."""
        return replace(self, frame=self.frame.persist(StorageLevel.MEMORY_AND_DISK))

    def unpersist(self) -> None:
        """Release what `persisted` holds."""
        self.frame.unpersist()

    def rejects(self) -> DataFrame:
        """No row of a synopsis is rejected."""
        raise PlanError("answers from a synopsis have no rejects")

    def rejected(self) -> int:
        """No row of a synopsis is rejected."""
        return 0

    def check(self) -> None:
        """Nothing to check: a synopsis is read, not a block."""

    def counts(self) -> dict[str, int]:
        """No operator is counted."""
        return {}

    def told(self) -> None:
        """No worker has handed them to a sink."""

    def rows(self, members: Sequence[Member]) -> dict[str, int] | None:
        """None: only Spark can say."""
        return None

    def table(self, members: Sequence[Member]) -> pa.Table | None:
        """None: the driver does not have them."""
        return None

    def project(self, members: Sequence[Member]) -> DataFrame:
        """``@member``, then the members' columns by name."""
        fields = merged(distinct(self.branches[member] for member in members))
        numbers = {member: number for number, member in enumerate(self.branches)}
        shapes: dict[Shape, list[int]] = {}
        for member in members:
            shapes.setdefault(self._shape(member), []).append(numbers[member])
        parts = [computed(self.frame.where(ours(MEMBER).isin(riders)), shape, fields)
                 for shape, riders in shapes.items()]
        return reduce(DataFrame.unionAll, parts)

    def _shape(self, member: Member) -> Shape:
        """What a member computes, over the columns of the frame."""
        select, having = shape_of(self.branches[member])

        def found(column: Column) -> Expression:
            if column.source == ANSWER and column.name.startswith("agg"):
                at = self._columns[member][int(column.name[3:])]
                return replace(column, name=f"agg{at}")
            return column

        return (tuple((name, substitute(e, found)) for name, e in select),
                tuple(substitute(e, found) for e in having))
