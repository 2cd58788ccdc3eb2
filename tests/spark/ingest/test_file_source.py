"""Files are read once, in order, when they are whole; a bad one is set aside and named."""

from __future__ import annotations

import gzip
import json
import os
import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.arrow import arrow_type
from penstock.clock import VirtualClock
from penstock.errors import CheckpointError, SourceError
from penstock.events import FileSetAside
from penstock.model import BIGINT, DATE, INT, STRING, TIMESTAMP, Field, Stream, Type
from penstock.spark.ingest import (
    file_checks,
    folder_watch,
    partitions,
    sources,
    stream_ingest,
    times,
)
from penstock.spark.ingest.file_batches import Ages, BatchLimits, KnownFiles
from penstock.spark.ingest.file_log import FileLog
from penstock.spark.ingest.file_source import FileSource
from penstock.spark.ingest.footers import fits
from penstock.spark.storage import files
from penstock.spark.storage.files import Files, ListedFile
from penstock.spark.storage.guarded import Log

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
    listing = [ListedFile(f"{n:02d}", 1, 7) for n in (5, 3, 39, 0)] + [ListedFile("zz", 1, 6)]
    assert [f.path for f in KnownFiles().fresh(listing)] == ["zz", "00", "03", "05", "39"]


def test_a_batch_takes_one_file_at_least():
    limits = BatchLimits(files=2, bytes=10)
    assert limits.admits(0, 0) and limits.admits(1, 9)
    assert not limits.admits(1, 10) and not limits.admits(2, 2)
    assert BatchLimits(bytes=1).admits(0, 0)


def test_the_log_of_files_outlives_a_crash(tmp_path):
    a, b, c = (ListedFile(name, 1, n) for n, name in enumerate("abc"))
    log = FileLog(Log(tmp_path / "files.jsonl", "id"))
    log.begin(0, [a])
    log.set_aside(c, "damaged")
    log.begin(1, [b, c])
    log.begin(1, [b])
    log.close()
    path = tmp_path / "files.jsonl"
    path.write_bytes(path.read_bytes() + b'{"batch": 2, "fil')
    log = FileLog(Log(tmp_path / "files.jsonl", "id"))
    assert log.last == (1, (b,))
    assert [*log.known.fresh([a, b, c])] == [c], "what was taken into no batch is still to be read"
    log.begin(2, [c])
    log.close()
    assert FileLog(Log(tmp_path / "files.jsonl", "id")).last == (2, (c,))
    path.write_text("rubbish\n" + path.read_text())
    with pytest.raises(CheckpointError, match="line 1 is damaged"):
        FileLog(Log(tmp_path / "files.jsonl", "id"))


class Watched:
    """A source of a folder, and what it told."""

    def __init__(self, root: Path, stream: Stream, until_drained: bool = False) -> None:
        (root / "offsets").mkdir(exist_ok=True)
        self.aside: list[tuple[str, str, int]] = []
        self.changed: list[str] = []
        self.wall = VirtualClock(NOW)
        self.passed = 0.0
        self.source = FileSource(
            Files(None), Log(root / "offsets" / "files.jsonl", "id"), stream, until_drained,
            lambda file, reason, rows: self.aside.append((Path(file.path).name, reason, rows)),
            lambda file: self.changed.append(Path(file.path).name),
            Ages(self.wall, lambda: self.passed))
        self.number = 0

    def next(self, now: float | None = None) -> list[str]:
        """The batch at a time of the clock, which has gone well since the one before."""
        if now is not None:
            self.wait(now - self.wall.time)
        batch = self.source.next(self.number)
        self.number += bool(batch)
        return [Path(verdict.file.path).name for verdict in batch]

    def wait(self, seconds: float) -> None:
        self.passed += seconds
        self.wall.time += seconds


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


