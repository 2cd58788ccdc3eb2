"""The fan-out on Spark: every row computes its keys, looks them up, and the shapes decide.

::

    block ─▶ explode(keys of the row) ─▶ broadcast join with the constants on one LONG ─▶ outputs
                                         (the conditions of the shape are part of the join)

The constants are rows of a table and not part of the code, so Spark compiles a fan-out once for all
memberships of the same shapes. A table of a few rows is not looked up: every row of the block meets
all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from penstock.model import (
    INT,
    PARAMETER,
    Branch,
    Column,
    Expression,
    Field,
    Literal,
    Type,
    Value,
    name_key,
    walk,
)
from penstock.plan import Shape
from penstock.planning.check import MEMBER
from penstock.planning.fanout import CODE, SHAPE, Fanout, FanoutEntry, TaggedKey, fan_out
from penstock.planning.keys import TAG_BITS
from penstock.planning.outputs import distinct
from penstock.planning.shapes import substitute
from penstock.spark.compile.columns import all_of, compiled, ours
from penstock.spark.compile.expressions import data_type, literal

LARGEST_PART = 4_000
"""The most nodes of the expressions that one join evaluates; each further join is another pass over
the block.

Measured: 157 shapes take 3.4 CPU seconds for 5 million rows in one join and 5.1 in two, although
Spark then compiles the conditions in pieces; 1000 shapes are planned sooner in seven joins than in
one.
"""
FEW = 8
"""The most rows of constants that every row of the block meets. A look-up takes a Spark job of its
own, for the broadcast: 0.01 s, and while another job has all cores, one more wait until a task of
it ends."""
KEY = "@key"


class CompiledFanout:
    """A fan-out with its tables in the JVM, to be joined with any number of blocks."""

    def __init__(self, spark: SparkSession, branches: Sequence[Branch]) -> None:
        """Plan the fan-out of these branches and hand its constants to the JVM."""
        fanout = fan_out(branches)
        self.outputs: tuple[Field, ...] = distinct(branches)
        """The columns that members deliver; the n-th is column `output_name` (n) of the answers."""
        self._parts = [_ShapeBatch(spark, fanout, s, self.outputs) for s in _split(fanout.shapes)]

    def answers(self, rows: DataFrame) -> DataFrame:
        """One row per row and member that wants it: ``@member`` and the outputs."""
        return reduce(DataFrame.unionAll, [part.answers(rows) for part in self._parts])


class _ShapeBatch:
    """Some shapes of a fan-out, few enough for one join.

    The expressions are built once: each node of them is a call into the JVM.
    """

    def __init__(
        self,
        spark: SparkSession,
        fanout: Fanout,
        shapes: tuple[int, ...],
        outputs: Sequence[Field],
    ) -> None:
        self._fanout, self._shapes = fanout, shapes
        self._wanted = self._condition()
        self._columns = [
            ours(MEMBER),
            *(self._output(field).alias(output_name(n)) for n, field in enumerate(outputs)),
        ]
        few = [entry for entry in fanout.entries if entry.shape in shapes]
        self._met = _met(fanout, few) if 0 < len(few) <= FEW else None
        if self._met is not None:
            return
        keys = {fanout.shapes[number].key for number in shapes}
        codes = [_code(key) for key in fanout.keys if key.key in keys]
        self._key = codes[0] if len(codes) == 1 else sf.explode(sf.array(*codes))
        self._table = sf.broadcast(spark.createDataFrame(_rows_of(fanout, shapes)))
        self._found = ours(KEY) == ours(CODE)  # these are candidates only
        if self._wanted is not None:
            self._found &= self._wanted

    def answers(self, rows: DataFrame) -> DataFrame:
        if self._met is None:
            keyed = rows.withColumn(KEY, self._key)
            return keyed.join(self._table, self._found, "inner").select(*self._columns)
        paired = rows.select("*", self._met)
        wanted = paired if self._wanted is None else paired.where(self._wanted)
        return wanted.select(*self._columns)

    def _condition(self) -> SparkColumn | None:
        """All conditions of the member's shape, which decide exactly; None if there are none."""
        cases: dict[tuple[Expression, ...], list[int]] = {}
        for number in self._shapes:
            where = tuple(self._bound(number, e) for e in self._fanout.shapes[number].where)
            cases.setdefault(where, []).append(number)
        if list(cases) == [()]:
            return None
        return self._chosen([(_all(where), having) for where, having in cases.items()])

    def _output(self, field: Field) -> SparkColumn:
        """The column of each shape that has it; shapes that compute it alike share a case."""
        cases: dict[Expression, list[int]] = {}
        for number in self._shapes:
            expression = _delivered(self._fanout.shapes[number], field)
            if expression is not None:
                cases.setdefault(self._bound(number, expression), []).append(number)
        if not cases:
            return sf.lit(None).cast(data_type(field.type))
        return self._chosen([(compiled(e), having) for e, having in cases.items()])

    def _chosen(self, cases: Sequence[tuple[SparkColumn, Sequence[int]]]) -> SparkColumn:
        """The case of the member's shape, NULL for the shapes that have none."""
        (first, having), *others = cases
        if not others and len(having) == len(self._shapes):
            return first
        chosen = sf.when(_has_shape(having), first)
        for column, shapes in others:
            chosen = chosen.when(_has_shape(shapes), column)
        return chosen

    def _bound(self, shape: int, expression: Expression) -> Expression:
        """The expression with its parameters bound to columns of the table."""
        slots = self._fanout.slots[shape]

        def bind(column: Column) -> Column:
            if column.source != PARAMETER:
                return column
            return Column(f"@{slots[int(column.name[1:])]}", column.type, PARAMETER)

        return substitute(expression, bind)


