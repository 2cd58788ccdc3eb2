"""The driver stores a small batch as the executors would: the same block, figures and rejects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock.language import bind
from penstock.model import Stream
from penstock.spark.ingest import driver_batches, executor_batches, rejects, times
from penstock.spark.ingest.driver_batches import ROWS, SmallBatches
from penstock.spark.ingest.executor_batches import Counted
from penstock.spark.ingest.sources import files_frame
from penstock.spark.session import tuned
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.files import Files
from penstock.spark.storage.spool import Manifest, Spool

NOW = 1_760_000_000
CUTOFF = (NOW - 5) * 10**6
DECLARED = """
    CREATE STREAM docs (ts {time}, word STRING, flag BOOLEAN, small SMALLINT, n INT, big BIGINT,
        ratio DOUBLE, thin FLOAT, price DECIMAL(12, 3), day DATE, raw BINARY, tags ARRAY<INT>,
        at STRUCT<x: INT, y: STRING>, seen MAP<STRING, BIGINT>) FROM json 'in' TIME ts {unit};
    CREATE STREAM lines (ts {time}, word STRING, n INT, price DECIMAL(12, 3), day DATE)
        FROM csv 'in' TIME ts {unit};
    CREATE STREAM plain (word STRING, n INT) FROM csv 'in';
    CREATE STREAM texts (ts {time} AS (FROM_JSON(value, 'ts {time}').ts), value STRING,
        n AS (FROM_JSON(value, 'n BIGINT').n * 2)) FROM text 'in' TIME ts {unit};
"""
UNITS = {"TIMESTAMP": "", "BIGINT": "UNIT MILLISECONDS", "DOUBLE": "UNIT SECONDS"}

tame = st.one_of(st.integers(NOW - 20, NOW + 20),  # late or not
                 st.sampled_from([0, -62_000_000_000, NOW + 86_398]))
wild = st.one_of(tame, st.sampled_from([NOW + 86_400, NOW + 86_402, NOW + 10**9]))
words = st.one_of(st.none(), st.text(max_size=6), st.sampled_from(
    ["ü" * 9, 'quo"ted, and', "x" * (2**20), "é" * (2**19 + 1)]))
COLUMNS = {
    "word": words, "flag": st.booleans(), "small": st.integers(-5, 5),
    "n": st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1)), "big": st.integers(-9, 2**62),
    "ratio": st.floats(allow_nan=False, allow_infinity=False, width=32),
    "thin": st.sampled_from([0.5, -0.0, 3.25]), "price": st.sampled_from([1.5, -2.125, 123456.789]),
    "day": st.sampled_from(["2025-01-01", "0001-01-01", "9999-12-31", "1582-10-04"]),
    "raw": st.sampled_from(["", "AAEC", "/w=="]), "tags": st.lists(st.integers(0, 9), max_size=3),
    "at": st.fixed_dictionaries({"x": st.integers(0, 9), "y": words}),
    "seen": st.dictionaries(st.sampled_from("ab"), st.integers(0, 9), max_size=2)}
BAD = ('{"n": "none"}', "no json", '{"word": "cut', '{"ts": "soon"}', "[]")


def in_unit(at: int, time: str) -> Any:
    if time == "TIMESTAMP":
        return (datetime(1970, 1, 1) + timedelta(seconds=at)).isoformat() + "Z"
    return at * 1000 if time == "BIGINT" else at + 0.25


class Bench:
    """One stream, stored both ways."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.root = tuned(spark), root
        self.runs = 0

    def stored(self, stream: Stream, content: str, cutoff: int | None = CUTOFF) -> list[Any]:
        """What each way has stored of a file: the rows, the figures, the rejects."""
        self.runs += 1
        folder = self.root / str(self.runs) / "in"
        folder.mkdir(parents=True)
        (folder / "a").write_text(content, encoding="utf-8", errors="surrogatepass")
        stream = replace(stream, path=str(folder))
        return [self._stored(way, stream, folder / "a", cutoff) for way in ("driver", "executors")]

    def _stored(self, way: str, stream: Stream, file: Path, cutoff: int | None) -> Any:
        bounds = times.Bounds.of(stream, float(NOW))
        checkpoint = Checkpoint.open(file.parents[1] / way)
        spool = Spool(self.spark, checkpoint, Files(self.spark), stream)
        rows = files_frame(self.spark, stream, [str(file)])
        aside = file.parents[1] / f"rejects of {way}"
        counted: Counted | None = None
        if way == "driver":
            counted = driver_batches.copy(rows, stream, spool, 0, cutoff, bounds, 2)
            if counted is not None and counted.rejects is not None:
                driver_batches.set_aside(counted.rejects, aside)
        by_driver = counted is not None
        if counted is None:
            counted = executor_batches.copy(rows, stream, spool.folder(0), cutoff, bounds)
        if counted.rejected and counted.rejects is None:
            executor_batches.set_aside(rows, stream, aside, bounds)
        assert counted.bytes is not None
        spool.add(Manifest(0, counted.read - counted.rejected, counted.bytes, 1.0, counted.read))
        found = spool.frame([0]).toArrow()
        spool.close()
        checkpoint.close()
        return Stored(by_driver, [repr(row) for row in found.to_pylist()],
                      replace(counted, rejects=None), told(aside))


