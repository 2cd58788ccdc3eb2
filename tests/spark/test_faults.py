"""What goes wrong stays with whom it concerns: a clear reason, and every other answer complete."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import CheckpointError, RunError, SyntaxFault
from penstock.events import Summary
from penstock.events import kinds as ev
from penstock.language import bind, load_attribute
from penstock.spark.ingest.sources import relation_frame
from penstock.spark.storage import files as files_module
from tests.spark.kit import eventually

pytestmark = pytest.mark.spark

GOOD = """
CREATE STREAM nums (n INT, word STRING) FROM parquet 'nums';
CREATE QUERY good AS SELECT n FROM nums WHERE n < 100;
"""
"""A query beside the one that fails; all of its answers must come."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    numbers(tmp_path / "nums", 0, 10)
    return tmp_path


def numbers(folder: Path, start: int, count: int, **more: pa.Array) -> None:
    folder.mkdir(exist_ok=True)
    values = range(start, start + count)
    table = pa.table({"n": pa.array(values, pa.int32()), "word": [f"w{n}" for n in values], **more})
    hidden = folder / f".{start}"
    pq.write_table(table, hidden)
    hidden.rename(folder / f"{start:04d}.parquet")


def text(path: Path, content: str) -> None:
    """A file that appears whole in a folder."""
    path.parent.mkdir(exist_ok=True)
    hidden = path.with_name(f".{path.name}")
    hidden.write_text(content)
    hidden.rename(path)


def module(folder: Path, name: str, text: str) -> None:
    sys.modules.pop(name, None)
    (folder / f"{name}.py").write_text(text)


def rejects(engine, name: str) -> list[dict]:
    """What was set aside for a stream, a relation or a query."""
    found = sorted((engine.checkpoint / "rejects" / name).rglob("*.json"))
    return [json.loads(line) for path in found for line in path.read_text().splitlines()]


def run(engine, sql: str, folder: Path, good: int = 10) -> Summary:
    engine.execute(GOOD + sql, folder=folder)
    summary = engine.run()
    assert engine.results("good").num_rows == good, "the good query's answers are complete"
    assert summary.queries["good"].state == "done"
    return summary


def values(engine, query: str) -> list:
    return sorted(engine.results(query)["n"].to_pylist())


# --- functions and callbacks -------------------------------------------------------------------


def test_a_function_or_callback_that_raises(engine, place):
    module(place, "raising", (
        "import penstock, pyarrow as pa, pyarrow.compute as pc\n"
        "@penstock.predicate\n"
        "def picky(n):\n"
        "    if pc.any(pc.equal(n, 7)).as_py(): raise ValueError('seven is right out')\n"
        "    return pc.greater(n, 4)\n"
        "@penstock.predicate\n"
        "def never(n): raise RuntimeError('out of order')\n"
        "def calls(query, table): raise OSError('nobody answers')\n"
        "class Mute(BaseException):\n"
        "    def __str__(self): raise ValueError()\n"
        "@penstock.predicate\n"
        "def mute(n): raise Mute()\n"
        "@penstock.predicate\n"
        "def dies(n): import os; os._exit(3)\n"
    ))  # fmt: skip
    with engine() as e:
        summary = run(e, """
            CREATE FUNCTION picky FROM 'raising:picky';
            CREATE FUNCTION never FROM 'raising:never';
            CREATE QUERY some AS SELECT n FROM nums WHERE picky(n) AND n < 9;
            CREATE QUERY none INTO parquet 'none' AS SELECT n, word FROM nums WHERE never(n);
            CREATE QUERY phone INTO callback 'raising:calls' AS SELECT n FROM nums;
            CREATE FUNCTION mute FROM 'raising:mute';
            CREATE FUNCTION dies FROM 'raising:dies';
            CREATE QUERY silent WITH (rejects = 'fail') AS SELECT n FROM nums WHERE mute(n);
            CREATE QUERY dead AS SELECT n FROM nums WHERE dies(n);
        """, place)
        assert values(e, "some") == [5, 6, 8]
        (row,) = rejects(e, "some")
        assert (row["error"], json.loads(row["row"])["n"]) == ("ValueError: seven is right out", 7)
        assert len(rejects(e, "none")) == 10
    some, none = summary.queries["some"], summary.queries["none"]
    assert (some.rows_in, some.rows_out, some.rejected, some.filtered) == (10, 3, 1, 6)
    assert (none.rejected, none.rows_out) == (10, 0)
    told = {w.subject: w.text for w in summary.warnings}
    assert told == {"query none": "its function rejected every row of 1 block (10 rows), beginning "
                                  "with: RuntimeError: out of order"}
    reasons = dict(summary.failures())
    assert reasons["query silent"] == (
        "its function rejected every row of 1 block (10 rows), beginning with: "
        "Mute: its text cannot be read: ValueError")
    assert reasons["query dead"].startswith("the Python process that called its function died")
    phone = summary.queries["phone"]
    assert phone.state == "failed"
    assert "callback raising:calls raised OSError: nobody answers" in phone.reason