@pytest.mark.parametrize("step", [-7200.0, -30.0, 30.0, 7200.0])
def test_a_clock_that_is_set_makes_no_file_wait_longer_or_shorter(tmp_path, step):
    """Neither one that waits already nor one that is written after the step."""
    watched = Watched(tmp_path, folder(tmp_path))
    lines(tmp_path / "in" / "before.parquet", "", NOW)
    assert watched.next(NOW + 10) == []
    watched.wall.time += step
    watched.wait(10)
    lines(tmp_path / "in" / "after.parquet", "", watched.wall.time)
    for aside in ([], [], [], [], ["before.parquet"], ["before.parquet", "after.parquet"]):
        assert watched.next() == [] and [name for name, _, _ in watched.aside] == aside
        watched.wait(20 if aside else 10)
    assert watched.source.waiting == 0


def test_an_unfinished_batch_comes_again_though_the_clock_was_set_back(tmp_path):
    stream = folder(tmp_path, "csv")
    lines(tmp_path / "in" / "a.csv", "1,a\n2,b")
    crashed = Watched(tmp_path, stream)
    assert crashed.next(NOW + 2) == ["a.csv"], "no line has come for a while"
    crashed.source.close()
    watched = Watched(tmp_path, stream)
    watched.wall.time = NOW - 3600
    assert watched.next() == ["a.csv"] and watched.aside == []


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
    with pytest.raises(CheckpointError, match=r"ends with block 2, but the stream has 1 blocks"):
        again.source.check(1)


def test_an_archive_without_its_end_is_tried_again_when_it_has_changed(tmp_path):
    """Only reading can tell: the batch fails, the file is left out, others are not held up."""
    watched = Watched(tmp_path, folder(tmp_path, "json"))
    cut = lines(tmp_path / "in" / "a.json.gz", gzip.compress(b'{"n": 1}\n')[:-4])
    (verdict,) = watched.source.next(0)
    assert watched.source.leave_out(0, [verdict], {str(cut): "it ends too early"}) == []
    assert watched.next() == [] and watched.source.waiting == 1
    lines(tmp_path / "in" / "b.json", '{"n": 1}\n')
    assert watched.next() == ["b.json"]
    assert watched.next(NOW + 61) == []
    assert watched.aside == [("a.json.gz", "it ends too early", 0)]
    lines(cut, gzip.compress(b'{"n": 1}\n'), NOW + 62)
    assert watched.next(NOW + 62) == ["a.json.gz"]


def test_files_that_a_stream_does_not_want_say_nothing_of_it(tmp_path):
    stream = folder(tmp_path, "csv", header="true", pathGlobFilter="*.csv")
    lines(tmp_path / "in" / "notes.txt", "a,b\n1,2\n")
    sources.check(None, Files(None), stream)
    assert sources.extent(Files(None), stream).total == 0
    lines(tmp_path / "in" / "a.csv", "a,b\n1,2\n")
    with pytest.raises(SourceError, match="column 'n' is declared but not in the data"):
        sources.check(None, Files(None), stream)


def test_files_of_an_unfinished_batch_that_are_gone_are_told_once(tmp_path):
    stream = folder(tmp_path, "json")
    file = lines(tmp_path / "in" / "a.json", '{"n": 1}\n')
    crashed = Watched(tmp_path, stream)
    assert crashed.next() == ["a.json"]
    crashed.source.close()
    file.unlink()
    watched = Watched(tmp_path, stream)
    for _ in range(3):
        assert watched.next() == []
    assert watched.aside == [("a.json", "it is gone", 0)]
    lines(tmp_path / "in" / "b.json", '{"n": 1}\n')
    assert watched.next() == ["b.json"]


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


# --- through the engine --------------------------------------------------------------------------


