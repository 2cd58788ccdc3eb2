"""The pane job: rows of a block into the pane tables of all groups of a stream, in one Spark job.

::

    rows ─▶ group by (pane, keys, cell) ─▶ measures ─┐
    rows ─▶ group by (pane, keys, cell) ─▶ measures ─┼─ union ─▶ Arrow tables in the driver, or
    rows ─▶ ...                                      ┘          a frame that stays on the executors

Groups with the same panes, keys and cells share one grouping, whatever rows they want: their
measures are conditional. There may be many groupings by values. They are computed together by
GROUPING SETS, with one shuffle for all. Each other grouping reads the rows again, but only the
columns it needs, so rows that are costly to compute should be persisted first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as sf

from penstock.model import BIGINT, Expression, Type
from penstock.spark.aggregates.cell_measures import cell, hashed, measured
from penstock.spark.compile.columns import all_of, compiled, ours
from penstock.spark.compile.expressions import data_type
from penstock.synopses import Family
from penstock.synopses.sketches import (
    AMS_ROWS,
    AMS_WIDTH,
    CM_ROWS,
    CM_WIDTH,
    HEAVY,
)

UNIT = "@unit"
PANE, CELL = "pane", "cell"
MOST_KEYS = 40
"""Most key columns of groupings computed together: each set gets a row of that width."""
_BYTES = {"STRING": 64, "BINARY": 256, "STRUCT": 48}
"""Bytes of a value of a pane table, by its type; every other type takes 16, twice eight."""
_CELLS_OF_A_ROW = {"ams": AMS_ROWS + 1, "count_min": CM_ROWS + 1}
"""The families in which a row belongs to several cells, and to how many."""
MOST_COLUMNS = 90
"""Most columns of one grouping: from a hundred on Spark no longer generates code for it."""


@dataclass(frozen=True, slots=True)
class PaneGroup:
    """The keys, families and conditions by which one synopsis sums up a stream's rows."""

    keys: tuple[Expression, ...]
    families: tuple[Family, ...]
    pane: int
    """The length of a pane in microseconds."""
    where: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class PaneGrouping:
    """One grouping, and the groups that read a family from it."""

    pane: int
    keys: tuple[Expression, ...]
    readers: tuple[tuple[int, Family], ...]
    """The groups by number, each with its family; the families differ only in measures."""

    @property
    def family(self) -> Family:
        """The first reader's family: the cell is the same for all of them."""
        return self.readers[0][1]

    @property
    def shared(self) -> bool:
        """Whether several groups read it. Then each counts its own rows in a column of its own."""
        return len(self.readers) > 1

    @property
    def columns(self) -> dict[str, Type]:
        """Its columns: the cell's, then per reader the count and the measures."""
        found = {PANE: BIGINT, **{f"k{n}": key.type for n, key in enumerate(self.keys)}}
        if self.family.cell is not None:
            found[CELL] = self.family.cell
        for reader, (_, family) in enumerate(self.readers):
            if self.shared:
                found[f"r{reader}"] = BIGINT
            found |= {f"r{reader}m{n}": m.stored for n, m in enumerate(family.measures)}
        return found

    @property
    def width(self) -> int:
        """About how many bytes a cell takes in the driver, in Arrow and in a synopsis."""
        return sum(_BYTES.get(type_.name, 16) for type_ in self.columns.values())

    def read_by(self, reader: int) -> dict[str, str]:
        """A reader's pane table: its columns, by the names they have in the grouping."""
        measures = len(self.readers[reader][1].measures)
        own = [name for name in self.columns if not name.startswith("r")]
        return {name: name for name in own} | {
            f"m{n}": f"r{reader}m{n}" for n in range(measures)}