def test_two_engines_with_modules_of_one_name_call_their_own(engine, place):
    """In the driver (callbacks) and in the workers (predicates), with what they import."""
    module(place, "twin", "")
    heard: dict[str, list[int]] = {}
    for number, folder in enumerate(("one", "two")):
        (place / folder).mkdir()
        (place / folder / "twin_help.py").write_text(f"def bound(): return {8 - number}\n")
        (place / folder / "twin.py").write_text(
            "import penstock, pyarrow.compute as pc, twin_help\n"
            "@penstock.predicate\ndef late(n): return pc.greater(n, twin_help.bound())\n"
            "heard = []\n"
            "def hear(query, table): heard.extend(table['n'].to_pylist())\n")
    (place / "twin.py").unlink()
    for folder in ("one", "two"):
        with engine(f"checkpoint-{folder}") as e:
            e.execute("CREATE STREAM nums (n INT, word STRING) FROM parquet 'nums';", folder=place)
            e.execute("CREATE QUERY other AS SELECT n FROM nums;", folder=place)
            e.execute("""
                CREATE FUNCTION late FROM 'twin:late';
                CREATE QUERY q AS SELECT n FROM nums WHERE late(n);
                CREATE QUERY called INTO callback 'twin:hear' AS SELECT n FROM nums WHERE n > 7;
            """, folder=place / folder)
            assert e.run().failures() == []
            heard[folder] = values(e, "q")
            hear = load_attribute("twin", "heard", str(place / folder))
            assert sorted(hear) == [8, 9]
    assert heard == {"one": [9], "two": [8, 9]}


def test_stuck_functions_and_callbacks_stop_alone(engine, place):
    """One slot: the others go on when the limit has passed, and the workers are killed."""
    module(place, "endless", (
        "import penstock, pyarrow.compute as pc, time\n"
        "@penstock.predicate\n"
        "def spins(n):\n"
        "    while pc.any(pc.greater(n, 9)).as_py(): pass\n"
        "    return pc.less(n, 5)\n"
        "def sleeps(query, table):\n"
        "    while max(table['n'].to_pylist(), default=0) > 9: time.sleep(1)\n"
    ))  # fmt: skip
    with engine() as e:
        e.execute(GOOD + """
            SET trigger = '50 ms';
            CREATE FUNCTION spins FROM 'endless:spins';
            CREATE QUERY spinning AS SELECT n FROM nums WHERE spins(n);
            CREATE QUERY phone INTO callback 'endless:sleeps' AS SELECT n FROM nums;
            CREATE QUERY counted AS SELECT COUNT(*) AS n FROM nums [WINDOW 1 HOUR SLIDE 1 MINUTE];
        """, folder=place)
        e.start()
        queries = e.status().queries
        eventually(lambda: all(queries[q].rows_in == 10 for q in ("good", "spinning", "phone")),
                   "the first file was answered", 120)
        numbers(place / "nums", 3, 2)
        eventually(lambda: all(queries[q].rows_in == 12 for q in ("good", "spinning", "phone")),
                   "a file was answered when all was warm", 120)
        e.execute("SET timeout = '2 seconds'")  # or ten times what that file has taken
        numbers(place / "nums", 10, 5)
        eventually(lambda: {queries[q].state for q in ("spinning", "phone")} == {"failed"},
                   "both were stopped", 240)
        numbers(place / "nums", 15, 5)
        eventually(lambda: queries["good"].rows_in == queries["counted"].rows_in == 22,
                   "the others went on")
        e.stop()
        assert values(e, "good") == sorted([*range(20), 3, 4])
        assert values(e, "spinning") == [0, 1, 2, 3, 3, 4, 4]
        assert "its job did not finish within" in queries["spinning"].reason
        assert "endless:sleeps did not return within" in queries["phone"].reason


