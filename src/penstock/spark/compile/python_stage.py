"""The Python stage: calls of registered functions, evaluated on Arrow batches beside Spark.

The conditions come first, then the columns of the answer, for the remaining rows. A call whose
arguments need other calls waits for them: every level of nesting is one trip to Python, shared by
all calls of that level. Spark computes the arguments, and only the columns that the query reads
travel.
"""

from __future__ import annotations

import inspect
import os
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from types import ModuleType
from typing import Any

from pyspark import cloudpickle  # the pickler with which Spark ships functions
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

import penstock.functions
from penstock.arrow import arrow_type
from penstock.functions import PythonFunction
from penstock.language import modules_in
from penstock.model import (
    OURS,
    STREAM,
    Branch,
    Call,
    Column,
    Expression,
    PythonCall,
    is_expensive,
    walk,
)
from penstock.planning.shapes import columns
from penstock.spark.compile import python_worker as batches
from penstock.spark.compile.columns import all_of, compiled, ours
from penstock.spark.compile.expressions import data_type
from penstock.spark.compile.python_worker import FunctionCall, TaskReport
from penstock.spark.compile.worker_reports import Trip, worker_reports
from penstock.spark.delivery.text_formats import JSON

ERROR = "@error"


class PythonStage:
    """The expensive part of a branch, run over rows that passed its cheap conditions."""

    def __init__(self, branch: Branch, function: Callable[[str], PythonFunction]) -> None:
        """``function`` finds a registered function by its name in SQL."""
        self._function, self._branch = function, branch
        self._select = [output.expression for output in branch.select]
        self._conditions = [condition for condition in branch.where if is_expensive(condition)]
        self._results = _numbered([*self._conditions, *self._select])
        # mapInArrow does not accept every name that a user may choose, so columns travel under ours
        self._carried = {
            column: Column(f"@in{n}", column.type, OURS)
            for n, column in enumerate(columns([*branch.where, *self._select]))
            if column.source >= STREAM
        }

    @property
    def outputs(self) -> list[Expression]:
        """The columns of the answer over the frame that `run` gives."""
        return [self._settled(expression) for expression in self._select]

    @property
    def row(self) -> SparkColumn:
        """The row as JSON: the columns that the query reads."""
        if not self._carried:
            return sf.lit("{}")
        return sf.to_json(sf.struct(*self.shown), {**JSON, "ignoreNullFields": "false"})

    @property
    def shown(self) -> list[SparkColumn]:
        """The columns that the query reads, by their own names."""
        return [ours(at.name).alias(self._shown(c)) for c, at in self._carried.items()]

    @property
    def conditions(self) -> int:
        """How many conditions call Python."""
        return len(self._conditions)

    def begin(self, rows: DataFrame) -> DataFrame:
        """The rows with the columns that travel, and no error yet."""
        kept = [compiled(column).alias(at.name) for column, at in self._carried.items()]
        return rows.select(*kept, sf.lit(None).cast("string").alias(ERROR))

    def held(
        self, frame: DataFrame, first: int, last: int, stages: Sequence[str]
    ) -> tuple[DataFrame, list[Trip]]:
        """The rows for which some of the conditions hold, and those for which one raised.

        ``stages`` has the names of these conditions, for the worker reports on the trips.
        """
        conditions = self._conditions[first:last]
        frame, trips = self._evaluated(frame, conditions, stages)
        settled = all_of(self._settled(condition) for condition in conditions)
        if settled is not None:
            frame = frame.where(ours(ERROR).isNotNull() | settled)
        return frame, trips

    def answered(self, frame: DataFrame, stage: str) -> tuple[DataFrame, list[Trip]]:
        """The rows with the results of the calls in the answer."""
        return self._evaluated(frame, self._select, [stage] * len(self._select))

    def _evaluated(
        self, frame: DataFrame, expressions: Sequence[Expression], stages: Sequence[str]
    ) -> tuple[DataFrame, list[Trip]]:
        """The frame with the results of all calls in some expressions, level by level."""
        known = set(frame.columns)
        owners = dict[PythonCall, str]()
        for expression, stage in zip(expressions, stages, strict=True):
            for call in _calls([expression]):
                if self._results[call].name not in known:
                    owners.setdefault(call, stage)
        trips = []
        for level in sorted({_level(call) for call in owners}):
            calls = [call for call in owners if _level(call) == level]
            number, tell = worker_reports(frame.sparkSession.sparkContext).begin()
            frame = self._trip(frame, calls, tell)
            trips.append(Trip(number, tuple(owners[call] for call in calls),
                              tuple(call in self._conditions for call in calls)))
        return frame, trips

    def _trip(
        self, frame: DataFrame, calls: Sequence[PythonCall], tell: Callable[[TaskReport], None]
    ) -> DataFrame:
        """One pass through Python for calls whose arguments Spark can compute."""
        kept = [name for name in frame.columns if name != ERROR]
        steps = [self._step(call) for call in calls]
        args = [
            compiled(self._settled(arg)).alias(name)
            for call, step in zip(calls, steps, strict=True)
            for arg, name in zip(call.args, step.args, strict=True)
        ]
        schema = StructType(
            [StructField(name, frame.schema[name].dataType) for name in kept]
            + [StructField(ERROR, StringType())]
            + [StructField(step.result, data_type(call.type))
               for call, step in zip(calls, steps, strict=True)]
        )  # fmt: skip
        work = partial(batches.evaluate, steps, kept, ERROR, tell=tell)
        return frame.select("*", *args).mapInArrow(work, schema)

    def _step(self, call: PythonCall) -> FunctionCall:
        function, result = self._function(call.function), self._results[call].name
        ship_by_value(function)
        return FunctionCall(
            result=result,
            args=tuple(f"{result}_{n}" for n in range(len(call.args))),
            function=function.call,
            form=function.columns,
            type=arrow_type(call.type),
            guard=call in self._conditions,
        )

    def _settled(self, expression: Expression) -> Expression:
        """The expression over the frame: columns at their places, results in place of calls."""
        if isinstance(expression, Column):
            return self._carried[expression]
        if isinstance(expression, PythonCall):
            return self._results[expression]
        if isinstance(expression, Call):
            return replace(expression, args=tuple(self._settled(a) for a in expression.args))
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
    for module in (batches, penstock.functions, *_neighbours(function.call)):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def _neighbours(call: Callable[..., Any]) -> Iterator[ModuleType]:
    """The loaded modules in the folder of a user's function; none for an installed package.

    The function itself knows its file: another application's module may have the same name.
    """
    file = getattr(inspect.unwrap(call), "__globals__", {}).get("__file__")
    if file is None or _is_installed(file):
        return
    for module in modules_in(os.path.dirname(os.path.abspath(file))):
        if module.__name__ != "__main__":
            yield module


def _is_installed(file: str) -> bool:
    paths = sysconfig.get_paths()
    return any(file.startswith(paths[kind]) for kind in ("stdlib", "purelib", "platlib"))


def _numbered(expressions: Sequence[Expression]) -> dict[PythonCall, Column]:
    calls = dict.fromkeys(_calls(expressions))
    return {call: Column(f"@py{n}", call.type, OURS) for n, call in enumerate(calls)}


def _calls(expressions: Sequence[Expression]) -> list[PythonCall]:
    """The calls in expressions, each once, in the order written."""
    parts = (part for expression in expressions for part in walk(expression))
    return list(dict.fromkeys(part for part in parts if isinstance(part, PythonCall)))


def _level(call: PythonCall) -> int:
    return 1 + max((_level(inner) for inner in _calls(call.args)), default=0)
