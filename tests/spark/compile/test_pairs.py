"""The pairs of a scan: one plan, whatever the times and the window of the scan are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from penstock.engine.instructions import JoinSide, ProbeScan
from penstock.language import bind
from penstock.model import Block
from penstock.plan import Member
from penstock.planning import plan
from penstock.spark.compile.compiler import Compiler
from penstock.spark.storage.spool import PLACE

pytestmark = pytest.mark.spark
SECOND = 1_000_000


def test_the_scans_of_later_blocks_are_not_compiled_again(spark):
    """A literal time would be compiled into the code of each block."""
    application = bind("".join(
        f"CREATE STREAM {name} (ts TIMESTAMP, k INT, v INT) FROM rate TIME ts;" for name in "ab")
        + "CREATE QUERY q AS SELECT A.v, B.v AS w FROM a A, b B WHERE A.k = B.k WINDOW 9 SECONDS;")
    made = plan(application)
    compiler = Compiler(spark, application, made, lambda name: None, lambda name: None)
    table = pa.table({"ts": pa.array([n * SECOND for n in range(200)], pa.timestamp("us", "UTC")),
                      "k": pa.array([n % 7 for n in range(200)], pa.int32()),
                      "v": pa.array(range(200), pa.int32())})
    held = spark.createDataFrame(table).persist()

    def rows(stream: str, numbers: Sequence[int]) -> DataFrame:
        return held

    sides = tuple(JoinSide(fresh=(block,), window=(block,))
                  for block in (Block(name, 0, 200, 3200, 0.0) for name in "ab"))
    scan = ProbeScan(since=50 * SECOND, until=60 * SECOND, nearest=0, farthest=9 * SECOND,
                     sides=sides, members=(Member("q", 0),))
    compiled = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()

    def found(scan: ProbeScan) -> int:
        frame = compiler.paired(made.joins[0], scan.members, [scan], rows).frame
        return sum(1 for _ in frame.collect())

    try:
        def expected(scan: ProbeScan) -> int:
            reach = min(scan.farthest, 9 * SECOND)
            return sum(1 for one in range(200) for other in range(200)
                       if one % 7 == other % 7 and scan.since <= max(one, other) * SECOND
                       < scan.until and abs(one - other) * SECOND < reach)

        assert found(scan) == expected(scan) > 20
        before = compiled.getCount()
        for later in (replace(scan, since=90 * SECOND, until=97 * SECOND),
                      replace(scan, since=150 * SECOND, until=151 * SECOND, farthest=8 * SECOND)):
            assert found(later) == expected(later) > 0
        assert compiled.getCount() == before
    finally:
        held.unpersist()


def test_the_pairs_of_a_hot_key_are_made_by_all_tasks(spark):
    """Fresh rows are broadcast, so the window is not shuffled by key."""
    application = bind("".join(
        f"CREATE STREAM {name} (ts TIMESTAMP, k INT, v INT) FROM rate TIME ts;" for name in "ab")
        + "CREATE QUERY q AS SELECT A.v, B.v AS w FROM a A, b B WHERE A.k = B.k WINDOW 9 SECONDS;")
    made = plan(application)
    compiler = Compiler(spark, application, made, lambda name: None, lambda name: None)
    held = spark.range(0, 200, 1, 4).selectExpr(
        f"timestamp_micros(id * {SECOND} div 4) AS ts", "1 AS k", "CAST(id AS INT) AS v")
    sides = tuple(JoinSide(fresh=(block,), window=(block,))
                  for block in (Block(name, 0, 200, 3200, 0.0) for name in "ab"))
    scan = ProbeScan(since=0, until=50 * SECOND, nearest=0, farthest=9 * SECOND, sides=sides,
                     members=(Member("q", 0),))
    frame = compiler.paired(made.joins[0], scan.members, [scan], lambda *_: held).frame
    found = frame.groupBy(sf.spark_partition_id()).count().collect()
    pairs = sum(abs(one - other) < 36 for one in range(200) for other in range(200))
    assert sum(count for _, count in found) == pairs
    assert max(count for _, count in found) < 0.4 * pairs


def test_the_pairs_of_a_large_window_of_rows_are_found_by_several_tasks(spark, monkeypatch):
    """One task has numbered the rows."""
    monkeypatch.setattr("penstock.spark.compile.row_pairs.SPREAD", 400)
    application = bind("".join(
        f"CREATE STREAM {name} (ts TIMESTAMP, k INT, v INT) FROM rate TIME ts;" for name in "ab")
        + "CREATE QUERY q AS SELECT A.v, B.v AS w FROM a A, b B WHERE A.k = B.k WINDOW 20 ROWS;")
    made = plan(application)
    compiler = Compiler(spark, application, made, lambda name, _: None, lambda name: None)
    held = spark.range(0, 200, 1, 4).selectExpr(
        f"timestamp_micros(id * {SECOND}) AS ts", "1 AS k", "CAST(id AS INT) AS v",
        f"struct(0 AS file, id AS row) AS `{PLACE}`")
    sides = tuple(JoinSide(fresh=(block,), window=(block,))
                  for block in (Block(name, 0, 200, 3200, 0.0) for name in "ab"))
    scan = ProbeScan(since=0, until=200 * SECOND, nearest=0, farthest=20, sides=sides,
                     members=(Member("q", 0),))
    frame = compiler.paired(made.joins[0], scan.members, [scan], lambda *_: held).frame
    found = frame.groupBy(sf.spark_partition_id()).count().collect()
    pairs = sum(abs(one - other) < 20 for one in range(200) for other in range(200))
    assert sum(count for _, count in found) == pairs
    assert max(count for _, count in found) < 0.6 * pairs, "there are two tasks and more"