@dataclass(frozen=True, slots=True)
class Layout:
    """How tables of different columns fit into one frame: columns of one type share a place.

    >>> layout = Layout.of([[BIGINT, Type("INT")], [BIGINT, BIGINT]])
    >>> layout.places({"pane": BIGINT, "m0": BIGINT}), layout.places({"k0": Type("INT")})
    ({'pane': '@0', 'm0': '@1'}, {'k0': '@2'})
    """

    types: tuple[Type, ...]

    @classmethod
    def of(cls, tables: Iterable[Iterable[Type]]) -> Layout:
        """A layout with as many columns of each type as any one of the tables has."""
        most: Counter[Type] = Counter()
        for table in tables:
            most |= Counter(table)
        return cls(tuple(most.elements()))

    def places(self, table: Mapping[str, Type]) -> dict[str, str]:
        """The column of the frame that holds each column of a table."""
        free: dict[Type, list[int]] = {}
        for place, type_ in enumerate(self.types):
            free.setdefault(type_, []).append(place)
        return {name: f"@{free[type_].pop(0)}" for name, type_ in table.items()}

    def placed(self, frame: DataFrame, number: int, table: Mapping[str, Type]) -> DataFrame:
        """The columns of a table at their places, marked as part ``number`` of the frame."""
        held = {place: ours(name) for name, place in self.places(table).items()}
        columns = [
            held.get(f"@{n}", sf.lit(None)).cast(data_type(type_)).alias(f"@{n}")
            for n, type_ in enumerate(self.types)
        ]
        return frame.select(sf.lit(number).alias(UNIT), *columns)


class PaneJob:
    """The pane job of a stream's groups, built once and run over any number of blocks."""

    def __init__(self, groups: Sequence[PaneGroup], time: Expression) -> None:
        """``time`` is the rows' event time, a TIMESTAMP."""
        self.groups, self.time = tuple(groups), time
        self.units = _units(self.groups)
        self.layout = Layout.of([unit.columns.values() for unit in self.units])
        made = {number: _Grouping(unit, self.groups, compiled(time))
                for number, unit in enumerate(self.units)}
        self._together = [_GroupingSets({number: made.pop(number) for number in some}, self.layout)
                          for some in _sets(self.units)]
        self._alone = made

    def frame(self, rows: DataFrame) -> DataFrame:
        """The pane tables of some rows, all in one frame; the rows' columns are at their places."""
        alone = [self.layout.placed(grouping.made(rows), number, grouping.unit.columns)
                 for number, grouping in self._alone.items()]
        return reduce(DataFrame.unionAll, [*alone, *(some.made(rows) for some in self._together)])

    def tables(self, rows: DataFrame) -> list[dict[Family, pa.Table]]:
        """The pane tables of each group, brought to the driver by one job."""
        whole = self.frame(rows).toArrow()
        tables: list[dict[Family, pa.Table]] = [{} for _ in self.groups]
        for number, unit in enumerate(self.units):
            mine = whole if len(self.units) == 1 else whole.filter(pc.equal(whole[UNIT], number))
            at = self.layout.places(unit.columns)
            for reader, (group, family) in enumerate(unit.readers):
                seen = mine
                if unit.shared:
                    seen = mine.filter(pc.greater(mine[at[f"r{reader}"]], 0))
                columns = unit.read_by(reader)
                tables[group][family] = pa.table({n: seen[at[c]] for n, c in columns.items()})
        return tables

    @property
    def width(self) -> int:
        """The most bytes that a row can take in the driver: when no other row shares its cells."""
        return sum(_CELLS_OF_A_ROW.get(unit.family.kind, 1) * unit.width for unit in self.units)

    def sizes(self, frame: DataFrame) -> list[int]:
        """About how many bytes the pane tables of each group would take in the driver."""
        cells = {row[0]: row[1] for row in frame.groupBy(UNIT).count().collect()}
        sizes = [0] * len(self.groups)
        for number, unit in enumerate(self.units):
            for group in {group for group, _ in unit.readers}:
                sizes[group] += cells.get(number, 0) * unit.width
        return sizes

    def read(self, frames: DataFrame, group: int) -> dict[Family, DataFrame]:
        """The pane tables of a group, out of frames that `frame` has returned for some blocks."""
        found = {}
        for number, unit in enumerate(self.units):
            at = self.layout.places(unit.columns)
            for reader, (reads, family) in enumerate(unit.readers):
                if reads != group:
                    continue
                mine = frames.where(ours(UNIT) == number)
                if unit.shared:
                    mine = mine.where(ours(at[f"r{reader}"]) > 0)
                columns = unit.read_by(reader)
                found[family] = mine.select(*(ours(at[c]).alias(n) for n, c in columns.items()))
        return found


_DIRECT = ("scalars", "frequencies", "hll", "fm")
"""The families whose cell follows from the row; the others are made from frequencies."""


