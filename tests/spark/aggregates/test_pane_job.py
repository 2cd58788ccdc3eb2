"""The pane job and both ways to read its panes give the answers of plain Python over the rows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.arrow import arrow_schema
from penstock.model import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Aggregate,
    Call,
    Column,
    Expression,
    Field,
    Literal,
    Type,
)
from penstock.synopses import Family, Question, Synopsis, gathered
from tests.synopses.reference import Row, answers
from tests.synopses.test_synopsis import (
    COLUMNS,
    DECIMAL,
    EXACT,
    STRUCT,
    VALUES,
    as_groups,
    check,
    listed,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.spark.aggregates.pane_groupings import PaneGroup
    from penstock.spark.aggregates.pane_job import PaneJob

pytestmark = [pytest.mark.spark, pytest.mark.long]

TIME = Column("ts", TIMESTAMP)
PANE = 2_500_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIELDS = [Field("ts", TIMESTAMP), *(Field(c.name, type_) for type_, c in COLUMNS.items())]
APPROXIMATE = [
    Aggregate("APPROX_COUNT_DISTINCT", (COLUMNS[STRING],), BIGINT, method="hll"),
    Aggregate("APPROX_COUNT_DISTINCT", (COLUMNS[STRING],), BIGINT, method="fm"),
    Aggregate("APPROX_F2", (COLUMNS[STRING],), DOUBLE),
    Aggregate("APPROX_TOPK", (COLUMNS[STRING],), listed(STRING, "count", BIGINT), (9,)),
    Aggregate("APPROX_PERCENTILE", (COLUMNS[INT],), DOUBLE, (0.5,), "kll"),
]


def generated(number: int) -> list[Row]:
    """Rows around 1970, on the borders of panes too, with every odd value and many NULLs."""
    rng = random.Random(5)
    rows = []
    for _ in range(number):
        micros = rng.choice([rng.randrange(-3, 4) * PANE, rng.randrange(-3 * PANE, 4 * PANE)])
        row = {c.name: rng.choice([None, *VALUES[t]]) for t, c in COLUMNS.items()}
        rows.append({**row, "ts": EPOCH + timedelta(microseconds=micros), "pane": micros // PANE})
    return rows


def frame(spark: SparkSession, rows: Sequence[Row]) -> DataFrame:
    from penstock.spark.session import tuned

    table = pa.Table.from_pylist(list(rows), schema=arrow_schema(FIELDS))
    return tuned(spark).createDataFrame(table)


def group(keys: Sequence[Expression], asked: Sequence[Aggregate], *where: Expression) -> PaneGroup:
    from penstock.spark.aggregates.pane_groupings import PaneGroup

    return PaneGroup(tuple(keys), gathered(asked), PANE, where)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return generated(500)


def scalar(aggregate: Aggregate) -> bool:
    return aggregate.function not in ("COUNT_DISTINCT", "PERCENTILE", "TOPK")


def on(*types: Type) -> list[Aggregate]:
    return [a for a in EXACT if a.args and a.args[0].type in types]


def test_the_pane_job_answers_as_plain_python_does(spark: SparkSession, rows: list[Row]) -> None:
    from penstock.spark.aggregates.executor_refresh import WindowDue, refreshed
    from penstock.spark.aggregates.pane_job import FEW_ROWS, PaneJob

    keys = (COLUMNS[DOUBLE], COLUMNS[INT])
    varied = list(dict.fromkeys([*filter(scalar, EXACT), *on(DOUBLE, STRUCT)]))
    asked = [varied, on(STRING), on(STRING)]
    groups = [group(keys, varied), group((), [*asked[1], *APPROXIMATE]),
              group((), asked[2], Call("eq", (COLUMNS[BOOLEAN], Literal(True, BOOLEAN)), BOOLEAN))]
    seen = [rows, rows, [row for row in rows if row["boolean"]]]
    job = PaneJob(groups, TIME)
    assert sum(unit.shared for unit in job.units) == 2  # whoever wants which rows: one grouping
    panes = job.frame(frame(spark, rows)).persist()
    for many in (len(rows), FEW_ROWS + 1):  # in the driver, and in workers
        tables = job.tables(frame(spark, rows), many)
        check_driver(groups, tables, seen, asked)
    check_executors(groups, job, panes, seen, on(INT)[:8] + on(DECIMAL)[:6])
    check_sketches(groups[1], tables[1], refreshed(
        job, 1, panes, [WindowDue(4, Question(8, tuple(APPROXIMATE)))]).toArrow(), rows)
    panes.unpersist()


def check_driver(
    groups: list[PaneGroup], tables: list[dict[Family, pa.Table]], seen: list[list[Row]],
    asked: list[list[Aggregate]],
) -> None:
    """The answers from what the driver got."""
    for number, mine in enumerate(seen):
        by, exact = groups[number].keys, tuple(asked[number])
        synopsis = Synopsis([key.type for key in by], groups[number].families, 8)
        synopsis.add(tables[number])
        for length, table in zip((1, 4), synopsis.scan(2, [Question(n, exact) for n in (1, 4)]),
                                 strict=True):
            check(as_groups(table, len(by)), answers(mine, by, exact, 2, length), exact)


def check_executors(
    groups: list[PaneGroup], job: PaneJob, panes: DataFrame, seen: list[list[Row]],
    asked: list[Aggregate],
) -> None:
    """The same answers without the driver: scalars by key, and frequencies under a condition."""
    from penstock.spark.aggregates.executor_refresh import WindowDue, aggregates, refreshed

    for number, exact in ((0, [a for a in asked if scalar(a)]), (2, on(STRING))):
        by = groups[number].keys
        due = [WindowDue(2, Question(4, tuple(exact))), WindowDue(1, Question(1, tuple(exact[:2])))]
        assert aggregates(due) == exact
        found = refreshed(job, number, panes, due).toArrow()
        for which, one in enumerate(due):
            part = found.filter(pc.equal(found["question"], which)).drop_columns(["question"])
            few = len(one.question.aggregates)
            got = {k: v[:few] for k, v in as_groups(part, len(by)).items()}
            wanted = answers(seen[number], by, exact[:few], one.end, one.question.length)
            check(got, wanted, exact[:few])


def check_sketches(
    group: PaneGroup, tables: dict[Family, pa.Table], executors: pa.Table, rows: list[Row]
) -> None:
    synopsis = Synopsis([], group.families, 8)
    synopsis.add(tables)
    (driver,) = synopsis.scan(4, [Question(8, tuple(APPROXIMATE))])
    distinct, top, median = (
        Aggregate("COUNT_DISTINCT", APPROXIMATE[0].args, BIGINT),
        Aggregate("TOPK", APPROXIMATE[3].args, APPROXIMATE[3].type, (9,)),
        Aggregate("PERCENTILE", APPROXIMATE[4].args, DOUBLE, (0.5,)))
    wanted = answers(rows, (), [distinct, top, median], 4, 8)[()]
    for found in (driver, executors.drop_columns(["question"])):
        hll, fm, f2, topk, kll = as_groups(found, 0)[()]
        assert (hll, topk, kll) == (wanted[0], wanted[1], wanted[2])
        assert abs(fm - wanted[0]) <= 2
        assert f2 == pytest.approx(sum(v["count"] ** 2 for v in wanted[1]), rel=0.088)
