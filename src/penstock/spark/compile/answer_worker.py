"""Answers that workers hand to their sink themselves, in the task that computed them.

This module is shipped to the workers by value and imports nothing else of Penstock.

To move an answer from a worker to Spark and back takes longer than most predicates do. So a sink
may send a *taker* along: an object that takes the answers of a task where they are, and tells the
driver at the end what became of them. Spark gets what the takers tell, and the rejects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class Taker(Protocol):
    """Takes the answers of a task."""

    def take(self, answers: pa.RecordBatch) -> None:
        """Take some answers: the number of each one's member, then the columns of the sink."""

    def told(self) -> Iterator[pa.RecordBatch]:
        """There are no more answers: what the driver is to know."""


@dataclass(frozen=True, slots=True)
class Pick:
    """A column of the sink, and where it comes from."""

    name: str
    type: pa.DataType
    sources: tuple[tuple[str, tuple[int, ...]], ...]
    """Columns, each with the members that have it there; other members have no such column."""

    def of(self, answers: pa.RecordBatch, members: pa.Array) -> pa.Array:
        """The values of some answers."""
        found = pa.nulls(len(answers), self.type)
        for name, mine in self.sources:
            column = answers.column(name)
            if column.type != self.type:
                column = column.cast(self.type)
            found = pc.if_else(pc.is_in(members, pa.array(mine, members.type)), column, found)
        return found


@dataclass(frozen=True, slots=True)
class Handing:
    """How the answers of a trip come to a taker, and what comes back."""

    member: str
    error: str
    """The column that is null for answers and not for rejects."""
    picks: tuple[Pick, ...]
    everybody: int
    """How many members there are."""
    back: pa.Schema
    """What comes back: the columns of the trip for rejects, and those that takers fill."""


def hand_over(
    trip: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], handing: Handing,
    begin: Callable[[], Taker], batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The rejects of a trip, and what a taker tells of its answers."""
    taker = begin()
    for batch in trip(batches):
        answers = batch
        errors = batch.column(handing.error)
        if errors.null_count < len(batch):
            yield _widened(batch.filter(pc.is_valid(errors)), handing.back)
            answers = batch.filter(pc.is_null(errors))
        if len(answers):
            taker.take(_picked(answers, handing))
    for told in taker.told():
        yield _widened(told, handing.back)


def _picked(answers: pa.RecordBatch, handing: Handing) -> pa.RecordBatch:
    members = answers.column(handing.member)
    columns = {
        pick.name: answers.column(pick.sources[0][0])
        if pick.sources and len(pick.sources[0][1]) == handing.everybody
        and answers.column(pick.sources[0][0]).type == pick.type else pick.of(answers, members)
        for pick in handing.picks}
    return pa.RecordBatch.from_arrays(
        [members, *columns.values()], names=[handing.member, *columns])


def _widened(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with all columns of a schema, null where they have none."""
    known = set(rows.schema.names)
    columns = [rows.column(field.name) if field.name in known
               else pa.nulls(len(rows), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(
        [column if column.type == field.type else column.cast(field.type)
         for column, field in zip(columns, schema, strict=True)], schema=schema)


class AnswerCounter:
    """The simplest taker: it counts the answers of each member and keeps none."""

    def __init__(self, members: int) -> None:
        """Begin at 0."""
        self._rows = np.zeros(members, np.int64)

    def take(self, answers: pa.RecordBatch) -> None:
        """Count some answers."""
        self._rows += np.bincount(answers.column(0).to_numpy(), minlength=len(self._rows))

    def told(self) -> Iterator[pa.RecordBatch]:
        """The counts, as 64-bit numbers."""
        yield pa.RecordBatch.from_pydict({"rows": pa.array([self._rows.tobytes()], pa.binary())})
