"""The command line, with a fake engine in place of Spark."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock import errors
from penstock.cli import main
from penstock.cli.running import Interrupts
from penstock.events import (
    BlockArrived,
    EngineStarted,
    EngineStopped,
    Event,
    JobDecided,
    JobFinished,
    OrderChanged,
    PathWork,
    ProbesReordered,
    QueryAdded,
    QueryFailed,
    Recorder,
    RidersFormed,
    SegmentResult,
    Summary,
    new_record,
)
from penstock.language import bind
from penstock.model import Application, Block

APP = """
CREATE STREAM packets (port INT, length INT) FROM onoff OPTIONS (rows = 1000);
CREATE QUERY long AS SELECT port FROM packets WHERE length > 1000;
"""

RUN: tuple[Event, ...] = (
    EngineStarted(at=0.0, streams=("packets",), policies={"operators": "fifo"}, cores=2,
                  totals={"packets": 100}),
    QueryAdded(at=0.0, query="long", inputs=(("packets",),)),
    RidersFormed(at=0.0, riders=1, path="p", members=("long",)),
    BlockArrived(at=1.0, block=Block("packets", 0, 100, 800, 1.0), read=100, progress=100),
    JobDecided(at=1.0, job=1, kind="segment", reason="the oldest", work=PathWork(
        segment="p", riders=1, stream="packets", blocks=(0,), rows=100)),
    JobFinished(at=1.5, job=1, kind="segment", seconds=0.4, rows_out={"long": 7}, spark_jobs=1,
                result=SegmentResult(rows_in=100)),
    EngineStopped(at=2.0, outcome="drained"),
)


def _numbers(numbers: list[int], query: str) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int32()), "query": [query] * len(numbers)})


class FakeEngine:
    """Plays a list of events."""

    events: tuple[Event, ...] = RUN
    fault: Exception | None = None
    on_wait: Callable[[], None] | None = None
    made: list[FakeEngine] = []

    def __init__(
        self, spark: Any = None, checkpoint: Any = None, *, master: Any = None,
        reading: bool = False, packages: Any = (), jars: Any = (), conf: Any = None,
    ) -> None:
        self.given = packages, jars, conf
        self.checkpoint, self.master, self.reading = Path(checkpoint), master, reading
        self.summary, self.calls = Summary(), [""]
        self.checkpoint.mkdir(parents=True, exist_ok=True)
        FakeEngine.made.append(self)

    def __enter__(self) -> FakeEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.calls.append("close")

    def prepare(self, *, brief: bool = False) -> None:
        self.calls.append("prepare")

    @property
    def application(self) -> Application:
        return bind(APP)

    def load(self, sql: str, *, folder: Path) -> tuple[pa.Table, ...]:
        if self.fault:
            raise self.fault
        self.calls.append(f"load {folder.name}")
        return (pa.table({"name": ["packets"]}),) if "SHOW" in sql else ()

    def execute(self, sql: str) -> tuple[pa.Table, ...]:
        self.calls.append(sql)
        return ()

    def results(self, query: str, *, last: int | None = None) -> pa.Table:
        rows = list(range(60))
        return _numbers(rows[-(last or 60):], query)

    def follow(self, query: str, *, last: int | None = None) -> Iterator[pa.Table]:
        yield self.results(query, last=last)
        yield _numbers([60], query)

    def ask(self, sql: str) -> pa.Table:
        if self.fault:
            raise self.fault
        return pa.table({
            "window_end": pa.array([datetime(2025, 1, 1, tzinfo=UTC)] * 60,
                                   pa.timestamp("us", "UTC")),
            "src": pa.array(range(60), pa.int32()),
            "mean": [float("nan"), None, *([1.5] * 58)],
            "top": [[{"value": 80, "count": 2}, {"value": 443, "count": 1}]] * 60,
        }).slice(0, 0 if "nothing" in sql else 60)

    def start(self, until_drained: bool = False) -> None:
        self.calls.append(f"start {until_drained}")
        os.write(2, b"a message of the JVM\n")
        for event in self.events:
            self.summary.apply(event)

    def wait(self, timeout: float | None = None) -> bool:
        if FakeEngine.on_wait is not None:
            FakeEngine.on_wait()
            return False
        return True

    def stop(self, within: float | None = None) -> None:
        self.calls.append("stop")

    def status(self) -> Summary:
        return self.summary


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with an application, and no Spark."""
    import penstock.api

    monkeypatch.setattr(penstock.api, "Engine", FakeEngine)
    for name, value in (("events", RUN), ("fault", None), ("on_wait", None), ("made", [])):
        monkeypatch.setattr(FakeEngine, name, value)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / "app.sql").write_text(APP)
    return tmp_path