def told(folder: Path) -> list[Any]:
    files = sorted(folder.glob("*.json"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


class Stored(tuple):  # rows, figures, rejects: what must be the same
    def __new__(cls, by_driver: bool, *parts: Any) -> Stored:
        made = super().__new__(cls, parts)
        made.by_driver = by_driver
        return made


@pytest.fixture(scope="module")
def bench(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    yield Bench(spark, tmp_path_factory.mktemp("batches"))


def declared(name: str, time: str = "TIMESTAMP") -> Stream:
    return bind(DECLARED.format(time=time, unit=UNITS[time])).streams[name]


def documents(seconds: st.SearchStrategy[int]) -> st.SearchStrategy[list[Any]]:
    row = st.fixed_dictionaries({}, optional={"ts": seconds} | COLUMNS)
    return st.lists(st.one_of(row, row, st.sampled_from(BAD)), min_size=4, max_size=24)


def same_documents(bench: Bench, rows: list[Any], time: str, cutoff: int | None) -> Stored:
    lines = [row if isinstance(row, str) else json.dumps(
        row | ({"ts": in_unit(row["ts"], time)} if "ts" in row else {})) for row in rows]
    ours, theirs = bench.stored(declared("docs", time), "\n".join(lines) + "\n", cutoff)
    assert ours == theirs
    return ours


FEW = settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.spark
@FEW
@given(documents(tame), st.sampled_from(list(UNITS)), st.sampled_from([None, CUTOFF]))
def test_the_driver_stores_documents_as_executors_do(bench, rows, time, cutoff):
    assert same_documents(bench, rows, time, cutoff).by_driver


@pytest.mark.spark
@FEW
@given(documents(wild), st.sampled_from(list(UNITS)))
def test_documents_with_times_ahead_of_the_clock_are_stored_alike(bench, rows, time):
    same_documents(bench, rows, time, CUTOFF)


@pytest.mark.spark
@FEW
@given(st.lists(st.one_of(st.tuples(tame, st.text("abü ", max_size=4), st.integers(0, 9)),
                          st.sampled_from(["x", "2025-13-45,a,1,2,3", ",,,,,,", '"open'])),
                min_size=4, max_size=24))
def test_the_driver_stores_lines_as_executors_do(bench, rows):
    lines = [row if isinstance(row, str) else
             f"{in_unit(row[0], 'TIMESTAMP')},{row[1]},{row[2]},1.25,2025-01-01" for row in rows]
    ours, theirs = bench.stored(declared("lines"), "\n".join(lines) + "\n")
    assert ours.by_driver and ours == theirs


@pytest.mark.spark
@FEW
@given(st.lists(st.one_of(st.fixed_dictionaries({}, optional={"ts": tame, "n": st.integers(-9, 9)}),
                          st.sampled_from(BAD)), min_size=4, max_size=24),
       st.sampled_from(list(UNITS)))
def test_computed_columns_are_stored_alike_and_a_row_whose_time_is_null_is_a_reject(
    bench, rows, time
):
    lines = [row if isinstance(row, str) else json.dumps(
        row | ({"ts": in_unit(row["ts"], time)} if "ts" in row else {})) for row in rows]
    ours, theirs = bench.stored(declared("texts", time), "\n".join(lines) + "\n")
    assert ours == theirs and ours.by_driver
    stored, counted, aside = ours
    timed = [(row, line) for row, line in zip(rows, lines, strict=True)
             if isinstance(row, dict) and "ts" in row]
    assert sorted(row[row.index("'value'"):] for row in stored) == sorted(
        f"'value': {line!r}, 'n': {row['n'] * 2 if 'n' in row else None}}}" for row, line in timed)
    assert counted.late == sum(row["ts"] * 10**6 < CUTOFF for row, _ in timed)
    kept = [line for _, line in timed]
    untimed = [{"reason": "its ts, which is computed, is NULL",
                "row": json.dumps({"value": line}, separators=(",", ":"))}
               for line in lines if line not in kept]
    assert sorted(aside, key=repr) == sorted(untimed, key=repr)


@pytest.mark.spark
def test_a_batch_goes_to_the_executors_if_a_time_is_near_a_bound_or_it_has_too_many_rows(
    bench, monkeypatch
):
    lines = declared("lines")
    within, late = f"{in_unit(NOW, 'TIMESTAMP')},a,1,1,", f"{in_unit(NOW - 9, 'TIMESTAMP')},b,2,2,"
    ours, theirs = bench.stored(lines, f"{within}\n{late}\n,no time,3,3,\nbad\n")
    assert ours.by_driver and ours == theirs
    _, counted, aside = ours
    assert (counted.read, counted.late, counted.rejected) == (4, 1, 1)
    assert (counted.newest, counted.farthest) == (NOW * 10**6, None)
    assert aside == [{"reason": "malformed row", "row": "bad"}]
    ahead = f"{in_unit(NOW + 90_000, 'TIMESTAMP')},c,4,4,"
    ours, theirs = bench.stored(lines, f"{within}\n{ahead}\n")
    assert not ours.by_driver and ours == theirs
    assert "ahead of the clock" in ours[2][0]["reason"]
    plain = declared("plain")
    monkeypatch.setattr(driver_batches, "TASK_ROWS", 3)
    few, _ = bench.stored(plain, "a,1\n" * 3)
    many, theirs = bench.stored(plain, "a,1\n" * 4)
    assert few.by_driver and not many.by_driver and many == theirs


@pytest.mark.spark
def test_a_reject_keeps_the_first_characters_of_a_long_value(bench):
    ours, theirs = bench.stored(declared("plain"), "x" * (rejects.LONGEST + 1) + ",1\nb,2\n")
    assert ours.by_driver and ours == theirs
    (aside,) = ours[2]
    assert aside["reason"] == "column word holds 1048577 bytes; at most 1048576 are taken"
    assert len(aside["row"]) == rejects.SHOWN


def test_a_micro_batch_is_expected_to_be_small_when_the_last_two_were():
    batches, expected = SmallBatches(), []
    for rows in (5, 5, ROWS, ROWS + 1, 5, 5):
        expected.append(batches.expected)
        batches.note(rows)
    assert [*expected, batches.expected] == [False, False, True, True, False, False, True]


def test_a_large_batch_is_cut_into_a_file_for_each_core():
    columns = pa.schema([("n", pa.int64())])
    for rows, files in ((0, 1), (9, 1), (19_999, 1), (20_000, 2), (90_000, 3)):
        table = pa.table({"n": range(rows)}, schema=columns)
        cut = driver_batches._cut(table, 3)
        assert len(cut) == files
        whole = pa.Table.from_batches([batch for part in cut for batch in part], columns)
        assert whole.equals(table)
