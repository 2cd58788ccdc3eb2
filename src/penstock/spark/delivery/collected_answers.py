"""Few answers: one Spark job has brought them to the driver, which writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from penstock.arrow import arrow_type
from penstock.model import Field, Type, name_key
from penstock.plan import Member
from penstock.planning.check import MEMBER
from penstock.planning.outputs import distinct, merged
from penstock.spark.compile.columns import ours
from penstock.spark.compile.compiler import ROW, PathAnswers
from penstock.spark.compile.fanout import output_name
from penstock.spark.compile.python_stage import ERROR
from penstock.spark.delivery.driver_files import widened


@dataclass(frozen=True, slots=True)
class _CollectedRows:
    """The rows that a job has brought."""

    answers: pa.Table
    """In the order in which Spark computed them."""
    by_member: pa.Table
    """The same, sorted by their members."""
    starts: np.ndarray
    """Where the rows of each member begin in it; the last entry is the number of rows."""
    rejects: pa.Table


class CollectedAnswers:
    """The answers of a job, as `penstock.spark.delivery.answers.Answers`.

    They are computed on first use. Call `persisted` before several threads use them.
    """

    def __init__(self, answers: PathAnswers) -> None:
        """Begin with nothing computed."""
        self._path = answers
        self._numbers = {member: number for number, member in enumerate(answers.branches)}
        self._places = {
            _identity(field): output_name(number)
            for number, field in enumerate(distinct(answers.branches.values()))}
        self._rows: _CollectedRows | None = None

    @property
    def has_rejects(self) -> bool:
        """Whether a Python function may have rejected rows."""
        return self._path.has_rejects

    def persisted(self) -> CollectedAnswers:
        """The same object: the rows in the driver are computed once."""
        self._collected()
        return self

    def unpersist(self) -> None:
        """Nothing to do: they are freed with this object."""

    def told(self) -> None:
        """No worker has handed them to a sink."""

    def rows(self, members: Sequence[Member]) -> dict[str, int] | None:
        """Rows that each query gets."""
        counts: dict[str, int] = {}
        for member, rows in zip(members, self._sizes(members), strict=True):
            if rows:
                counts[member.query] = counts.get(member.query, 0) + rows
        return counts

    def table(self, members: Sequence[Member]) -> pa.Table | None:
        """What `project` gives; None if only Spark can convert one type into another."""
        fields = distinct(self._path.branches[member] for member in members)
        rows, found = self._rows_of(members), dict[str, list[pa.ChunkedArray]]()
        wanted = merged(fields)
        kinds = {name_key(field.name): arrow_type(field.type) for field in wanted}
        for field in fields:
            name = name_key(field.name)
            column = widened(rows[self._places[_identity(field)]], kinds[name])
            if column is None:
                return None
            found.setdefault(name, []).append(column)
        # A column may come in several types; at most one of them is set in a row.
        columns = ((field.name, found[name_key(field.name)]) for field in wanted)
        return pa.table({MEMBER: rows[MEMBER]} | {
            name: some[0] if len(some) == 1 else pc.coalesce(*some) for name, some in columns})

    def project(self, members: Sequence[Member]) -> DataFrame:
        """The same as a Spark frame, made of the rows in the driver."""
        rows = self._rows_of(members)
        # PySpark cannot take a slice of nested columns; taking all of its rows makes a copy.
        whole = rows.take(pa.array(range(rows.num_rows), pa.int64()))
        frame = self._path.frame.sparkSession.createDataFrame(whole.combine_chunks())
        return replace(self._path, frame=frame, row=None, columns=lambda field: ours(
            self._places[_identity(field)])).project(members)

    def rejects(self) -> pa.Table:
        """``@member``, the ``row`` as JSON and the ``error`` of every rejected row."""
        return self._collected().rejects

    def rejected(self) -> int:
        """How many rows were rejected."""
        return int(self._collected().rejects.num_rows)

    def check(self) -> None:
        """Refuse them if rows of a block were not read."""
        self._path.check()

    def counts(self) -> dict[str, int]:
        """Rows out of each counted operator."""
        return self._path.counts()

    # --- the rows ----------------------------------------------------------------------------

    def _collected(self) -> _CollectedRows:
        if self._rows is None:
            self._rows = self._sorted(self._path.collect().combine_chunks())
        return self._rows

    def _sorted(self, rows: pa.Table) -> _CollectedRows:
        rejects = pa.table({MEMBER: [], "row": [], "error": []})
        if self.has_rejects:
            is_reject = pc.is_valid(rows[ERROR])
            found = rows.filter(is_reject)
            rejects = pa.table({MEMBER: found[MEMBER], "row": found[ROW], "error": found[ERROR]})
            rows = rows.filter(pc.invert(is_reject)).drop_columns([ERROR, ROW])
        members = rows[MEMBER].to_numpy()
        sizes = np.bincount(members, minlength=len(self._numbers))
        order = np.argsort(members, kind="stable")
        is_sorted = len(sizes) == 1
        return _CollectedRows(rows, rows if is_sorted else rows.take(pa.array(order)),
                     np.concatenate([[0], np.cumsum(sizes)]), rejects)

    def _sizes(self, members: Sequence[Member]) -> list[int]:
        starts = self._collected().starts
        return [int(starts[number + 1] - starts[number])
                for number in (self._numbers[member] for member in members)]

    def _rows_of(self, members: Sequence[Member]) -> pa.Table:
        """The rows of some members: of a single one as they came, otherwise member by member."""
        rows = self._collected()
        if len(members) == len(self._numbers):
            return rows.answers
        numbers = [self._numbers[member] for member in members]
        return pa.concat_tables(
            rows.by_member.slice(start, size) for start, size in
            zip(rows.starts[numbers], self._sizes(members), strict=True))


def _identity(field: Field) -> tuple[str, Type]:
    return name_key(field.name), field.type