@pytest.mark.spark
def test_many_files_of_one_time_in_folders_with_odd_names(engine, tmp_path):
    """None is late, whatever the folder, the files and the checkpoint are called."""
    odd = tmp_path / "My [Data] {1}%20#?"
    for n in random.Random(5).sample(range(40), 40):  # a folder may list them as they were made
        when = [BEGIN + timedelta(minutes=n, seconds=k) for k in range(5)]
        parquet(odd / f"part {n:02d} [a]{{b}}%2F#?\\.parquet",
                {"ts": pa.array(when, pa.timestamp("us", "UTC")), "n": pa.array([n] * 5)})
    lines(tmp_path / "t [1]" / "a ?.json", '{"n": 7}\n')
    with engine("run [1] {a}%20?") as e:
        e.execute(f"""
            CREATE STREAM s (ts TIMESTAMP, n BIGINT) FROM parquet '{odd}'
                OPTIONS (maxFilesPerTrigger = 1) TIME ts;
            CREATE STREAM t (n INT) FROM json 't [1]';
            CREATE QUERY q AS SELECT n FROM s;
            CREATE QUERY r AS SELECT n FROM t;
        """, folder=tmp_path)
        summary = e.run()
        assert sorted(e.results("q")["n"].to_pylist()) == sorted(list(range(40)) * 5)
        assert e.results("r")["n"].to_pylist() == [7]
    stream = summary.streams["s"]
    assert (stream.read, stream.kept, stream.late, stream.blocks) == (200, 200, 0, 40)
    assert summary.failures() == []


@pytest.mark.spark
def test_what_python_writes_is_read(engine, tmp_path):
    """Zone-less and nanosecond times, odd integers, categoricals, folders that hold a column."""
    when = [datetime(2025, 1, 1, 12, 0, 0, 123456), None]
    day = tmp_path / "in" / "day=2025-01-02" / "site=a%2Fb"
    words = pa.array(["x", "y"])
    for n, (ts, number, word) in enumerate([
        (pa.array(when, pa.timestamp("us")), pa.array([1, 2], pa.int16()), words),
        (pa.array(when, pa.timestamp("ns")), pa.array([3, 4], pa.uint32()),
         words.dictionary_encode()),
        (pa.array(when, pa.timestamp("us", "UTC")), pa.array([5, 6], pa.int32()),
         words.cast(pa.large_string())),
    ]):
        parquet(day / f"{n}.parquet", {"ts": ts, "n": number, "word": word}, NOW + n)
    parquet(tmp_path / "in" / "day=oops" / "site=a" / "3.parquet",
            {"ts": ts, "n": number, "word": word})
    parquet(day / "4.parquet", {"ts": ts, "n": pa.array([7, 2**32 - 1], pa.uint32()), "word": word})
    lines(tmp_path / "csv" / "day=2025-01-03" / "a.csv", "n\n8\n")
    seen: list[FileSetAside] = []

    def watch(event: object) -> None:
        if isinstance(event, FileSetAside):
            seen.append(event)

    with engine(on_event=watch) as e:
        e._clock = Clock(NOW)
        e.execute("""
            CREATE STREAM s (day DATE, ts TIMESTAMP, n INT, word STRING, site STRING)
                FROM parquet 'in' TIME ts;
            CREATE STREAM c (n INT, day DATE) FROM csv 'csv' OPTIONS (header = true);
            CREATE QUERY q AS SELECT day, ts, n, word, site FROM s;
            CREATE QUERY w AS SELECT COUNT(*) AS n FROM s [WINDOW 1 HOUR SLIDE EXACTLY 1 HOUR];
            CREATE QUERY r AS SELECT n, day FROM c;
        """, folder=tmp_path)
        summary = e.run()
        rows = sorted(e.results("q").to_pylist(), key=lambda row: row["n"])
        assert e.results("r").to_pylist() == [{"n": 8, "day": date(2025, 1, 3)}]
        assert e.results("w")["n"].to_pylist() == [3]
    utc = datetime(2025, 1, 1, 12, 0, 0, 123456, UTC)
    assert rows == [{"day": date(2025, 1, 2), "ts": utc if n % 2 else None, "n": n,
                     "word": "x" if n % 2 else "y", "site": "a/b"} for n in range(1, 7)]
    stream = summary.streams["s"]
    assert (stream.files_rejected, stream.read, stream.kept, stream.rejected) == (2, 10, 6, 4)
    reasons = {Path(event.file).name: event.reason for event in seen}
    assert reasons["3.parquet"] == "column 'day' is declared DATE but its folder says 'oops'"
    assert "4294967295" in reasons["4.parquet"]


