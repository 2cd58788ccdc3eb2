"""What the driver makes of the reports of Python workers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.spark.compile.python_worker import Reports, ReportsParam, TaskReport, send
from penstock.spark.compile.worker_reports import UNREAD, Trip, WorkerReports


def reports() -> tuple[WorkerReports, Reports]:
    """Reports that arrive in a dictionary instead of over Spark."""
    value: Reports = {}
    accumulator: Any = SimpleNamespace(
        value=value, add=lambda told: ReportsParam().addInPlace(value, told))
    return WorkerReports(accumulator), value


def task(*steps: tuple[int, int, float], moved: int = 0, moving: float = 0.0) -> TaskReport:
    return steps, moved, moving


def test_tasks_beside_each_other_share_the_cores() -> None:
    workers, _ = reports()
    for tasks, seconds in ((1, 4.0), (2, 4.0), (4, 8.0)):
        number, tell = workers.begin()
        for _ in range(tasks):
            tell(task((100, 50, 4.0)))
        found = workers.figures([Trip(number, ("f",), (True,))], {}, cores=2)
        assert (found["f"].rows_in, found["f"].rows_out) == (100 * tasks, 50 * tasks)
        assert found["f"].seconds == seconds
        assert found["f"].how == "worker"


def test_a_task_that_ran_twice_changes_no_ratio() -> None:
    workers, _ = reports()
    costs = []
    for times in (1, 2):
        number, tell = workers.begin()
        for _ in range(times):
            tell(task((100, 50, 4.0)))
        told = workers.figures([Trip(number, ("f",), (True,))], {}, cores=1)["f"]
        costs.append((told.seconds / told.rows_in, told.rows_out / told.rows_in))
    assert costs == [(0.04, 0.5)] * 2


def test_the_first_stage_of_a_trip_pays_for_the_way_also_in_jobs_too_small_to_tell() -> None:
    workers, _ = reports()
    seconds = []
    for moved, moving in ((0, 0.0), (50, 1.0), (0, 0.0)):
        number, tell = workers.begin()
        tell(task((100, 10, 1.0), (10, 5, 1.0), moved=moved, moving=moving))
        told = workers.figures([Trip(number, ("f", "g"), (True, True))], {}, cores=1)
        seconds.append((told["f"].seconds, told["g"].seconds))
    assert seconds == [(1.0, 1.0), (3.0, 1.0), (3.0, 1.0)]


def test_a_stage_with_nested_calls_has_the_seconds_of_all_and_the_rows_of_the_first() -> None:
    workers, _ = reports()
    trips = []
    for steps in (task((100, 100, 1.0)), task((90, 30, 2.0))):
        number, tell = workers.begin()
        tell(steps)
        trips.append(Trip(number, ("f",), (len(trips) == 1,)))
    told = workers.figures(trips, {}, cores=1)["f"]
    assert (told.rows_in, told.rows_out, told.seconds) == (100, 30, 3.0)


@pytest.mark.parametrize(("counts", "known"), [({}, []), ({"g": 20}, ["g"])])
def test_a_stage_whose_rows_out_nobody_knows_is_left_out(
    counts: dict[str, int], known: list[str]
) -> None:
    workers, _ = reports()
    number, tell = workers.begin()
    tell(task((100, 100, 1.0), (100, 100, 1.0)))
    told = workers.figures([Trip(number, ("f", "g"), (False, False))], counts, cores=1)
    assert list(told) == known


def test_reports_that_nobody_reads_are_dropped_in_time() -> None:
    workers, value = reports()
    for n in range(3 * UNREAD):
        number, tell = workers.begin()
        tell(task((1, 1, 1.0)))
        if n % 2:
            workers.figures([Trip(number, ("f",), (True,))], {}, cores=1)
    assert len(value) <= UNREAD
    send(workers.reports, number, task((1, 1, 1.0)))  # a task that nobody waits for
    assert number in value
