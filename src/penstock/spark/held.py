"""Answers of window aggregates that the driver holds: small tables, one per query and window.

Most of them are plain columns (keys, aggregates, the ends of the window) and are written as they
are. Where a query computes with them, or has a HAVING, Spark does that, as it does for every other
expression of the language.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from penstock.arrow import arrow_type
from penstock.model import BIGINT, Aggregate, Branch, Column, Expression, Field
from penstock.plan import Member
from penstock.planning.check import MEMBER
from penstock.planning.outputs import distinct, merged
from penstock.spark.expressions import data_type
from penstock.spark.names import all_of, compiled, ours

ROWS = Aggregate("COUNT", (), BIGINT)
"""How many rows a group of a window has: what tells that it has any."""
Shape: TypeAlias = tuple[tuple[tuple[str, Expression], ...], tuple[Expression, ...]]
"""What a query computes of an answer: its columns, and the conditions of its HAVING."""


@dataclass(slots=True)
class Held:
    """The answers of one refresh, with the interface of `penstock.spark.compile.Answers`."""

    spark: SparkSession
    branches: Mapping[Member, Branch]
    """The members in the order in which ``@member`` numbers them."""
    has_rejects: bool = field(default=False, init=False)
    _numbers: dict[Member, int] = field(init=False)
    _tables: dict[Shape, list[pa.Table]] = field(default_factory=dict)
    _members: dict[Shape, list[Member]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Nothing is answered yet."""
        self._numbers = {member: number for number, member in enumerate(self.branches)}

    def add(self, member: Member, start: int, end: int, answer: pa.Table) -> None:
        """An answer: its window in microseconds, and the columns ``key0``..., ``agg0``..."""
        shape = shape_of(self.branches[member])
        rows, number = answer.num_rows, self._numbers[member]
        bounds = {"window_start": start, "window_end": end}
        columns = {
            MEMBER: pa.repeat(pa.scalar(number, pa.int32()), rows),
            **{name: pa.repeat(pa.scalar(at, pa.timestamp("us", "UTC")), rows)
               for name, at in bounds.items()},
            **dict(zip(answer.column_names, answer.columns, strict=True)),
        }
        self._tables.setdefault(shape, []).append(pa.table(columns))
        self._members.setdefault(shape, []).append(member)

    def kept(self) -> Held:
        """The same: the driver has them already."""
        return self

    def let_go(self) -> None:
        """They go when this object does."""

    def counts(self) -> dict[str, int]:
        """No operator is counted."""
        return {}

    def table(self, members: Sequence[Member]) -> pa.Table | None:
        """``@member``, then the members' columns by name; None where Spark has to compute."""
        if not all(is_plain(self.branches[member]) for member in members):
            return None
        fields = merged(distinct(self.branches[member] for member in members))
        parts = [_plain_columns(shape, rows, fields) for shape, rows in self._of(members)]
        return pa.concat_tables(parts) if parts else nothing(fields)

    def project(self, members: Sequence[Member]) -> DataFrame:
        """The same, computed by Spark."""
        fields = merged(distinct(self.branches[member] for member in members))
        frames = [computed(self.spark.createDataFrame(rows), shape, fields)
                  for shape, rows in self._of(members)]
        whole = frames[0] if frames else self.spark.createDataFrame(nothing(fields))
        for frame in frames[1:]:
            whole = whole.unionAll(frame)
        return whole

    def _of(self, members: Iterable[Member]) -> list[tuple[Shape, pa.Table]]:
        """The answers of some members, by shape."""
        wanted, found = set(members), []
        for shape, tables in self._tables.items():
            riders = self._members[shape]
            rows = [table for member, table in zip(riders, tables, strict=True) if member in wanted]
            if rows:
                found.append((shape, pa.concat_tables(rows)))
        return found


def shape_of(branch: Branch) -> Shape:
    """What a window aggregate computes of its answers."""
    assert branch.grouping is not None
    select = tuple((output.name, output.expression) for output in branch.select)
    return select, branch.grouping.having


def asked_of(branch: Branch) -> tuple[Aggregate, ...]:
    """The aggregates of an answer; where a query asks for none, what tells its groups."""
    assert branch.grouping is not None
    return branch.grouping.aggregates or (ROWS,)


def is_plain(branch: Branch) -> bool:
    """Whether the answers are columns as they are."""
    select, having = shape_of(branch)
    return not having and all(isinstance(expression, Column) for _, expression in select)


def _plain_columns(shape: Shape, rows: pa.Table, fields: Sequence[Field]) -> pa.Table:
    by_name = {name.casefold(): expression for name, expression in shape[0]}
    columns = {MEMBER: rows[MEMBER]}
    for wanted in fields:
        column, kind = by_name.get(wanted.name.casefold()), arrow_type(wanted.type)
        columns[wanted.name] = (rows[column.name].cast(kind) if isinstance(column, Column)
                                else pa.nulls(rows.num_rows, kind))
    return pa.table(columns)


def computed(rows: DataFrame, shape: Shape, fields: Sequence[Field]) -> DataFrame:
    """``@member`` and these fields of answers of one shape, those alone that its HAVING keeps."""
    select, having = shape
    wanted = all_of(having)
    by_name = {name.casefold(): expression for name, expression in select}
    columns = [_output(by_name.get(f.name.casefold()), f).alias(f.name) for f in fields]
    return (rows if wanted is None else rows.where(wanted)).select(ours(MEMBER), *columns)


def _output(expression: Expression | None, wanted: Field) -> SparkColumn:
    kind = data_type(wanted.type)
    return sf.lit(None).cast(kind) if expression is None else compiled(expression).cast(kind)


def nothing(fields: Sequence[Field]) -> pa.Table:
    """No answers."""
    named = [(MEMBER, pa.int32()), *((f.name, arrow_type(f.type)) for f in fields)]
    return pa.schema(named).empty_table()