@pytest.mark.spark
def test_a_bad_file_does_not_stop_a_stream(engine, tmp_path):
    archive = gzip.compress(b"n,word\n" + b"".join(b"%d,w\n" % n for n in range(9000)))
    lines(tmp_path / "in" / "a.csv", "n,word\n1,a\n")
    lines(tmp_path / "in" / "cut.csv.gz", archive[:-2000], 1000)
    lines(tmp_path / "in" / "wide.csv", "n,word\n1,a\n".encode("utf-16"))
    lines(tmp_path / "in" / "other.csv", "k,word\n1,a\n")
    lines(tmp_path / "in" / "z.csv.gz", gzip.compress(b"n,word\n2,b\n"))
    with engine() as e:
        e.execute("""
            CREATE STREAM s (n INT, word STRING) FROM csv 'in' OPTIONS (header = true);
            CREATE QUERY q AS SELECT n FROM s;
        """, folder=tmp_path)
        summary = e.run()
        assert sorted(e.results("q")["n"].to_pylist()) == [1, 2]
        lines(tmp_path / "in" / "cut.csv.gz", archive, 2000)
        again = e.run()
        assert e.results("q").num_rows == 2 + 9000, "the whole file is read once it is there"
    assert summary.failures() == again.failures() == []
    assert (summary.streams["s"].files_rejected, again.streams["s"].files_rejected) == (3, 0)
    told = "\n".join(warning.text for warning in summary.warnings)
    assert all(name in told for name in ("cut.csv.gz", "wide.csv", "other.csv"))
    assert "column 'n' is declared but not in the data" in told and "UTF-16" in told
    assert "cut.csv.gz is set aside: Unexpected end of input stream" in told
    assert summary.accounting() == []


class Clock:
    """A clock that stands still, but for a little at every look."""

    def __init__(self, now: float) -> None:
        self.time = now

    def now(self) -> float:
        self.time += 1e-4
        return self.time