# --- sinks -------------------------------------------------------------------------------------


def test_folders_that_cannot_be_written(engine, place):
    (place / "file").write_text("in the way")
    (place / "locked").mkdir(mode=0o500)
    with engine() as e:
        summary = run(e, """
            CREATE QUERY below INTO parquet 'file/out' AS SELECT n FROM nums;
            CREATE QUERY upon INTO csv 'file' AS SELECT n FROM nums;
            CREATE QUERY proc INTO json '/proc/penstock' AS SELECT n FROM nums;
            CREATE QUERY locked INTO parquet 'locked' AS SELECT n FROM nums;
        """, place)
    for query in ("below", "upon", "proc"):
        assert summary.queries[query].state == "failed"
        assert "cannot be written" in summary.queries[query].reason
    if os.geteuid():
        assert "Permission denied" in summary.queries["locked"].reason


def test_a_folder_lost_between_runs_gets_what_it_missed_after_its_repair(engine, place):
    with engine() as e:
        run(e, "CREATE QUERY kept INTO parquet 'kept' AS SELECT n, word FROM nums;", place)
    (place / "kept").rename(place / "aside")
    (place / "kept").write_text("in the way")
    numbers(place / "nums", 10, 5)
    with engine() as e:
        summary = e.run()
        assert values(e, "good") == list(range(15))
        assert "cannot be written" in summary.queries["kept"].reason
    (place / "kept").unlink()
    (place / "aside").rename(place / "kept")
    numbers(place / "nums", 15, 5)
    with engine() as e:
        summary = e.run()
        assert summary.failures() == []
        assert values(e, "kept") == values(e, "good") == list(range(20))


def lose_once(monkeypatch, folder: Path, aside: Path) -> None:
    """Put a file in the place of a folder as the first answers are moved there."""
    move, lost = files_module.Files.move, []

    def lose(self, source: str, target: str) -> None:
        if f"{folder}/" in target and not lost:
            lost.append(folder.rename(aside))
            folder.write_text("in the way")
        move(self, source, target)

    monkeypatch.setattr(files_module.Files, "move", lose)


LOSING = """
CREATE QUERY kept INTO parquet 'kept' AS SELECT n FROM nums;
CREATE QUERY near INTO parquet 'near' AS SELECT n FROM nums WHERE n > 3;
"""


def test_a_folder_lost_while_answers_are_on_their_way(engine, place, monkeypatch):
    """Committed but not moved: they wait in the staging folder, and come once."""
    lose_once(monkeypatch, place / "kept", place / "aside")
    with engine() as e:
        summary = run(e, LOSING, place)
        assert values(e, "near") == [4, 5, 6, 7, 8, 9]
        assert "could not be put into" in summary.queries["kept"].reason
    with engine() as e:
        summary = e.run()
        assert [warning.subject for warning in summary.warnings] == ["sink"]
        assert summary.queries["kept"].state == "failed"
    (place / "kept").unlink()
    with engine() as e:
        assert e.run().failures() == []
        assert values(e, "kept") == list(range(10))
        assert values(e, "near") == [4, 5, 6, 7, 8, 9]
        assert list((e.checkpoint / "staging").iterdir()) == []


