"""Answers of window aggregates that the driver holds: small tables, one per query and window.

Most of them are plain columns (keys, aggregates, the ends of the window) and are written as they
are. If a query computes with them, or has a HAVING, Spark does that, as for every other expression
of the language: one Spark job serves all queries of a refresh.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from penstock.arrow import arrow_type
from penstock.engine.aggregates.coverage import ROWS
from penstock.errors import PlanError
from penstock.model import INT, Aggregate, Branch, Column, Expression, Field, name_key
from penstock.plan import Member
from penstock.planning.check import MEMBER
from penstock.planning.outputs import distinct, merged
from penstock.spark.aggregates.spark_groupings import UNIT, Layout
from penstock.spark.compile.columns import all_of, compiled, ours
from penstock.spark.compile.expressions import data_type
from penstock.synopses import SessionRule

Shape: TypeAlias = tuple[tuple[tuple[str, Expression], ...], tuple[Expression, ...]]
"""What a query computes from an answer: its columns, and the conditions of its HAVING."""
MOST_ROWS = 500_000
"""The most rows that Spark computes for the driver; more rows go from Spark to their sinks."""


@dataclass(slots=True)
class DriverAnswers:
    """The answers of one refresh, as `penstock.spark.delivery.answers.Answers`."""

    spark: SparkSession
    branches: Mapping[Member, Branch]
    """The members in the order in which ``@member`` numbers them."""
    has_rejects: bool = field(default=False, init=False)
    jobs: int = field(default=0, init=False)
    """Spark jobs that have computed answers for the driver."""
    _numbers: dict[Member, int] = field(init=False)
    _members: list[int] = field(default_factory=list, init=False)
    """The member of each answer. Parallel lists, since there are very many answers."""
    _starts: list[int] = field(default_factory=list, init=False)
    _ends: list[int] = field(default_factory=list, init=False)
    _answers: list[pa.RecordBatch] = field(default_factory=list, init=False)
    """Queries with equal windows share one batch."""
    _computed: dict[Shape, pa.Table] | None = field(default=None, init=False)
    """What Spark has computed, by shape; of many rows one may be left, or none."""
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        """Nothing is answered yet."""
        self._numbers = {member: number for number, member in enumerate(self.branches)}

    def add(self, member: Member, start: int, end: int, answer: pa.RecordBatch) -> None:
        """Add an answer: its window in microseconds, and the columns ``key0``..., ``agg0``..."""
        self.add_all([self._numbers[member]], [start], end, [answer])

    def add_all(
        self, members: Sequence[int], starts: Sequence[int], end: int,
        answers: Sequence[pa.RecordBatch],
    ) -> None:
        """Add answers of windows with one end, each with the number of its member.

        One without rows, as of sessions when none is due, is left out: Spark reads a table batch by
        batch, and stops at the first that is empty.
        """
        held = [n for n, answer in enumerate(answers) if answer.num_rows]
        self._members += [members[n] for n in held]
        self._starts += [starts[n] for n in held]
        self._ends += [end] * len(held)
        self._answers += [answers[n] for n in held]

    def persisted(self) -> DriverAnswers:
        """The same object: the driver already has them."""
        return self

    def unpersist(self) -> None:
        """Nothing to do: they are freed with this object."""

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
        """Rows that each query gets; None if Spark would have to compute very many."""
        wanted = {self._numbers[member]: member.query for member in members}
        found: dict[int, int] = {}
        if all(is_plain(shape_of(self.branches[member])) for member in members):
            for number, answer in zip(self._members, self._answers, strict=True):
                found[number] = found.get(number, 0) + answer.num_rows
        else:
            table = self.table(members)
            if table is None:
                return None
            found |= enumerate(np.bincount(table[MEMBER].to_numpy()).tolist())
        return {wanted[number]: rows for number, rows in found.items() if number in wanted}

    def table(self, members: Sequence[Member]) -> pa.Table | None:
        """``@member``, then the members' columns by name; None for what is left to Spark."""
        parts = self._parts(members)
        if parts is None:
            return None
        fields = merged(distinct(self.branches[member] for member in members))
        tables = [_columns(shape, rows, fields) for shape, rows in parts]
        return pa.concat_tables(tables) if tables else nothing(fields)

    def project(self, members: Sequence[Member]) -> DataFrame:
        """The same, computed by Spark."""
        fields = merged(distinct(self.branches[member] for member in members))
        frames = [computed(self.spark.createDataFrame(rows), shape, fields)
                  for shape, rows in self._of(members)]
        whole = frames[0] if frames else self.spark.createDataFrame(nothing(fields))
        for frame in frames[1:]:
            whole = whole.unionAll(frame)
        return whole

    def _parts(self, members: Sequence[Member]) -> list[tuple[Shape, pa.Table]] | None:
        """The answers of some members by shape, with what Spark has computed from them."""
        shapes = dict.fromkeys(shape_of(self.branches[member]) for member in members)
        if all(map(is_plain, shapes)):
            return self._of(members)
        with self._lock:  # sinks may ask from several threads
            if self._computed is None:
                waiting = [(shape, rows) for shape, rows in self._of(self.branches)
                           if not is_plain(shape)]
                if sum(rows.num_rows for _, rows in waiting) > MOST_ROWS:
                    return None
                self.jobs += bool(waiting)
                self._computed = dict(self._compute(waiting)) if waiting else {}
        wanted = pa.array([self._numbers[member] for member in members], pa.int32())
        found = [(shape, self._computed[shape]) for shape in shapes if shape in self._computed]
        plain = self._of([m for m in members if is_plain(shape_of(self.branches[m]))])
        return plain + [(shape, rows.filter(pc.is_in(rows[MEMBER], wanted)))
                        for shape, rows in found]

    def _compute(
        self, waiting: Sequence[tuple[Shape, pa.Table]]
    ) -> Iterator[tuple[Shape, pa.Table]]:
        """What queries compute from their answers, in one Spark job for all."""
        fields = [[Field(name, expression.type) for name, expression in shape[0]]
                  for shape, _ in waiting]
        tables = [{MEMBER: INT, **{f"@{n}": f.type for n, f in enumerate(some)}} for some in fields]
        layout = Layout.of([table.values() for table in tables])
        frames = [layout.placed(_numbered(computed(
            self.spark.createDataFrame(rows), shape, some)), number, table)
            for number, ((shape, rows), some, table) in enumerate(
                zip(waiting, fields, tables, strict=True))]
        whole = reduce(DataFrame.unionAll, frames).toArrow()
        for number, (shape, _) in enumerate(waiting):
            mine = whole.filter(pc.equal(whole[UNIT], number))
            yield shape, pa.table({name: mine[place]
                                   for name, place in layout.places(tables[number]).items()})

    def _of(self, members: Iterable[Member]) -> list[tuple[Shape, pa.Table]]:
        """The answers of some members, by shape."""
        apart: dict[Shape, int] = {}
        shapes = {self._numbers[member]: shape_of(self.branches[member]) for member in members}
        place = {number: apart.setdefault(shape, len(apart)) for number, shape in shapes.items()}
        held: list[list[int]] = [[] for _ in apart]
        for one, number in enumerate(self._members):
            if number in place:
                held[place[number]].append(one)
        return [(shape, self._joined(some))
                for shape, some in zip(apart, held, strict=True) if some]

    def _joined(self, some: Sequence[int]) -> pa.Table:
        """Some answers in one table, with the number of the member and the window in each row."""
        answers = [self._answers[one] for one in some]
        sizes = [answer.num_rows for answer in answers]
        told = {
            MEMBER: pa.array(np.repeat(np.array(
                [self._members[one] for one in some], np.int32), sizes)),
            "window_start": _times([self._starts[one] for one in some], sizes),
            "window_end": _times([self._ends[one] for one in some], sizes),
        }
        rows = pa.Table.from_batches(answers)
        return pa.table({**told, **dict(zip(rows.column_names, rows.columns, strict=True))})


