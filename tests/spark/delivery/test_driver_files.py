"""Files that the driver writes: other readers find in them the values that were written."""

from __future__ import annotations

import csv
import io
import json
from base64 import b64decode
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.spark.delivery.driver_files import encoded, is_writable, widened, write_files

BEGIN = datetime(1, 1, 1, tzinfo=UTC)
SPAN = (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC) - BEGIN) // timedelta(
    microseconds=1)
ROW = st.fixed_dictionaries({
    "text": st.none() | st.text(),
    "flag": st.none() | st.booleans(),
    "whole": st.none() | st.integers(-2**63, 2**63 - 1),
    "real": st.none() | st.floats(),
    "small": st.none() | st.floats(width=32),
    "exact": st.none() | st.decimals(-10**12, 10**12, allow_nan=False, places=7),
    "bytes": st.none() | st.binary(),
    "day": st.none() | st.dates(),
    "ts": st.none() | st.integers(0, SPAN).map(lambda n: BEGIN + timedelta(microseconds=n)),
})
SCHEMA = pa.schema({
    "text": pa.string(), "flag": pa.bool_(), "whole": pa.int64(), "real": pa.float64(),
    "small": pa.float32(), "exact": pa.decimal128(38, 7), "bytes": pa.binary(),
    "day": pa.date32(), "ts": pa.timestamp("us", "UTC"),
})


