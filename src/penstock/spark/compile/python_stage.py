"""The Python stage: calls of registered functions, evaluated on Arrow batches beside Spark.

The conditions come first, then the columns of the answer, for the remaining rows. Conditions that
one call decides go in one trip, each on what the others leave (`conjunction_worker`). Other
conditions need Spark again to combine the values of their calls. A call whose arguments need
other calls waits for them: every level of nesting is one trip to Python, shared by all calls of
that level. Spark computes the arguments, and only the columns that the query reads travel.

A row for which a condition raises goes on through the other conditions. Its error is told with the
number of the condition that is to blame, since the condition that is written first has precedence.
"""

from __future__ import annotations

import inspect
import os
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import groupby
from types import ModuleType
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle  # the pickler with which Spark ships functions
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

import penstock.functions
from penstock.arrow import arrow_type
from penstock.engine.instructions import AS_WRITTEN, Evaluation
from penstock.functions import PythonFunction
from penstock.language import modules_in
from penstock.model import (
    BOOLEAN,
    OURS,
    PROGRAM,
    STREAM,
    Branch,
    Call,
    Column,
    Expression,
    Literal,
    PythonCall,
    is_expensive,
    walk,
)
from penstock.planning.conjunctions import conditions, decided_by
from penstock.planning.shapes import columns
from penstock.policies.filters.model import drop_patterns
from penstock.spark.compile import (
    answer_worker,
    conjunction_worker,
    file_worker,
    own_order,
    shared_worker,
)
from penstock.spark.compile import python_worker as batches
from penstock.spark.compile.columns import compiled, ours
from penstock.spark.compile.conjunction_worker import Columns, Predicate, Sampling
from penstock.spark.compile.expressions import data_type
from penstock.spark.compile.file_scans import FileScan
from penstock.spark.compile.python_worker import ConstantTest, FunctionCall, TaskReport
from penstock.spark.compile.worker_reports import Trip, worker_reports
from penstock.spark.delivery.text_formats import JSON

ERROR = "@error"
BLAMED = "@blamed"
"""The number of the condition whose error is told, as written."""


