"""What a job has really read is counted by Spark, and held against its blocks before it counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.engine.instructions import SegmentJob
from penstock.model import Block
from penstock.spark.jobs.rows_read import BlockReaders, rows_read
from penstock.spark.storage.spool import Spool

pytestmark = pytest.mark.spark

SQL = """
    CREATE STREAM s (ts TIMESTAMP, n INT) FROM parquet 'files' TIME ts;
    CREATE FUNCTION is_odd FROM 'parity:is_odd';
    CREATE QUERY small AS SELECT n FROM s WHERE n < 50;
    CREATE QUERY odd AS SELECT n FROM s WHERE is_odd(n);
    CREATE QUERY counted AS SELECT COUNT(*) AS rows FROM s [WINDOW 1 SECOND SLIDE 1 SECOND];
    CREATE QUERY odd_ones AS
        SELECT COUNT(*) AS rows FROM s [WINDOW 1 SECOND SLIDE 1 SECOND] WHERE is_odd(n);
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "parity.py").write_text(
        "import penstock\nimport pyarrow.compute as pc\n@penstock.predicate\n"
        "def is_odd(n):\n    return pc.equal(pc.bit_wise_and(n, 1), 1)\n")
    (tmp_path / "files").mkdir()
    for name, first, count in (("a", 0, 60), ("b", 60, 40)):
        values = range(first, first + count)
        times = pa.array([n * 10_000 for n in values], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"ts": times, "n": pa.array(values, pa.int32())}),
                       tmp_path / "files" / f"{name}.parquet")
    return tmp_path


def test_spark_counts_what_the_jobs_of_a_group_read(spark: Any, place: Path) -> None:
    context = spark.sparkContext
    frame = spark.read.parquet(str(place / "files")).where("n % 7 = 0")
    context.setJobGroup("counted-apart", "a test")
    assert rows_read(spark, "counted-apart") == 0
    frame.write.format("noop").mode("overwrite").save()
    assert rows_read(spark, "counted-apart") == 100
    frame.write.format("noop").mode("overwrite").save()
    assert rows_read(spark, "counted-apart") == 200
    context.setJobGroup("another", "a test")


def test_whole_blocks_are_answered(engine: Callable[..., Any], place: Path) -> None:
    with engine() as e:
        e.execute(SQL + "CREATE QUERY never AS SELECT n FROM s WHERE FALSE;", folder=place)
        assert e.run().run.state == "drained"
        rows = {name: e.results(name) for name in ("small", "never", "odd", "counted", "odd_ones")}
    assert [rows[name].num_rows for name in ("small", "never", "odd")] == [50, 0, 50]
    assert [rows[name]["rows"].to_pylist() for name in ("counted", "odd_ones")] == [[100], [50]]


def test_a_job_that_reads_fewer_rows_than_its_blocks_have_answers_nobody(
    engine: Callable[..., Any], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Spool.read_files

    def without_a_file(
        self: Spool, files: Sequence[str], *numbers: int | None, **options: Any
    ) -> Any:
        there = [file for file in files if not file.endswith("b.parquet")]
        return whole(self, there, *numbers, **options)

    with engine() as e:
        e.execute(SQL, folder=place)
        monkeypatch.setattr(Spool, "read_files", without_a_file)
        local = Spool.local_files  # and Python workers, which read for themselves, miss it too
        monkeypatch.setattr(Spool, "local_files", lambda self, numbers: [
            file for file in local(self, numbers) or () if file.path.name != "b.parquet"])
        failed = dict(e.run().failures())
        short = ("small", "odd", "counted", "odd_ones")
        assert set(failed) == {f"query {name}" for name in short}
        for name in short:
            assert "have 100 rows to read, but 60 were read" in failed[f"query {name}"]
            assert e.results(name).num_rows == 0


def test_a_probe_that_reads_fewer_rows_than_it_should_answers_nobody(
    engine: Callable[..., Any], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Spool.read_files

    def without_a_file(
        self: Spool, files: Sequence[str], *numbers: int | None, **options: Any
    ) -> Any:
        there = [file for file in files if not file.endswith("b.parquet")]
        return whole(self, there, *numbers, **options)

    joined = "SELECT a.n FROM s a, s b WHERE a.n = b.n WINDOW 1 SECOND"
    with engine() as e:
        e.execute(SQL.partition("CREATE FUNCTION")[0] +
                  f"CREATE QUERY pairs AS {joined}; CREATE QUERY other INTO noop AS {joined};"
                  "CREATE QUERY counted INTO noop AS SELECT a.n FROM s a, s b "
                  "WHERE a.n + 1 = b.n + 1 WINDOW 1 SECOND;", folder=place)
        monkeypatch.setattr(Spool, "read_files", without_a_file)
        failed = dict(e.run().failures())
        assert set(failed) == {"query pairs", "query other", "query counted"}
        told = "has 200 rows to read, but 120 were read"
        assert [told in why for why in failed.values()] == [True] * 3, failed
        assert e.results("pairs").num_rows == 0


def job(number: int, blocks: Sequence[int], keep: Sequence[int]) -> SegmentJob:
    made = tuple(Block("s", block, rows=10, bytes=0, arrived=0.0) for block in blocks)
    return SegmentJob(number=number, kind="segment", segment="p", path="p", riders=1, members=(),
                      blocks=made, keep=tuple(keep))


def test_rows_of_a_kept_block_count_unless_another_job_reads_it_meanwhile() -> None:
    readers = BlockReaders()
    one, other = job(1, [0, 1], keep=[0]), job(2, [0, 1], keep=[])
    readers.begin(one)
    assert readers.count(one, one.blocks) == 20
    readers.begin(other)
    assert (readers.count(one, one.blocks), readers.count(other, other.blocks)) == (10, 20)
    readers.end(other)
    assert readers.count(one, one.blocks) == 10, "nobody knows what the other has read"
    readers.end(one)
    third = job(3, [0], keep=[0])
    readers.begin(third)
    assert readers.count(third, third.blocks) == 10
