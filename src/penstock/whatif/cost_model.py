"""The stages of a path as a record tells of them: what each costs and keeps, and what a job costs.

Stages that ran in one job are told apart by what they did when timed apart, on samples. Those
figures give a run its *work*, in seconds as the samples would have it; what runs really took is
then fitted to their work, so that a sample that is off in scale does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low

from penstock.engine.statistics import Statistics
from penstock.events import kinds as ev
from penstock.whatif.job_costs import Cost, fit

JOBS = 4
"""A run from end to end costs, beside its rows, so many times what the job of a sample does, which
is neither planned anew nor dealt out, reads what is in memory and delivers nothing."""


@dataclass(frozen=True, slots=True)
class RecordedJob:
    """A job over blocks that finished."""

    decided: ev.JobDecided
    work: ev.PathWork
    ended: ev.JobFinished
    result: ev.PathResult

    @property
    def entering(self) -> float:
        """Rows that went into its first stage."""
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
    """Per row; the fit of the path gives it its scale."""
    selectivity: float = 1.0
    width: float = 1.0


@dataclass(frozen=True, slots=True)
class PathModel:
    """The stages of a path in order, and what runs of it take.

    >>> stages = (StageModel("a", 1.0, 0.5), StageModel("b", 4.0))
    >>> PathModel(stages, Cost(fixed=0.2, per_row=0.01)).through(0, 2, rows=100.0)
    (300.0, 50.0)
    """

    stages: tuple[StageModel, ...]
    cost: Cost
    """Seconds per job, and per unit of work."""
    runs: int = 0
    """Runs that it was fitted to."""

    def through(self, first: int, last: int, rows: float) -> tuple[float, float]:
        """The work of some stages on so many rows, and the rows that are left."""
        work = 0.0
        for stage in self.stages[first:last]:
            work += rows * stage.work
            rows *= stage.selectivity
        return work, rows

    def seconds(self, first: int, last: int, rows: float, earlier: int) -> float:
        """What a run of some stages takes, after so many earlier ones of the path.

        The fixed part of a run that goes from end to end is half that of a job, a quarter that of
        reading a block, and a quarter that of delivering. A run that keeps its rows does not
        deliver, one that takes kept rows up does not read, and one that has nothing to do but
        deliver is hardly a job.

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
        """How much wider rows are after some stages."""
        factor = 1.0
        for stage in self.stages[first:last]:
            factor *= stage.width
        return factor

    def figure(self, number: int, rows: float, row_bytes: float) -> ev.StageFigures:
        """What a stage would show if it were timed apart."""
        stage = self.stages[number]
        out = rows * stage.selectivity
        return ev.StageFigures(
            rows_in=rows, rows_out=out, seconds=rows * stage.work * self.cost.per_row,
            bytes_in=rows * row_bytes, bytes_out=out * row_bytes * stage.width)


@dataclass(slots=True)
class Told:
    """What a record tells of stages, while it is read."""

    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By path: its stages."""
    _statistics: Statistics = field(default_factory=lambda: Statistics(window=float("inf")))
    _apart: dict[str, list[float]] = field(default_factory=dict)
    """By stage: seconds per row, each time that it was timed apart."""

    def stages(self, path: str) -> tuple[str, ...]:
        """The stages of a path; one, of its own name, unless the record says otherwise."""
        return self.names.get(path) or (path,)

    def take(self, at: float, result: ev.PathResult) -> None:
        """A job ended, beside which stages may have been sampled."""
        for name, told in result.measured.items():
            self._statistics.record(name, at, told.rows_in, told.rows_out, told.seconds,
                                    told.bytes_in, told.bytes_out)
            if told.rows_in:
                self._apart.setdefault(name, []).append(told.seconds / told.rows_in)

    def models(self, runs: Mapping[str, Sequence[tuple[RecordedJob, float]]]) -> dict[
            str, PathModel]:
        """By path, from its runs and the seconds that each really took."""
        for path, taken in runs.items():
            self._take_alone(path, taken)
        made = {path: self._stages(path) for path in runs}
        cheapest = min(seconds for taken in runs.values() for _, seconds in taken)
        return {path: PathModel(made[path], _fitted(made[path], taken, cheapest), len(taken))
                for path, taken in runs.items()}

    def _take_alone(self, path: str, taken: Iterable[tuple[RecordedJob, float]]) -> None:
        """A stage that ran alone shows what it costs and keeps."""
        stages = self.stages(path)
        for job, seconds in taken:
            first, last = job.work.stages
            if last - first == 1 < len(stages):
                self._statistics.record(stages[first], job.ended.at, job.entering, job.rows_out,
                                        seconds)

    def _stages(self, path: str) -> tuple[StageModel, ...]:
        known = self._statistics
        listed = self.stages(path)
        if len(listed) == 1:
            return (StageModel(path),)
        # The last stage writes, which no sample does: without a run of its own it costs nothing.
        return tuple(StageModel(name, self._cost(name), known.selectivity(name), known.width(name))
                     for name in listed)

    def _cost(self, stage: str) -> float:
        """Seconds per row: the median of its samples; of two the lower, for one was disturbed."""
        apart = self._apart.get(stage)
        return median_low(apart) if apart else self._statistics.cost(stage)


def _fitted(
    stages: tuple[StageModel, ...], taken: Sequence[tuple[RecordedJob, float]], cheapest: float
) -> Cost:
    """What runs take; where their sizes do not tell, samples are taken at their word."""
    if len(stages) == 1:
        return fit(_works(stages, taken), cheapest)
    bare = median_low([job.result.bare for job, _ in taken if job.result.bare] or [0.0])
    return fit(_works(stages, taken), cheapest, (JOBS * bare, 1.0))


def _works(
    stages: tuple[StageModel, ...], taken: Iterable[tuple[RecordedJob, float]]
) -> list[tuple[float, float]]:
    """Work and seconds of every run."""
    model = PathModel(stages, Cost(0.0, 1.0))
    return [(model.through(*job.work.stages, job.entering)[0], seconds) for job, seconds in taken]
