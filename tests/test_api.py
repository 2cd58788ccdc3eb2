"""What the engine refuses before Spark is started."""

from __future__ import annotations

import inspect
import json
import sys
import threading
import typing
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from penstock import predicate, scalar
from penstock.api import Engine
from penstock.cli import main
from penstock.errors import (
    CheckpointError,
    FunctionError,
    PolicyError,
    RunError,
    SetupError,
    SourceError,
    TypeFault,
    UnknownName,
)
from penstock.events import Summary
from penstock.events.kinds import EngineStarted, QueryAdded, QueryFailed, Warned
from penstock.explain.foreseen import notes
from penstock.functions import PythonFunction
from penstock.language import bind
from penstock.spark.delivery.answer_forms import FORMS
from penstock.spark.storage.inspection import inspected


@pytest.mark.parametrize("setting", [
    "operators = 'lottery'", "refresh = 'lottery'", "refresh = 'hybrid+lottery'",
    "refresh = 'edf+late'"])
def test_a_policy_that_there_is_not_is_refused_at_once(setting: str, tmp_path: Path) -> None:
    with Engine(checkpoint=tmp_path) as engine:
        engine.execute("SET refresh = 'conservative'; SET operators = 'chain'")
        before = engine.application
        with pytest.raises(PolicyError):
            engine.execute(f"SET {setting}")
        assert engine.application == before
    with Engine(checkpoint=tmp_path) as again:
        assert again.application.settings == before.settings


def test_a_question_is_bound_before_anything_starts(tmp_path: Path) -> None:
    with Engine(checkpoint=tmp_path) as engine, pytest.raises(UnknownName, match="no stream"):
        engine.ask("SELECT a FROM s")


@pytest.mark.parametrize(("old", "new"), [
    ("a > 1", "a > 2"), ("TIME ts AS", "TIME ts LATENESS 1 SECOND AS"), ("b < 3", "b < 4")])
def test_a_derived_stream_is_not_loaded_with_another_query(
    old: str, new: str, tmp_path: Path
) -> None:
    """Its blocks would hold the answers of both."""
    text = ("CREATE STREAM s (ts TIMESTAMP, a INT, b INT) FROM rate;"
            "CREATE VIEW v AS SELECT * FROM s WHERE b < 3;"
            "CREATE STREAM d TIME ts AS SELECT ts, a FROM v WHERE a > 1;"
            "CREATE QUERY q AS SELECT a FROM d;")
    with Engine(checkpoint=tmp_path) as engine:
        engine.load(text)
    with Engine(checkpoint=tmp_path) as again:
        again.load(text + "CREATE QUERY more AS SELECT a FROM d WHERE a > 3;")
        with pytest.raises(CheckpointError, match="stream d is not the one"):
            again.load(text.replace(old, new))


def test_an_engine_for_reading_needs_a_checkpoint_and_leaves_it_to_its_owner(
    tmp_path: Path,
) -> None:
    for folder, message in ((None, "name the checkpoint"), (tmp_path, "is not a checkpoint")):
        with pytest.raises(CheckpointError, match=message):
            Engine(checkpoint=folder, reading=True)
    assert not list(tmp_path.iterdir())
    with Engine(checkpoint=tmp_path) as owner:
        owner.execute("CREATE STREAM s (a INT) FROM rate")
        with Engine(checkpoint=tmp_path, reading=True) as reader:
            assert reader.application == owner.application


def test_reading_a_checkpoint_runs_none_of_the_users_code(tmp_path: Path) -> None:
    module = tmp_path / "kept_detectors.py"
    module.write_text("from penstock import scalar\n@scalar('INT')\ndef f(a): return a\n")
    with Engine(checkpoint=tmp_path / "state") as owner:
        owner.execute("""CREATE STREAM s (a INT) FROM rate;
            CREATE FUNCTION f FROM 'kept_detectors:f';
            CREATE QUERY q AS SELECT f(a) + 1 AS b FROM s""", folder=tmp_path)
        declared = owner.application
    del sys.modules["kept_detectors"]
    module.write_text("raise SystemExit('this module was run')")
    with Engine(checkpoint=tmp_path / "state", reading=True) as reader:
        assert reader.application == declared


# --- an engine that is closed ----------------------------------------------------------------