def test_a_folder_on_another_file_system_lost_on_the_way(engine, place, monkeypatch):
    """What Python cannot open goes through Hadoop, staged where it will stay."""
    local = files_module.local_path
    monkeypatch.setattr(files_module, "local_path",
                        lambda path: None if "/kept" in path else local(path))
    lose_once(monkeypatch, place / "kept", place / "aside")
    with engine() as e:
        summary = run(e, LOSING, place)
        assert values(e, "near") == [4, 5, 6, 7, 8, 9]
        assert "could not be put into" in summary.queries["kept"].reason
    (place / "kept").unlink()
    (place / "aside").rename(place / "kept")
    with engine() as e:
        assert e.run().failures() == []
        monkeypatch.undo()
        assert values(e, "kept") == list(range(10))
        assert list((e.checkpoint / "staging").iterdir()) == []
        assert not (place / "kept" / "_penstock").exists()


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="there is no second device")
def test_a_folder_on_another_device_that_refuses_a_job(engine, place):
    """The job itself fails: only its query stops, with the reason."""
    far = Path("/dev/shm") / f"penstock-{os.getpid()}"
    failed = []

    def watch(event: ev.Event) -> None:
        if isinstance(event, ev.BlockArrived) and far.is_dir():
            far.rmdir()
            far.write_text("in the way")
        if isinstance(event, ev.JobFailed):
            failed.append(event)

    try:
        with engine(on_event=watch) as e:
            summary = run(e, f"""
                CREATE QUERY far INTO parquet '{far}' AS SELECT n FROM nums;
                CREATE QUERY near INTO parquet 'near' AS SELECT n FROM nums;
            """, place)
            assert values(e, "near") == list(range(10))
            assert summary.queries["far"].state == "failed"
            assert str(far) in summary.queries["far"].reason
            assert failed, "it was tried"
            far.unlink()
            assert e.run().failures() == []
            assert values(e, "far") == list(range(10))
            assert list((e.checkpoint / "staging").iterdir()) == []
    finally:
        shutil.rmtree(far, ignore_errors=True)
        far.unlink(missing_ok=True)


def test_queries_that_cannot_share_a_folder(engine, place):
    with engine() as e:
        summary = run(e, """
            CREATE QUERY first INTO parquet 'both' AS SELECT n, word FROM nums;
            CREATE QUERY second INTO parquet 'both' AS SELECT word AS n FROM nums;
            CREATE QUERY third INTO csv 'both' AS SELECT n FROM nums;
            CREATE QUERY fourth INTO parquet 'both' AS SELECT word AS query FROM nums;
            CREATE QUERY fifth INTO parquet 'both' AS SELECT n FROM nums WHERE n < 2;
        """, place)
        assert values(e, "first") == list(range(10))
        assert values(e, "fifth") == [0, 1]
    reasons = {name: summary.queries[name].reason for name in ("second", "third", "fourth")}
    assert "column 'n' both as INT and as STRING" in reasons["second"]
    assert "parquet" in reasons["third"] and "csv" in reasons["third"]
    assert "column 'query'" in reasons["fourth"]


def test_a_query_may_not_join_a_folder_that_another_fills_alone(engine, place):
    with engine() as e:
        e.execute(GOOD + "CREATE QUERY alone INTO parquet 'mine' AS SELECT n FROM nums;",
                  folder=place)
        e.start()
        with pytest.raises(RunError, match="already written by query alone"):
            e.execute("CREATE QUERY intruder INTO parquet 'mine' AS SELECT n FROM nums;",
                      folder=place)
        assert set(e.application.queries) == {"good", "alone"}
        eventually(lambda: e.status().queries["alone"].rows_in == 10, "it goes on")
        e.stop()
        assert e.results("alone").num_rows == e.results("good").num_rows == 10


# --- rows --------------------------------------------------------------------------------------