class PythonStage:
    """The expensive part of a branch, run over rows that passed its cheap conditions."""

    def __init__(
        self, branch: Branch, function: Callable[[str], PythonFunction],
        evaluation: Evaluation = AS_WRITTEN, computed: Iterable[Expression] = (),
        scan: FileScan | None = None,
    ) -> None:
        """``function`` finds a registered function by its name in SQL.

        Calls in what is ``computed`` have their values kept (`planning.conjunctions`). With a
        ``scan`` the workers of the first trip read the rows themselves.
        """
        self._function, self._branch, self._evaluation = function, branch, evaluation
        self._scan = scan
        found = conditions(branch.where, computed)
        order = evaluation.order or range(len(found.movable))
        self._movable = [found.movable[number] for number in order]
        self._conditions = [*self._movable, *found.fixed]
        self._written = {condition: branch.where.index(condition)
                         for condition in self._conditions}
        self._predicates = {*self._movable, *(one for one in found.fixed
                                              if decided_by(one) is one)}
        self._select = [self._met(output.expression) for output in branch.select]
        self._results = _numbered([*self._conditions, *self._select])
        # mapInArrow does not accept every name that a user may choose, so columns travel under ours
        self.carried = {
            column: Column(f"@in{n}", column.type, OURS)
            for n, column in enumerate(columns([*branch.where, *self._select]))
            if column.source >= STREAM or column in self._select
        }
        """The columns that travel, with their places in the frame."""

    @property
    def columns(self) -> tuple[Column, ...] | None:
        """The columns that travel, if Spark computes nothing before the first trip."""
        branch, carried = self._branch, tuple(self.carried)
        if branch.lookups or not self._conditions or not all(map(is_expensive, branch.where)) or (
                any(column.source != STREAM for column in carried)):
            return None
        if self._conditions[0] not in self._predicates:
            return None
        args = [arg for condition in self._predicates for arg in _call_of(condition).args]
        return carried if all(isinstance(arg, Column) for arg in args) else None

    @property
    def outputs(self) -> list[Expression]:
        """The columns of the answer over the frame that `run` gives."""
        return [self.settled(expression) for expression in self._select]

    @property
    def row(self) -> SparkColumn:
        """The row as JSON: the columns that the query reads."""
        return self.row_of(self._branch)

    def row_of(self, branch: Branch) -> SparkColumn:
        """The row as JSON: the columns that one of several branches reads."""
        shown = self.shown_of(branch)
        if not shown:
            return sf.lit("{}")
        return sf.to_json(sf.struct(*shown), {**JSON, "ignoreNullFields": "false"})

    @property
    def shown(self) -> list[SparkColumn]:
        """The columns that the query reads, by their own names."""
        return self.shown_of(self._branch)

    def shown_of(self, branch: Branch) -> list[SparkColumn]:
        """The columns that one of several branches reads, by their own names."""
        selected = [self._met(output.expression) for output in branch.select]
        read = columns([*branch.where, *selected])
        return [ours(self.carried[column].name).alias(self._shown(column))
                for column in read if column.source >= STREAM]

    @property
    def conditions(self) -> int:
        """How many conditions call Python."""
        return len(self._conditions)

    def begin(self, rows: DataFrame, more: Sequence[SparkColumn] = ()) -> DataFrame:
        """The rows with the columns that travel, and ``more``. The first trip adds the errors."""
        return rows if self._scan is not None else rows.select(
            *(compiled(column).alias(at.name) for column, at in self.carried.items()), *more)

    def held(
        self, frame: DataFrame, first: int, last: int, stages: Sequence[str]
    ) -> tuple[DataFrame, list[Trip]]:
        """The rows for which some of the conditions hold, and those for which one raised.

        ``stages`` has the names of these conditions, for the worker reports on the trips.
        """
        trips: list[Trip] = []
        named = list(zip(self._conditions[first:last], stages, strict=True))
        for alone, run in groupby(named, key=lambda one: one[0] in self._predicates):
            asked, names = zip(*run, strict=True)
            work = self._in_conjunction if alone else self._combined
            frame, made = work(frame, asked, names)
            trips += made
        return frame, trips

    def answered(self, frame: DataFrame, stage: str) -> tuple[DataFrame, list[Trip]]:
        """The rows with the results of the calls in the answer."""
        frame, trips = self._evaluated(
            frame, self._select, [stage] * len(self._select), [ERROR] * len(self._select))
        return frame if ERROR in frame.columns else _faultless(frame), trips

    # --- conditions that are predicates by themselves ------------------------------------------

    def _in_conjunction(
        self, frame: DataFrame, asked: Sequence[Expression], stages: Sequence[str]
    ) -> tuple[DataFrame, list[Trip]]:
        """One trip for predicates, in this order, each on what the others leave."""
        sampled = self._sampled(asked)
        reports = worker_reports(frame.sparkSession.sparkContext)
        number, tell = reports.begin()
        profile, told = reports.begin() if asked[0] in self._movable else (None, None)
        given = self.given(frame)
        kept = tuple(name for name in given.names if name not in (ERROR, BLAMED))
        steps = {one: self.decision(one) for one in (*asked, *sampled)}
        schema = StructType(
            [given[name] for name in kept]
            + [StructField(ERROR, StringType()), StructField(BLAMED, IntegerType())])
        work = partial(
            conjunction_worker.evaluate, [self._predicate(one, steps) for one in asked],
            Columns(kept, ERROR, BLAMED), tell=tell, profile=told,
            sampling=self._sampling(asked, sampled, steps))
        trip = Trip(number, tuple(stages), (True,) * len(asked), profile)
        return self.trip(frame, work, schema, steps), [trip]

    def _predicate(
        self, condition: Expression, steps: Mapping[Expression, FunctionCall]
    ) -> Predicate:
        return Predicate(steps[condition], self._written[condition])

    def _sampled(self, asked: Sequence[Expression]) -> list[Expression]:
        """What is profiled in a trip that begins with a predicate: the conjunction from there on.

        Their arguments go to Python in every order, so that the plan of a job is always the same.
        """
        if not self._evaluation.rate or asked[0] not in self._movable:
            return []
        return self._movable[self._movable.index(asked[0]):]

    def _sampling(
        self, asked: Sequence[Expression], sampled: Sequence[Expression],
        steps: Mapping[Expression, FunctionCall],
    ) -> Sampling | None:
        if not sampled:
            return None
        passed = len(self._movable) - len(sampled)
        return Sampling(
            self._evaluation.rate, tuple(self._predicate(one, steps) for one in sampled),
            tuple(tuple(place - passed for place in later)
                  for later in self._evaluation.unasked[passed:]),
            sum(1 for one in asked if one in self._movable), self._evaluation.seed,
            self._evaluation.per_partition, self._evaluation.enough, self._evaluation.lookahead)

    def given(self, frame: DataFrame) -> StructType:
        """The columns that a trip is given."""
        if not self._reads(frame):
            return frame.schema
        return StructType([StructField(at.name, data_type(at.type))
                           for at in self.carried.values()])

    def trip(
        self, frame: DataFrame, work: Callable[..., Any], schema: StructType,
        steps: Mapping[PythonCall, FunctionCall] | Mapping[Expression, FunctionCall],
    ) -> DataFrame:
        """What comes back from a trip of the rows, or of those that workers read themselves."""
        if self._scan is not None and self._reads(frame):
            work = self._scan.shown_to(work, {
                column: at.name for column, at in self.carried.items()})
            return frame.mapInArrow(work, schema)
        return frame.select("*", *self.arguments(steps)).mapInArrow(work, schema)

    def _reads(self, frame: DataFrame) -> bool:
        """Whether workers read the rows: in the first trip, before which there are no errors."""
        return self._scan is not None and ERROR not in frame.columns

    # --- conditions whose calls Spark combines -------------------------------------------------

    def _combined(
        self, frame: DataFrame, asked: Sequence[Expression], stages: Sequence[str]
    ) -> tuple[DataFrame, list[Trip]]:
        """The rows left by conditions that have Python calls inside them."""
        raised = {condition: f"@raised{self._written[condition]}" for condition in asked}
        frame, trips = self._evaluated(frame, asked, stages, list(raised.values()))
        for condition, name in raised.items():
            frame = frame.where(ours(name).isNotNull() | compiled(self.settled(condition)))
        if ERROR not in frame.columns:
            frame = _faultless(frame)
        for condition, name in raised.items():
            number = sf.lit(self._written[condition])
            first = ours(name).isNotNull() & (ours(BLAMED).isNull() | (ours(BLAMED) > number))
            frame = frame.withColumns({
                ERROR: sf.when(first, ours(name)).otherwise(ours(ERROR)),
                BLAMED: sf.when(first, number).otherwise(ours(BLAMED))})
        left = [ours(name) for name in frame.columns if name not in raised.values()]
        return frame.select(*left), trips

    def _evaluated(
        self, frame: DataFrame, expressions: Sequence[Expression], stages: Sequence[str],
        errors: Sequence[str],
    ) -> tuple[DataFrame, list[Trip]]:
        """The frame with the results of all calls in some expressions, level by level.

        The errors of an expression go into the column that ``errors`` names for it.
        """
        known = set(frame.columns)
        owners, blamed = dict[PythonCall, str](), dict[PythonCall, tuple[str, ...]]()
        for expression, stage, error in zip(expressions, stages, errors, strict=True):
            for call in _calls([expression]):
                if self._results[call].name not in known:
                    owners.setdefault(call, stage)
                    blamed[call] = tuple(dict.fromkeys((*blamed.get(call, ()), error)))
        trips = []
        for level in sorted({_level(call) for call in owners}):
            calls = [call for call in owners if _level(call) == level]
            number, tell = worker_reports(frame.sparkSession.sparkContext).begin()
            steps = {call: self.step(call, blamed[call]) for call in calls}
            frame = self._trip(frame, steps, list(dict.fromkeys(errors)), tell)
            trips.append(Trip(number, tuple(owners[call] for call in calls),
                              (False,) * len(calls)))
        return frame, trips

    def _trip(
        self, frame: DataFrame, steps: Mapping[PythonCall, FunctionCall], errors: Sequence[str],
        tell: Callable[[TaskReport], None],
    ) -> DataFrame:
        """One pass through Python for calls whose arguments Spark can compute."""
        kept = [name for name in frame.columns if name not in errors]
        schema = StructType(
            [StructField(name, frame.schema[name].dataType) for name in kept]
            + [StructField(name, StringType()) for name in errors]
            + [StructField(step.result, data_type(call.type)) for call, step in steps.items()])
        work = partial(batches.evaluate, list(steps.values()), kept, errors, tell=tell)
        return self.trip(frame, work, schema, steps)

    def step(self, call: PythonCall, errors: tuple[str, ...] = (ERROR,)) -> FunctionCall:
        """What a worker needs to know of a call."""
        function, result = self._function(call.function), self._results[call].name
        ship_by_value(function)
        return FunctionCall(
            result=result,
            args=tuple(self.carried[arg].name if isinstance(arg, Column) else f"{result}_{n}"
                       for n, arg in enumerate(call.args)),
            function=function.call,
            form=function.columns,
            type=arrow_type(call.type),
            errors=errors,
        )

    def decision(self, condition: Expression) -> FunctionCall:
        """What a worker needs to know to decide a condition that one call decides."""
        step = self.step(_call_of(condition))
        if not isinstance(condition, Call):
            return step
        _, constant = condition.args
        assert isinstance(constant, Literal)
        return replace(step, test=ConstantTest(condition.function,
                                       pa.scalar(constant.value, arrow_type(constant.type))))

    def arguments(
        self, steps: Mapping[PythonCall, FunctionCall] | Mapping[Expression, FunctionCall]
    ) -> list[SparkColumn]:
        """The arguments that Spark computes; a column of the row travels already.

        Two conditions may compare the value of one call, which has its arguments once.
        """
        named = {name: arg for condition, step in steps.items()
                 for arg, name in zip(_call_of(condition).args, step.args, strict=True)
                 if not isinstance(arg, Column)}
        return [compiled(self.settled(arg)).alias(name) for name, arg in named.items()]

    def _met(self, expression: Expression) -> Expression:
        """An expression over rows that have met all conditions: predicates are true."""
        if expression in self._predicates:
            return Literal(True, BOOLEAN)
        if isinstance(expression, Call | PythonCall):
            return replace(expression, args=tuple(self._met(arg) for arg in expression.args))
        return expression

    def settled(self, expression: Expression) -> Expression:
        """The expression over the frame: columns at their places, results in place of calls."""
        if isinstance(expression, Column):
            return self.carried[expression]
        if isinstance(expression, PythonCall):
            return self._results[expression]
        if isinstance(expression, Call):
            return replace(expression, args=tuple(self.settled(a) for a in expression.args))
        return expression

    def _shown(self, column: Column) -> str:
        if column.source == STREAM:
            return column.name
        streams = self._branch.streams
        named = [*streams, *(lookup.relation for lookup in self._branch.lookups)]
        return f"{named[column.source]}.{column.name}"