@pytest.mark.parametrize("call", [
    lambda e: e.execute("SET retention = '1 hour'"),
    lambda e: e.load("SET retention = '1 hour'"),
    lambda e: e.start(),
    lambda e: e.run(),
    lambda e: e.ask("SHOW STREAMS"),
    lambda e: e.results("q"),
    lambda e: e.follow("q"),
    lambda e: e.function(len),
    lambda e: e.on("q", print),
    lambda e: e.stream("s", None),
    lambda e: e.relation("r", {"a": [1]}),
    lambda e: e.session,
])
def test_a_closed_engine_says_that_it_is_closed(
    call: Callable[[Engine], object], tmp_path: Path
) -> None:
    with Engine(checkpoint=tmp_path) as engine:
        engine.execute("CREATE STREAM s (a INT) FROM rate; CREATE QUERY q AS SELECT a FROM s")
    before = (tmp_path / "application.json").read_bytes()
    with pytest.raises(RunError, match=r"this engine is closed; Engine\(checkpoint='"):
        call(engine)
    assert (tmp_path / "application.json").read_bytes() == before
    assert engine.application.queries
    engine.close()
    assert engine.wait(0)


def test_the_checkpoint_of_a_closed_engine_may_be_gone() -> None:
    with Engine() as engine:
        pass
    with pytest.raises(RunError, match="its temporary checkpoint is gone; make another Engine"):
        engine.execute("SET retention = '1 hour'")
    assert not engine.checkpoint.exists()


# --- what a program gives --------------------------------------------------------------------

PORTS = "CREATE STREAM ports (port INT, name STRING) FROM rate;"


def odd(port):
    return pc.equal(pc.bit_wise_and(port, 1), 1)


def test_a_function_is_given_plain_declared_and_as_a_decorator(tmp_path: Path) -> None:
    with Engine(checkpoint=tmp_path) as engine:
        engine.execute(PORTS)
        assert engine.function(odd)(pa.array([1, 2])).to_pylist() == [True, False]
        engine.function(predicate(odd), name="uneven")

        @engine.function(returns="STRING", columns="pandas", deterministic=False)
        def shout(name):
            return name.str.upper()

        engine.function(scalar("BIGINT")(lambda port: port), name="same")
        engine.execute("CREATE QUERY q AS SELECT shout(name) AS n, same(port) AS p FROM ports "
                       "WHERE odd(port) AND NOT uneven(port)")
        application = engine.application
        assert isinstance(shout, PythonFunction)
    known = application.functions
    assert {name: (str(f.returns), f.arity, f.deterministic) for name, f in known.items()} == {
        "odd": ("BOOLEAN", 1, True), "uneven": ("BOOLEAN", 1, True),
        "shout": ("STRING", 1, False), "same": ("BIGINT", 1, True)}
    with Engine(checkpoint=tmp_path) as again, Engine(checkpoint=tmp_path, reading=True) as reader:
        assert again.application == reader.application == application


def test_a_run_without_what_its_program_gave_says_what_to_give_again(tmp_path: Path) -> None:
    with Engine(checkpoint=tmp_path) as engine:
        engine.execute(PORTS + "CREATE STREAM clicks (a INT) FROM dataframe;")
        engine.function(odd)
        engine.function(odd, name="unused")
        engine.execute("""
            CREATE QUERY q AS SELECT port FROM ports WHERE odd(port);
            CREATE QUERY alerts INTO callback AS SELECT a FROM clicks;
        """)
        engine.on("Alerts", lambda query, table: None)
    needs = ["function odd is one of a Python program; give it: engine.function(odd)",
             "stream clicks reads a DataFrame of a Python program; give it: "
             "engine.stream('clicks', df)",
             "query alerts calls back a function of a Python program; give it: "
             "engine.on('alerts', function)"]
    with Engine(checkpoint=tmp_path) as again:
        with pytest.raises(RunError) as refused:
            again.start()
        assert [line.strip() for line in str(refused.value).splitlines()[1:]] == needs
        assert list(again.explain().notes) == needs
        again.function(odd)
        again.on("alerts", lambda query, table: None)
        with pytest.raises(RunError) as refused:
            again.start()
        assert [line.strip() for line in str(refused.value).splitlines()[1:]] == needs[1:2]
    application = bind(PORTS + "CREATE QUERY q INTO callback AS SELECT port FROM ports")
    assert notes(application) == ["query q calls back a function of a Python program; give it: "
                                  "engine.on('q', function)"]