def test_malformed_rows_are_rejects_with_their_reason(engine, place):
    text(place / "lines" / "a.csv", "a,b\n1,2\nx,3\n4,5,6\n7\n8,9\n")
    docs = ['{"a": 1, "b": 2}', '{"a": "x", "b": 3}', '{"a": 4, "b"', '{"a": 5}']
    text(place / "docs" / "a.json", "\n".join(docs) + "\n")
    with engine() as e:
        summary = run(e, """
            CREATE STREAM lines (a INT, b INT) FROM csv 'lines' OPTIONS (header = true);
            CREATE STREAM docs (a INT, b INT) FROM json 'docs';
            CREATE RELATION lookup (a INT, b INT) FROM csv 'lines/a.csv' OPTIONS (header = true);
            CREATE QUERY l AS SELECT a AS n FROM lines;
            CREATE QUERY d AS SELECT a AS n FROM docs;
            CREATE QUERY j AS SELECT s.n FROM nums s JOIN lookup r ON s.n = r.a;
        """, place)
        assert (values(e, "l"), values(e, "d"), values(e, "j")) == ([1, 8], [1, 5], [1, 8])
        assert [row["row"] for row in rejects(e, "lines")] == ["x,3", "4,5,6", "7"]
        assert [row["row"] for row in rejects(e, "docs")] == ['{"a": "x", "b": 3}', '{"a": 4, "b"']
        assert {row["reason"] for row in rejects(e, "lines")} == {"malformed row"}
        assert len(rejects(e, "lookup")) == 3
    lines, docs = summary.streams["lines"], summary.streams["docs"]
    assert (lines.read, lines.kept, lines.rejected) == (5, 2, 3)
    assert (docs.read, docs.kept, docs.rejected) == (4, 2, 2)
    assert "3 malformed rows of relation lookup" in summary.warnings[0].text


def test_endless_strings_are_rejects(engine, place):
    endless = "y" * 5_000_000
    text(place / "lines" / "a.csv", f"1,short\n2,{endless}\n3,short\n4,\"never closed {endless}\n")
    docs = ['{"n": 1}', f'{{"n": 2, "word": "{endless}"}}', f'{{"n": 3, "word": "{endless}']
    text(place / "docs" / "a.json", "\n".join(docs) + "\n")
    with engine() as e:
        summary = run(e, """
            CREATE STREAM lines (n INT, word STRING) FROM csv 'lines';
            CREATE STREAM docs (n INT, word STRING) FROM json 'docs';
            CREATE QUERY l AS SELECT n FROM lines;
            CREATE QUERY d AS SELECT n, word FROM docs;
        """, place)
        assert (values(e, "l"), values(e, "d")) == ([1, 3], [1])
        reasons = [row["reason"] for row in rejects(e, "lines") + rejects(e, "docs")]
        assert "column word holds 5000000 bytes; at most 1048576 are taken" in reasons
        assert all(len(row["row"]) < 20_000 for row in rejects(e, "lines") + rejects(e, "docs"))
        with pytest.raises(SyntaxFault, match="line 1, column"):
            e.execute(f"CREATE QUERY open AS SELECT n FROM nums WHERE word = '{endless}")
    assert (summary.streams["lines"].rejected, summary.streams["docs"].rejected) == (2, 2)


# --- sources -----------------------------------------------------------------------------------