def output_name(number: int) -> str:
    """The column of the n-th output among the answers."""
    return f"@out{number}"


def _met(fanout: Fanout, entries: Sequence[FanoutEntry]) -> SparkColumn:
    """A generator of these rows, without codes. Spark's code refers to them as to one constant."""
    return sf.inline(sf.array(*(sf.struct(*_cells(fanout, entry)) for entry in entries)))


def _cells(fanout: Fanout, entry: FanoutEntry) -> Iterator[SparkColumn]:
    yield literal(Literal(entry.member, INT)).alias(MEMBER)
    yield literal(Literal(entry.shape, INT)).alias(SHAPE)
    values: list[Value] = [None] * len(fanout.constants)
    for slot, value in zip(fanout.slots[entry.shape], entry.constants, strict=True):
        values[slot] = value
    for n, (value, type_) in enumerate(zip(values, fanout.constants, strict=True)):
        yield literal(Literal(value, type_)).alias(f"@{n}")


def _rows_of(fanout: Fanout, shapes: Sequence[int]) -> pa.Table:
    """The constants of the members with these shapes.

    A column without NULL says so. Otherwise Spark would look for NULL codes row by row whenever it
    plans a job: with a thousand queries 0.04 s, which is as much as the rest of the planning.
    """
    rows = fanout.table
    if len(shapes) < len(fanout.shapes):
        rows = rows.filter(pc.is_in(rows[SHAPE], value_set=pa.array(shapes, pa.int32())))
    return rows.cast(pa.schema([
        one.with_nullable(rows[one.name].null_count > 0) for one in rows.schema]))


def _split(shapes: Sequence[Shape]) -> Iterator[tuple[int, ...]]:
    """Split shapes into consecutive runs, each as many as one join can handle."""
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
        if name_key(name) == name_key(field.name) and expression.type == field.type:
            return expression
    return None


def _has_shape(shapes: Sequence[int]) -> SparkColumn:
    return ours(SHAPE) == shapes[0] if len(shapes) == 1 else ours(SHAPE).isin(list(shapes))


def _all(where: Sequence[Expression]) -> SparkColumn:
    together = all_of(where)
    return sf.lit(True) if together is None else together


def _code(lookup: TaggedKey) -> SparkColumn:
    """A key of the row, computed as `penstock.planning.keys` computes the codes of constants."""
    return sf.shiftleft(_number(lookup).cast("bigint"), TAG_BITS).bitwiseOR(sf.lit(lookup.tag))


def _number(lookup: TaggedKey) -> SparkColumn:
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