def test_a_function_is_declared_otherwise_only_while_nothing_calls_it(tmp_path: Path) -> None:
    with Engine(checkpoint=tmp_path) as engine:
        engine.execute(PORTS)
        engine.function(odd)
        engine.function(lambda a, b: a, name="odd", returns="INT")
        assert str(engine.application.functions["odd"].returns) == "INT"
        engine.execute("CREATE QUERY q AS SELECT odd(port, port) AS x FROM ports")
        before = engine.application
        with pytest.raises(RunError, match="other arguments .* and queries call it; DROP them"):
            engine.function(odd)
        assert engine.application == before
        assert engine._provided.functions["odd"].returns == "INT"
        engine.function(lambda a, b: b, name="odd", returns="INT")  # alike: it takes its place
        assert engine.application == before


def test_what_cannot_be_given_is_refused_with_a_reason(tmp_path: Path) -> None:
    with Engine(checkpoint=tmp_path) as engine:
        engine.execute(PORTS + "CREATE QUERY kept AS SELECT port FROM ports")
        before = engine.application
        lock = threading.Lock()
        with pytest.raises(FunctionError, match="held uses something that cannot be sent to Spar"):
            engine.function(lambda port: lock, name="held")
        with pytest.raises(ValueError, match="'<lambda>' is no name for a function; give it one"):
            engine.function(lambda port: port)
        with pytest.raises(TypeFault, match="the language has a function UPPER already"):
            engine.function(odd, name="upper")
        with pytest.raises(FunctionError, match=r"def call\(query, table\); too many positional"):
            engine.on("alerts", lambda table: None)
        with pytest.raises(FunctionError, match="a callback is a function, not str"):
            engine.on("alerts", "print")  # type: ignore[call-overload]
        with pytest.raises(RunError, match="'kept' calls back no function.*engine.follow.'kept'"):
            engine.on("KEPT", print)
        with pytest.raises(SourceError, match="stream s takes a streaming DataFrame of Spark, not"):
            engine.stream("s", pa.table({"a": [1]}))  # type: ignore[arg-type]
        with pytest.raises(SourceError, match="relation r takes a DataFrame of Spark, pandas or P"):
            engine.relation("r", 5)
        with pytest.raises(SourceError, match="relation r: column 'at': there is no type for time"):
            engine.relation("r", pa.table({"at": pa.array([], pa.time64("us"))}))
        with pytest.raises(TypeFault, match="there is a stream 'ports' already"):
            engine.relation("ports", {"a": [1]})
        assert engine.application == before
        assert not (tmp_path / "given").exists()


# --- relations that the checkpoint keeps -----------------------------------------------------


def kept(checkpoint: Path, name: str) -> pa.Table:
    entry = json.loads((checkpoint / "given.json").read_text())
    found = entry.get("content", entry)[name]
    return pq.read_table(checkpoint / "given" / name / f"{found['version']:08d}")


def test_the_rows_of_a_relation_are_copied_and_replaced_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.DataFrame({"id": [1, 2], "at": pd.to_datetime(["2026-01-01", None])},
                         index=pd.Index(["a", "b"], name="site"))
    with Engine(checkpoint=tmp_path) as engine:
        engine.relation("users", frame[frame["id"] > 0])
        assert [(c.name, str(c.type)) for c in engine.application.relations["users"].columns] == [
            ("id", "BIGINT"), ("at", "TIMESTAMP"), ("site", "STRING")]
        assert kept(tmp_path, "users").to_pylist() == [
            {"id": 1, "at": datetime(2026, 1, 1, tzinfo=UTC), "site": "a"},
            {"id": 2, "at": None, "site": "b"}]
        before = engine.application
        with monkeypatch.context() as disk:
            disk.setattr(pq, "write_table", _full_disk)
            with pytest.raises(OSError, match="No space"):
                engine.relation("users", frame.tail(1))
        assert kept(tmp_path, "users").num_rows == 2
        engine.relation("users", frame.head(1))
        assert engine.application == before
        assert kept(tmp_path, "users").num_rows == 1
        for rows in (frame, frame, frame.tail(1)):
            engine.relation("users", rows)
        assert len(list((tmp_path / "given" / "users").iterdir())) == 2
        with pytest.raises(TypeFault, match="relation 'users' exists already and is declared diff"):
            engine.relation("users", {"id": [1]})
        assert kept(tmp_path, "users")["site"].to_pylist() == ["b"]
    with Engine(checkpoint=tmp_path) as again:
        assert again.application == before
        assert again.explain().notes == ()
    found, faults = inspected(tmp_path)
    assert "relation users: its rows are here" in found
    assert faults == []
    file = max((tmp_path / "given" / "users").rglob("*.parquet"))
    assert file.stat().st_mode & 0o077 == 0
    file.write_bytes(file.read_bytes()[:-1])
    _, faults = inspected(tmp_path)
    assert "since relation users was given; give it again: engine.relation('users', " in faults[0]