def test_sources_that_are_missing_or_do_not_fit(engine, place):
    (place / "empty").mkdir()
    text(place / "lines" / "a.csv", "n,wort\n1,a\n")
    text(place / "swapped" / "a.csv", "word,n\na,1\n")
    (place / "hosts.csv").write_text("id,site\n1,a\n")
    bad = {
        "missing": "(n INT) FROM parquet 'nowhere'",
        "lacking": "(n INT, colour STRING) FROM parquet 'nums'",
        "mistyped": "(n STRING) FROM parquet 'nums'",
        "header": "(n INT, word STRING) FROM csv 'lines' OPTIONS (header = true)",
        "swapped": "(n INT, word STRING) FROM csv 'swapped' OPTIONS (header = true)",
        "single": "(n INT, word STRING) FROM csv 'swapped/a.csv' OPTIONS (header = true)",
        "unknown": "(n INT) FROM nosuchformat 'nums'",
        "endless": "(ts TIMESTAMP, src INT) FROM onoff OPTIONS (rate = 10)",
        "misspelt": "(ts TIMESTAMP, src INT) FROM onoff OPTIONS (raet = 10, rows = 5)",
    }
    sql = "".join(f"CREATE STREAM s_{name} {rest};"
                  f"CREATE QUERY {name} AS SELECT * FROM s_{name};" for name, rest in bad.items())
    with engine() as e:
        summary = run(e, sql + """
            CREATE STREAM nothing (n INT) FROM json 'empty';
            CREATE QUERY nothing AS SELECT n FROM nothing;
            CREATE QUERY mixed AS SELECT n FROM nums UNION ALL SELECT n FROM s_missing;
            CREATE RELATION gone (id INT) FROM parquet 'nowhere';
            CREATE RELATION other (id INT, town STRING) FROM csv 'hosts.csv'
                OPTIONS (header = true);
            CREATE QUERY join_gone AS SELECT s.n FROM nums s JOIN gone g ON s.n = g.id;
            CREATE QUERY join_other AS SELECT s.n FROM nums s JOIN other o ON s.n = o.id;
        """, place)
    told = {name: measures.reason for name, measures in summary.queries.items()}
    assert f"there is no file or folder {place}/nowhere" in told["missing"]
    assert "column 'colour' is declared but not in the data, which has n, word" in told["lacking"]
    assert "column 'n' is declared STRING but the data holds INT" in told["mistyped"]
    assert "column 'word' is declared but not in the data, which has n, wort" in told["header"]
    assert "declare these columns in this order instead of n, word" in told["swapped"]
    assert "is a file, and a stream is read from a folder" in told["single"]
    assert "Spark has no source nosuchformat; if it is in a package" in told["unknown"]
    assert "endless and cannot be drained" in told["endless"]
    assert "did you mean 'rate'" in told["misspelt"]
    assert "stream s_missing failed" in told["mixed"]
    assert f"there is no file or folder {place}/nowhere" in told["join_gone"]
    assert "'town'" in told["join_other"]
    assert summary.queries["nothing"].state == "done"
    failed = {name for name, measures in summary.queries.items() if measures.state == "failed"}
    assert failed == {*bad, "mixed", "join_gone", "join_other"}
    assert all("\n" not in reason and "org.apache" not in reason for reason in told.values())


def test_a_later_file_that_does_not_fit_is_set_aside(engine, place):
    numbers(place / "late", 0, 5)
    seen: list[ev.Event] = []
    with engine(on_event=seen.append) as e:
        e.execute(GOOD + """
            SET trigger = '50 ms';
            CREATE STREAM late (n INT, word STRING) FROM parquet 'late';
            CREATE QUERY q AS SELECT n, word FROM late;
        """, folder=place)
        e.start()
        eventually(lambda: e.status().queries["q"].rows_in == 5, "the first file was read")
        unfit = pa.table({"n": ["x", "y"], "word": ["a", "b"]})
        pq.write_table(unfit, place / "late" / "x.parquet")
        eventually(lambda: e.status().streams["late"].rejected == 2, "the second one was seen")
        pq.write_table(pa.table({"n": pa.array([1], pa.int32())}), place / "late" / "y.parquet")
        eventually(lambda: e.status().streams["late"].rejected == 3, "the third one was seen")
        (place / "late" / "z.parquet").write_bytes(b"no parquet at all")
        numbers(place / "late", 5, 5)
        eventually(lambda: e.status().queries["q"].rows_in == 10, "the last one was read")
        e.stop()
        assert values(e, "q") == values(e, "good") == list(range(10))
        told = "".join(p.read_text() for p in (e.checkpoint / "rejects" / "late").rglob("*.json"))
        assert "x.parquet" in told and "column 'n'" in told
        assert "column 'word' is declared but not in the data, which has n" in told
        assert "not a Parquet file" in told
    assert not [event for event in seen if isinstance(event, ev.JobFailed | ev.StreamFailed)]