# --- ask ----------------------------------------------------------------------------------------


def test_a_question_is_answered_in_a_table_that_is_cut_off(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["ask", "state", "SELECT src FROM packets"]) == 0
    assert FakeEngine.made[0].reading and FakeEngine.made[0].calls[-1] == "close"
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["window_end", "src", "mean", "top"]
    assert lines[3].split() == ["2025-01-01T00:00:00Z", "2", "1.5", "80:", "2,", "443:", "1"]
    assert lines[-1].strip() == "… and 10 more rows; --json or --csv gives all"
    assert main(["ask", "state", "SELECT nothing FROM packets"]) == 0
    assert "no rows" in capsys.readouterr().out


def test_an_answer_as_json_or_csv_has_all_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "state", "SELECT src FROM packets", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 60
    assert rows[0] == {"window_end": "2025-01-01T00:00:00Z", "src": 0, "mean": None,
                       "top": [{"value": 80, "count": 2}, {"value": 443, "count": 1}]}
    assert main(["ask", "state", "SELECT src FROM packets", "--csv"]) == 0
    found = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert found[0] == ["window_end", "src", "mean", "top"]
    assert found[3][:3] == ["2025-01-01T00:00:00Z", "2", "1.5"]
    assert json.loads(found[3][3])[1] == {"value": 443, "count": 1}
    assert len(found) == 61


@pytest.mark.parametrize(("fault", "status"), [
    (errors.RunError("nothing is held of packets"), 1), (errors.UnknownName("no stream"), 2)])
