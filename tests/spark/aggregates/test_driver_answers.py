"""Answers that the driver holds, without Spark: whose they are, of which window, how many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.engine.aggregates.coverage import families_of
from penstock.engine.instructions import RefreshJob, Scan
from penstock.language import bind
from penstock.planning import plan
from penstock.spark.aggregates import driver_answers
from penstock.spark.aggregates.synopsis_store import SynopsisStore
from penstock.synopses import Synopsis

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECOND = 1_000_000
SCHEMA = "ts TIMESTAMP, k INT, x INT"
ASKED = {"a": ("SUM(x)", 2), "b": ("SUM(x)", 1), "c": ("COUNT(*)", 2), "d": ("SUM(x)", 2)}
TEXT = f"CREATE STREAM s ({SCHEMA}) FROM parquet '/nowhere' TIME ts;" + "".join(
    f"CREATE QUERY {name} INTO noop AS SELECT k, {what} AS y, window_start, window_end "
    f"FROM s [WINDOW {seconds} SECONDS SLIDE 1 SECOND] GROUP BY k;"
    for name, (what, seconds) in ASKED.items())


def answered(text: str = TEXT, spark: Any = None) -> tuple[Any, RefreshJob]:
    made = plan(bind(text))
    (group,) = made.groups
    (family,) = families_of(group)
    synopsis = Synopsis([key.type for key in group.keys], [family], group.span)
    synopsis.add({family: pa.table({
        "pane": [0, 1, 1, 2], "k0": pa.array([7, 7, 8, 8], pa.int32()),
        **{f"m{n}": [10, 20, 30, 40] if measure.kind == "sum" else [1, 1, 1, 1]
           for n, measure in enumerate(family.measures)}})})
    lengths = {name: seconds * SECOND // group.pane for name, (_, seconds) in ASKED.items()}
    first = Scan(group=group.id, end=2, queries=tuple(lengths.items()), reason="")
    second = Scan(group=group.id, end=3,
                  queries=(("d", lengths["d"]), ("b", lengths["b"])), reason="")
    refresh = RefreshJob(number=1, group=group.id, pane=group.pane, scans=(first, second),
                         arrived=0.0)
    branches = {member: made.branch(member) for member in refresh.members}
    windows: Any = SynopsisStore
    return windows(spark, 1 << 30, None)._held(refresh, branches, synopsis), refresh


def seconds(value: Any) -> int:
    return int(value.timestamp())


def test_every_query_gets_its_windows() -> None:
    held, refresh = answered()
    table = held.table(refresh.members)
    names = [member.query for member in refresh.members]
    rows = {(names[row["@member"]], seconds(row["window_start"]), seconds(row["window_end"]),
             row["k"], row["y"]) for row in table.to_pylist()}
    assert rows == {
        ("a", 0, 2, 7, 30), ("a", 0, 2, 8, 30), ("d", 0, 2, 7, 30), ("d", 0, 2, 8, 30),
        ("b", 1, 2, 7, 20), ("b", 1, 2, 8, 30), ("c", 0, 2, 7, 2), ("c", 0, 2, 8, 1),
        ("d", 1, 3, 7, 20), ("d", 1, 3, 8, 70), ("b", 2, 3, 8, 40)}
    assert table.num_rows == len(rows)


def test_some_queries_get_theirs_alone() -> None:
    held, refresh = answered()
    a, b, _, d = refresh.members
    assert held.rows([b, d]) == {"b": 3, "d": 4}
    assert held.table([a]).to_pydict()["y"] == [30, 30]


def test_queries_that_ask_the_same_hold_one_answer() -> None:
    held, _ = answered()
    assert held._answers[0] is held._answers[3]
    assert len({id(answer) for answer in held._answers}) == 5


def test_answers_without_rows_hide_no_others(spark: SparkSession) -> None:
    """Spark reads a table batch by batch, and stops at the first that is empty."""
    text = (f"CREATE STREAM s ({SCHEMA}) FROM parquet '/nowhere' TIME ts;"
            "CREATE QUERY a INTO noop AS SELECT SUM(x) + 1 AS y FROM s [WINDOW 1 SECOND];")
    made = plan(bind(text))
    (member,) = made.groups[0].members
    held = driver_answers.DriverAnswers(spark, {member: made.branch(member)})
    for number, values in enumerate(([], [1], [], [2, 3], [])):
        held.add(member, 0, number, pa.record_batch({"agg0": pa.array(values, pa.int64())}))
    assert held.rows([member]) == {"a": 3}
    assert held.table([member]).to_pydict()["y"] == [2, 3, 4]
    nothing = driver_answers.DriverAnswers(spark, {member: made.branch(member)})
    nothing.add(member, 0, 1, pa.record_batch({"agg0": pa.array([], pa.int64())}))
    assert nothing.rows([member]) in ({}, {"a": 0}) and nothing.jobs == 0
    table = nothing.table([member])
    assert table is not None and table.num_rows == 0


COMPUTED = f"CREATE STREAM s ({SCHEMA}) FROM parquet '/nowhere' TIME ts;" + "".join(
    f"CREATE QUERY {name} INTO noop AS SELECT {select} "
    f"FROM s [WINDOW {ASKED[name][1]} SECONDS SLIDE 1 SECOND] GROUP BY k {having};"
    for name, select, having in (
        ("a", "k, SUM(x) AS y", "HAVING y > 100"),
        ("b", "k, SUM(x) * 2 AS y, window_end", ""),
        ("c", "k, COUNT(*) AS y", ""),
        ("d", "SUM(x) / 10 AS Y, k + 1 AS k", "HAVING SUM(x) > 30")))


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.items()) for row in table.to_pylist()), key=repr)


@pytest.mark.spark
def test_what_queries_compute_of_their_answers_is_one_spark_job(spark: SparkSession) -> None:
    from penstock.spark.session import tuned

    held, refresh = answered(COMPUTED, tuned(spark))
    a, b, c, d = refresh.members
    assert held.rows([c]) == {"c": 2}
    assert held.jobs == 0  # whatever is plain needs no Spark
    for members in ([a], [b, c], [d], [a, b, c, d]):
        assert rows_of(held.table(members)) == rows_of(held.project(members).toArrow())
    assert held.rows([a, b, d]) == {"a": 0, "b": 3, "d": 1}
    assert held.jobs == 1


@pytest.mark.spark
def test_very_many_answers_that_spark_computes_are_left_to_it(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_answers, "MOST_ROWS", 3)
    held, refresh = answered(COMPUTED, spark)
    a, _, c, _ = refresh.members
    assert held.table([a]) is None
    assert held.rows([a, c]) is None
    assert held.table([c]).num_rows == 2
