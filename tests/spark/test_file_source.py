"""Files are read once, in order, when they are whole; a bad one is set aside and named."""

from __future__ import annotations

import gzip
import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.arrow import arrow_type
from penstock.errors import CheckpointError
from penstock.model import BIGINT, DATE, INT, STRING, TIMESTAMP, Field, Stream, Type
from penstock.spark.file_batches import Known, Limits
from penstock.spark.file_log import FileLog
from penstock.spark.file_source import FileSource
from penstock.spark.files import Files, Listed
from penstock.spark.footers import fits

BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
NOW = 1_900_000_000.0
COLUMNS = (Field("n", INT), Field("word", STRING))


def stamp(path: Path, seconds: float) -> Path:
    os.utime(path, ns=(round(seconds * 1e9), round(seconds * 1e9)))
    return path


def parquet(path: Path, columns: dict, seconds: float = NOW) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return stamp(path, seconds)


def lines(path: Path, content: str | bytes, seconds: float = NOW) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return stamp(path, seconds)


# --- which files, and in which order -----------------------------------------------------------


def test_files_of_one_time_are_taken_by_name():
    listing = [Listed(f"{n:02d}", 1, 7) for n in (5, 3, 39, 0)] + [Listed("zz", 1, 6)]
    assert [f.path for f in Known().fresh(listing)] == ["zz", "00", "03", "05", "39"]


def test_a_batch_takes_one_file_at_least():
    limits = Limits(files=2, bytes=10)
    assert limits.admits(0, 0) and limits.admits(1, 9)
    assert not limits.admits(1, 10) and not limits.admits(2, 2)
    assert Limits(bytes=1).admits(0, 0)


def test_the_log_of_files_outlives_a_crash(tmp_path):
    a, b, c = (Listed(name, 1, n) for n, name in enumerate("abc"))
    log = FileLog(tmp_path)
    log.begin(0, [a])
    log.set_aside(c, "damaged")
    log.begin(1, [b, c])
    log.begin(1, [b])
    log.close()
    path = tmp_path / "files.jsonl"
    path.write_bytes(path.read_bytes() + b'{"batch": 2, "fil')
    log = FileLog(tmp_path)
    assert log.last == (1, (b,))
    assert [*log.known.fresh([a, b, c])] == [c], "what was taken into no batch is still to be read"
    log.begin(2, [c])
    log.close()
    assert FileLog(tmp_path).last == (2, (c,))
    path.write_text("rubbish\n" + path.read_text())
    with pytest.raises(CheckpointError, match="line 1 of .* is damaged"):
        FileLog(tmp_path)


class Watched:
    """A source of a folder, and what it told."""

    def __init__(self, root: Path, stream: Stream, until_drained: bool = False) -> None:
        (root / "offsets").mkdir(exist_ok=True)
        self.aside: list[tuple[str, str, int]] = []
        self.changed: list[str] = []
        self.source = FileSource(
            Files(None), root / "offsets", stream, until_drained,
            lambda file, reason, rows: self.aside.append((Path(file.path).name, reason, rows)),
            lambda file: self.changed.append(Path(file.path).name))
        self.number = 0

    def next(self, now: float = NOW) -> list[str]:
        batch = self.source.next(self.number, now)
        self.number += bool(batch)
        return [Path(verdict.file.path).name for verdict in batch]


def folder(root: Path, format_: str = "parquet", columns=COLUMNS, **options) -> Stream:
    (root / "in").mkdir(exist_ok=True)
    given = tuple((name, str(value)) for name, value in options.items())
    return Stream("s", columns, format_, str(root / "in"), given)


def test_a_file_is_read_when_it_is_whole(tmp_path):
    watched = Watched(tmp_path, folder(tmp_path))
    whole = parquet(tmp_path / "whole", {"n": pa.array([1], pa.int32()), "word": ["a"]})
    half = lines(tmp_path / "in" / "half.parquet", whole.read_bytes()[:-8])
    lines(tmp_path / "in" / "empty.parquet", "")
    lines(tmp_path / "in" / "rubbish.parquet", "no parquet at all")
    parquet(tmp_path / "in" / "good.parquet", {"n": pa.array([1], pa.int32()), "word": ["a"]})
    assert watched.next() == ["good.parquet"]
    assert watched.aside == [("rubbish.parquet", "it is not a Parquet file", 0)]
    assert watched.next(NOW + 59) == [] and watched.source.waiting == 2
    assert watched.next(NOW + 60) == [] and watched.source.waiting == 0
    assert watched.aside[1:] == [
        (name, "its end is missing: there is no Parquet footer", 0)
        for name in ("empty.parquet", "half.parquet")]
    lines(half, whole.read_bytes(), NOW + 70)
    assert watched.next(NOW + 70) == ["half.parquet"], "a later, complete version is read"
    assert watched.next(NOW + 200) == [] and len(watched.aside) == 3


