"""Few answers come to the driver; many, unknown or untrusted ones stay on the executors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.engine.paths.active_job import ActiveJob
from penstock.engine.paths.queue_entries import QueueEntry
from penstock.engine.paths.small_answers import (
    MOST_BYTES,
    MOST_ROWS,
    MOST_ROWS_IN,
    WANTED_BY,
    fit_driver,
)
from penstock.engine.paths.stage_costs import StageCosts
from penstock.events.kinds import StageFigures
from penstock.language import bind
from penstock.model import Block
from penstock.plan import Plan
from penstock.planning import plan as planned
from penstock.policies.operators import Segment

STREAM = "CREATE STREAM s (a INT, b INT) FROM parquet 'in';"
FUNCTION = "CREATE FUNCTION f FROM 'penstock.demo.detectors:looks_like_a_scan';"


def application(queries: int, sink: str = "", where: str = "a = {n}") -> Plan:
    return planned(bind(STREAM + "".join(
        f"CREATE QUERY q{n} {sink} AS SELECT a FROM s WHERE {where.format(n=n)};"
        for n in range(queries))))


def active(plan: Plan, rows: int, size: int = 8, **about: object) -> ActiveJob:
    (path,) = plan.paths
    block = Block("s", 0, rows=rows, bytes=rows * size, arrived=0.0)
    segment = Segment(path.id, path.id, tuple(stage[0].id for stage in path.stages))
    job = ActiveJob(path, segment, [QueueEntry((block,), path.members)], retried=False)
    return replace(job, **about)


def measured(plan: Plan, rows_in: int, rows_out: int) -> StageCosts:
    costs, (path,) = StageCosts(), plan.paths
    costs.tell(plan)
    for at in (1.0, 2.0):  # the first time all is cold
        costs.record(at, path, 0, len(path.stages),
                     StageFigures(rows_in=rows_in, rows_out=rows_out, seconds=1.0), {})
    return costs


def test_while_nothing_is_known_a_row_may_be_wanted_by_several_members():
    one, many, costs = application(1), application(50), StageCosts()
    assert fit_driver(active(one, MOST_ROWS), costs, one)
    assert not fit_driver(active(one, MOST_ROWS + 1), costs, one)
    assert fit_driver(active(many, MOST_ROWS // WANTED_BY), costs, many)
    assert not fit_driver(active(many, MOST_ROWS // WANTED_BY + 1), costs, many)


@pytest.mark.parametrize(("rows", "rows_out", "fit"), [
    (500_000, 100, True), (MOST_ROWS_IN, 50, True), (MOST_ROWS_IN + 1, 50, False),
    (10_000, 10_000, True), (10_000, 10_001, False), (100_001, 1_000, False)])
def test_by_measured_selectivity_few_of_many_rows_are_few(rows, rows_out, fit):
    plan = application(50)
    costs = measured(plan, 1_000, rows_out)
    assert fit_driver(active(plan, rows), costs, plan) is fit


def test_wide_rows_are_many_sooner():
    plan = application(1)
    costs = measured(plan, 100, 100)
    assert fit_driver(active(plan, 1_000, MOST_BYTES // 1_000), costs, plan)
    assert not fit_driver(active(plan, 1_000, MOST_BYTES // 1_000 + 1), costs, plan)


def test_what_failed_and_what_nobody_keeps_stays_on_the_executors():
    plan, costs = application(3), StageCosts()
    assert fit_driver(active(plan, 10), costs, plan)
    assert not fit_driver(active(plan, 10, retried=True), costs, plan)
    noop = application(3, "INTO noop")
    assert not fit_driver(active(noop, 10), costs, noop)
    both = application(3, "INTO noop, memory")
    assert fit_driver(active(both, 10), costs, both)


def test_rows_that_python_may_reject_count_as_answers():
    plan = planned(bind(STREAM + FUNCTION + "CREATE QUERY q AS SELECT a FROM s WHERE f(a, b);"))
    costs, (path,) = StageCosts(), plan.paths
    costs.tell(plan)
    for at in (1.0, 2.0):
        for number in range(len(path.stages)):
            costs.record(at, path, number, number + 1,
                         StageFigures(rows_in=1_000, rows_out=1, seconds=1.0), {})
    assert costs.rows_out(MOST_ROWS + 1, path, 0) < 1
    assert fit_driver(active(plan, MOST_ROWS), costs, plan)
    assert not fit_driver(active(plan, MOST_ROWS + 1), costs, plan)


def test_jobs_that_keep_rows_or_make_panes_have_no_answers():
    windows = planned(bind(
        "CREATE STREAM s (ts TIMESTAMP, a INT) FROM parquet 'in' TIME ts;"
        "CREATE QUERY w AS SELECT COUNT(*) AS n FROM s [WINDOW 1 MIN];"))
    assert not fit_driver(active(windows, 10), StageCosts(), windows)
