"""Groupings in Arrow: Spark computes one narrow projection, `arrow_panes` groups its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from itertools import count
from operator import or_

import pyarrow as pa
from pyspark import cloudpickle  # the pickler with which Spark ships functions
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from penstock.arrow import arrow_type
from penstock.model import Expression
from penstock.spark.aggregates import arrow_measures, arrow_panes
from penstock.spark.aggregates.arrow_measures import Kept
from penstock.spark.aggregates.arrow_panes import (
    NUMBER,
    TABLE,
    TIME,
    ArrowGrouping,
    Reader,
    in_worker,
    pane_tables,
)
from penstock.spark.aggregates.cell_measures import NUMBERS, argument, cell
from penstock.spark.aggregates.pane_groupings import CELL, DIRECT, PaneGroup, PaneGrouping
from penstock.spark.compile import python_worker, worker_batches
from penstock.spark.compile.columns import all_of, compiled
from penstock.synopses import Family, Measure

_PACKED = f"{NUMBER} INT, {TABLE} BINARY"
_PLAIN = (*NUMBERS, "BOOLEAN", "STRING", "BINARY", "DATE", "TIMESTAMP")
"""The types whose values Arrow can compare and sort."""


def fits(unit: PaneGrouping) -> bool:
    """Whether Arrow can group it: not nested values, nor what only Spark can sketch."""
    by = [key.type for key in unit.keys] + ([unit.family.cell] if unit.family.cell else [])
    measures = [measure for _, family in unit.readers for measure in family.measures]
    return (unit.family.kind in DIRECT and all(type_.name in _PLAIN for type_ in by)
            and all(map(_measurable, measures)))


def _measurable(measure: Measure) -> bool:
    if measure.kind in ("sum", "min", "max", "moments"):
        return measure.type.name in _PLAIN
    return measure.kind not in ("kll", "list")


class ArrowGroupings:
    """Some units of a pane job, built once: each node of a column is a call into the JVM."""

    def __init__(
        self, units: Mapping[int, PaneGrouping], groups: Sequence[PaneGroup], time: SparkColumn
    ) -> None:
        """Units by their numbers among all."""
        self.units = units
        self._places: dict[object, str] = {}
        self._columns = [sf.unix_micros(time).alias(TIME)]
        self._groupings = [self._grouping(unit, groups) for unit in units.values()]
        wanted = [all_of(groups[group].where)
                  for unit in units.values() for group, _ in unit.readers]
        held = [condition for condition in wanted if condition is not None]
        self._where = reduce(or_, held) if len(held) == len(wanted) else None
        for module in (arrow_panes, arrow_measures, python_worker, worker_batches):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]

    def _grouping(self, unit: PaneGrouping, groups: Sequence[PaneGroup]) -> ArrowGrouping:
        by = [(f"k{n}", self._place(key, compiled(key))) for n, key in enumerate(unit.keys)]
        told = cell(unit.family)
        if told is not None:
            value = unit.family.kind == "frequencies"
            by.append((CELL, self._place(
                unit.family.args[0] if value else unit.family.name, told)))
        return ArrowGrouping(unit.pane, tuple(by), tuple(
            Reader(self._condition(groups[group].where),
                   tuple(self._kept(measure, family) for measure in family.measures))
            for group, family in unit.readers))

    def _condition(self, where: tuple[Expression, ...]) -> str | None:
        condition = all_of(where)
        return None if condition is None else self._place(where, condition)

    def _kept(self, measure: Measure, family: Family) -> Kept:
        value = argument(measure, family)
        plain = measure.kind in ("sum", "min", "max") or (
            measure.kind == "count" and measure.type.name in NUMBERS)
        how = measure.arg if plain else (measure, family.parameters)
        name = "" if value is None else self._place(how, value)
        kind = "min" if measure.kind == "rank" else measure.kind
        return Kept(kind, name, arrow_type(measure.stored))

    def _place(self, how: object, column: SparkColumn) -> str:
        """The name of a column of the projection; equal columns occur there once."""
        if how not in self._places:
            self._places[how] = f"@{len(self._places)}"
            self._columns.append(column.alias(self._places[how]))
        return self._places[how]

    def tables(self, rows: DataFrame, few: bool) -> dict[int, list[pa.Table]]:
        """By unit: the pane table of each reader; ``few`` rows are grouped in the driver."""
        wanted = rows if self._where is None else rows.where(self._where)
        projected = wanted.select(*self._columns)
        if few:
            parts = list(pane_tables(self._groupings, projected.toArrow().to_batches()))
            found = dict(enumerate(zip(*parts, strict=True)))
        else:
            work = partial(in_worker, self._groupings)
            found = _unpacked(projected.mapInArrow(work, _PACKED).toArrow())
        numbers = count()
        return {number: [_whole(unit, reader, found.get(next(numbers), ()))
                         for reader in range(len(unit.readers))]
                for number, unit in self.units.items()}


def _unpacked(told: pa.Table) -> dict[int, tuple[pa.Table, ...]]:
    """The tables that tasks have made, by number."""
    found: dict[int, tuple[pa.Table, ...]] = {}
    for number, packed in zip(told[NUMBER].to_pylist(), told[TABLE], strict=True):
        with pa.ipc.open_stream(packed.as_buffer()) as stream:
            found[number] = (*found.get(number, ()), stream.read_all())
    return found


def _whole(unit: PaneGrouping, reader: int, parts: Sequence[pa.Table]) -> pa.Table:
    """The pane table of a reader, assembled from its parts."""
    types = unit.columns
    schema = pa.schema([(name, arrow_type(types[column]))
                        for name, column in unit.read_by(reader).items()])
    return pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts)])