def _times(micros: Sequence[int], sizes: Sequence[int]) -> pa.Array:
    return pa.array(np.repeat(np.array(micros, np.int64), sizes)).cast(pa.timestamp("us", "UTC"))


def shape_of(branch: Branch) -> Shape:
    """What a window aggregate computes of its answers."""
    assert branch.grouping is not None
    select = tuple((output.name, output.expression) for output in branch.select)
    return select, branch.grouping.having


def asked_of(branch: Branch) -> tuple[Aggregate, ...]:
    """The aggregates of an answer; if a query asks for none, what identifies its groups."""
    assert branch.grouping is not None
    return branch.grouping.aggregates or (ROWS,)


def session_of(branch: Branch, pane: int) -> SessionRule | None:
    """What a session of a query is over panes of this length, if it asks for sessions."""
    window, grouping = branch.window, branch.grouping
    if window is None or grouping is None or not grouping.session:
        return None
    return SessionRule(window.gap, window.longest, window.gap // pane, grouping.session)


def kept_of(branch: Branch, pane: int) -> int:
    """How many first panes of the window only say which groups are known."""
    return 0 if branch.window is None else branch.window.kept // pane


def is_plain(shape: Shape) -> bool:
    """Whether the answers are the columns as they are."""
    select, having = shape
    return not having and all(isinstance(expression, Column) for _, expression in select)


def _columns(shape: Shape, rows: pa.Table, fields: Sequence[Field]) -> pa.Table:
    """``@member`` and these fields of answers of one shape; NULL if it lacks a field."""
    plain = is_plain(shape)
    at = {name_key(name): expression.name if plain and isinstance(expression, Column) else f"@{n}"
          for n, (name, expression) in enumerate(shape[0])}
    columns = {MEMBER: rows[MEMBER]}
    for wanted in fields:
        place, kind = at.get(name_key(wanted.name)), arrow_type(wanted.type)
        columns[wanted.name] = (pa.nulls(rows.num_rows, kind) if place is None
                                else rows[place].cast(kind, safe=False))
    return pa.table(columns)


def _numbered(frame: DataFrame) -> DataFrame:
    """The columns after the first, named by number: a name may occur twice."""
    return frame.toDF(MEMBER, *(f"@{n}" for n in range(len(frame.columns) - 1)))


def computed(rows: DataFrame, shape: Shape, fields: Sequence[Field]) -> DataFrame:
    """``@member`` and these fields of answers of one shape, only those that its HAVING keeps."""
    select, having = shape
    wanted = all_of(having)
    by_name = {name_key(name): expression for name, expression in select}
    columns = [_output(by_name.get(name_key(f.name)), f).alias(f.name) for f in fields]
    return (rows if wanted is None else rows.where(wanted)).select(ours(MEMBER), *columns)


def _output(expression: Expression | None, wanted: Field) -> SparkColumn:
    kind = data_type(wanted.type)
    return sf.lit(None).cast(kind) if expression is None else compiled(expression).cast(kind)


def nothing(fields: Sequence[Field]) -> pa.Table:
    """A table without answers."""
    named = [(MEMBER, pa.int32()), *((f.name, arrow_type(f.type)) for f in fields)]
    return pa.schema(named).empty_table()