def test_a_question_that_cannot_be_answered_says_why(
    fault: Exception, status: int, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(FakeEngine, "fault", fault)
    assert main(["ask", "state", "SELECT 1"]) == status
    assert str(fault) in capsys.readouterr().err


# --- results ------------------------------------------------------------------------------------


def test_results_are_shown_as_the_newest_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", "state", "long"]) == 0
    assert FakeEngine.made[0].reading
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].strip() == "… and earlier rows; --last N or --csv gives them"
    assert [line.split()[0] for line in lines[1:]] == ["n", *map(str, range(10, 60))]
    assert main(["results", "state", "long", "--last", "2"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["n", "query"], ["58", "long"], ["59", "long"]]


def test_results_go_on_with_what_is_committed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", "state", "long", "--follow", "--last", "2", "--csv"]) == 0
    assert capsys.readouterr().out == "n,query\n58,long\n59,long\n60,long\n"
    assert main(["results", "state", "long", "--follow", "--last", "1", "--format", "table"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["n", "query"], ["59", "long"], ["60", "long"]]


def test_results_as_json_and_as_an_arrow_stream(capfdbinary: Any) -> None:
    assert main(["results", "state", "long", "--last", "1", "--json"]) == 0
    assert json.loads(capfdbinary.readouterr().out) == {"n": 59, "query": "long"}
    assert main(["results", "state", "long", "--follow", "--format", "arrow"]) == 0
    with pa.ipc.open_stream(capfdbinary.readouterr().out) as stream:
        assert stream.read_all()["n"].to_pylist() == list(range(61))


def test_a_query_must_be_named_to_be_followed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", "state", "--follow"]) == 2
    assert "name the query" in capsys.readouterr().err


# --- run ----------------------------------------------------------------------------------------


def test_run_loads_starts_waits_and_stops(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "app.sql", "--until-drained", "--checkpoint", "state"]) == 0
    engine = FakeEngine.made[0]
    loaded = f"load {Path.cwd().name}"
    assert engine.calls[1:] == ["prepare", loaded, "start True", "stop", "close"]
    out = capsys.readouterr().out
    assert "drained" in out
    assert "balanced" in out
    assert "see them: penstock results state long" in out
    assert "penstock events state" in out
    assert "to go on" not in out


def test_run_shows_what_the_text_asks_for_and_ends_with_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("app.sql").write_text(APP + "SHOW STREAMS;")
    assert main(["run", "app.sql", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["run"]["state"] == "drained"
    assert "packets" in told.err and "balanced" in told.err


def test_the_demo_ends_with_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--seconds", "1", "--rate", "100", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["run"]["state"] == "drained"
    assert "Twenty-two" in told.err and "what next" in told.err


def test_run_takes_a_master_and_a_policy() -> None:
    assert main(["run", "app.sql", "--master", "spark://h:1", "--operators", "mixed('x')"]) == 0
    engine = FakeEngine.made[0]
    assert engine.master == "spark://h:1"
    assert "SET operators = 'mixed(''x'')'" in engine.calls
    assert engine.checkpoint.parent == Path(".penstock")


def test_a_failed_query_gives_status_1_and_its_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    events = (*RUN[:-1], QueryFailed(at=1.8, query="long", reason="its folder is full"), RUN[-1])
    monkeypatch.setattr(FakeEngine, "events", events)
    assert main(["run", "app.sql"]) == 1
    assert "query long failed: its folder is full" in capsys.readouterr().out


def test_a_run_that_broke_gives_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeEngine, "events", (*RUN[:-1],
    EngineStopped(at=2.0, outcome="failed", reason="no more")))
    assert main(["run", "app.sql"]) == 1


FAULTS = {
    errors.UnknownName("no column 'lenght'", text="SELECT lenght", start=7): 2,
    errors.PolicyError("no policy 'fofi'"): 2,
    errors.FunctionError("no module 'x'"): 2,
    errors.CheckpointError("another engine has it"): 2,
    errors.SetupError("no Java was found"): 1,
    errors.SourceError("no such folder"): 1,
    errors.RunError("it cannot go on"): 1,
}


@pytest.mark.parametrize("error", FAULTS, ids=lambda error: type(error).__name__)
def test_our_errors_are_one_message_and_a_status(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(FakeEngine, "fault", error)
    assert main(["run", "app.sql"]) == FAULTS[error]  # type: ignore[index]
    assert capsys.readouterr().err == f"penstock: {error}\n"


def test_every_file_with_a_command_is_in_the_list() -> None:
    from penstock import cli
    from penstock.cli.arguments import COMMANDS

    files = Path(cli.__file__).parent.glob("*.py")
    found = {file.stem for file in files if "\ndef add(parser: " in file.read_text()}
    assert found == {command.__name__.rpartition(".")[2] for command in COMMANDS}


@pytest.mark.parametrize("command", ["run", "explain"])
def test_a_file_that_is_not_there_is_named(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "nowhere.sql"]) == 2
    assert capsys.readouterr().err.startswith("penstock: nowhere.sql cannot be read: No such file")


def test_a_file_that_is_not_text_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("binary.sql").write_bytes(b"\xff\xfe\x00")
    assert main(["explain", "binary.sql"]) == 2
    assert "not text in UTF-8" in capsys.readouterr().err


# --- signals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_cleanly_and_says_how_to_go_on(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(FakeEngine, "events", (*RUN[:-1], EngineStopped(at=2.0, outcome="stopped")))
    monkeypatch.setattr(FakeEngine, "on_wait", lambda: signal.raise_signal(number))
    before = signal.getsignal(number)
    assert main(["run", "app.sql", "--checkpoint", "state"]) == 0
    assert FakeEngine.made[0].calls[-2:] == ["stop", "close"]
    assert "to go on from here: penstock run app.sql --checkpoint state" in capsys.readouterr().out
    assert signal.getsignal(number) is before


def test_the_second_signal_leaves_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    monkeypatch.setattr(os, "_exit", left.append)
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)
        assert (interrupts.count, left) == (1, [])
        signal.raise_signal(signal.SIGINT)
    assert left == [130]



def test_explain_shows_the_plan_without_an_engine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "app.sql"]) == 0
    assert "packets" in capsys.readouterr().out
    assert main(["explain", "app.sql", "--json"]) == 0
    assert {"streams", "paths", "queries"} <= json.loads(capsys.readouterr().out).keys()
    assert FakeEngine.made == []


