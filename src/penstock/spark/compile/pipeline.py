"""A path that calls Python, stage by stage, so that a job can stop between stages.

Between two stages a frame holds what the later ones need. Before Python, these are the columns of
the stream and its relations under their places. After the first trip to Python, these are the
columns that travel, the results so far, and the error of every row for which a function raised.
Such rows go on through the other conditions. Those for which none is false stay in the frame:
rejects are delivered together with answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as sf

from penstock.engine.instructions import AS_WRITTEN, Evaluation
from penstock.events.kinds import ConjunctionProfile, StageFigures
from penstock.functions import PythonFunction
from penstock.model import Branch, is_expensive
from penstock.plan import Path
from penstock.planning.conjunctions import computed_by
from penstock.planning.shapes import columns
from penstock.spark.compile.columns import all_of, compiled, ours, place
from penstock.spark.compile.python_stage import ERROR, PythonStage
from penstock.spark.compile.worker_reports import Trip, worker_reports


@dataclass(slots=True)
class Progress:
    """A frame between stages, with what is counted and measured of it."""

    frame: DataFrame
    observations: dict[str, Observation] = field(default_factory=dict)
    trips: list[Trip] = field(default_factory=list)
    """Its trips to Python, which workers report on."""

    def observe(self, name: str, wanted: SparkColumn | None = None) -> None:
        """Count the rows here, all or the wanted ones, while a job computes them."""
        observation = Observation()
        rows = sf.count(sf.lit(1) if wanted is None else sf.when(wanted, 1))
        self.frame = self.frame.observe(observation, rows.alias("rows"))
        self.observations[name] = observation

    def counts(self) -> dict[str, int]:
        """The rows under each name, once a job has computed the frame."""
        return {id: seen.get.get("rows", 0) for id, seen in self.observations.items()}

    def profile(self, evaluation: Evaluation, first: int) -> ConjunctionProfile | None:
        """What workers found out about a conjunction; ask for it before `measured`.

        ``first`` is the place in the order of the first predicate that the job evaluated.
        """
        reports = worker_reports(self.frame.sparkSession.sparkContext)
        return reports.profile(self.trips, evaluation, first)

    def measured(
        self, stages: Sequence[str], entering: float, cores: int
    ) -> dict[str, StageFigures]:
        """What some stages did, from worker reports and counts, once a job has computed the frame.

        ``entering`` is the number of rows that came to the first of these stages.
        """
        counts, found = self.counts(), dict[str, StageFigures]()
        reports = worker_reports(self.frame.sparkSession.sparkContext)
        worked = reports.figures(self.trips, counts, cores)
        for stage in stages:
            if stage in worked:
                found[stage] = worked[stage]
            elif stage in counts and not any(stage in trip.stages for trip in self.trips):
                found[stage] = StageFigures(rows_in=entering, rows_out=counts[stage], seconds=0.0,
                                            how="count")
            entering = counts.get(stage, entering)
        return found


class Pipeline:
    """The stages of one path of one member."""

    def __init__(
        self,
        path: Path,
        branch: Branch,
        looked_up: Callable[[DataFrame, int], DataFrame],
        function: Callable[[str], PythonFunction],
        evaluation: Evaluation = AS_WRITTEN,
    ) -> None:
        """``looked_up`` adds the relation of a lookup, by number, to some rows."""
        self._path = path.in_order(evaluation.order) if evaluation.order else path
        self._branch, self._looked_up = branch, looked_up
        computed = () if path.end == "panes" else computed_by(branch)
        self._python = PythonStage(branch, function, evaluation, computed)
        self._first_python = path.before_python

    @property
    def stage(self) -> PythonStage:
        """The Python stage, from which the answers are made."""
        return self._python

    def run(self, frame: DataFrame, first: int, last: int) -> Progress:
        """Run the stages first to last - 1, over rows at their places or intermediate rows."""
        progress = Progress(frame)
        number = first
        while number < last:
            number = self._step(progress, number, last)
        if last <= self._first_python:
            progress.frame = progress.frame.select(*self._needed(last))
        return progress

    def _step(self, progress: Progress, number: int, last: int) -> int:
        """Run one stage, or several conditions in one trip; return the number of the next stage."""
        operator = self._path.operators[number]
        if operator.kind == "lookup":
            progress.frame = self._looked_up(progress.frame, number)
        elif operator.kind == "filter":
            cheap = all_of(c for c in self._branch.where if not is_expensive(c))
            assert cheap is not None
            progress.frame = progress.frame.where(cheap)
        elif operator.kind == "python":
            return self._through_python(progress, number, last)
        else:
            return number + 1  # rows that are projected and written are not counted here
        progress.observe(operator.id)
        return number + 1

    def _through_python(self, progress: Progress, number: int, last: int) -> int:
        first = number - self._first_python
        if first == 0:
            progress.frame = self._python.begin(progress.frame)
        until = min(last - self._first_python, self._python.conditions)
        if first < until:
            stages = [operator.id for operator in self._path.operators[
                number : self._first_python + until]]
            progress.frame, trips = self._python.held(progress.frame, first, until, stages)
            number = self._first_python + until
        else:  # the calls in the answer have an operator of their own
            progress.frame, trips = self._python.answered(
                progress.frame, self._path.operators[number].id)
            number += 1
        progress.trips += trips
        progress.observe(self._path.operators[number - 1].id, ours(ERROR).isNull())
        return number

    def _needed(self, last: int) -> list[SparkColumn]:
        """The columns that later lookups, the conditions and the answer read."""
        later = [lookup.on for lookup in self._branch.lookups[last:]]
        selected = [output.expression for output in self._branch.select]
        wanted = columns([*later, *self._branch.where, *selected])
        known = len([op for op in self._path.operators[:last] if op.kind == "lookup"])
        return [compiled(column).alias(place(column.source, column.name))
                for column in wanted if column.source < len(self._branch.inputs) + known]