@lru_cache(maxsize=256)  # it examines every loaded module, once per function
def ship_by_value(function: PythonFunction) -> None:
    """Have a function's module, and those beside it, pickled whole: workers may lack them."""
    for module in (answer_worker, batches, conjunction_worker, drop_patterns, file_worker,
                   own_order, shared_worker, penstock.functions,
                   *_neighbours(function.call)):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def _neighbours(call: Callable[..., Any]) -> Iterator[ModuleType]:
    """The loaded modules in the folder of a user's function; none for an installed package.

    The function itself knows its file: another application's module may have the same name.
    """
    known = getattr(inspect.unwrap(call), "__globals__", {})
    file = known.get("__file__")
    if file is None and known.get("__name__") == PROGRAM:
        file = "notebook"  # a cell has no file; the modules beside it are in the folder it works in
    if file is None or _is_installed(file):
        return
    for module in modules_in(os.path.dirname(os.path.abspath(file))):
        if module.__name__ != PROGRAM:
            yield module


def _is_installed(file: str) -> bool:
    paths = sysconfig.get_paths()
    return any(file.startswith(paths[kind]) for kind in ("stdlib", "purelib", "platlib"))


def _faultless(frame: DataFrame) -> DataFrame:
    """Rows that no function has raised for so far."""
    return frame.withColumns({ERROR: sf.lit(None).cast("string"),
                              BLAMED: sf.lit(None).cast("int")})


def _numbered(expressions: Sequence[Expression]) -> dict[PythonCall, Column]:
    calls = dict.fromkeys(_calls(expressions))
    return {call: Column(f"@py{n}", call.type, OURS) for n, call in enumerate(calls)}


def _calls(expressions: Sequence[Expression]) -> list[PythonCall]:
    """The calls in expressions, each once, in the order written."""
    parts = (part for expression in expressions for part in walk(expression))
    return list(dict.fromkeys(part for part in parts if isinstance(part, PythonCall)))


def _call_of(condition: Expression) -> PythonCall:
    """The call that decides a condition, or the call itself."""
    call = decided_by(condition) or condition
    assert isinstance(call, PythonCall)
    return call


def _level(call: PythonCall) -> int:
    return 1 + max((_level(inner) for inner in _calls(call.args)), default=0)
