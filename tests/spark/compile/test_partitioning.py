"""How finely runs that call Python are split."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.instructions import SegmentJob
from penstock.model import Block

RUN = SegmentJob(number=1, segment="p", path="p", kind="segment", riders=1, members=(),
          blocks=(Block("s", 0, rows=1000, bytes=0, arrived=0.0),))


def tasks(job: SegmentJob, quantum: float = 1.0) -> int:
    from penstock.spark.compile.partitioning import tasks

    return tasks(job, quantum, cores=4)


def test_short_runs_and_runs_of_which_nothing_is_known_are_left_alone() -> None:
    assert [tasks(replace(RUN, expected=seconds)) for seconds in (0.0, 0.29)] == [1, 1]


def test_long_runs_have_a_task_for_every_core() -> None:
    assert tasks(replace(RUN, expected=30.0)) == 4


def test_runs_that_may_be_overtaken_have_tasks_short_against_the_quantum() -> None:
    run = replace(RUN, expected=1.0, yields=True)
    quanta = (float("inf"), 10.0, 1.0, 0.001)
    assert [tasks(run, quantum) for quantum in quanta] == [4, 4, 24, 120]


def test_there_are_no_more_tasks_than_rows() -> None:
    few = replace(RUN.blocks[0], rows=7)
    assert tasks(replace(RUN, blocks=(few,), expected=6.0, yields=True)) == 7


@pytest.mark.spark
def test_rows_are_dealt_out_for_long_runs_and_gathered_for_short_ones(spark: Any) -> None:
    from penstock.spark.compile.partitioning import dealt

    def partitions(job: SegmentJob, before: int) -> int:
        frame = dealt(spark.range(0, 100, 1, before), job, quantum=1.0, cores=2,
                      kept=before if job.parts else 0)
        assert sorted(row.id for row in frame.collect()) == list(range(100))
        return frame.rdd.getNumPartitions()

    long = replace(RUN, expected=2.0, yields=True)
    large = replace(long, blocks=(replace(RUN.blocks[0], bytes=5_000_000),))
    assert [partitions(long, before) for before in (1, 30)] == [24, 24], "it was one small file"
    assert [partitions(large, before) for before in (1, 30)] == [24, 30]
    train = replace(large, yields=False)
    assert [partitions(train, blocks) for blocks in (3, 4, 5)] == [2, 4, 5], "3: a core idles"
    kept = replace(RUN, parts=(7,))
    assert [partitions(kept, before) for before in (1, 30)] == [1, 2]
    assert [partitions(replace(kept, expected=0.4, yields=True), n) for n in (1, 30)] == [6, 6]
    assert partitions(replace(kept, expected=2.0), 3) == 2
    assert partitions(RUN, 30) == 30


@pytest.mark.spark
def test_what_runs_have_kept_tells_by_how_many_tasks_it_is_read(spark: Any) -> None:
    from penstock.spark.jobs.intermediate import IntermediateStore
    from penstock.spark.jobs.rows_read import BlockReaders, Reading

    through = SimpleNamespace(part=lambda path, member, frame, *stages: SimpleNamespace(
        frame=frame, counts=dict))
    parts: Any = IntermediateStore(spark)
    path: Any = SimpleNamespace(panes=False)
    for count in (2, 5):
        kept = replace(RUN, number=count, members=("m",))  # type: ignore[arg-type]
        nothing = Reading.begun(spark, "no jobs", kept, (), BlockReaders())
        assert parts.keep(through, path, kept, spark.range(0, 100, 1, count), nothing).rows == 100
    assert parts.tasks([]) == 0
    assert parts.tasks([2, 5]) == parts.frame([2, 5]).rdd.getNumPartitions() == 7
    parts.close()