def test_explain_shows_the_orders_that_a_run_has_learnt(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    changed = OrderChanged(
        at=3.5, path="gone#0", stages=("p2", "p1"), order=("f(a)", "g(a)"), reason="f(a) drops",
        before=4e-6, after=1e-6, rows=950, matrix=((900, 20), (0, 10)))
    with Recorder(tmp_path / "state" / "runs" / "1" / "events.jsonl") as recorder:
        for event in (changed, replace(changed, order=("g(a)", "f(a)")), ProbesReordered(
                at=4.0, join="a*b*c@1", stream="a", order=("c", "b"), reason="c drops more",
                before=2.0, after=1.0, rows=30, matrix=((9, 21), (0, 4)))):
            recorder.record(event)
    assert main(["explain", "app.sql", "--after", str(tmp_path / "state")]) == 0
    told = capsys.readouterr().out
    assert "gone#0 evaluates g(a), f(a)" in told and "changed 2 times" in told
    assert "a*b*c@1: rows of a probe c, b" in told and "because c drops more" in told
    lines = [line.split() for line in told.splitlines()]
    assert ["f(a)", "900", "20"] in lines and ["g(a)", "10"] in lines
    assert ["b", "9", "21"] in lines and ["c", "4"] in lines
    assert main(["explain", "app.sql", "--json", "--after", str(tmp_path / "state")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["conjunctions"][0]["profiled"], found["probes"][0]["stream"]) == (950, "a")


@pytest.mark.parametrize(("operators", "count"), [("fifo", 1), ("greedy", 3)])
def test_explain_cuts_paths_as_the_policy_of_the_application_does(
    capsys: pytest.CaptureFixture[str], operators: str, count: int
) -> None:
    Path("app.sql").write_text(APP + f"""
SET operators = {operators};
CREATE FUNCTION odd FROM 'cut_detectors:odd';
CREATE QUERY odds AS SELECT port FROM packets WHERE port > 7 AND odd(port)""")
    Path("cut_detectors.py").write_text(
        "from penstock import predicate\n@predicate\ndef odd(a): return a\n")
    assert main(["explain", "app.sql", "--json"]) == 0
    paths = json.loads(capsys.readouterr().out)["paths"]
    assert [len(path["segments"]) for path in paths if path["expensive"]] == [count]


def test_explain_runs_none_of_the_users_code_unless_told_to(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("explained_detectors.py").write_text(
        "from pathlib import Path\nfrom penstock import predicate\nPath('was-run').touch()\n"
        "@predicate\ndef odd(a): return a\n")
    Path("app.sql").write_text(APP + """
CREATE FUNCTION odd FROM 'explained_detectors:odd';
CREATE QUERY odds INTO callback 'explained_detectors:nosuch' AS
  SELECT port FROM packets WHERE odd(port)""")
    assert main(["explain", "app.sql"]) == 0
    assert "declares no nosuch" in capsys.readouterr().out
    assert not Path("was-run").exists()
    assert main(["explain", "app.sql", "--import"]) == 0
    assert Path("was-run").exists()
    sys.modules.pop("explained_detectors")


def test_explain_tells_what_a_run_would_not_find(capsys: pytest.CaptureFixture[str]) -> None:
    Path("app.sql").write_text("""
CREATE STREAM a (x INT) FROM onoff OPTIONS (rte = 5);
CREATE STREAM b (x INT) FROM jsn 'here';
CREATE STREAM c (x INT) FROM json 'nowhere';
CREATE FUNCTION f FROM 'dynamic:f';
CREATE QUERY q AS SELECT x FROM a WHERE f(x)""")
    Path("dynamic.py").write_text("f = print")
    assert main(["explain", "app.sql", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["notes"]
    assert [note.split("; ")[0] for note in told] == [
        "stream a: onoff has no option 'rte'",
        "stream b: Spark brings no source 'jsn'",
        f"stream c: there is no file or folder {Path('nowhere')}",
        "function f: dynamic:f is not a plain function with a decorator"]


def test_explain_finds_bad_options_and_paths(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    Path("folder").mkdir()
    Path("file.csv").write_text("x\n1\n")
    Path("app.sql").write_text("""
CREATE STREAM a (x INT) FROM onoff OPTIONS (rate = 'fast');
CREATE STREAM b (x INT) FROM csv 'folder' OPTIONS (maxFilesPerTrigger = 0, heder = true);
CREATE STREAM c (x INT) FROM csv 'file.csv' OPTIONS (latestFirst = true, sep = ENV 'NOT_SET');
CREATE STREAM d (x INT) FROM json;
CREATE STREAM e (x STRING) FROM kafka 'topic';
CREATE RELATION f (x INT) FROM csv 'file.csv' OPTIONS (header = true);
CREATE RELATION g (x INT) FROM csv 'nowhere/*.csv';
CREATE RELATION h (x INT) FROM csv '*.csv';
CREATE STREAM i (x INT) FROM csv 'nowhere/*';
CREATE QUERY q AS SELECT x FROM a""")
    assert main(["explain", "app.sql", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == [
        "stream a: option 'rate' of onoff must be a number, not 'fast'",
        "stream b: the option maxFilesPerTrigger is a whole number from 1 on, not '0'",
        "stream b: Spark's source csv may not know the option heder; did you mean 'header'?",
        "stream c: the environment variable NOT_SET, which option sep names, is not set here",
        "stream c: the option latestFirst is not taken: files are read in the order of their "
        "modification times",
        "stream c: file.csv is a file, and a stream is read from a folder of files",
        "stream d: the source json needs a path: FROM json 'folder'",
        "stream e: the source kafka needs the option kafka.bootstrap.servers",
        "stream e: Kafka has no column 'x'; if the values have it, say what they are: OPTIONS "
        "(valueFormat = 'json'), or declare value STRING",
        "relation g: no file or folder matches nowhere/*.csv"]


def test_explain_points_at_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    Path("app.sql").write_text(APP.replace("length > 1000", "lenght > 1000"))
    assert main(["explain", "app.sql"]) == 2
    err = capsys.readouterr().err
    assert "line 3" in err
    assert "did you mean 'length'" in err
    assert "^^^^^^" in err
    assert "Traceback" not in err


def record(*events: Event) -> None:
    with Recorder(new_record(Path("state"), 1e9)) as recorder:
        for event in events:
            recorder.record(event)


def test_events_gives_tables_and_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    record(*RUN)
    assert main(["events", "state"]) == 0
    out = capsys.readouterr().out
    assert "long" in out
    assert "balanced" in out
    assert main(["events", "state", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["queries"][0]["rows_out"] == 7


def test_events_says_when_the_books_do_not_balance(capsys: pytest.CaptureFixture[str]) -> None:
    record(*RUN[:-1], *RUN[4:6])
    assert main(["events", "state"]) == 1
    out = capsys.readouterr().out
    assert "2 faults" not in out
    assert "1 fault" in out
    assert "the record has no end" in out


def test_events_of_nothing_is_an_error_of_the_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", "nowhere"]) == 2
    assert "no record of a run" in capsys.readouterr().err


def test_doctor_hands_on_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock import doctor

    seen: list[bool] = []
    monkeypatch.setattr(doctor, "examine", lambda console, spark: seen.append(spark) or 1)
    assert main(["doctor", "--no-spark"]) == 1
    assert seen == [False]


# --- the call itself ----------------------------------------------------------------------------


@pytest.mark.parametrize("argv", [[], ["fly"], ["run"], ["demo", "--seconds", "-3"], ["events"]])
def test_a_wrong_call_gives_status_2_and_the_usage(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(argv)
    assert left.value.code == 2
    assert "usage: penstock" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "explain", "demo", "doctor", "events", "simulate"])
def test_each_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    assert f"usage: penstock {command}" in capsys.readouterr().out


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"penstock {penstock.__version__}\n"


def test_nothing_that_needs_no_spark_imports_it() -> None:
    code = """
import sys
from penstock.cli import main
main(["explain", "app.sql"])
assert not {"pyspark", "py4j"} & sys.modules.keys(), "Spark was imported"
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_a_reader_that_has_had_enough_is_no_error() -> None:
    record(*RUN)
    code = "import sys; from penstock.cli import main; sys.exit(main(['events', 'state']))"
    read, write = os.pipe()
    os.close(read)
    run = subprocess.run([sys.executable, "-c", code], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert run.stderr == b""
