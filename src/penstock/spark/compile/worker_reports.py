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
from weakref import WeakKeyDictionary

from pyspark import Accumulator, SparkContext

from penstock.events.kinds import StageFigures
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


@dataclass(slots=True)
class WorkerReports:
    """The reports of all trips of a Spark application, in one accumulator."""

    reports: Accumulator[Reports]
    _trips: count[int] = field(default_factory=lambda: count(1))
    _moving: dict[str, deque[float]] = field(default_factory=dict)
    """By stage, seconds per row in the latest jobs that measured moving rows."""

    def begin(self) -> tuple[int, Callable[[TaskReport], None]]:
        """The number of a trip, and the accumulator that its tasks report to."""
        number = next(self._trips)
        return number, partial(send, self.reports, number)

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
                    rows_out=out, seconds=seconds, how="worker")
        return found

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