def _full_disk(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


# --- what is shown ---------------------------------------------------------------------------


def test_an_engine_its_plan_and_its_summary_are_shown_in_a_notebook(tmp_path: Path) -> None:
    with Engine(checkpoint=tmp_path / "<b>") as engine:
        assert "Engine, stopped, checkpoint" in engine._repr_html_()
        engine.execute(PORTS + "CREATE STREAM `<i>` (a INT) FROM rate;"
                       "CREATE QUERY q AS SELECT port FROM ports WHERE port < 5;"
                       "CREATE QUERY r AS SELECT a FROM `<i>`")
        shown = engine._repr_html_()
        plan = engine.explain()
        one = engine.explain("Q")
        with pytest.raises(RunError, match="there is no query 'z'"):
            engine.explain("z")
    assert "<caption>queries</caption>" in shown and "<b>" not in shown and "<i>" not in shown
    assert "&lt;i&gt;" in shown
    assert shown.count("<table>") == shown.count("</table>") == 2
    assert str(plan) == repr(plan) and "port &lt; 5" in plan._repr_html_()
    assert "<i>" in str(plan) and "<i>" not in str(one) and "<i>" not in plan._repr_html_()


def test_a_plan_in_python_is_what_the_command_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "CREATE STREAM s (a INT) FROM csv 'nowhere'; CREATE QUERY q AS SELECT a FROM s"
    (tmp_path / "app.sql").write_text(text)
    with Engine() as engine:
        engine.execute(text, folder=tmp_path)
        main(["explain", str(tmp_path / "app.sql")])
        assert str(engine.explain()) == capsys.readouterr().out
        assert engine.explain().notes == (
            f"stream s: there is no file or folder {tmp_path}/nowhere",)


def test_a_summary_tells_what_failed_and_what_was_warned_of() -> None:
    summary = Summary.of([
        EngineStarted(at=1.0, streams=("s",), policies={"operators": "fifo"}, cores=2),
        QueryAdded(at=1.0, query="q", inputs=(("s",),)),
        QueryFailed(at=2.0, query="q", reason="<no>"),
        Warned(at=2.0, subject="spool", text="it is full")])
    shown = summary._repr_html_()
    assert "<p>query q failed: &lt;no&gt;</p>" in shown
    assert "<p>spool: it is full</p>" in shown
    assert "<td>failed</td>" in shown


def test_the_names_of_the_package_are_listed() -> None:
    import penstock

    assert set(penstock.__all__) <= set(dir(penstock))


@pytest.mark.parametrize("method", [Engine.results, Engine.follow, Engine.ask])
def test_the_type_of_an_answer_follows_from_its_form(method: Callable[..., object]) -> None:
    forms = [inspect.signature(one).parameters["to"].annotation
             for one in typing.get_overloads(method)]
    assert forms == [f"Literal[{form!r}]" for form in FORMS]


def test_a_form_that_there_is_not_is_refused_before_anything_is_read() -> None:
    with Engine() as engine:
        for call in (partial(engine.results, "q"), partial(engine.follow, "q"),
                     partial(engine.ask, "SHOW STREAMS")):
            with pytest.raises(ValueError, match="to is 'arrow', 'pandas', 'polars' or 'spark', n"):
                call(to="numpy")


def test_answers_are_handed_out_in_other_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    with Engine() as engine:
        engine.execute(PORTS)
        assert engine.ask("SHOW STREAMS", to="pandas")["name"].tolist() == ["ports"]
        monkeypatch.setitem(sys.modules, "polars", None)
        with pytest.raises(SetupError, match="needs Polars: pip install polars"):
            engine.ask("SHOW STREAMS", to="polars")


def test_polars_goes_in_and_out_without_being_a_dependency(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    with Engine(checkpoint=tmp_path) as engine:
        engine.relation("users", polars.DataFrame({"id": [1, 2], "name": ["a", None]}))
        shown = engine.ask("SHOW RELATIONS", to="polars")
    assert isinstance(shown, polars.DataFrame)
    assert shown["columns"].to_list() == ["id BIGINT, name STRING"]
    assert kept(tmp_path, "users").to_pylist() == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
