"""SQL conditions alone: rows, and the two sides that filter them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.filters.rows import FILES
from benchmarks.filters.sides import Ran
from penstock import Engine
from penstock.events import kinds as ev

SCHEMA = "id INT, port INT, level STRING, path STRING"
CONDITIONS = ("path RLIKE '^/usr.*/[0-9a-f]+/x[0-9]*[1-4][0-9]*ab$'", "CAST(level AS DOUBLE) > 0.5",
              "port < 10")
"""The most costly first: the comparison keeps a tenth of the rows."""


@dataclass(frozen=True, slots=True)
class SqlLoad:
    """Blocks of rows with text."""

    blocks: int
    rows: int

    def write(self, folder: Path) -> Path:
        """The blocks, each as some files of equal size."""
        folder.mkdir(parents=True)
        each = self.rows // FILES
        for number in range(self.blocks * FILES):
            chance = np.random.default_rng([7, number])
            table = pa.table({
                "id": np.arange(number * each, (number + 1) * each, dtype=np.int32),
                "port": chance.integers(0, 100, each, dtype=np.int32),
                "level": pc.cast(pa.array(chance.random(each).round(6)), pa.string()),
                "path": pa.array([f"/usr/local/share/{one:x}/x{one}ab" for one in
                                  chance.integers(0, 1 << 30, each).tolist()])})
            pq.write_table(table, folder / f"{number:05d}.parquet")
        return folder


def penstock_sql(spark: Any, data: Path, work: Path, conditions: Sequence[str]) -> Ran:
    """One query with these conditions."""
    events: list[ev.Event] = []
    with Engine(spark=spark, checkpoint=work, on_event=events.append) as engine:
        engine.execute(
            f"CREATE STREAM s ({SCHEMA}) FROM parquet '{data}' "
            f"OPTIONS (maxFilesPerTrigger = {FILES});"
            f"CREATE QUERY q INTO noop AS SELECT id FROM s WHERE {' AND '.join(conditions)};")
        began = time.perf_counter()
        summary = engine.run(until_drained=True)
        seconds = time.perf_counter() - began
    assert summary.accounting() == [], summary.accounting()
    return Ran(seconds, summary.queries["q"].rows_out, events, summary)


def native_sql(spark: Any, data: Path, conditions: Sequence[str]) -> Ran:
    """Spark's own filter, block by block."""
    from pyspark.sql import functions as sf

    files = sorted(map(str, data.glob("*.parquet")))
    began, rows = time.perf_counter(), 0
    for first in range(0, len(files), FILES):
        frame = spark.read.schema(SCHEMA).parquet(*files[first:first + FILES])
        kept = frame.where(" AND ".join(conditions)).select("id")
        rows += kept.agg(sf.count("*")).first()[0]
    return Ran(time.perf_counter() - began, rows)
