"""A refresh on the executors, for groups with too many keys for the driver.

The pane tables of a group stay persisted frames. One Spark job answers all windows that are due: a
small table of windows is joined with the panes, cells are merged per window, and the answers are
computed from them in Python workers by the same code that the driver runs. Nothing passes through
the driver. The workers need Penstock installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from penstock.arrow import arrow_schema
from penstock.model import BIGINT, BOOLEAN, INT, Aggregate, Field, Type
from penstock.spark.aggregates.cell_measures import merged
from penstock.spark.aggregates.pane_groupings import CELL, PANE
from penstock.spark.aggregates.pane_job import PaneJob
from penstock.spark.aggregates.spark_groupings import UNIT, Layout
from penstock.spark.compile.columns import ours
from penstock.spark.compile.expressions import schema
from penstock.synopses import Family, Question, Synopsis, families, gathered

QUESTION = "question"
FIRST, END, BY_PANE = "@first", "@end", "@by_pane"


@dataclass(frozen=True, slots=True)
class WindowDue:
    """A question about one window, which ends before the pane ``end``."""

    end: int
    question: Question


def refreshed(
    job: PaneJob, group: int, frames: DataFrame, due: Sequence[WindowDue], tasks: int | None = None
) -> DataFrame:
    """The answers of a group to the windows that are due, from the frames of its pane jobs.

    Columns: ``question``, the number of the window in ``due``; ``key0``, ...; ``agg0``, ... for
    the aggregates in the order of `aggregates`, NULL where a question does not ask for one. The
    keys are split into ``tasks`` parts. A worker holds the cells of one part and one window at a
    time.
    """
    wanted = aggregates(due)
    tables = job.read(frames, group)
    asked = {family.name: family for family in gathered(wanted)}
    needed = {
        asked[family.name]: _narrowed(table, family, asked[family.name])
        for family, table in tables.items() if family.name in asked
    }
    keys = tuple(key.type for key in job.groups[group].keys)
    form = _Form(keys, tuple(needed), tuple(wanted), tuple(due))
    layout = Layout.of([form.columns(family).values() for family in needed])
    parts = [
        layout.placed(_merged(table, family, form), number, form.columns(family))
        for number, (family, table) in enumerate(needed.items())
    ]
    together = reduce(DataFrame.unionAll, parts)
    at = layout.places(form.columns(form.families[0]))
    by = [ours(at[name]) for name in (QUESTION, *form.keys)]
    dealt = together.repartition(*by) if tasks is None else together.repartition(tasks, *by)
    alike = dealt.sortWithinPartitions(ours(at[QUESTION]))
    return alike.mapInArrow(partial(_finish, form, layout), schema(form.answers))


def _narrowed(table: DataFrame, family: Family, asked: Family) -> DataFrame:
    """A family's pane table with only the measures that are asked for."""
    kept = [ours(name) for name in table.columns if not name.startswith("m")]
    at = [f"m{family.measures.index(measure)}" for measure in asked.measures]
    return table.select(*kept, *(ours(name).alias(f"m{n}") for n, name in enumerate(at)))


def aggregates(due: Iterable[WindowDue]) -> list[Aggregate]:
    """The aggregates that are asked for, each once."""
    return list(dict.fromkeys(a for one in due for a in one.question.aggregates))


@dataclass(frozen=True)
class _Form:
    """What a worker needs to compute answers: key types, families, aggregates and windows."""

    types: tuple[Type, ...]
    families: tuple[Family, ...]
    aggregates: tuple[Aggregate, ...]
    due: tuple[WindowDue, ...]

    @property
    def keys(self) -> list[str]:
        return [f"k{n}" for n in range(len(self.types))]

    def columns(self, family: Family) -> dict[str, Type]:
        """The columns of a family's merged cells."""
        cell = {} if family.cell is None else {CELL: family.cell}
        measures = {f"m{n}": measure.stored for n, measure in enumerate(family.measures)}
        keys = dict(zip(self.keys, self.types, strict=True))
        return {QUESTION: INT, PANE: BIGINT, **keys, **cell, **measures}

    @property
    def answers(self) -> list[Field]:
        keys = [Field(f"key{n}", type_) for n, type_ in enumerate(self.types)]
        values = [Field(f"agg{n}", a.type) for n, a in enumerate(self.aggregates)]
        return [Field(QUESTION, INT), *keys, *values]