def test_a_stream_is_tried_again_until_its_disk_has_room(engine, place, monkeypatch):
    """Its queries have had what came before; with no patience left they stop after that."""
    from penstock.spark.ingest import stream_ingest as ingest

    store, full = ingest.Ingest._store, [False]

    def fails(self, *args):
        if full[0] and self._stream.name == "lines":
            raise OSError(28, "No space left on device", "spool/lines")
        return store(self, *args)

    monkeypatch.setattr(ingest.Ingest, "_store", fails)
    text(place / "lines" / "a.csv", "1,a\n2,b\n")
    seen: list[ev.Event] = []
    with engine(on_event=seen.append) as e:
        e.execute(GOOD + """
            SET trigger = '50 ms'; SET retry = '3 seconds'; SET spool = '100 bytes';
            CREATE STREAM lines (n INT, word STRING) FROM csv 'lines';
            CREATE QUERY l AS SELECT n FROM lines;
        """, folder=place)
        e.start()
        status = e.status()
        eventually(lambda: status.queries["l"].rows_in == 2, "the first file was read", 120)
        full[0] = True
        text(place / "lines" / "b.csv", "3,c\n")
        eventually(lambda: status.streams["lines"].retries > 1, "it was tried again")
        assert status.queries["l"].state == "running"
        full[0] = False
        eventually(lambda: status.queries["l"].rows_in == 3, "it went on")
        full[0] = True
        text(place / "lines" / "c.csv", "4,d\n")
        eventually(lambda: status.queries["l"].state == "failed", "it was given up")
        e.stop()
        assert values(e, "l") == [1, 2, 3]
        assert status.queries["good"].state == "stopped"
    pauses = [event.pause for event in seen if isinstance(event, ev.StreamRetried)]
    assert pauses[:2] == [1.0, 2.0] and pauses.count(1.0) == 2, "they grow, and start over"
    assert "No space left on device" in status.queries["l"].reason
    room = [type(e) for e in seen if isinstance(e, ev.SpoolFull | ev.SpoolFreed)]
    assert room[:4] == [ev.SpoolFull, ev.SpoolFreed] * 2, "every block fills it, until it was read"
    told = [w.text for w in status.warnings if "tried again" in w.text]
    assert len(told) == 2, "once for each time that it broke"


# --- the checkpoint ----------------------------------------------------------------------------


