"""The pane job: rows of a block into the pane tables of all groups of a stream.

Groups with the same panes, keys and cells share one grouping, whatever rows they want: their
measures are conditional. There are two ways to compute the groupings. Both give the same tables::

    rows ─▶ time, keys, arguments, conditions ─▶ Arrow ─▶ all groupings in one pass

    rows ─▶ group by (pane, keys, cell) ─▶ measures ─┐
    rows ─▶ group by (pane, keys, cell) ─▶ measures ─┼─ union
    rows ─▶ ...                                      ┘

*In Arrow* Spark computes what users wrote, once for all groupings and without a shuffle, and
`penstock.spark.aggregates.arrow_panes` groups the rows: few of them in the driver, many in Python
workers. *In Spark* every grouping reads the rows again and has a shuffle of its own. There may be
many groupings by values; GROUPING SETS compute those together, with one shuffle for all.

Spark groups where that is cheaper, what only its own functions can measure, and panes that stay on
the executors: they would be too many for the driver, and a shuffle brings the parts of a cell
together.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.model import Expression
from penstock.spark.aggregates.arrow_groupings import ArrowGroupings, fits
from penstock.spark.aggregates.pane_groupings import PaneGroup, groupings_of
from penstock.spark.aggregates.spark_groupings import UNIT, Layout, SparkGroupings
from penstock.spark.compile.columns import compiled, ours
from penstock.synopses import Family
from penstock.synopses.sketches import AMS_ROWS, CM_ROWS

_CELLS_OF_A_ROW = {"ams": AMS_ROWS + 1, "count_min": CM_ROWS + 1}
"""The families in which a row belongs to several cells, and to how many."""
FEW_ROWS = 200_000
"""The most rows that are brought to the driver and grouped there: a Python worker costs a job 0.1
s."""
FEW_GROUPINGS = 2
"""The most groupings that Spark computes itself if it need not. One costs it 0.1 to 0.5
microseconds a row. All of them in Arrow cost about 0.8, mostly for moving the rows."""
VERY_FEW_ROWS = 20_000
"""Up to this many rows are grouped in Arrow, however few the groupings are: a shuffle costs more.
"""
SPARE = 4
"""If a row is expected to take more than this many times what it last took in the driver, Spark
groups."""


class PaneJob:
    """The pane job of a stream's groups, built once and run over any number of blocks."""

    def __init__(self, groups: Sequence[PaneGroup], time: Expression) -> None:
        """``time`` is the rows' event time, a TIMESTAMP."""
        self.groups, self.time = tuple(groups), time
        self.units = groupings_of(self.groups)
        self.layout = Layout.of([unit.columns.values() for unit in self.units])
        self._ways: dict[tuple[int, ...], SparkGroupings] = {}
        self._seen: float | None = None
        """Bytes that a row took in the driver when tables were last made."""
        fit = {number: unit for number, unit in enumerate(self.units) if fits(unit)}
        self._arrow = ArrowGroupings(fit, self.groups, compiled(time)) if fit else None

    def frame(self, rows: DataFrame) -> DataFrame:
        """The pane tables of some rows, all in one frame; the rows' columns are at their places."""
        return self._spark(range(len(self.units))).frame(rows)

    def tables(self, rows: DataFrame, number: int) -> list[dict[Family, pa.Table]]:
        """The pane tables of each group, brought to the driver, for about ``number`` rows.

        A table may hold a cell several times: its parts are merged like those of blocks.
        """
        arrow = self._arrow if self._by_arrow(number) else None
        rest = [n for n in range(len(self.units)) if arrow is None or n not in arrow.units]
        found: dict[int, list[pa.Table]] = {}
        if arrow is not None:
            found |= arrow.tables(rows, number <= FEW_ROWS)
        if rest:
            found |= self._spark(rest).tables(rows)
        tables: list[dict[Family, pa.Table]] = [{} for _ in self.groups]
        held = 0
        for n, unit in enumerate(self.units):
            for (group, family), table in zip(unit.readers, found[n], strict=True):
                tables[group][family] = table
            held += max(table.num_rows for table in found[n]) * unit.width
        self._seen = held / max(number, 1)
        return tables

    def spark_jobs(self, number: int) -> int:
        """How many Spark jobs `tables` runs for this many rows."""
        both = self._arrow is not None and len(self._arrow.units) < len(self.units)
        return 2 if both and self._by_arrow(number) else 1

    def _by_arrow(self, number: int) -> bool:
        return self._arrow is not None and (
            number <= VERY_FEW_ROWS or len(self._arrow.units) > FEW_GROUPINGS)

    def _spark(self, some: Sequence[int]) -> SparkGroupings:
        """Some of the units as groupings by Spark."""
        wanted = tuple(some)
        if wanted not in self._ways:
            self._ways[wanted] = SparkGroupings(
                {n: self.units[n] for n in wanted}, self.groups, compiled(self.time), self.layout)
        return self._ways[wanted]

    def size(self, number: int) -> float:
        """An upper estimate of the driver bytes that the pane tables of this many rows take.

        At first no row is expected to share its cells with another. Then a row is expected to take
        up to `SPARE` times what it took the last time.
        """
        alone = sum(_CELLS_OF_A_ROW.get(unit.family.kind, 1) * unit.width for unit in self.units)
        return number * (alone if self._seen is None else min(alone, SPARE * self._seen))

    def sizes(self, frame: DataFrame) -> list[int]:
        """About how many bytes the pane tables of each group would take in the driver."""
        cells = {row[0]: row[1] for row in frame.groupBy(UNIT).count().collect()}
        sizes = [0] * len(self.groups)
        for number, unit in enumerate(self.units):
            for group in {group for group, _ in unit.readers}:
                sizes[group] += cells.get(number, 0) * unit.width
        return sizes

    def read(self, frames: DataFrame, group: int) -> dict[Family, DataFrame]:
        """The pane tables of a group, from frames that `frame` has returned for some blocks."""
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
