"""The stages of a path as recorded: what each costs and keeps, and what a job costs.

Stages that ran in one job are told apart by the measurements of Python workers and by samples.
These figures give the *work* of a job, in estimated seconds. The real seconds of the jobs are then
fitted to their work (`penstock.engine.cost_model`), so that figures with a wrong scale do no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low
from typing import Literal

from penstock.engine.cost_model import Cost, fit, unmeasured_cost
from penstock.engine.statistics import Statistics
from penstock.events import kinds as ev

JOBS = 4
"""The fixed cost of a job from end to end, as a multiple of a sample's. A sample is not planned
again or repartitioned, reads from memory and delivers nothing."""


@dataclass(frozen=True, slots=True)
class RecordedJob:
    """A job over blocks that finished."""

    decided: ev.JobDecided
    work: ev.PathWork
    ended: ev.JobFinished
    result: ev.PathResult
    stages: tuple[str, ...] = ()
    """The stages of its path when it ended: predicates may change their order."""

    @property
    def urgent(self) -> bool:
        """Whether it preempted active jobs."""
        return self.work.urgent

    @property
    def sampling(self) -> float:
        """Seconds that a sample took, beside it."""
        return self.result.sampling

    @property
    def entering(self) -> float:
        """Rows that entered its first stage."""
        return self.work.rows if self.work.entering is None else self.work.entering

    @property
    def rows_out(self) -> int:
        """Rows that it delivered, or kept."""
        kept = self.ended.kept
        return sum(self.ended.rows_out.values()) if kept is None else kept.rows



@dataclass(frozen=True, slots=True)
class StageModel:
    """What a stage does to rows."""

    name: str
    work: float = 1.0
    """The work per row; the fit of the path scales it."""
    selectivity: float = 1.0
    width: float = 1.0
    how: Literal["sample", "worker", "count"] = "sample"
    """What jobs measure of it: its cost and its rows, its rows alone, or nothing, so that only
    samples show it."""


@dataclass(frozen=True, slots=True)
class PathModel:
    """The stages of a path in order, and the cost of its jobs.

    >>> stages = (StageModel("a", 1.0, 0.5), StageModel("b", 4.0))
    >>> PathModel(stages, Cost(fixed=0.2, per_row=0.01)).through(0, 2, rows=100.0)
    (300.0, 50.0)
    """

    stages: tuple[StageModel, ...]
    cost: Cost
    """Seconds per job and per unit of work."""
    runs: int = 0
    """The number of jobs that it was fitted to."""

    def through(self, first: int, last: int, rows: float) -> tuple[float, float]:
        """The work of some stages on this many rows, and the rows that are left."""
        work = 0.0
        for stage in self.stages[first:last]:
            work += rows * stage.work
            rows *= stage.selectivity
        return work, rows

    def seconds(self, first: int, last: int, rows: float, earlier: int) -> float:
        """The seconds of a job of some stages, after this many earlier jobs of the path.

        Of the fixed part of a job from end to end, half is the job itself, a quarter is reading a
        block, and a quarter is delivering. A job that keeps its rows does not deliver. One that
        takes up kept rows does not read. One that only delivers is hardly a job.

        >>> stages = (StageModel("a", 1.0, 0.5), StageModel("b", 0.0))
        >>> model = PathModel(stages, Cost(fixed=0.5, per_row=0.01))
        >>> [model.seconds(*run, rows=100.0, earlier=9) for run in ((0, 2), (0, 1), (1, 2))]
        [1.5, 1.375, 0.25]
        """
        work, _ = self.through(first, last, rows)
        taken, fixed, end = self.cost.seconds(work, earlier), self.cost.fixed, len(self.stages)
        if 0 < first == end - 1:
            return taken - fixed / 2
        return taken - fixed / 4 * ((first > 0) + (last < end))

    def width(self, first: int, last: int) -> float:
        """How many times wider rows are after some stages."""
        factor = 1.0
        for stage in self.stages[first:last]:
            factor *= stage.width
        return factor

    def sampled(self, rows: float, row_bytes: float) -> dict[str, ev.StageFigures]:
        """What a sample of the stages would show: all but the last stage, which writes."""
        figures = {}
        for stage in self.stages[:-1]:
            out, after = rows * stage.selectivity, row_bytes * stage.width
            figures[stage.name] = ev.StageFigures(
                rows_in=rows, rows_out=out, seconds=rows * stage.work * self.cost.per_row,
                bytes_in=rows * row_bytes, bytes_out=out * after)
            rows, row_bytes = out, after
        return figures

    def measured(self, first: int, last: int, rows: float) -> dict[str, ev.StageFigures]:
        """What a job of some stages shows of them."""
        figures = {}
        for stage in self.stages[first:last]:
            out = rows * stage.selectivity
            if stage.how != "sample":
                seconds = rows * stage.work * self.cost.per_row if stage.how == "worker" else 0.0
                figures[stage.name] = ev.StageFigures(
                    rows_in=rows, rows_out=out, seconds=seconds, how=stage.how)
            rows = out
        return figures


@dataclass(slots=True)
class Told:
    """What a record says about stages, while it is read."""

    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By path, its stages."""
    _statistics: Statistics = field(default_factory=lambda: Statistics(window=float("inf")))
    _measured: dict[str, list[float]] = field(default_factory=dict)
    """By stage, the seconds per row of each measurement."""
    _alone: dict[str, float] = field(default_factory=dict)
    """By stage, the seconds per row in the jobs that ran it alone."""
    _how: dict[str, Literal["worker", "count"]] = field(default_factory=dict)
    """By stage, what jobs measure of it themselves."""

    def stages(self, path: str) -> tuple[str, ...]:
        """The stages of a path: one, named after the path, unless the record says otherwise."""
        return self.names.get(path) or (path,)

    def reorder(self, path: str, predicates: tuple[str, ...]) -> None:
        """The predicates of a path come in another order: a replay has the last one throughout."""
        left = iter(predicates)
        self.names[path] = tuple(next(left) if stage in predicates else stage
                                 for stage in self.stages(path))

    def take(self, at: float, result: ev.PathResult) -> None:
        """A job ended, and stages may have been measured in it or beside it."""
        for name, told in result.measured.items():
            self._statistics.record(name, at, told.rows_in, told.rows_out, told.seconds,
                                    told.bytes_in, told.bytes_out)
            if told.how != "sample":
                self._how[name] = told.how
            if told.rows_in and told.how != "count":
                self._measured.setdefault(name, []).append(told.seconds / told.rows_in)

    def models(self, runs: Mapping[str, Sequence[tuple[RecordedJob, float]]]) -> dict[
            str, PathModel]:
        """By path, a model of its jobs and of the seconds that each really took."""
        cheapest = min(seconds for taken in runs.values() for _, seconds in taken)
        for path, taken in runs.items():
            self._take_alone(path, taken, cheapest)
        made = {path: self._stages(path, taken, cheapest) for path, taken in runs.items()}
        return {path: PathModel(made[path], _fitted(made[path], taken, cheapest), len(taken))
                for path, taken in runs.items()}

    def _take_alone(
        self, path: str, taken: Iterable[tuple[RecordedJob, float]], cheapest: float
    ) -> None:
        """Learn the cost and the selectivity of stages that ran alone."""
        stages, alone = self.stages(path), dict[str, list[tuple[float, float]]]()
        for job, seconds in taken:
            first, last = job.work.stages
            if last - first == 1 < len(stages):
                stage = (job.stages or stages)[first]
                self._statistics.record(stage, job.ended.at, job.entering, job.rows_out, seconds)
                alone.setdefault(stage, []).append((job.entering, seconds))
        self._alone.update((stage, fit(jobs, cheapest).per_row) for stage, jobs in alone.items())

    def _stages(
        self, path: str, taken: Sequence[tuple[RecordedJob, float]], cheapest: float
    ) -> tuple[StageModel, ...]:
        known, listed = self._statistics, self.stages(path)
        if len(listed) == 1:
            return (StageModel(path),)
        # The last stage writes, which nothing measures: without a job of its own it costs nothing.
        shared = self._unmeasured(listed[:-1], taken, cheapest)
        return tuple(StageModel(name, self._cost(name, shared if name != listed[-1] else 0.0),
                                known.selectivity(name), known.width(name),
                                self._how.get(name, "sample"))
                     for name in listed)

    def _cost(self, stage: str, otherwise: float) -> float:
        """Seconds per row: the median of the measurements, of two the lower."""
        measured = self._measured.get(stage)
        return median_low(measured) if measured else self._alone.get(stage, otherwise)

    def _unmeasured(
        self, stages: Sequence[str], taken: Sequence[tuple[RecordedJob, float]], cheapest: float
    ) -> float:
        """Seconds per row of stages that nothing measured, divided as the engine divides them."""
        found = []
        for job, seconds in taken:
            rows, entering = job.entering, []
            first, last = job.work.stages
            for name in stages[first:last]:
                entering.append((rows, self._cost(name, 0.0) or None))
                rows *= self._statistics.selectivity(name)
            found.append(unmeasured_cost(max(seconds - cheapest, 0.0), entering))
        return median_low(found)


def _fitted(
    stages: tuple[StageModel, ...], taken: Sequence[tuple[RecordedJob, float]], cheapest: float
) -> Cost:
    """The cost of jobs; if their sizes do not determine it, the measured stages do."""
    if len(stages) == 1:
        return fit(_works(stages, taken), cheapest)
    bare = median_low([job.result.bare for job, _ in taken if job.result.bare] or [0.0])
    return fit(_works(stages, taken), cheapest, (JOBS * bare, 1.0))


def _works(
    stages: tuple[StageModel, ...], taken: Iterable[tuple[RecordedJob, float]]
) -> list[tuple[float, float]]:
    """Work and seconds of every job."""
    model = PathModel(stages, Cost(0.0, 1.0))
    return [(model.through(*job.work.stages, job.entering)[0], seconds) for job, seconds in taken]
