"""Delivery without Spark: files keep what they are called, go where they may, and stay whole."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.engine.instructions import RefreshJob, Scan
from penstock.errors import CheckpointError, RunError
from penstock.language import bind
from penstock.plan import Member, Plan
from penstock.planning import plan as planned
from penstock.spark.aggregates.driver_answers import DriverAnswers
from penstock.spark.delivery.commit import Delivery
from penstock.spark.delivery.delivery_log import Deliveries
from penstock.spark.delivery.sink_folders import at_home
from penstock.spark.delivery.sinks.staged_files import StagedFiles
from penstock.spark.delivery.stored_answers import Results, readable
from penstock.spark.ingest.sources import plain
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.files import Files, canonical

APP = """
CREATE STREAM s (ts TIMESTAMP, v INT) FROM parquet 'in' TIME ts;
CREATE QUERY a INTO parquet 'out' AS SELECT COUNT(*) AS n FROM s [WINDOW 1 MIN];
"""


class Driver:
    """A checkpoint and its sinks, as the host would hold them; answers come from the driver."""

    def __init__(self, folder: Path, name: str = "checkpoint", sql: str = APP,
                 callback=lambda *_: print) -> None:
        self.said: list[str] = []
        self.warned: list[str] = []
        self.application = at_home(bind(sql, folder=folder))
        self.plan: Plan = planned(self.application)
        self.checkpoint = Checkpoint.open(folder / name)
        self.deliveries = Deliveries(self.checkpoint.log(self.checkpoint.deliveries))
        self.sinks = Delivery(self.checkpoint, Files(None), self.deliveries, callback,
                              self.said.append)

    def start(self) -> Driver:
        self.sinks.recover(lambda subject, text: self.warned.append(text))
        self.sinks.adopt(self.plan, self.application)
        return self

    def deliver(self, *values: int, query: str = "a"):
        run, member = self.deliveries.last_job + 1, Member(query, 0)
        held = DriverAnswers(None, {member: self.plan.branch(member)})
        held.add(member, 0, 60_000_000, pa.record_batch({"agg0": pa.array(values, pa.int64())}))
        refresh = RefreshJob(number=run, group="g", pane=60_000_000, scans=(Scan(
            group="g", end=1, queries=((query, 1),), reason=""),), arrived=0.0)
        return self.sinks.deliver(refresh, self.plan, held)

    def close(self) -> None:
        self.deliveries.close()
        self.checkpoint.close()


def answers(folder: Path, column: str = "n") -> list[int]:
    found = [pq.read_table(path)[column].to_pylist() for path in folder.glob("*.parquet")]
    return sorted(value for part in found for value in part)


@pytest.fixture
def driver(tmp_path):
    opened: list[Driver] = []

    def open_driver(name: str = "checkpoint", sql: str = APP) -> Driver:
        for one in opened:
            one.close()
        opened.append(Driver(tmp_path, name, sql))
        return opened[-1]

    yield open_driver
    for one in opened:
        one.close()


# --- files never replace files -------------------------------------------------------------------


def test_two_runs_into_one_folder_keep_all_answers(driver, tmp_path):
    driver("monday").start().deliver(1, 2)
    driver("tuesday").start().deliver(3)
    assert answers(tmp_path / "out") == [1, 2, 3]


def test_a_deleted_checkpoint_begun_again_replaces_nothing(driver, tmp_path):
    driver().start().deliver(1)
    (tmp_path / "checkpoint").rename(tmp_path / "gone")
    driver().start().deliver(2)
    assert answers(tmp_path / "out") == [1, 2]


def test_a_file_that_is_there_is_an_error_and_the_answers_wait(driver, tmp_path):
    first = driver().start()
    first.deliver(1)
    name = next((tmp_path / "out").glob("run-*")).name
    (tmp_path / "out" / name.replace("run-00000001", "run-00000002")).write_bytes(b"mine")
    done = first.deliver(2)
    assert "a file of this name is there already" in done.failed["a"]
    again = driver().start()
    assert "a file of this name is there already" in again.warned[0]
    (tmp_path / "out" / name.replace("run-00000001", "run-00000002")).unlink()
    assert driver().start().warned == []
    assert answers(tmp_path / "out") == [1, 2]


@pytest.mark.parametrize("refusal", [None, PermissionError(1, "no links here")])
def test_a_move_refuses_a_name_in_use_and_can_be_done_again(tmp_path, monkeypatch, refusal):
    def link(source, target):
        raise refusal

    if refusal is not None:
        monkeypatch.setattr(os, "link", link)
    files, source, target = Files(None), tmp_path / "source", tmp_path / "below" / "target"
    source.write_text("new")
    files.move(str(source), str(target))
    assert (source.exists(), target.read_text()) == (False, "new")
    source.write_text("newer")
    with pytest.raises(FileExistsError):
        files.move(str(source), str(target))
    assert (source.read_text(), target.read_text()) == ("newer", "new")


def test_a_move_that_was_cut_short_between_its_two_names_is_finished(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("new")
    os.link(source, target)
    Files(None).move(str(source), str(target))
    assert (source.exists(), target.read_text()) == (False, "new")


def test_a_full_disk_is_named_with_the_folder(driver, monkeypatch):
    def refuse(*_, **__):
        raise OSError(28, "Error writing bytes to file. Detail: [errno 28] ...")

    monkeypatch.setattr(pq, "write_table", refuse)
    one = driver().start()
    with pytest.raises(OSError) as caught:
        one.deliver(1)
    assert plain(caught.value).startswith("No space left on device: ")
    assert str(one.checkpoint.root / "staging") in plain(caught.value)


# --- recovery ------------------------------------------------------------------------------------


def committed(driver, monkeypatch) -> Path:
    """A run that counts and whose driver died before any file was moved."""
    with monkeypatch.context() as patch:
        patch.setattr(Files, "move", lambda *_: (_ for _ in ()).throw(OSError("died")))
        one = driver().start()
        one.deliver(1, 2)
    return one.checkpoint.root


def test_a_moved_checkpoint_finishes_what_it_committed(driver, tmp_path, monkeypatch):
    root = committed(driver, monkeypatch)
    root.rename(tmp_path / "elsewhere")
    moved = driver("elsewhere").start()
    assert moved.warned == []
    assert answers(tmp_path / "out") == [1, 2]
    assert list((tmp_path / "elsewhere" / "staging").iterdir()) == []


def test_staged_files_of_a_run_that_counts_are_never_thrown_away(driver, tmp_path, monkeypatch):
    root = committed(driver, monkeypatch)
    (root / "staging" / "00000001" / "moves.json").unlink()
    again = driver().start()
    assert "is unknown; see" in again.warned[0]
    assert len(list((root / "staging").rglob("*.parquet"))) == 1


def test_what_was_delivered_and_is_gone_is_told(driver, tmp_path, monkeypatch):
    root = committed(driver, monkeypatch)
    next((root / "staging").rglob("*.parquet")).unlink()
    again = driver().start()
    assert "taken away, or is lost" in again.warned[0]
    assert list((root / "staging").iterdir()) == []


@pytest.mark.parametrize("change", [
    {"source": "../../../precious/letter"},
    {"source": "/etc/passwd"},
    {"folder": "/somewhere/else"},
    {"folder": "results/../../precious"},
    {"name": "letter"},
    {"name": "../run-00000001-x"},
])
def test_a_checkpoint_moves_files_only_inside_itself_and_its_sinks(
    driver, tmp_path, monkeypatch, change
):
    root = committed(driver, monkeypatch)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "letter").write_text("dear")
    noted = root / "staging" / "00000001" / "moves.json"
    (entry,) = Checkpoint.look(root).read(noted)
    move = dict(zip(("source", "folder", "name"), entry, strict=True)) | change
    Checkpoint.look(root).write(noted, [list(move.values())])  # forged, with its checksum
    with pytest.raises(CheckpointError, match=r"moves\.json names"):
        driver().start()
    assert [path.name for path in (tmp_path / "precious").iterdir()] == ["letter"]
    assert not (tmp_path / "out").exists()


def test_a_link_in_the_staging_folder_leads_nowhere(driver, tmp_path, monkeypatch):
    root = committed(driver, monkeypatch)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "letter").write_text("dear")
    here = root / "staging" / "00000001"
    (here / "9").symlink_to(tmp_path / "precious")
    look = Checkpoint.look(root)
    (entry,) = look.read(here / "moves.json")
    look.write(here / "moves.json", [["9/letter", *entry[1:]]])
    with pytest.raises(CheckpointError, match="not a staged file"):
        driver().start()
    assert (tmp_path / "precious" / "letter").read_text() == "dear"


def test_a_checkpoint_deletes_only_inside_itself_and_its_sinks(driver, tmp_path):
    one = driver().start()
    here = one.checkpoint.root / "staging" / "00000007"
    victim = tmp_path / "precious" / "_penstock" / f"{one.checkpoint.id}-00000007-0"
    victim.mkdir(parents=True)
    here.mkdir()
    one.checkpoint.write(here / "outside-0.json", str(tmp_path / "precious"))
    with pytest.raises(CheckpointError, match=r"outside-0\.json names"):
        driver().start()
    assert victim.is_dir()


def test_what_is_not_ours_in_the_staging_folder_is_left_alone(driver, tmp_path):
    driver().start()
    (tmp_path / "checkpoint" / "staging" / ".DS_Store").write_text("")
    driver().start().deliver(1)
    assert answers(tmp_path / "out") == [1]


# --- folders -------------------------------------------------------------------------------------


def refused(driver: Driver) -> dict[str, str]:
    return driver.sinks.folders.refused(driver.application)


WIDER = APP.replace("AS n", "AS n, MAX(v) AS most")


def test_a_query_whose_columns_changed_does_not_write_into_its_old_dataset(driver):
    driver().start().deliver(1)
    why = refused(driver(sql=WIDER).start())["a"]
    assert "window_end TIMESTAMP, n BIGINT, and query a delivers" in why and "most INT" in why
    assert "name another folder" in why
    why = refused(driver(sql=APP.replace("INTO parquet", "INTO csv")).start())["a"]
    assert "holds parquet files and cannot hold csv too" in why
    assert refused(driver().start()) == {}


def test_another_checkpoint_finds_out_from_the_files(driver):
    driver("first").start().deliver(1)
    assert "TIMESTAMP, n BIGINT, and query a" in refused(driver("wide", WIDER).start())["a"]
    other = driver("other", APP.replace("INTO parquet", "INTO json"))
    assert "holds parquet files" in refused(other.start())["a"]
    assert refused(driver("same").start()) == {}


def test_text_of_another_checkpoint_tells_of_its_columns(driver, tmp_path):
    for format_, first in (("csv", "window_start,window_end,other\n"), ("json", '{"other": 1}\n')):
        folder = tmp_path / format_
        folder.mkdir()
        (folder / f"run-00000001-x-part.{format_}").write_text(first)
        sql = APP.replace("parquet 'out'", f"{format_} '{format_}'")
        why = refused(driver(f"to {format_}", sql).start())["a"]
        assert "other STRING, and query a delivers" in why


@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
@pytest.mark.parametrize("content", [b"", b"\xff\x00", b"7\n"])
def test_a_damaged_file_of_somebody_else_is_no_obstacle(driver, tmp_path, format_, content):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / f"run-00000001-x-part.{format_}").write_bytes(content)
    (folder / "run-notes.txt").write_text("hello")
    why = refused(driver(sql=APP.replace("INTO parquet", f"INTO {format_}")).start())
    assert why == {} or "holds files with the columns 7" in why["a"]


def test_a_folder_whose_files_are_gone_may_be_begun_anew(driver, tmp_path):
    driver().start().deliver(1)
    for path in (tmp_path / "out").iterdir():
        path.unlink()
    assert refused(driver(sql=WIDER).start()) == {}


def test_a_renamed_query_takes_its_folder_over(driver, tmp_path):
    driver().start().deliver(1)
    renamed = driver(sql=APP.replace("QUERY a", "QUERY b")).start()
    assert refused(renamed) == {}
    renamed.deliver(2, query="b")
    assert answers(tmp_path / "out") == [1, 2]
    both = APP + "CREATE QUERY b INTO parquet 'out' AS SELECT COUNT(*) AS n FROM s [WINDOW 1 MIN];"
    assert "already written by query b alone" in refused(driver(sql=both).start())["a"]


def test_a_shared_folder_keeps_the_columns_of_queries_that_have_left(driver, tmp_path):
    two = APP + "CREATE QUERY b INTO parquet 'out' AS SELECT MAX(v) AS most FROM s [WINDOW 1 MIN];"
    driver(sql=two).start().deliver(1)
    one = driver().start()
    assert refused(one) == {}
    one.deliver(2)
    columns = {tuple(pq.read_schema(path).names) for path in (tmp_path / "out").iterdir()}
    assert columns == {("query", "window_start", "window_end", "n", "most")}
    other = driver(sql=APP.replace("COUNT(*) AS n", "CAST(COUNT(*) AS STRING) AS n")).start()
    assert "n STRING" in refused(other)["a"]


@pytest.mark.parametrize("spelling", [
    "out", "./out/", "x/../out", "{folder}/out", "file://{folder}/out", "file:{folder}/out/",
    "link", "link/../link/",
])
def test_a_folder_is_one_under_every_spelling(driver, tmp_path, spelling):
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to("out")
    target = spelling.format(folder=tmp_path)
    two = APP + (f"CREATE QUERY b INTO parquet '{target}' AS "
                 "SELECT MAX(v) AS most FROM s [WINDOW 1 MIN];")
    one = driver(sql=two).start()
    assert set(one.sinks.folders.shared) == {str(tmp_path / "out")}


@pytest.mark.parametrize(("target", "why"), [
    ("in", "is where stream s reads"),
    ("in/below", "is where stream s reads"),
    ("link/below", "is where stream s reads"),
    (".", "must not lie in each other"),
    ("checkpoint", "must not lie in each other"),
    ("checkpoint/results/x", "must not lie in each other"),
    ("apart", "holds"),
    ("many/x/y", "is where stream many reads"),
    ("many/z", ""),
    ("chosen/b", "is where stream chosen reads"),
    ("chosen/c", ""),
    ("inner", ""),
    ("names.csv", "is where relation names reads"),
])
def test_a_sink_that_is_read_or_is_the_checkpoint_is_refused(driver, tmp_path, target, why):
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to("in")
    sql = APP.replace("'out'", f"'{target}'") + """
        CREATE STREAM far (ts TIMESTAMP) FROM parquet 'apart/from';
        CREATE STREAM many (ts TIMESTAMP) FROM parquet 'many/*/y';
        CREATE STREAM chosen (ts TIMESTAMP) FROM parquet 'chosen/{a,b}';
        CREATE RELATION names (n INT) FROM csv 'names.csv';
    """
    found = refused(driver(sql=sql).start()).get("a", "")
    assert why in found and bool(why) == bool(found), found


def test_remote_folders_are_spelt_in_one_way_too():
    assert {canonical(path) for path in ("s3a://lake/a", "s3a://lake/a/", "s3a://lake/b/../a/")} \
        == {"s3a://lake/a"}


# --- names ---------------------------------------------------------------------------------------


def test_names_that_only_a_dictionary_would_call_equal_are_two_columns(driver, tmp_path):
    sql = APP.replace("COUNT(*) AS n", "COUNT(*) AS straße, COUNT(*) AS strasse, COUNT(*) AS ﬁ")
    driver(sql=sql).start().deliver(4)
    (path,) = (tmp_path / "out").iterdir()
    names = pq.read_schema(path).names
    assert names == ["window_start", "window_end", "straße", "strasse", "ﬁ"]


# --- the console ---------------------------------------------------------------------------------


def test_the_console_does_not_pass_terminal_escapes_on(driver):
    member = Member("a", 0)
    one = driver(sql="""
        CREATE STREAM s (ts TIMESTAMP, word STRING) FROM parquet 'in' TIME ts;
        CREATE QUERY a INTO console AS
            SELECT word, COUNT(*) AS n FROM s [WINDOW 1 MIN] GROUP BY word;
    """).start()
    held = DriverAnswers(None, {member: one.plan.branch(member)})
    words = ["\x1b]0;owned\x07", "two\nlines\r", "\x85\u202e", "plain é"]
    held.add(member, 0, 60_000_000, pa.record_batch({
        "key0": pa.array(words), "agg0": pa.array([1] * 4, pa.int64())}))
    one.sinks.deliver(RefreshJob(number=1, group="g", pane=60_000_000, scans=(Scan(
        group="g", end=1, queries=(("a", 1),), reason=""),), arrived=0.0),
                      one.plan, held)
    said = "".join(one.said)
    assert said.isprintable(), said
    for shown in (r"\x1b]0;owned\x07", r"two\nlines\r", r"\x85\u202e", "plain é, n=1"):
        assert shown in said


# --- several sinks of one query ------------------------------------------------------------------

SEVERAL = """
CREATE STREAM s (ts TIMESTAMP, v INT) FROM parquet 'in' TIME ts;
CREATE QUERY a INTO parquet 'out', json 'text', memory, parquet 'more', console
    AS SELECT COUNT(*) AS n FROM s [WINDOW 1 MIN];
