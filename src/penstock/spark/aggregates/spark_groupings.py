"""Groupings that Spark computes: each reads the rows again, and has a shuffle of its own.

There may be many groupings by values. GROUPING SETS compute those together, with one shuffle for
all. Rows that are costly to compute should be persisted first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as sf

from penstock.model import Type
from penstock.spark.aggregates.cell_measures import cell, hashed, measured
from penstock.spark.aggregates.pane_groupings import CELL, DIRECT, PANE, PaneGroup, PaneGrouping
from penstock.spark.compile.columns import all_of, compiled, ours
from penstock.spark.compile.expressions import data_type
from penstock.synopses import Family
from penstock.synopses.sketches import AMS_ROWS, AMS_WIDTH, CM_ROWS, CM_WIDTH, HEAVY

UNIT = "@unit"
MOST_KEYS = 40
"""The most key columns of groupings computed together: each set gets a row of that width."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How tables of different columns fit into one frame: columns of one type share a place.

    >>> from penstock.model import BIGINT
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


class SparkGroupings:
    """Some units of a pane job, built once."""

    def __init__(
        self, units: Mapping[int, PaneGrouping], groups: Sequence[PaneGroup], time: SparkColumn,
        layout: Layout,
    ) -> None:
        """Units by their numbers among all; each node of a column is a call into the JVM."""
        self.units, self._layout = units, layout
        alone = {number: _Grouping(unit, groups, time) for number, unit in units.items()}
        self._together = [_GroupingSets({number: alone.pop(number) for number in some}, layout)
                          for some in _sets(units)]
        self._alone = alone

    def frame(self, rows: DataFrame) -> DataFrame:
        """The pane tables of some rows, all in one frame."""
        alone = [self._layout.placed(grouping.made(rows), number, grouping.unit.columns)
                 for number, grouping in self._alone.items()]
        return reduce(DataFrame.unionAll, [*alone, *(some.made(rows) for some in self._together)])

    def tables(self, rows: DataFrame) -> dict[int, list[pa.Table]]:
        """By unit: the pane table of each reader."""
        whole = self.frame(rows).toArrow()
        return {number: list(self._read(whole, number)) for number in self.units}

    def _read(self, whole: pa.Table, number: int) -> Iterator[pa.Table]:
        unit = self.units[number]
        mine = whole if len(self.units) == 1 else whole.filter(pc.equal(whole[UNIT], number))
        at = self._layout.places(unit.columns)
        for reader in range(len(unit.readers)):
            seen = mine
            if unit.shared:
                seen = mine.filter(pc.greater(mine[at[f"r{reader}"]], 0))
            columns = unit.read_by(reader)
            yield pa.table({name: seen[at[column]] for name, column in columns.items()})


def _sets(units: Mapping[int, PaneGrouping]) -> list[list[int]]:
    """The units of frequencies, by number, in batches of at most `MOST_KEYS` columns."""
    found: list[list[int]] = []
    width = 0
    for number, unit in units.items():
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
        if unit.family.kind in DIRECT and (kept := cell(unit.family)) is not None:
            self.by[CELL] = kept
        self.measures = dict(self._measures(conditions))

    def _measures(
        self, conditions: Sequence[SparkColumn | None]
    ) -> Iterator[tuple[str, SparkColumn]]:
        for reader, (_, family) in enumerate(self.unit.readers):
            held = conditions[reader] if self.unit.shared else None
            if self.unit.shared:
                yield f"r{reader}", sf.count(sf.lit(1) if held is None else sf.when(held, 1))
            if family.kind in DIRECT:
                for n, measure in enumerate(family.measures):
                    yield f"r{reader}m{n}", measured(measure, family, held)

    def made(self, rows: DataFrame) -> DataFrame:
        """The pane table of some rows."""
        wanted = rows if self.where is None else rows.where(self.where)
        if self.unit.family.kind not in DIRECT:
            return self._from_frequencies(wanted, self.unit.family)
        return wanted.groupBy(*_named(self.by)).agg(*_named(self.measures))

    def _from_frequencies(self, rows: DataFrame, family: Family) -> DataFrame:
        value = family.args[0]
        counted = rows.groupBy(*_named(self.by), compiled(value).alias(_VALUE)).agg(
            sf.count(sf.lit(1)).alias(_NUMBER))
        keys = [ours(name) for name in self.by]
        # hashed after the count: grouping by the hash would merge two values with one hash
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
    """Like `penstock.synopses.sketches.cm_cells`."""
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
