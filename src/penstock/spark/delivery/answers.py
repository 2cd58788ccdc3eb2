"""Answers: what a job hands to the sinks, wherever the rows are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.plan import Member


class Answers(Protocol):
    """The answers of some members, computed or not.

    Four classes are answers. `PathAnswers` are a Spark plan over blocks, and `CollectedAnswers` are
    the rows that one Spark job has brought from it into the driver. `DriverAnswers` are tables of
    window aggregates that the driver holds, and `ExecutorAnswers` are a Spark plan over panes. A
    sink asks for the cheapest form that it can use: `told` if workers hand it the answers, `rows`
    if it only counts, `table` if the driver may write, and `project` in every other case.

    Rows carry ``@member``: the number of their member among all members of the job.
    """

    @property
    def has_rejects(self) -> bool:
        """Whether a Python function may have rejected rows."""

    def persisted(self) -> Answers:
        """The same answers, computed once however often they are used, until `unpersist`."""

    def unpersist(self) -> None:
        """Release what `persisted` holds."""

    def told(self) -> pa.Table | None:
        """What its takers told, if workers hand the answers to the only sink of the job."""

    def rows(self, members: Sequence[Member]) -> dict[str, int] | None:
        """Rows that each query gets, if that is known without a Spark job."""

    def table(self, members: Sequence[Member]) -> pa.Table | None:
        """What `project` gives, if the driver has it."""

    def project(self, members: Sequence[Member]) -> DataFrame:
        """``@member``, then the members' columns by name; NULL if a member lacks a column."""

    def rejects(self) -> DataFrame | pa.Table:
        """``@member``, the ``row`` as JSON and the ``error`` of every rejected row."""

    def rejected(self) -> int:
        """How many rows were rejected, once a job has computed the answers."""

    def check(self) -> None:
        """Refuse the computed answers if rows of a block were not read."""

    def counts(self) -> dict[str, int]:
        """Rows out of each counted operator, once a job has computed the answers."""