@pytest.mark.spark
def test_epoch_times_are_exact_in_every_unit(spark):
    moments = [1_767_225_602_123_457, 1_767_225_602_999_999, -1, 0, -1_767_225_602_123_457]
    units = {"SECONDS": 10**6, "MILLISECONDS": 10**3, "MICROSECONDS": 1}
    for unit, size in units.items():
        stream = Stream("s", (Field("t", BIGINT),), "json", time="t", unit=unit)
        frame = spark.createDataFrame([(at // size,) for at in moments], "t BIGINT")
        found = [row[0] for row in frame.select(times.micros(stream)).collect()]
        assert found == [at // size * size for at in moments], unit
    stream = Stream("s", (Field("t", BIGINT),), "json", time="t", unit="NANOSECONDS")
    frame = spark.createDataFrame([(at * 1000 + 999,) for at in moments], "t BIGINT")
    assert [row[0] for row in frame.select(times.micros(stream)).collect()] == moments
    stream = Stream("s", (Field("t", Type("DOUBLE")),), "json", time="t", unit="SECONDS")
    frame = spark.createDataFrame([(at / 1e6,) for at in moments], "t DOUBLE")
    assert [row[0] for row in frame.select(times.micros(stream)).collect()] == moments


@pytest.mark.spark
def test_a_time_far_ahead_of_the_clock_is_rejected(engine, tmp_path):
    """It makes no other row late. Times may be numbers in a unit; a wrong unit is noticed."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    good = [now + timedelta(seconds=n) for n in range(3)]
    for n, far in enumerate([datetime(9999, 12, 31, tzinfo=UTC), now + timedelta(hours=25),
                             now + timedelta(hours=23)]):
        parquet(tmp_path / "p" / f"{n}.parquet",
                {"ts": pa.array([*good, far], pa.timestamp("us", "UTC"))}, NOW + n)
    largest = pa.array([2**63 - 1, -2**63 + 1], pa.int64()).cast(pa.timestamp("us", "UTC"))
    parquet(tmp_path / "p" / "3.parquet", {"ts": largest}, NOW - 1)
    millis = [round(t.timestamp() * 1000) for t in good]
    numbers = [*millis, 2**63 - 1, -2**63, millis[0] * 1000]  # the last is in microseconds
    lines(tmp_path / "j" / "a.json", "".join(json.dumps({"t": t}) + "\n" for t in numbers))
    lines(tmp_path / "k" / "a.json", "".join(json.dumps({"t": t}) + "\n" for t in millis))
    with engine() as e:
        e._clock = Clock(now.timestamp())
        e.execute("""
            CREATE STREAM p (ts TIMESTAMP) FROM parquet 'p'
                OPTIONS (maxFilesPerTrigger = 1) TIME ts LATENESS 1 DAY;
            CREATE STREAM j (t BIGINT) FROM json 'j' TIME t UNIT MILLISECONDS;
            CREATE STREAM k (t TIMESTAMP) FROM json 'k' TIME t;
            CREATE STREAM l (t BIGINT) FROM json 'k' TIME t UNIT SECONDS;
            CREATE QUERY q AS SELECT COUNT(*) AS n FROM p [WINDOW 1 DAY SLIDE EXACTLY 1 DAY];
            CREATE QUERY a AS SELECT ts FROM p;
            CREATE QUERY r AS SELECT COUNT(*) AS n, MAX(t) AS t
                FROM j GROUP BY TUMBLE(t, INTERVAL '2' SECOND);
            CREATE QUERY s AS SELECT 'k' AS t FROM k UNION ALL SELECT 'l' FROM l;
        """, folder=tmp_path)
        summary = e.run()
        assert e.results("q")["n"].to_pylist() == [10]
        assert e.results("a").num_rows == 10
        assert sorted(zip(e.results("r")["n"].to_pylist(), e.results("r")["t"].to_pylist(),
                          strict=True)) == [(1, millis[2]), (2, millis[1])]
        assert e.results("s").num_rows == 0
        told = [json.loads(line) for path in (e.checkpoint / "rejects" / "p").rglob("*.json")
                for line in path.read_text().splitlines()]
    assert summary.failures() == []
    measured = {s.name: (s.read, s.kept, s.late, s.rejected) for s in summary.streams.values()}
    assert measured == {"p": (14, 10, 0, 4), "j": (6, 3, 0, 3), "k": (3, 0, 0, 3),
                        "l": (3, 0, 0, 3)}
    assert {row["reason"].partition(", is ")[2] for row in told} == {
        "more than 86400 seconds ahead of the clock", "before the year 1"}
    hints = {warning.subject: warning.text for warning in summary.warnings}
    assert hints["stream k"].endswith("declare it BIGINT, and TIME t UNIT MILLISECONDS")
    assert hints["stream l"].endswith("declare TIME t UNIT MILLISECONDS")



@pytest.mark.spark
def test_a_folder_on_another_file_system_is_read_through_hadoop(engine, tmp_path, monkeypatch):
    """What Python cannot open is listed, looked at and counted by Hadoop and Spark."""
    def elsewhere(path: str) -> Path | None:
        return None if "/in" in path else local(path)

    local = files.local_path
    for module in (files, file_checks, folder_watch, partitions, stream_ingest):
        monkeypatch.setattr(module, "local_path", elsewhere)
    when = pa.array([BEGIN, BEGIN + timedelta(days=4000)], pa.timestamp("us", "UTC"))
    whole = parquet(tmp_path / "in" / "day=1" / "b.parquet",
                    {"ts": when, "n": pa.array([1, 2], pa.int32())}, 2000)
    lines(tmp_path / "in" / "day=2" / "cut.parquet", whole.read_bytes()[:-9], 1000)
    lines(tmp_path / "in" / "_hidden" / "x.parquet", b"nothing")
    with engine() as e:
        e._clock = Clock(NOW)
        e.execute("""
            CREATE STREAM s (ts TIMESTAMP, n INT, day INT) FROM parquet 'in' TIME ts;
            CREATE QUERY q AS SELECT n, day FROM s;
        """, folder=tmp_path)
        summary = e.run()
        monkeypatch.undo()
        assert e.results("q").to_pylist() == [{"n": 1, "day": 1}]
    stream = summary.streams["s"]
    assert summary.failures() == []
    assert (stream.read, stream.kept, stream.rejected, stream.files_rejected) == (2, 1, 1, 1)
