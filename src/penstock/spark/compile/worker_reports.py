"""What Python workers measured of the stages of a job, brought to the driver with the job itself.

The time of a stage in the worker is that of its functions, plus moving rows to Python and back.
Tasks run in parallel, so their total is divided by the cores that they had.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from statistics import median
from typing import Any
from weakref import WeakKeyDictionary

from pyspark import Accumulator, SparkContext

from penstock.engine.instructions import Evaluation
from penstock.events.kinds import ConjunctionProfile, StageFigures
from penstock.spark.compile.profile_reports import combined
from penstock.spark.compile.python_worker import Reports, ReportsParam, TaskReport, send

REMEMBERED = 5
"""Jobs whose cost of moving rows is remembered: small jobs cannot show it."""
UNREAD = 1000
"""The reports of a trip are dropped after this many later trips: its job failed, or was a sample.
"""


@dataclass(frozen=True, slots=True)
class Trip:
    """One trip of rows to Python: several calls, of one condition or of several."""

    number: int
    stages: tuple[str, ...]
    """By call, the stage that it belongs to."""
    guards: tuple[bool, ...]
    """By call, whether it is a condition by itself: the worker drops the rows it is false for."""
    profile: int | None = None
    """The number under which tasks report the profile of a conjunction, if the trip is one."""


@dataclass(slots=True)
class WorkerReports:
    """The reports of all trips of a Spark application, in one accumulator."""

    reports: Accumulator[Reports]
    _trips: count[int] = field(default_factory=lambda: count(1))
    _moving: dict[str, deque[float]] = field(default_factory=dict)
    """By stage, seconds per row in the latest jobs that measured moving rows."""

    def begin(self) -> tuple[int, Callable[[Any], None]]:
        """The number of a trip, and the accumulator that its tasks report to."""
        number = next(self._trips)
        return number, partial(send, self.reports, number)

    def profile(
        self, trips: Sequence[Trip], evaluation: Evaluation, first: int
    ) -> ConjunctionProfile | None:
        """What the tasks of a job profiled, whose first predicate has this place in the order.

        It is to be asked for before the figures, with which the reports are given up.
        """
        for trip in trips:
            if trip.profile is not None and evaluation.rate:
                return combined(evaluation, first, self.reports.value.get(trip.number, []),
                                self.reports.value.get(trip.profile, []))
        return None

    def figures(
        self, trips: Sequence[Trip], counts: Mapping[str, int], cores: int
    ) -> dict[str, StageFigures]:
        """What the stages of some trips did, once a job has run them on this many cores.

        ``counts`` has the rows out of stages that Spark counted. A stage is left out if its rows
        out are unknown, because Spark drops rows only after several conditions.
        """
        told = {trip: self._take(trip.number) for trip in trips}
        found = {}
        for stage in dict.fromkeys(stage for trip in trips for stage in trip.stages):
            calls = [(trip, step) for trip in trips for step, of in enumerate(trip.stages)
                     if of == stage and told[trip]]
            if not calls:
                continue
            first, last = calls[0], calls[-1]
            out = counts.get(stage)
            if last[0].guards[last[1]]:
                out = sum(steps[last[1]][1] for steps, _, _ in told[last[0]])
            if out is not None:
                seconds = sum(self._spent(stage, step, told[trip]) / min(len(told[trip]), cores)
                              for trip, step in calls)
                found[stage] = StageFigures(
                    rows_in=sum(steps[first[1]][0] for steps, _, _ in told[first[0]]),
                    rows_out=out, seconds=seconds, how="worker",
                    raised=self._raised(*last))
        for trip in trips:
            if trip.profile is not None:
                self._take(trip.profile)
        return found

    def _raised(self, trip: Trip, step: int) -> float:
        """Rows that a predicate of a conjunction raised for."""
        if trip.profile is None:
            return 0.0
        return float(sum(raised[step] for raised, *_ in self.reports.value.get(trip.profile, [])))

    def _take(self, trip: int) -> list[TaskReport]:
        told = self.reports.value
        for other in [number for number in list(told) if number < trip - UNREAD]:
            told.pop(other, None)
        return told.pop(trip, [])

    def _spent(self, stage: str, step: int, told: Sequence[TaskReport]) -> float:
        """Seconds of a call in all tasks; the first call of a trip includes moving the rows."""
        spent = sum(steps[step][2] for steps, _, _ in told)
        rows = sum(steps[0][0] for steps, _, _ in told)
        return spent if step else spent + rows * self._moved(stage, told)

    def _moved(self, stage: str, told: Iterable[TaskReport]) -> float:
        """Seconds to move a row to Python and back, by this job or the last that measured it."""
        rows, seconds = map(sum, zip(*((rows, spent) for _, rows, spent in told), strict=True))
        if rows:
            if len(self._moving) >= UNREAD and stage not in self._moving:
                self._moving.pop(next(iter(self._moving)))
            self._moving.setdefault(stage, deque(maxlen=REMEMBERED)).append(seconds / rows)
        return median(self._moving.get(stage, (0.0,)))


_OF: WeakKeyDictionary[SparkContext, WorkerReports] = WeakKeyDictionary()
_LOCK = threading.Lock()  # jobs are compiled in threads of their own


def worker_reports(context: SparkContext) -> WorkerReports:
    """The reports of a Spark application."""
    with _LOCK:
        if context not in _OF:
            _OF[context] = WorkerReports(context.accumulator({}, ReportsParam()))
        return _OF[context]
