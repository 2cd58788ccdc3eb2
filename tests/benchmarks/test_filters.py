"""The benchmark of filters: its rows, and who is in front when."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.filters.program import WORST, _leaders
from benchmarks.filters.rows import (
    FILES,
    PREDICATES,
    Load,
    block,
    decisive,
    kept,
    write,
    write_module,
)
from benchmarks.filters.sides import Ran
from benchmarks.filters.sql_conditions import SqlLoad
from penstock.events import (
    Event,
    JobDecided,
    JobFinished,
    PathWork,
    SegmentResult,
    StageFigures,
)

LOAD = Load(2, 20_000, costly=2, keeps=((0.5,) * PREDICATES, (0.9,) * PREDICATES))


def bits(number: int) -> np.ndarray:
    table = block(LOAD, number)
    return np.column_stack([table[f"c{n}"].to_numpy() & 1 for n in range(PREDICATES)])


def test_predicates_keep_their_share_and_the_two_of_a_pair_agree() -> None:
    found = bits(0)
    assert found.mean(axis=0) == pytest.approx([0.5] * PREDICATES, abs=0.02)
    agree = np.corrcoef(found.T) / 2 + 0.5
    assert agree[0, 1] == agree[1, 0] == pytest.approx(0.8, abs=0.02)
    assert agree[0, 2] == pytest.approx(0.5, abs=0.02)
    assert bits(1).mean() == pytest.approx(0.9, abs=0.02), "the second half drifts"


def test_only_the_costly_predicate_decides_where_all_others_of_a_query_hold() -> None:
    queries = [[0, 1, 2], [1, 3], [0, 4]]
    open_ = [row for row in bits(0).tolist() if (row[1] and row[2]) or row[4]]
    assert decisive(LOAD, queries) == pytest.approx(len(open_) / LOAD.rows)


def test_the_predicates_of_the_module_keep_what_the_columns_say(tmp_path: Path) -> None:
    sys.path.insert(0, str(write_module(LOAD, tmp_path)))
    try:
        module = importlib.import_module("eight")
        column = block(LOAD, 0)["c3"].combine_chunks()
        assert module.p3(column).tolist() == (column.to_numpy() & 1 == 1).tolist()
        assert module.ROUNDS[0] == 2 * module.ROUNDS[1]
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("eight", None)


def test_blocks_are_files_of_equal_size_and_warm_ones_come_after(tmp_path: Path) -> None:
    data = write(LOAD, tmp_path / "data")
    assert len(list(data.iterdir())) == 2 * FILES
    warm = write(LOAD, tmp_path / "warm", LOAD.blocks, 1)
    ids = pa.concat_tables(map(pq.read_table, sorted(warm.iterdir())))["id"].to_pylist()
    assert ids == list(range(40_000, 60_000))
    both = sum(int(bits(number).all(axis=1).sum()) for number in (0, 1))
    assert kept(LOAD, WORST) == both
    assert len(list(SqlLoad(2, 400).write(tmp_path / "sql").iterdir())) == 2 * FILES


def test_a_block_is_led_by_the_predicate_that_its_job_evaluated_on_the_most_rows() -> None:
    def done(job: int, blocks: tuple[int, ...], rows: tuple[float, ...]) -> tuple[Event, Event]:
        measured = {f"s/q:python{number}": StageFigures(rows_in=some, rows_out=1.0, seconds=1.0)
                    for number, some in enumerate(rows, start=1)}
        return (JobDecided(at=0.0, job=job, kind="segment", reason="", work=PathWork(
                    segment="q", riders=1, stream="s", blocks=blocks, rows=1)),
                JobFinished(at=1.0, job=job, kind="segment", seconds=1.0,
                            result=SegmentResult(rows_in=9, measured=measured)))

    (one, ended), (other, later) = done(1, (0, 1), (9.0, 4.0)), done(2, (2,), (4.0, 9.0))
    assert _leaders(Ran(1.0, 0, [one, other, ended, later])) == {
        0: "p0(c0)", 1: "p0(c0)", 2: "p1(c1)"}