def test_a_checkpoint_serves_one_engine_and_one_application(engine, place):
    with engine() as e:
        run(e, "", place)
        with pytest.raises(CheckpointError, match="another engine is running"):
            engine()
        with pytest.raises(CheckpointError, match="stream nums is not the one"):
            e.load("CREATE STREAM nums (n INT) FROM parquet 'nums';"
                   "CREATE QUERY q AS SELECT n FROM nums;", folder=place)
        e.load(GOOD.replace("good", "better"), folder=place)
        assert e.run().queries.keys() == {"better"}
    (place / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be used: Not a directory"):
        engine("file/checkpoint")
    with pytest.raises(CheckpointError, match="cannot be used: File exists"):
        engine("file")
    log = place / "checkpoint" / "deliveries.jsonl"
    log.write_text("rubbish\n" + log.read_text())
    with engine() as e, pytest.raises(CheckpointError, match="deliveries.jsonl line 1 is damaged"):
        e.run()


def test_a_query_over_a_damaged_stream_is_refused_and_the_engine_goes_on(engine, place):
    """Its spool or its log of files is not as it was: nothing of the change is in force then."""
    other = "CREATE STREAM other (n INT, word STRING) FROM parquet 'other';"
    late = "CREATE QUERY late AS SELECT n FROM other;"
    numbers(place / "other", 0, 5)
    with engine() as e:
        run(e, other + late, place)
        e.load(GOOD + other, folder=place)
        e.start()
        for name in ("spool/other/first", "offsets/other/files.jsonl"):
            file = e.checkpoint / name
            whole = file.read_bytes()
            file.write_bytes(b"rubbish\n" + whole)
            with pytest.raises(CheckpointError, match=name):
                e.execute("DROP QUERY good;" + late)
            file.write_bytes(whole)
        assert e.application.queries.keys() == {"good"}
        numbers(place / "nums", 10, 5)
        eventually(lambda: values(e, "good") == list(range(15)), "it has gone on")
        e.execute(late)
        numbers(place / "other", 5, 5)
        eventually(lambda: values(e, "late") == list(range(5, 10)), "the mended stream is read")
        e.stop()
        assert e.status().failures() == []


def test_a_loop_that_hangs_keeps_nobody_waiting(engine, place):
    """Whoever is told of an event may not come back; the next run goes on from what is durable."""
    hung, go = threading.Event(), threading.Event()

    def hang(event: ev.Event) -> None:
        if isinstance(event, ev.BlockArrived):
            hung.set()
            go.wait(60)

    with engine(on_event=hang) as e:
        e.execute(GOOD, folder=place)
        e.start()
        assert hung.wait(60)
        began = time.monotonic()
        e.stop(4.0)
        took = time.monotonic() - began
        go.set()
        assert took < 15
        assert (e.status().run.state, e.status().run.reason) == (
            "stopped", "its loop did not answer")
    with engine() as e:
        run(e, "", place)


def test_when_no_query_is_left_the_run_ends_with_the_reasons(engine, place):
    with engine() as e:
        e.execute("CREATE STREAM s (n INT) FROM parquet 'nowhere';"
                  "CREATE QUERY q AS SELECT n FROM s;", folder=place)
        summary = e.run(until_drained=False)
    assert summary.run.state == "failed"
    assert "no query is left" in summary.run.reason and "nowhere" in summary.run.reason


def test_a_query_added_after_the_run_has_ended_waits_for_the_next_one(engine, place):
    with engine() as e:
        e.execute(GOOD, folder=place)
        e.start(until_drained=True)
        assert e.wait(60)
        e.execute("CREATE QUERY past WITH (start = 'earliest') AS SELECT n FROM nums;")
        e.stop()
        e.run()
        assert values(e, "past") == list(range(10))


# --- sinks that do not fit ---------------------------------------------------------------------


def test_folders_that_answers_must_not_go_to(engine, place):
    """Two checkpoints, a changed query, another spelling, a folder that is read."""
    (place / "link").symlink_to("counts")
    counts = """
        CREATE QUERY counts INTO parquet 'counts' AS
            SELECT COUNT(*) AS n FROM nums [WINDOW 1 DAY];
        CREATE QUERY changing INTO csv 'changing' AS SELECT n FROM nums;
    """
    for checkpoint in ("monday", "tuesday"):
        with engine(checkpoint) as e:
            assert run(e, counts, place).failures() == []
            assert e.results("counts")["n"].to_pylist() == [10]
    files = list((place / "counts").glob("*.parquet"))
    assert sum(pq.read_table(path)["n"].to_pylist()[0] for path in files) == 20

    numbers(place / "nums", 10, 5)
    with engine("monday") as e:
        e.load(GOOD + counts.replace("SELECT n FROM", "SELECT word, n FROM") + """
            CREATE QUERY other INTO parquet 'link' AS SELECT n FROM nums;
            CREATE QUERY loop INTO parquet 'nums' AS SELECT n, word FROM nums;
            CREATE QUERY inside INTO parquet 'monday/results/x' AS SELECT n FROM nums;
        """, folder=place)
        summary = e.run()
        assert values(e, "good") == list(range(15))
    reasons = {name: query.reason for name, query in summary.queries.items()}
    assert "with the columns n INT, and query changing delivers word STRING" in reasons["changing"]
    assert "already written by query counts alone" in reasons["other"]
    assert "is where stream nums reads" in reasons["loop"]
    assert "must not lie in each other" in reasons["inside"]
    assert (summary.queries["counts"].state, len(list((place / "nums").iterdir()))) == ("done", 2)


def test_a_relation_that_no_jar_reads_is_named(engine, place):
    with engine() as e:
        summary = run(e, """
            CREATE RELATION far (n INT) FROM parquet 's3a://lake/far';
            CREATE QUERY joined AS SELECT nums.n FROM nums JOIN far ON nums.n = far.n;
        """, place)
    assert "relation far" in summary.queries["joined"].reason
    assert "None" not in summary.queries["joined"].reason


def test_an_option_of_a_source_may_have_any_name(spark, tmp_path: Path) -> None:
    (tmp_path / "hosts.csv").write_text("1\n2\n")
    options = "OPTIONS (self = 1, key = 'x')"
    app = bind(f"CREATE RELATION hosts (id INT) FROM csv 'hosts.csv' {options}", folder=tmp_path)
    assert relation_frame(spark, app.relations["hosts"]).count() == 2
