"""One ruler for bytes: what ingest says of a block is what a sample of it measures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock import events as ev
from penstock.language import bind

pytestmark = pytest.mark.spark

NESTED = "price DECIMAL(9, 2), tags ARRAY<INT>, at STRUCT<x: INT, y: BIGINT>, day DATE"
ROWS = 12
WIDTH = 16 + 24 + 24 + 4


def row(number: int) -> dict[str, Any]:
    return {"price": f"{number}.25", "tags": [number] * 3, "at": {"x": 1, "y": number},
            "day": "2026-01-02"}


def nested_json(folder: Path) -> None:
    folder.mkdir(parents=True)
    lines = [row(n) | {"ms": 1000 * n, "word": None if n % 3 else "é" * n} for n in range(ROWS)]
    (folder / "a.json").write_text("".join(json.dumps(line) + "\n" for line in lines))


def nested_parquet(folder: Path) -> None:
    folder.mkdir(parents=True)
    types = pa.schema([("price", pa.decimal128(9, 2)), ("tags", pa.list_(pa.int32())),
                       ("at", pa.struct([("x", pa.int32()), ("y", pa.int64())])),
                       ("day", pa.date32())])
    rows = pa.Table.from_pylist([row(n) for n in range(ROWS)], schema=pa.schema([
        field if field.name not in ("price", "day") else field.with_type(pa.string())
        for field in types]))
    pq.write_table(rows.cast(types), folder / "a.parquet")


@pytest.mark.parametrize(("declared", "make", "width", "texts"), [
    (f"({NESTED}, ms BIGINT, word STRING) FROM json 'in' TIME ms UNIT MILLISECONDS",
     nested_json, WIDTH + 8, 2 * sum(range(0, ROWS, 3))),
    (f"({NESTED}) FROM parquet 'in'", nested_parquet, WIDTH, 0),
])
def test_a_block_is_as_wide_as_a_sample_of_it(
    engine, spark, tmp_path, declared, make, width, texts
):
    from penstock.spark.jobs.intermediate import _timed
    from penstock.spark.storage.checkpoint import Checkpoint
    from penstock.spark.storage.files import Files
    from penstock.spark.storage.spool import Spool

    make(tmp_path / "in")
    sql = f"""
        SET retention = '1 hour';
        CREATE STREAM s {declared};
        CREATE QUERY q INTO noop AS SELECT * FROM s;
    """
    blocks = []
    with engine(on_event=lambda event: blocks.append(event.block)
                if isinstance(event, ev.BlockArrived) else None) as e:
        e.load(sql, folder=tmp_path)
        assert e.run().failures() == []
    (block,) = blocks
    stream = bind(sql, folder=tmp_path).streams["s"]
    spool = Spool.look(spark, Checkpoint.look(tmp_path / "checkpoint"), Files(spark), stream)
    rows, size, _ = _timed(spool.timed_frame([block.number]))
    assert (rows, size) == (block.rows, block.bytes) == (ROWS, ROWS * width + texts)