def as_table(rows: list[dict]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def read_back(name: str, text: str) -> object:
    """A value out of its text, by Python's own parsers."""
    parsers = {
        "text": str, "flag": {"true": True, "false": False}.__getitem__, "whole": int,
        "real": float, "small": lambda text: float(np.float32(text)), "exact": Decimal,
        "bytes": b64decode, "day": date.fromisoformat, "ts": datetime.fromisoformat,
    }
    return parsers[name](text)


def same(one: object, other: object) -> bool:
    """Equal, or both not a number; -0.0 is not 0.0."""
    if isinstance(one, float) and isinstance(other, float):
        return repr(one) == repr(other)
    return one == other


@settings(max_examples=60)
@given(st.lists(ROW, min_size=1, max_size=8))
def test_json_reads_back_as_what_was_written(rows):
    table = as_table(rows)
    assert is_writable("json", table)
    lines = bytes(encoded("json", table)).decode().split("\n")
    assert lines.pop() == ""
    for line, row in zip(lines, rows, strict=True):
        found = json.loads(line, parse_float=str, parse_int=str)
        assert found.keys() == {name for name, value in row.items() if value is not None}
        for name, text in found.items():
            value = text if isinstance(text, bool) else read_back(name, text)
            assert same(value, row[name]), (name, text)


@settings(max_examples=60)
@given(st.lists(ROW, min_size=1, max_size=8))
def test_csv_reads_back_as_what_was_written(rows):
    table = as_table(rows)
    assert is_writable("csv", table)
    text = bytes(encoded("csv", table)).decode()
    header, *lines = csv.reader(io.StringIO(text, newline=""))
    assert header == list(SCHEMA.names)
    for line, row in zip(lines, rows, strict=True):
        for name, text in zip(header, line, strict=True):
            value = row[name]
            if value is None or value == "" or value == b"":
                assert text == ""
            else:
                assert same(read_back(name, text), value), (name, text)


@given(st.lists(st.none() | st.text(), min_size=1, max_size=20))
def test_an_empty_text_has_quotes_and_null_has_none(texts):
    table = pa.table({"n": list(range(len(texts))), "text": pa.array(texts, pa.string())})
    content = bytes(encoded("csv", table)).decode().split("\n", 1)[1]
    for number, text in enumerate(texts):
        if not text:
            assert f"{number},{'' if text is None else chr(34) * 2}\n" in content


@given(st.lists(st.none() | st.text(), min_size=1, max_size=20))
def test_the_only_column_of_a_csv_file_leaves_no_line_empty(texts):
    content = bytes(encoded("csv", pa.table({"a,b": pa.array(texts, pa.string())})))
    header, *rows = csv.reader(io.StringIO(content.decode(), newline=""))
    assert (header, rows) == (["a,b"], [[text or ""] for text in texts])


@given(st.lists(st.fixed_dictionaries({
    "list": st.none() | st.lists(st.none() | st.integers(-9, 9), max_size=3),
    "struct": st.none() | st.fixed_dictionaries({
        "a": st.none() | st.text(), "b": st.none() | st.lists(st.text(), max_size=2)}),
    "map": st.none() | st.dictionaries(st.text(), st.none() | st.integers(0, 9), max_size=3),
}), min_size=1, max_size=10))
def test_nested_json_leaves_null_out_of_structs_alone(rows):
    table = pa.Table.from_pylist(
        [row | {"map": row["map"] and list(row["map"].items())} for row in rows],
        pa.schema({"list": pa.list_(pa.int32()), "map": pa.map_(pa.string(), pa.int32()),
                   "struct": pa.struct({"a": pa.string(), "b": pa.list_(pa.string())})}))
    wanted = [{name: value for name, value in (row | {"struct": row["struct"] and {
        key: value for key, value in row["struct"].items() if value is not None}}).items()
        if value is not None} for row in rows]
    # An empty map goes in as an empty list, and an empty one of both is no value to `and`.
    for row, want in zip(rows, wanted, strict=True):
        want.update({"map": {}} if row["map"] == {} else {})
    assert is_writable("json", table)
    assert [json.loads(line) for line in bytes(encoded("json", table)).splitlines()] == wanted


def test_bytes_that_are_no_text_are_marked_as_in_files_of_spark():
    broken = pa.array([b"a\xffb", None, b"ok"]).cast(pa.binary())
    text = pa.Array.from_buffers(pa.string(), 3, broken.buffers())
    assert bytes(encoded("csv", pa.table({"n": [1, 2, 3], "t": text}))).decode() == (
        "n,t\n1,a\ufffdb\n2,\n3,ok\n")
    assert json.loads(bytes(encoded("json", pa.table({"t": text}))).splitlines()[0]) == {
        "t": "a\ufffdb"}


@pytest.mark.parametrize(("kind", "value", "formats"), [
    (pa.duration("us"), timedelta(1), ()),
    (pa.list_(pa.duration("us")), [], ()),
    (pa.null(), None, ()),
    (pa.list_(pa.int32()), [1], ("parquet", "json")),
    (pa.list_(pa.date32()), [date(2024, 1, 1)], ("parquet",)),
    (pa.map_(pa.int32(), pa.int32()), [], ("parquet",)),
    (pa.date32(), 2_932_897, ("parquet",)),
    (pa.date32(), -719_163, ("parquet",)),
    (pa.date32(), 2_932_896, ("parquet", "csv", "json")),
    (pa.timestamp("us", "UTC"), 2_932_897 * 86_400_000_000, ("parquet",)),
    (pa.timestamp("us", "UTC"), 2_932_897 * 86_400_000_000 - 1, ("parquet", "csv", "json")),
])
def test_what_spark_writes_in_its_own_way_is_left_to_spark(kind, value, formats):
    table = pa.table({"a": pa.array([value, None], kind)})
    assert tuple(f for f in ("parquet", "csv", "json") if is_writable(f, table)) == formats


@pytest.mark.parametrize(("values", "one", "other", "wanted"), [
    ([1, None], pa.int8(), pa.int64(), [1, None]),
    ([2**53 + 1], pa.int64(), pa.float64(), [float(2**53)]),
    ([0.1], pa.float32(), pa.float64(), [float(np.float32(0.1))]),
    ([Decimal("1.5")], pa.decimal128(4, 1), pa.decimal128(6, 2), [Decimal("1.50")]),
    ([None], pa.null(), pa.date32(), [None]),
    ([Decimal("1.5")], pa.decimal128(4, 1), pa.decimal128(4, 2), None),
    ([Decimal("1.5")], pa.decimal128(4, 1), pa.float64(), None),
    ([1], pa.int32(), pa.decimal128(12, 0), None),
])
def test_a_column_is_widened_as_spark_does_or_by_spark(values, one, other, wanted):
    column = widened(pa.chunked_array([pa.array(values, one)]), other)
    assert (None if column is None else column.to_pylist()) == wanted


def test_what_may_not_be_null_may_be_in_the_file(tmp_path):
    strict = pa.struct([pa.field("a", pa.int32(), nullable=False)])
    column = widened(pa.chunked_array([pa.array([{"a": 1}], strict)]),
                     pa.struct([pa.field("a", pa.int32())]))
    assert column.type.field("a").nullable
    sizes = write_files(str(tmp_path / "out"), "parquet", {
        f"{n}.parquet": pa.table({"s": column, "n": [n]}) for n in range(20)})
    for name, size in sizes.items():
        assert (tmp_path / "out" / name).stat().st_size == size
        assert pq.read_table(tmp_path / "out" / name)["n"].to_pylist() == [int(name.split(".")[0])]
