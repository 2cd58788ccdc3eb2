"""What the engine refuses before Spark is started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock.api import Engine
from penstock.errors import CheckpointError, PolicyError, UnknownName


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
