"""The benchmark of fan-out: packets and conditions."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from benchmarks.fanout import FULL, OURS, QUICK, Size, predicates, write_packets


@pytest.mark.parametrize("n", OURS)
def test_all_queries_together_keep_half_as_many_rows_as_come_in(n: int, tmp_path: Path) -> None:
    write_packets(tmp_path / "packets", Size("", 20_000, 10_000, 2))
    with duckdb.connect() as db:
        db.execute(f"CREATE TABLE packets AS FROM '{tmp_path}/packets/*.parquet'")
        kept = sum(db.execute(f"SELECT count(*) FROM packets WHERE {condition}").fetchall()[0][0]
                   for condition in predicates(n))
    assert 0.45 <= kept / 20_000 <= 0.55


@pytest.mark.parametrize("size", [*FULL, *QUICK], ids=lambda size: f"{size.rows}, {size.block}")
def test_a_block_is_several_files_so_that_both_cores_have_work(size: Size) -> None:
    assert size.files >= 2 and size.rows % size.block == 0