def test_a_file_that_grows_is_waited_for_as_long_as_it_grows(tmp_path):
    watched = Watched(tmp_path, folder(tmp_path))
    path = parquet(tmp_path / "whole", {"n": pa.array([1], pa.int32()), "word": ["a"]})
    content = path.read_bytes()
    for size in range(10, 60, 10):
        lines(tmp_path / "in" / "a.parquet", content[:size], NOW + size)
        assert watched.next(NOW + size + 9) == []
    lines(tmp_path / "in" / "a.parquet", content, NOW + 99)
    assert watched.next(NOW + 99) == ["a.parquet"]
    assert watched.aside == []


def test_old_files_are_read_and_changed_ones_are_told_of(tmp_path):
    watched = Watched(tmp_path, folder(tmp_path, "json"))
    lines(tmp_path / "in" / "b.json", '{"n": 1}\n')
    assert watched.next() == ["b.json"]
    lines(tmp_path / "in" / "old.json", '{"n": 2}\n', NOW - 1e9)
    assert watched.next() == ["old.json"], "however old it is"
    lines(tmp_path / "in" / "b.json", '{"n": 1}\n{"n": 3}\n', NOW + 5)
    assert watched.next() == [] and watched.changed == ["b.json"]
    assert watched.next() == [] and watched.changed == ["b.json"], "it is told once"


def test_text_that_stops_within_a_line_is_given_a_moment(tmp_path):
    watched = Watched(tmp_path, folder(tmp_path, "csv"))
    lines(tmp_path / "in" / "a.csv", "1,a\n2,b")
    lines(tmp_path / "in" / "none.csv", "")
    assert watched.next(NOW + 1) == [] and watched.source.waiting == 1
    assert watched.next(NOW + 2) == ["a.csv"]
    lines(tmp_path / "in" / "none.csv", "3,c\n")
    assert watched.next(NOW + 2) == ["none.csv"], "an empty text has no rows, and may get some"


def test_a_drain_reads_what_was_there(tmp_path):
    stream = folder(tmp_path, "json", maxFilesPerTrigger=2)
    for n in range(3):
        lines(tmp_path / "in" / f"{n}.json", '{"n": 1}\n')
    watched = Watched(tmp_path, stream, until_drained=True)
    lines(tmp_path / "in" / "9.json", '{"n": 1}\n')
    assert [watched.next() for _ in range(3)] == [["0.json", "1.json"], ["2.json"], []]
    again = Watched(tmp_path, stream)
    again.number = 1
    assert again.next() == ["2.json"], "the last batch was not stored, so it comes again"
    assert again.next() == ["9.json"]
    with pytest.raises(CheckpointError, match=r"has 1 blocks, but its log of files ends with"):
        again.source.check(1)


@pytest.mark.parametrize("content, reason", [
    (b"n,wort\n1,a\n", "column 'word' is declared but not in the data, which has n, wort"),
    (b"word,n\na,1\n", "its header is word, n; declare these columns in this order"),
    ("n,word\n1,a\n".encode("utf-16"), "it is UTF-16 text; say so with OPTIONS (encoding"),
    ("n,word\n1,a\n".encode("utf-16-le"), "it is UTF-16 text"),
])  # fmt: skip
def test_text_that_does_not_fit_is_set_aside(tmp_path, content, reason):
    watched = Watched(tmp_path, folder(tmp_path, "csv", header="true"))
    lines(tmp_path / "in" / "a.csv", content)
    lines(tmp_path / "in" / "b.csv.gz", gzip.compress(content))
    lines(tmp_path / "in" / "c.csv", b"\xef\xbb\xbf\"n\",WORD\n1,a\n")
    assert watched.next() == ["c.csv"]
    assert [name for name, _, _ in watched.aside] == ["a.csv", "b.csv.gz"]
    assert all(told.startswith(reason) for _, told, _ in watched.aside)


@pytest.mark.parametrize("kind, wanted, fit", [
    (pa.timestamp("ns"), TIMESTAMP, "cast"),
    (pa.timestamp("us"), TIMESTAMP, "plain"),
    (pa.timestamp("ms", "UTC"), TIMESTAMP, "plain"),
    (pa.uint32(), INT, "cast"),
    (pa.uint8(), BIGINT, "cast"),
    (pa.int16(), INT, "plain"),
    (pa.int64(), INT, "no"),
    (pa.dictionary(pa.int32(), pa.string()), STRING, "plain"),
    (pa.large_string(), STRING, "plain"),
    (pa.string(), INT, "no"),
    (pa.null(), INT, "cast"),
    (pa.decimal128(5, 2), Type("DECIMAL", precision=10, scale=2), "cast"),
    (pa.decimal128(12, 2), Type("DECIMAL", precision=10, scale=2), "no"),
    (pa.list_(pa.timestamp("ns")), Type("ARRAY", element=TIMESTAMP), "cast"),
    (pa.list_(pa.int32()), Type("ARRAY", element=INT), "plain"),
    (pa.list_(pa.string()), Type("ARRAY", element=INT), "no"),
    (pa.struct([("A", pa.uint16())]), Type("STRUCT", fields=(Field("a", INT),)), "cast"),
    (pa.int32(), Type("ARRAY", element=INT), "no"),
    (pa.date64(), DATE, "plain"),
])  # fmt: skip
def test_which_columns_fit(kind, wanted, fit):
    assert fits(kind, arrow_type(wanted)) == fit