def _units(groups: Sequence[PaneGroup]) -> tuple[PaneGrouping, ...]:
    """The groupings: those of direct families serve all groups with the same panes and keys."""
    found: list[PaneGrouping] = []
    latest: dict[object, int] = {}
    for number, group in enumerate(groups):
        for family in group.families:
            alone = None if family.kind in _DIRECT else number
            place = group.pane, group.keys, family.name, alone
            reader = (number, family)
            unit = found[latest[place]] if place in latest else None
            if unit is not None and len(unit.columns) + len(family.measures) < MOST_COLUMNS:
                found[latest[place]] = replace(unit, readers=(*unit.readers, reader))
            else:
                latest[place] = len(found)
                found.append(PaneGrouping(group.pane, group.keys, (reader,)))
    return tuple(found)


def _sets(units: Sequence[PaneGrouping]) -> list[list[int]]:
    """The units of frequencies, by number, in batches of at most `MOST_KEYS` columns."""
    found: list[list[int]] = []
    width = 0
    for number, unit in enumerate(units):
        if unit.family.kind == "frequencies":
            own = 2 + len(unit.keys)
            if not found or width + own > MOST_KEYS:
                found.append([])
                width = 0
            found[-1].append(number)
            width += own
    return [some for some in found if len(some) > 1]


class _Grouping:
    """The Spark columns of a unit, built once: each node of one is a call into the JVM."""

    def __init__(self, unit: PaneGrouping, groups: Sequence[PaneGroup], time: SparkColumn) -> None:
        self.unit = unit
        conditions = [all_of(groups[group].where) for group, _ in unit.readers]
        self.where: SparkColumn | None = None
        if all(condition is not None for condition in conditions):
            self.where = reduce(lambda a, b: a | b, [c for c in conditions if c is not None])
        self.by = {PANE: pane_of(time, unit.pane)}
        self.by |= {f"k{n}": compiled(key) for n, key in enumerate(unit.keys)}
        if unit.family.kind in _DIRECT and (kept := cell(unit.family)) is not None:
            self.by[CELL] = kept
        self.measures = dict(self._measures(conditions))

    def _measures(
        self, conditions: Sequence[SparkColumn | None]
    ) -> Iterator[tuple[str, SparkColumn]]:
        for reader, (_, family) in enumerate(self.unit.readers):
            held = conditions[reader] if self.unit.shared else None
            if self.unit.shared:
                yield f"r{reader}", sf.count(sf.lit(1) if held is None else sf.when(held, 1))
            if family.kind in _DIRECT:
                for n, measure in enumerate(family.measures):
                    yield f"r{reader}m{n}", measured(measure, family, held)

    def made(self, rows: DataFrame) -> DataFrame:
        """The pane table of some rows."""
        wanted = rows if self.where is None else rows.where(self.where)
        if self.unit.family.kind not in _DIRECT:
            return self._from_frequencies(wanted, self.unit.family)
        return wanted.groupBy(*_named(self.by)).agg(*_named(self.measures))

    def _from_frequencies(self, rows: DataFrame, family: Family) -> DataFrame:
        value = family.args[0]
        counted = rows.groupBy(*_named(self.by), compiled(value).alias(_VALUE)).agg(
            sf.count(sf.lit(1)).alias(_NUMBER))
        keys = [ours(name) for name in self.by]
        # hashed after the count: a group by the hash would take two values with one hash for one
        known = counted.withColumn(_HASH, hashed(ours(_VALUE)))
        if family.kind == "candidates":
            total = sf.sum(ours(_NUMBER)).over(SparkWindow.partitionBy(*keys))
            heavy = known.withColumn(_TOTAL, total).where(
                ours(_VALUE).isNotNull() & (ours(_NUMBER) >= sf.lit(HEAVY) * ours(_TOTAL)))
            return heavy.select(*keys, ours(_VALUE).alias(CELL), ours(_NUMBER).alias("r0m0"),
                                ours(_HASH).alias("r0m1"))
        cells = _ams_cells() if family.kind == "ams" else _count_min_cells()
        spread = known.select(*keys, ours(_NUMBER), sf.explode(cells).alias(_CELLS))
        placed = sf.element_at(ours(_CELLS), 1).alias(CELL)
        sign = sf.element_at(ours(_CELLS), 2)
        return spread.groupBy(*keys, placed).agg(
            sf.sum(ours(_NUMBER) * sign).alias("r0m0"))


