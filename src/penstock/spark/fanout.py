"""The fan-out on Spark: every row computes its keys, looks them up, and the shapes decide.

::

    block ─▶ explode(keys of the row) ─▶ broadcast join with the constants on one LONG ─▶ outputs
                                         (the conditions of the shape are part of the join)

The constants are rows of a table and not part of the plan, so Spark compiles a fan-out once for all
memberships of the same shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from penstock.model import Branch, Column, Expression, Field, Type, walk
from penstock.planning.check import MEMBER
from penstock.planning.fanout import CODE, SHAPE, Fanout, Lookup, fan_out
from penstock.planning.keys import TAG_BITS
from penstock.planning.outputs import distinct
from penstock.planning.plan import Shape
from penstock.planning.shapes import PARAMETER, substitute
from penstock.spark.names import all_of, compiled, ours

LARGEST_PART = 400
"""Nodes of the expressions evaluated by one join: the JVM does not compile longer methods."""
KEY = "@key"


@dataclass(frozen=True)
class Part:
    """Some shapes of a fan-out, few enough for one join."""

    shapes: tuple[int, ...]
    lookups: tuple[Lookup, ...]
    table: DataFrame
    """The constants of the members with these shapes."""


@dataclass(frozen=True)
class CompiledFanout:
    """A fan-out with its tables in the JVM, to be joined with any number of blocks."""

    fanout: Fanout
    outputs: tuple[Field, ...]
    """The columns that members deliver; the n-th is column `output_name` (n) of the answers."""
    parts: tuple[Part, ...]

    def answers(self, rows: DataFrame) -> DataFrame:
        """One row per row and member that wants it: ``@member`` and the outputs."""
        frames = [self._candidates(part, rows).select(*self._columns(part)) for part in self.parts]
        return reduce(DataFrame.unionAll, frames)

    def _candidates(self, part: Part, rows: DataFrame) -> DataFrame:
        codes = [_code(lookup) for lookup in part.lookups]
        key = codes[0] if len(codes) == 1 else sf.explode(sf.array(*codes))
        looked_up = ours(KEY) == ours(CODE)
        residual = self._residual(part)
        condition = looked_up if residual is None else looked_up & residual
        return rows.withColumn(KEY, key).join(sf.broadcast(part.table), condition, "inner")

    def _residual(self, part: Part) -> SparkColumn | None:
        """All conditions of the member's shape: what a look-up finds is only likely."""
        cases: dict[tuple[Expression, ...], list[int]] = {}
        for number in part.shapes:
            where = tuple(self._bound(number, e) for e in self.fanout.shapes[number].where)
            cases.setdefault(where, []).append(number)
        if list(cases) == [()]:
            return None
        return _chosen([(_all(where), having) for where, having in cases.items()], part)

    def _columns(self, part: Part) -> Iterator[SparkColumn]:
        yield ours(MEMBER)
        for n, field in enumerate(self.outputs):
            yield self._output(part, field).alias(output_name(n))

    def _output(self, part: Part, field: Field) -> SparkColumn:
        """The column of each shape that has it; shapes that compute it alike share a case."""
        cases: dict[Expression, list[int]] = {}
        for number in part.shapes:
            expression = _delivered(self.fanout.shapes[number], field)
            if expression is not None:
                cases.setdefault(self._bound(number, expression), []).append(number)
        columns = [(compiled(expression), having) for expression, having in cases.items()]
        return _chosen(columns, part) if columns else sf.lit(None).cast(str(field.type))

    def _bound(self, shape: int, expression: Expression) -> Expression:
        """The expression with its parameters bound to columns of the table."""
        slots = self.fanout.slots[shape]

        def bind(column: Column) -> Column:
            if column.source != PARAMETER:
                return column
            return Column(f"@{slots[int(column.name[1:])]}", column.type, PARAMETER)

        return substitute(expression, bind)


def compile_fanout(spark: SparkSession, branches: Sequence[Branch]) -> CompiledFanout:
    """Plan a fan-out of these branches and hand its constants to the JVM."""
    fanout = fan_out(branches)
    parts = tuple(_part(spark, fanout, shapes) for shapes in _split(fanout.shapes))
    return CompiledFanout(fanout, distinct(branches), parts)


def output_name(number: int) -> str:
    """Where the n-th output stands among the answers."""
    return f"@out{number}"


def _part(spark: SparkSession, fanout: Fanout, shapes: tuple[int, ...]) -> Part:
    table = fanout.table
    if len(shapes) < len(fanout.shapes):
        table = table.filter(pc.is_in(table[SHAPE], value_set=pa.array(shapes, pa.int32())))
    keys = {fanout.shapes[number].key for number in shapes}
    lookups = tuple(lookup for lookup in fanout.lookups if lookup.key in keys)
    return Part(shapes, lookups, spark.createDataFrame(table))


def _split(shapes: Sequence[Shape]) -> Iterator[tuple[int, ...]]:
    """Consecutive shapes, as many at a time as one join can bear."""
    part: list[int] = []
    size = 0
    for number, shape in enumerate(shapes):
        weight = sum(1 for e in (*shape.where, *(e for _, e in shape.select)) for _ in walk(e))
        if part and size + weight > LARGEST_PART:
            yield tuple(part)
            part, size = [], 0
        part.append(number)
        size += weight
    yield tuple(part)


def _delivered(shape: Shape, field: Field) -> Expression | None:
    for name, expression in shape.select:
        if name.casefold() == field.name.casefold() and expression.type == field.type:
            return expression
    return None


def _chosen(cases: Sequence[tuple[SparkColumn, Sequence[int]]], part: Part) -> SparkColumn:
    """The case of the member's shape, NULL for the shapes that have none."""
    (first, having), *others = cases
    if not others and len(having) == len(part.shapes):
        return first
    chosen = sf.when(_has_shape(having), first)
    for column, shapes in others:
        chosen = chosen.when(_has_shape(shapes), column)
    return chosen


def _has_shape(shapes: Sequence[int]) -> SparkColumn:
    return ours(SHAPE) == shapes[0] if len(shapes) == 1 else ours(SHAPE).isin(list(shapes))


def _all(where: Sequence[Expression]) -> SparkColumn:
    together = all_of(where)
    return sf.lit(True) if together is None else together


def _code(lookup: Lookup) -> SparkColumn:
    """A key of the row, computed as `penstock.planning.keys` computes the codes of constants."""
    return sf.shiftleft(_number(lookup).cast("bigint"), TAG_BITS).bitwiseOR(sf.lit(lookup.tag))


def _number(lookup: Lookup) -> SparkColumn:
    expression = lookup.key.expression
    if expression is None:
        return sf.lit(0)
    value = _comparable(compiled(expression), expression.type)
    if lookup.grid is None:
        return value
    scaled = value.cast("double") * sf.lit(1 / lookup.grid.width)
    first, last = float(lookup.grid.first), float(lookup.grid.last)
    # not least() and greatest(): they would turn NULL into a bin. NaN is above every number.
    clamped = sf.when(scaled < first, first).when(scaled > last, last).otherwise(scaled)
    return sf.floor(clamped)


def _comparable(value: SparkColumn, type_: Type) -> SparkColumn:
    match type_.name:
        case "STRING":
            return sf.crc32(value.cast("binary"))
        case "BINARY":
            return sf.crc32(value)
        case "DATE":
            return sf.unix_date(value)
        case "TIMESTAMP":
            return sf.unix_micros(value)
        case "BOOLEAN":
            return value.cast("int")
    return value