CREATE QUERY b INTO csv 'b', parquet 'more' AS SELECT COUNT(*) AS n FROM s [WINDOW 1 MIN];
"""


def lines(folder: Path) -> list[int]:
    return sorted(json.loads(line)["n"] for file in folder.glob("*.json")
                  for line in file.read_text().splitlines())


def everywhere(driver: Driver, folder: Path) -> list[list[int]]:
    """What each sink of the query `a` has that keeps something."""
    kept = Results(driver.checkpoint).table(bind(
        "CREATE STREAM s (ts TIMESTAMP, v INT) FROM parquet 'in' TIME ts;"
        "CREATE QUERY a AS SELECT COUNT(*) AS n FROM s [WINDOW 1 MIN];"), "a")
    return [answers(folder / "out"), lines(folder / "text"), sorted(kept["n"].to_pylist()),
            answers(folder / "more")]


def test_every_sink_of_a_query_gets_its_answers_and_they_count_once(driver, tmp_path):
    one = driver(sql=SEVERAL).start()
    done = one.deliver(1, 2)
    assert (done.rows, done.failed) == ({"a": 2}, {})
    assert everywhere(one, tmp_path) == [[1, 2]] * 4
    assert [said.partition(" n=")[2] for said in one.said] == ["1", "2"]
    assert one.deliver(5, query="b").rows == {"b": 1}
    assert answers(tmp_path / "more") == [1, 2, 5]  # the folder that the two queries share
    assert pq.read_table(tmp_path / "more")["query"].to_pylist().count("a") == 2
    assert one.deliveries.last_job == 2


def test_results_reads_the_first_sink_that_keeps_answers(driver, tmp_path):
    one = driver(sql=SEVERAL.replace("a INTO parquet 'out', json", "a INTO console, noop, json")
                 .replace(", console\n", "\n")).start()
    one.deliver(3, 4)
    results = Results(one.checkpoint)
    assert readable(one.application, "a").sink.kind == "json"
    assert results.table(one.application, "a")["n"].to_pylist() == [3, 4]
    none = bind(SEVERAL.replace("parquet 'out', json 'text', memory, parquet 'more', console",
                                "console, noop"), folder=tmp_path)
    with pytest.raises(RunError, match="delivers to console and noop; results are kept for"):
        readable(none, "a")


@pytest.mark.parametrize("moved", range(4))
def test_a_driver_that_dies_between_two_sinks_gives_each_its_answers_once(
    driver, tmp_path, monkeypatch, moved
):
    one, moves = driver(sql=SEVERAL).start(), []
    move = Files.move

    def die(self, source, target):
        if len(moves) == moved:
            raise KeyboardInterrupt
        moves.append(target)
        move(self, source, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Files, "move", die)
        one.deliver(7)
    assert len(moves) == moved and one.deliveries.last_job == 1
    again = driver(sql=SEVERAL).start()
    assert (again.warned, everywhere(again, tmp_path)) == ([], [[7]] * 4)
    again = driver(sql=SEVERAL).start()  # and nothing comes twice
    assert everywhere(again, tmp_path) == [[7]] * 4


def test_a_callback_that_fails_stops_its_query_and_its_other_sinks_get_nothing(tmp_path):
    calls = []

    def pick(target, query):
        def call(query, table):
            calls.append(table["n"].to_pylist())
            if 13 in calls[-1]:
                raise ValueError("not thirteen")
        return call

    sql = SEVERAL.replace("memory, parquet 'more', console",
                          "callback 'm:f', memory, parquet 'more'")
    one = Driver(tmp_path, sql=sql, callback=pick).start()
    assert one.deliver(1).failed == {}
    done = one.deliver(13)
    assert done.failed == {"a": "its callback m:f raised ValueError: not thirteen"}
    assert everywhere(one, tmp_path) == [[1]] * 4
    assert calls == [[1], [13]]
    assert list((one.checkpoint.root / "staging").iterdir()) == []
    one.close()


def test_a_sink_that_refuses_its_files_holds_up_no_other_sink(driver, tmp_path, monkeypatch):
    one = driver(sql=SEVERAL).start()
    move = Files.move

    def refuse(self, source, target):
        if "/text/" in target:
            raise OSError(28, "No space left on device")
        move(self, source, target)

    with monkeypatch.context() as patch:
        patch.setattr(Files, "move", refuse)
        done = one.deliver(1)
    assert list(done.failed) == ["a"] and "text: No space left" in done.failed["a"]
    assert everywhere(one, tmp_path) == [[1], [], [1], [1]]
    again = driver(sql=SEVERAL).start()
    assert (again.warned, everywhere(again, tmp_path)) == ([], [[1]] * 4)


def test_two_spellings_of_one_folder_are_refused(driver, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "out")
    sql = SEVERAL.replace("json 'text'", "parquet 'link'")
    assert refused(driver(sql=sql)) == {"a": f"two of its sinks are one folder, {tmp_path}/out"}


def test_sinks_that_get_different_numbers_of_rows_fail_the_job(driver, tmp_path, monkeypatch):
    one = driver(sql=SEVERAL).start()
    stage = StagedFiles.stage

    def lose(self, task, answers):
        staged = stage(self, task, answers)
        return replace(staged, rows={"a": 1}) if task.write.kind == "json" else staged

    monkeypatch.setattr(StagedFiles, "stage", lose)
    with pytest.raises(RunError, match="the sinks of query a got different numbers of rows"):
        one.deliver(1, 2)
    assert (one.deliveries.last_job, everywhere(one, tmp_path)) == (0, [[]] * 4)