def _named(columns: Mapping[str, SparkColumn], before: str = "") -> list[SparkColumn]:
    return [column.alias(before + name) for name, column in columns.items()]


class _GroupingSets:
    """Several units computed by one grouping, with one set of columns for each.

    The columns of a set are NULL in the rows of the others, so the pane column shows which unit a
    row belongs to. Rows that a unit does not want have no pane and are dropped after the count.
    """

    def __init__(self, groupings: Mapping[int, _Grouping], layout: Layout) -> None:
        self._by: list[SparkColumn] = []
        self._measures: list[SparkColumn] = []
        self._sets: list[list[SparkColumn]] = []
        whose: list[_Case] = []
        held: dict[str, list[_Case]] = {}
        for number, grouping in groupings.items():
            own, where = f"@{number}_", grouping.where
            by = grouping.by if where is None else {
                name: sf.when(where, column) for name, column in grouping.by.items()}
            self._by += _named(by, own)
            self._measures += _named(grouping.measures, own)
            self._sets.append([ours(own + name) for name in by])
            here = ours(own + PANE).isNotNull()
            whose.append((here, sf.lit(number)))
            for name, place in layout.places(grouping.unit.columns).items():
                held.setdefault(place, []).append((here, ours(own + name)))
        self._wanted = reduce(lambda a, b: a | b, [here for here, _ in whose])
        self._columns = [_first_of(whose).alias(UNIT)]
        self._columns += [_first_of(held.get(f"@{n}", [])).cast(data_type(type_)).alias(f"@{n}")
                          for n, type_ in enumerate(layout.types)]

    def made(self, rows: DataFrame) -> DataFrame:
        """The pane tables of some rows, at their places."""
        wide = rows.select("*", *self._by)
        by = [column for columns in self._sets for column in columns]
        found = wide.groupingSets(self._sets, *by).agg(*self._measures)
        return found.where(self._wanted).select(*self._columns)


_Case: TypeAlias = tuple[SparkColumn, SparkColumn]


def _first_of(cases: Sequence[_Case]) -> SparkColumn:
    """The value of the first case that is true; NULL where none is."""
    return reduce(lambda rest, case: sf.when(case[0], case[1]).otherwise(rest), cases, sf.lit(None))


_VALUE, _NUMBER, _HASH, _TOTAL, _CELLS = "@value", "@number", "@hash", "@total", "@cells"


def pane_of(time: SparkColumn, pane: int) -> SparkColumn:
    """The number of the pane that holds a time: whole panes since 1970, rounded down before it."""
    micros = sf.unix_micros(time)
    return sf.call_function("div", micros - sf.pmod(micros, sf.lit(pane)), sf.lit(pane))


def _cells(counters: Sequence[tuple[SparkColumn, SparkColumn]]) -> SparkColumn:
    """The counters that a value adds to, with what it adds; the counter NULL counts all rows."""
    everyone = sf.array(sf.lit(None).cast("int"), sf.lit(1))
    nothing = sf.array(everyone)
    each = [sf.array(place.cast("int"), sign) for place, sign in counters]
    return sf.when(ours(_HASH).isNull(), nothing).otherwise(sf.array(everyone, *each))


def _count_min_cells() -> SparkColumn:
    """As `penstock.synopses.sketches.cm_cells`."""
    low = ours(_HASH).bitwiseAND(sf.lit(0xFFFFFFFF))
    high = sf.shiftrightunsigned(ours(_HASH), 32).bitwiseOR(sf.lit(1))
    return _cells([
        ((low + high * row).bitwiseAND(sf.lit(CM_WIDTH - 1)) + row * CM_WIDTH, sf.lit(1))
        for row in range(CM_ROWS)
    ])


def _ams_cells() -> SparkColumn:
    """One counter of every row, and a sign, from a hash of the hash and the row's number."""
    each = [sf.xxhash64(ours(_HASH), sf.lit(row)) for row in range(AMS_ROWS)]
    return _cells([
        (place.bitwiseAND(sf.lit(AMS_WIDTH - 1)) + row * AMS_WIDTH,
         sf.when(place < 0, -1).otherwise(1))
        for row, place in enumerate(each)
    ])
