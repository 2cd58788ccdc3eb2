"""Queries that share predicates in Python, on Spark: one trip for all of them.

::

    block ─▶ who may want the row, as bits ─▶ mapInArrow (`shared_worker`) ─▶ one row per member

Spark evaluates the SQL conditions of every query before the trip, and the columns of its answer
after it. Only rows that some query may want travel to Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from penstock.engine.instructions import Evaluation
from penstock.functions import PythonFunction
from penstock.model import (
    Branch,
    Column,
    Expression,
    Field,
    is_expensive,
    name_key,
)
from penstock.plan import Member, Path
from penstock.planning.check import MEMBER
from penstock.planning.conjunctions import conditions
from penstock.planning.shapes import columns
from penstock.planning.share_predicates import shared_predicates
from penstock.spark.compile.columns import all_of, compiled, ours
from penstock.spark.compile.conjunction_worker import Predicate, Sampling
from penstock.spark.compile.expressions import data_type
from penstock.spark.compile.file_scans import FileScan
from penstock.spark.compile.pipeline import Progress
from penstock.spark.compile.python_stage import ERROR, PythonStage
from penstock.spark.compile.shared_worker import (
    BITS,
    SharedColumns,
    SharedPredicate,
    evaluate_shared,
)
from penstock.spark.compile.worker_reports import Trip, worker_reports
from penstock.spark.compile.worker_sinks import WorkerSink, handed, picked

WANTED = "@wanted"
"""The columns of bits."""
REJECT = "@reject"
"""The columns that only rejects are shown with."""


class SharedConjunction:
    """The trip of a job, for the members that it is done for."""

    def __init__(
        self, path: Path, planned: Sequence[Branch], branches: Mapping[Member, Branch],
        function: Callable[[str], PythonFunction], evaluation: Evaluation,
        scan: FileScan | None = None,
    ) -> None:
        """``planned`` are the branches of all members of the path, which number the predicates."""
        self._branches = list(branches.values())
        self._evaluation = evaluation
        every = shared_predicates(planned)
        order = evaluation.order or tuple(range(len(every)))
        asked = shared_predicates(self._branches)
        self._predicates = [every[number] for number in order if every[number] in asked]
        self._whole = len(asked) == len(every)
        self._stages = [path.conjunction[number].id for number in order if every[number] in asked]
        read = Branch(
            self._branches[0].inputs,
            tuple(output for branch in self._branches for output in branch.select),
            tuple(dict.fromkeys(one for branch in self._branches for one in branch.where)),
            self._branches[0].lookups)
        self.stage = PythonStage(read, function, scan=scan)

    def run(self, rows: DataFrame, sink: WorkerSink | None = None) -> tuple[Progress, bool]:
        """One row per row and member that wants it or rejects it: ``@member`` and ``@error``.

        If workers can hand the answers to the sink, they do. Then there are the rejects only, and
        what its takers tell, without a member. Returns whether that is so.
        """
        cheap = [all_of(c for c in branch.where if not is_expensive(c))
                 for branch in self._branches]
        selective = [column for column in cheap if column is not None]
        if len(selective) == len(cheap):
            rows = rows.where(reduce(lambda one, other: one | other, selective))
        bits = self._bits(cheap) if selective else {}
        delivered = set(columns([output.expression for branch in self._branches
                                 for output in branch.select]))
        carried = self.stage.carried
        kept = tuple(at.name for column, at in carried.items() if column in delivered)
        shown = tuple(at.name for column, at in carried.items() if column not in delivered)
        frame = self.stage.begin(rows, [column.alias(name) for name, column in bits.items()])
        given = self.stage.given(frame)
        steps = {one: self.stage.decision(one) for one in self._predicates}
        schema = StructType(
            [given[name] for name in kept]
            + [StructField(MEMBER, IntegerType(), False), StructField(ERROR, StringType())]
            + ([StructField(REJECT, StructType([given[name] for name in shown]))]
               if shown else []))
        reports = worker_reports(rows.sparkSession.sparkContext)
        (number, tell), (profile, told) = reports.begin(), reports.begin()
        work: Callable[..., Any] = partial(
            evaluate_shared, [self._asked(one, Predicate(steps[one], 0))
                              for one in self._predicates],
            SharedColumns(kept, shown, tuple(bits), len(self._branches), MEMBER, ERROR, REJECT),
            sampling=self._sampling([Predicate(steps[one], 0) for one in self._predicates]),
            tell=tell, profile=told)
        picks = None if sink is None else picked(sink.columns, self._branches, carried)
        if sink is not None and picks is not None:
            work, schema = handed(work, schema, ERROR, sink, picks, len(self._branches))
        frame = self.stage.trip(frame, work, schema, steps)
        if shown:
            frame = frame.withColumns({
                name: ours(REJECT).getField(name) for name in shown}).drop(REJECT)
        trip = Trip(number, tuple(self._stages), (True,) * len(self._stages), profile)
        return Progress(frame, trips=[trip]), picks is not None

    def _bits(self, cheap: Sequence[SparkColumn | None]) -> dict[str, SparkColumn]:
        """The members whose SQL conditions hold, as columns of bits."""
        found: dict[str, SparkColumn] = {}
        for first in range(0, len(cheap), BITS):
            some = [sf.lit(1 << place) if column is None
                    else sf.when(column, sf.lit(1 << place)).otherwise(sf.lit(0))
                    for place, column in enumerate(cheap[first:first + BITS])]
            found[f"{WANTED}{first // BITS}"] = reduce(
                lambda one, other: one.bitwiseOR(other), (one.cast("bigint") for one in some))
        return found

    def _asked(self, condition: Expression, predicate: Predicate) -> SharedPredicate:
        return SharedPredicate(predicate, tuple(
            (member, branch.where.index(condition)) for member, branch in enumerate(self._branches)
            if condition in conditions(branch.where).movable))

    def _sampling(self, predicates: Sequence[Predicate]) -> Sampling | None:
        """What is profiled: nothing if the job is for a part of the members only."""
        asked = self._evaluation
        if not asked.rate or not self._whole:
            return None
        return Sampling(asked.rate, tuple(predicates), asked.unasked, len(predicates), asked.seed,
                        asked.per_partition, asked.enough, asked.lookahead)

    # --- answers -----------------------------------------------------------------------------

    def outputs(self) -> Callable[[Field], SparkColumn]:
        """Where the frame holds an output of this name and type: it depends on the member."""
        cases: dict[tuple[str, str], dict[Expression, list[int]]] = {}
        for member, branch in enumerate(self._branches):
            for output in branch.select:
                key = name_key(output.name), str(output.expression.type)
                cases.setdefault(key, {}).setdefault(
                    self.stage.settled(output.expression), []).append(member)
        return lambda field: self._chosen(
            cases[name_key(field.name), str(field.type)], field)

    def _chosen(self, cases: Mapping[Expression, Sequence[int]], field: Field) -> SparkColumn:
        chosen = sf.lit(None).cast(data_type(field.type))
        for expression, members in cases.items():
            if len(members) == len(self._branches):
                return compiled(expression)
            chosen = sf.when(ours(MEMBER).isin(list(members)), compiled(expression)).otherwise(
                chosen)
        return chosen

    def row(self) -> SparkColumn:
        """A rejected row as JSON: the columns that its query reads."""
        alike: dict[tuple[Column, ...], list[int]] = {}
        for member, branch in enumerate(self._branches):
            read = tuple(columns([*branch.where, *(one.expression for one in branch.select)]))
            alike.setdefault(read, []).append(member)
        found: SparkColumn | None = None
        for members in alike.values():
            row = self.stage.row_of(self._branches[members[0]])
            found = row if found is None else sf.when(
                ours(MEMBER).isin(members), row).otherwise(found)
        assert found is not None
        return found