def _merged(table: DataFrame, family: Family, form: _Form) -> DataFrame:
    """The cells of a family, merged for each window that needs them, or for each of its panes."""
    windows = [
        {QUESTION: number, FIRST: one.end - one.question.length, END: one.end,
         BY_PANE: not one.question.is_of_one_window}
        for number, one in enumerate(form.due)
        if any(family.name == f.name for a in one.question.aggregates for f in families(a))
    ]
    fields = [Field(QUESTION, INT), Field(FIRST, BIGINT), Field(END, BIGINT),
              Field(BY_PANE, BOOLEAN)]
    small = table.sparkSession.createDataFrame(
        pa.Table.from_pylist(windows, schema=arrow_schema(fields)))
    inside = (ours(PANE) >= ours(FIRST)) & (ours(PANE) < ours(END))
    by = [QUESTION, PANE, *form.keys, *([] if family.cell is None else [CELL])]
    measures = [merged(m, f"m{n}").alias(f"m{n}") for n, m in enumerate(family.measures)]
    pane = sf.when(ours(BY_PANE), ours(PANE)).otherwise(sf.lit(0).cast("bigint"))
    cells = table.join(sf.broadcast(small), inside).withColumn(PANE, pane)
    return cells.groupBy(*map(ours, by)).agg(*measures)


# --- in the workers ------------------------------------------------------------------------------


def _finish(
    form: _Form, layout: Layout, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The answers of the keys of one partition, question by question."""
    place = layout.places(form.columns(form.families[0]))[QUESTION]
    held: list[pa.RecordBatch] = []
    current = -1
    for number, rows in _by_question(batches, place):
        if number != current and held:
            yield from _answered(form, layout, current, pa.Table.from_batches(held))
            held = []
        current = number
        held.append(rows)
    if held:
        yield from _answered(form, layout, current, pa.Table.from_batches(held))


def _by_question(
    batches: Iterator[pa.RecordBatch], place: str
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each question in turn; batches come sorted by question."""
    for batch in batches:
        runs = batch.column(place).to_numpy()
        start = 0
        while start < len(runs):
            end = int(runs.searchsorted(runs[start], side="right"))
            yield int(runs[start]), batch.slice(start, end - start)
            start = end


def _answered(
    form: _Form, layout: Layout, number: int, rows: pa.Table
) -> Iterator[pa.RecordBatch]:
    """The answer to one question: its merged cells form a synopsis, of one pane if they may."""
    end, question = form.due[number].end, form.due[number].question
    if question.is_of_one_window:
        end, question = 1, Question(1, question.aggregates)
    synopsis = Synopsis(form.types, form.families, span=question.length)
    units = rows[UNIT].to_numpy()
    tables = {}
    for n, family in enumerate(form.families):
        mine = rows.filter(pa.array(units == n))
        at = layout.places(form.columns(family))
        tables[family] = pa.table(
            {name: mine[place] for name, place in at.items() if name != QUESTION})
    synopsis.add(tables)
    (found,) = synopsis.scan(end, [question])
    yield from _laid_out(form, number, question, found).to_batches()


def _laid_out(
    form: _Form, number: int, question: Question, found: pa.RecordBatch
) -> pa.Table:
    """The answers to one question, with NULL columns for aggregates it does not ask for."""
    fields = arrow_schema(form.answers)
    where = {a: found[f"agg{n}"] for n, a in enumerate(question.aggregates)}
    keys = [found[f"key{n}"] for n in range(len(form.types))]
    values = [where.get(a, pa.nulls(len(found), fields.field(f"agg{n}").type))
              for n, a in enumerate(form.aggregates)]
    numbers = pa.array([number] * len(found), pa.int32())
    return pa.Table.from_arrays([numbers, *keys, *values], schema=fields)
