"""Groupings in Arrow, in the driver and in workers, give the pane tables of Spark's groupings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.model import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Aggregate,
    Call,
    Literal,
)
from tests.spark.aggregates.test_arrow_panes import ASKED, held
from tests.spark.aggregates.test_pane_job import TIME, frame, generated, group, scalar
from tests.synopses.test_synopsis import COLUMNS, close

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.spark.aggregates.pane_groupings import PaneGroup, PaneGrouping

pytestmark = pytest.mark.spark

TRUE = Call("eq", (COLUMNS[BOOLEAN], Literal(True, BOOLEAN)), BOOLEAN)
POSITIVE = Call("gt", (COLUMNS[INT], Literal(0, INT)), BOOLEAN)
SCALARS = [a for a in ASKED if scalar(a)]
SKETCHES = [Aggregate("APPROX_COUNT_DISTINCT", (COLUMNS[STRING],), BIGINT, method=m)
            for m in ("hll", "fm")]


def groups() -> list[PaneGroup]:
    """All measures over all types, keys of several, shared groupings with different conditions."""
    by_value = [a for a in ASKED if not scalar(a) and a.args[0].type in (STRING, DOUBLE)]
    odd = (COLUMNS[DOUBLE], COLUMNS[STRING])
    return [group((COLUMNS[DOUBLE], COLUMNS[INT]), SCALARS), group((), SKETCHES),
            group((), [*by_value, *SKETCHES], TRUE), group((), by_value, POSITIVE),
            group(odd, SCALARS[:9], TRUE), group(odd, SCALARS[4:14], POSITIVE),
            group((COLUMNS[BIGINT], COLUMNS[TIMESTAMP]), SCALARS[:3], TRUE, POSITIVE)]


def told(tables: dict[int, list[pa.Table]], units: dict[int, PaneGrouping]) -> list[Any]:
    """By unit and reader: what is measured of each cell."""
    return [(unit.family.name, held(table, len(unit.readers[reader][1].measures)))
            for number, unit in units.items() for reader, table in enumerate(tables[number])]


@pytest.mark.parametrize("rows", [0, 400])
def test_both_places_give_what_spark_gives(spark: SparkSession, rows: int) -> None:
    from penstock.spark.aggregates.arrow_groupings import ArrowGroupings
    from penstock.spark.aggregates.pane_groupings import groupings_of
    from penstock.spark.aggregates.spark_groupings import Layout, SparkGroupings
    from penstock.spark.compile.columns import compiled

    asking, time = groups(), compiled(TIME)
    units = dict(enumerate(groupings_of(asking)))
    assert sum(unit.shared for unit in units.values()) >= 5
    given = frame(spark, generated(rows)).coalesce(1)  # one task: every cell is whole
    layout = Layout.of([unit.columns.values() for unit in units.values()])
    wanted = SparkGroupings(units, asking, time, layout).tables(given)
    arrow = ArrowGroupings(units, asking, time)
    for few in (True, False):
        found = arrow.tables(given, few)
        for number, tables in found.items():
            assert [t.schema.types for t in tables] == [t.schema.types for t in wanted[number]]
        for (name, got), (_, right) in zip(told(found, units), told(wanted, units), strict=True):
            assert got.keys() == right.keys(), name
            for cell, values in right.items():
                assert all(map(close, got[cell], values)), (name, cell, got[cell], values)


def test_a_row_is_expected_to_take_about_what_it_took_the_last_time(spark: SparkSession) -> None:
    from penstock.spark.aggregates.pane_job import SPARE, PaneJob

    job = PaneJob([group((COLUMNS[INT],), SCALARS[:3]), group((), SKETCHES[:1])], TIME)
    alone = job.size(1)
    ((scalars,), _) = (list(tables.values()) for tables in job.tables(
        frame(spark, generated(2000)), 2000))
    assert job.size(2000) < 2000 * alone / 3
    assert job.size(2000) > SPARE * scalars.num_rows * job.units[0].width
    job.tables(frame(spark, generated(2)), 2)
    assert job.size(1) == alone  # no more than a row can take
