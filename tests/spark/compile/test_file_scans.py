"""Workers read the columns of files themselves: every row once, and only what Spark would read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.model import Column, Type
from penstock.spark.compile import file_scans
from penstock.spark.compile.file_scans import FileScan, LocalFile, divided, scan_of
from penstock.spark.compile.file_worker import FileColumn, Piece, read, through

INT, BIGINT, DOUBLE, STRING, TIMESTAMP = map(
    Type, ("INT", "BIGINT", "DOUBLE", "STRING", "TIMESTAMP"))


def shown(scan: FileScan, names: dict[Column, str]) -> list[list[dict[str, object]]]:
    """By task, the rows that its work is shown."""
    def work(batches: Sequence[pa.RecordBatch]) -> list[dict[str, object]]:
        return [row for batch in batches for row in batch.to_pylist()]

    act = scan.shown_to(work, names)
    return [act([pa.RecordBatch.from_pydict({"id": [task]})]) for task in range(len(scan.tasks))]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(files=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=3),
       tasks=st.integers(1, 7), part=st.integers(1, 5))
def test_every_row_is_shown_once_and_in_order_whatever_the_files_and_tasks(
    tmp_path: Path, files: list[list[int]], tasks: int, part: int
) -> None:
    stored, ids = [], 0
    for number, groups in enumerate(files):
        path = tmp_path / f"{number}.parquet"
        schema = pa.schema([("name", pa.string()), ("id", pa.int32()), ("other", pa.float64())])
        with pq.ParquetWriter(path, schema) as writer:
            for rows in groups:
                numbers = list(range(ids, ids + rows))
                ids += rows
                writer.write_table(pa.table({
                    "name": [None if n % 3 == 1 else str(n) for n in numbers], "id": numbers,
                    "other": [0.5] * rows}, schema))
        stored.append(LocalFile(path, is_ours=False))
    name, id = Column("name", STRING), Column("id", BIGINT)
    before, file_scans.PART_ROWS = file_scans.PART_ROWS, part
    try:
        scan = scan_of(stored, (name, id), ids, tasks)
    finally:
        file_scans.PART_ROWS = before
    assert scan is not None
    found = shown(scan, {name: "@in0", id: "@in1"})
    assert [row for task in found for row in task] == [
        {"@in0": None if n % 3 == 1 else str(n), "@in1": n} for n in range(ids)]
    sizes = [len(task) for task in found]
    assert max(sizes) - min(sizes) <= 1


@given(rows=st.lists(st.integers(0, 50), max_size=8), tasks=st.integers(1, 9))
def test_tasks_divide_the_rows_without_gaps(rows: list[int], tasks: int) -> None:
    groups = [("f", number, count, 8 * count) for number, count in enumerate(rows)]
    starts = [sum(rows[:number]) for number in range(len(rows))]
    spans = [(starts[piece.group] + piece.first, starts[piece.group] + piece.last)
             for task in divided(groups, tasks) for piece in task]
    assert all(end == start for (_, end), (start, _) in pairwise(spans))
    assert not spans or (spans[0][0], spans[-1][1]) == (0, sum(rows))
    assert bool(spans) == bool(sum(rows))


def test_a_file_that_has_other_rows_than_it_had_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([1, 2, 3], pa.int32())}), tmp_path / "f.parquet")
    columns = [FileColumn("a", "a", pa.int32())]
    wrong = Piece(str(tmp_path / "f.parquet"), 0, rows=4, first=0, last=4, batch=2)
    with pytest.raises(RuntimeError, match="was changed"):
        list(read(wrong, columns))
    with pytest.raises(RuntimeError, match="has 3 rows to read where 5 are wanted"):
        list(read(Piece(wrong.path, 0, rows=3, first=0, last=5, batch=2), columns))
    with pytest.raises(FileNotFoundError):
        list(through([[Piece("gone", 0, 1, 0, 1, 1)]], columns, iter,
                     [pa.RecordBatch.from_pydict({"id": [0]})]))


@pytest.mark.parametrize(("stored", "declared", "is_ours", "alike"), [
    (pa.int32(), INT, False, True),
    (pa.int16(), INT, False, True),
    (pa.int64(), INT, False, False),
    (pa.uint32(), BIGINT, False, False),
    (pa.float32(), DOUBLE, False, True),
    (pa.large_string(), STRING, False, True),
    (pa.dictionary(pa.int8(), pa.string()), STRING, False, True),
    (pa.timestamp("us", "UTC"), TIMESTAMP, True, True),
    (pa.timestamp("us", "UTC"), TIMESTAMP, False, False),  # it may be of another calendar
    (pa.timestamp("ns", "UTC"), TIMESTAMP, True, False),
])
def test_only_types_that_arrow_reads_as_spark_does_are_read_by_workers(
    tmp_path: Path, stored: pa.DataType, declared: Type, is_ours: bool, alike: bool
) -> None:
    path = tmp_path / "f.parquet"
    plain = pa.string() if pa.types.is_dictionary(stored) else pa.int32()
    values = pa.array(["a", None] if plain == pa.string() or declared == STRING else [1, None])
    pq.write_table(pa.table({"a": values.cast(stored)}), path)
    column = Column("a", declared)
    scan = scan_of([LocalFile(path, is_ours)], (column,), 2, 1)
    assert (scan is not None) == alike
    if scan is not None:
        ((first, second),) = shown(scan, {column: "x"})
        assert first["x"] is not None and second["x"] is None


@pytest.mark.parametrize(("names", "wanted", "rows"), [
    (["b"], "a", 2), (["a", "A"], "a", 2), (["A"], "a", 2), (["a.b"], "a.b", 2), (["a"], "a", 3)])
def test_columns_that_are_missing_or_ambiguous_and_wrong_counts_are_left_to_spark(
    tmp_path: Path, names: list[str], wanted: str, rows: int
) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1, 2], pa.int32())] * len(names), names), path)
    assert scan_of([LocalFile(path, False)], (Column(wanted, INT),), rows, 1) is None
    assert scan_of([LocalFile(path, False)], (), 2, 1) is None
