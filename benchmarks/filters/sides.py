"""The sides: Penstock, Spark's own filter, a hand-written `mapInArrow`, and one that drops all."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.filters.rows import FILES, PREDICATES, Load
from penstock import Engine
from penstock.events import JobFinished, OrderChanged, Summary
from penstock.events import kinds as ev

COLUMNS = ["id", *(f"c{n}" for n in range(PREDICATES))]
SCHEMA = ", ".join(f"{name} INT" for name in COLUMNS)


@dataclass(frozen=True, slots=True)
class Ran:
    """One side over all blocks."""

    seconds: float
    rows: int
    """What came out."""
    events: list[ev.Event] = field(default_factory=list)
    summary: Summary = field(default_factory=Summary)

    @property
    def orders(self) -> list[OrderChanged]:
        """The changes of order."""
        return [event for event in self.events if isinstance(event, OrderChanged)]

    @property
    def jobs(self) -> list[JobFinished]:
        """The jobs."""
        return [event for event in self.events if isinstance(event, JobFinished)]


def penstock(
    spark: Any, data: Path, home: Path, work: Path, queries: Sequence[Sequence[int]],
    filters: str = "a_greedy",
) -> Ran:
    """Queries with these predicates, in this order, over all blocks."""
    sys.modules.pop("eight", None)
    events: list[ev.Event] = []
    with Engine(spark=spark, checkpoint=work, on_event=events.append) as engine:
        engine.execute(
            f"CREATE STREAM s ({SCHEMA}) FROM parquet '{data}' "
            f"OPTIONS (maxFilesPerTrigger = {FILES}); SET filters = '{filters}';"
            + "".join(f"CREATE FUNCTION p{n} FROM 'eight:p{n}';" for n in range(PREDICATES))
            + "".join(f"CREATE QUERY q{number} INTO noop AS SELECT id FROM s WHERE "
                      + " AND ".join(f"p{n}(c{n})" for n in wanted) + ";"
                      for number, wanted in enumerate(queries)), folder=home)
        began = time.perf_counter()
        summary = engine.run(until_drained=True)
        seconds = time.perf_counter() - began
    assert summary.accounting() == [], summary.accounting()
    rows = sum(query.rows_out for query in summary.queries.values())
    return Ran(seconds, rows, events, summary)


def native(spark: Any, data: Path, home: Path, load: Load, order: Sequence[int]) -> Ran:
    """`df.filter(p & ... & p)` with one pandas function per predicate, block by block."""
    from pyspark.sql import functions as sf

    functions = _predicates(home)

    def condition(n: int) -> Any:
        def keep(values: pd.Series) -> pd.Series:
            return pd.Series(functions[n](values.to_numpy()))

        return sf.pandas_udf(keep, "boolean")(f"c{n}")

    def act(frame: Any) -> Any:
        together = condition(order[0])
        for n in order[1:]:
            together &= condition(n)
        return frame.filter(together).select("id")

    return _blocks(spark, data, load, act)


def by_hand(spark: Any, data: Path, home: Path, load: Load, order: Sequence[int]) -> Ran:
    """One `mapInArrow` that evaluates the predicates in this order, each on what is left."""
    functions = _predicates(home)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            left = np.arange(batch.num_rows)
            for n in order:
                if not len(left):
                    break
                left = left[functions[n](batch[f"c{n}"].to_numpy()[left])]
            yield pa.RecordBatch.from_pydict({"id": batch["id"].take(pa.array(left))})

    return _blocks(spark, data, load, lambda frame: frame.mapInArrow(work, "id INT"))


def floor(spark: Any, data: Path, load: Load) -> Ran:
    """A `mapInArrow` that evaluates nothing: what it costs to move the rows to Python."""
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.select(["id"]).slice(0, 0)

    return _blocks(spark, data, load, lambda frame: frame.mapInArrow(work, "id INT"))


def _blocks(spark: Any, data: Path, load: Load, act: Any) -> Ran:
    files = sorted(data.glob("*.parquet"))
    from pyspark.sql import functions as sf

    began, rows = time.perf_counter(), 0
    for first in range(0, len(files), FILES):
        frame = spark.read.schema(SCHEMA).parquet(*map(str, files[first:first + FILES]))
        rows += act(frame).agg(sf.count("*")).first()[0]
    return Ran(time.perf_counter() - began, rows)


def _predicates(home: Path) -> list[Any]:
    """The predicates over NumPy arrays, as anybody would write them."""
    sys.path.insert(0, str(home))
    sys.modules.pop("eight", None)
    try:
        module = importlib.import_module("eight")
    finally:
        sys.path.remove(str(home))
        sys.modules.pop("eight", None)
    rounds, worked = module.ROUNDS, module.worked
    code = worked.__code__

    def made(n: int) -> Any:
        def keep(values: Any) -> Any:  # shipped whole: workers have no module of this name
            import types

            import numpy

            again = types.FunctionType(code, {"np": numpy})
            return again(values, rounds[n])

        return keep

    return [made(n) for n in range(PREDICATES)]
