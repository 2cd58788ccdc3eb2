"""Files that Python workers write: every row once, in the folder of its query, and counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.compile import worker_batches
from penstock.spark.delivery import worker_files
from penstock.spark.delivery.sinks import staged_files
from penstock.spark.delivery.worker_files import FileLayout, write_task, written_files


class Attempt:
    """What Spark tells a task about itself."""

    @classmethod
    def get(cls) -> type[Attempt]:
        return cls

    @staticmethod
    def taskAttemptId() -> int:  # noqa: N802 Spark's name
        return 7


@pytest.fixture(autouse=True)
def attempt(monkeypatch):
    monkeypatch.setattr(worker_files, "TaskContext", Attempt)
    monkeypatch.setattr(worker_files, "settle", lambda: None)


def batches(members: list[int], cut: int) -> list[pa.RecordBatch]:
    rows = pa.table({"@member": pa.array(members, pa.int32()),
                     "n": pa.array(range(len(members)), pa.int64())})
    return rows.to_batches(max_chunksize=cut)


@given(members=st.lists(st.integers(0, 3), max_size=40), cut=st.integers(1, 15),
       most=st.integers(1, 20), homes=st.sampled_from([(), (0, 1, 0, 2)]), shared=st.booleans())
def test_every_row_is_in_one_file_of_its_folder_and_counted(
    tmp_path_factory, members, cut, most, homes, shared
):
    place = str(tmp_path_factory.mktemp("files") / "1")
    names = ("a", "b", "c", "d") if shared else ()
    layout = FileLayout(place, 1, 4, homes, "query" if shared else "", names)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(worker_batches, "MOST_ROWS", most)
        told = list(write_task(layout, batches(members, cut)))
    files = written_files(pa.Table.from_batches(told)) if told else []
    assert sorted(path.name for path in Path(place).iterdir()) == sorted(f.name for f in files)
    found = []
    for file in files:
        path = f"{place}/{file.name}"
        here = pq.ParquetFile(path).read()
        assert file.bytes == Path(path).stat().st_size
        assert here.column_names == (["query", "n"] if shared else ["n"])
        wanted = [members[n] for n in here["n"].to_pylist()]
        assert np.array_equal(file.rows, np.bincount(wanted, minlength=4))
        assert {homes[member] for member in wanted} == {file.home} if homes else file.home == 0
        if shared:
            assert here["query"].to_pylist() == [names[member] for member in wanted]
        found += here["n"].to_pylist()
    assert sorted(found) == list(range(len(members)))


def test_a_task_that_fails_shows_no_file(tmp_path):
    def broken():
        yield from batches([0, 1], 1)
        raise RuntimeError("the way from the JVM broke")

    with pytest.MonkeyPatch.context() as patched, pytest.raises(RuntimeError):
        patched.setattr(worker_batches, "MOST_ROWS", 1)
        list(write_task(FileLayout(str(tmp_path), 0, 2), broken()))
    assert [path for path in tmp_path.iterdir() if not path.name.startswith(".")] == []
    assert list(tmp_path.iterdir())


def test_what_failed_attempts_left_is_removed(tmp_path):
    for name in ("part-1.parquet", "part-2.parquet", ".part-3.parquet"):
        (tmp_path / name).write_text(name)
    staged_files._remove_others(str(tmp_path), {"part-1.parquet"})
    assert [path.name for path in tmp_path.iterdir()] == ["part-1.parquet"]
    staged_files._remove_others(str(tmp_path / "never made"), set())
