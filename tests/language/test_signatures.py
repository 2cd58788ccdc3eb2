"""What SQL must know of Python functions is read from their text; no module is run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock.language import bind, bind_statements, doubt_of, load_function, read_signature
from penstock.language.signatures import Signature

MODULE = '''
import pathlib
import penstock
import penstock as p
from penstock import predicate as condition, scalar
from penstock.functions import predicate
from other_detectors import shared as borrowed

TYPE = "INT"

@predicate
def plain(a, b): return a

@penstock.predicate(columns="pandas")
def called(a): return a

@condition
def renamed(a, b=None): return a

@scalar("DECIMAL(10,2)")
def price(*columns): return columns[0]

@p.scalar(returns="DOUBLE", columns="pandas")
def score(a, /, b, *, c): return a

@penstock.predicate(deterministic=False)
def sometimes(a): return a

@scalar("INT", deterministic=True)
def always(a): return a

@scalar(TYPE)
def computed(a): return a

def bare(a): return a

made = predicate(bare)

MARK
'''
OTHER = '''
from penstock import scalar

@scalar("STRING")
def shared(a, b, c): return a
'''
MARK = 'pathlib.Path(__file__).with_name("was-run").touch()'


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    (tmp_path / "read_detectors.py").write_text(MODULE.replace("MARK", MARK))
    (tmp_path / "other_detectors.py").write_text(OTHER)
    package = tmp_path / "read_rules"
    package.mkdir()
    (package / "__init__.py").write_text("from .inner import deep\nimport pathlib\n" + MARK)
    (package / "inner.py").write_text(OTHER.replace("shared", "deep") + "import pathlib\n" + MARK)
    return tmp_path


@pytest.mark.parametrize(
    "name", ["plain", "called", "renamed", "price", "score", "borrowed", "sometimes", "always"])
def test_what_is_read_is_what_importing_would_say(folder, name):
    found = read_signature("read_detectors", name, str(folder))
    assert not (folder / "was-run").exists()
    try:
        loaded = load_function("read_detectors", name, str(folder))
    finally:
        for module in ("read_detectors", "other_detectors"):
            sys.modules.pop(module, None)
    assert found == Signature(loaded.returns, loaded.arity, loaded.deterministic)


def test_packages_are_not_run_either(folder):
    assert read_signature("read_rules", "deep", str(folder)) == Signature("STRING", 3)
    assert read_signature("read_rules.inner", "deep", str(folder)) == Signature("STRING", 3)
    assert not list(folder.rglob("was-run"))
    assert "read_rules" not in sys.modules


@pytest.mark.parametrize("name", ["computed", "made", "nowhere"])
def test_what_the_text_does_not_tell_is_doubted(folder, name):
    found = read_signature("read_detectors", name, str(folder))
    assert found.doubt and found.returns == "BOOLEAN" and found.arity is None


def test_a_missing_module_and_a_function_without_decorator_are_errors(folder):
    with pytest.raises(ValueError, match="there is no module nomodule"):
        read_signature("nomodule", "f", str(folder))
    with pytest.raises(ValueError, match="not declared with penstock.predicate"):
        read_signature("read_detectors", "bare", str(folder))


def test_a_callback_that_is_not_there_is_noticed(folder):
    assert doubt_of("read_detectors", "bare", str(folder)) == ""
    assert doubt_of("read_detectors", "made", str(folder)) == ""
    assert "declares no nosuch" in doubt_of("read_detectors", "nosuch", str(folder))
    assert "there is no module nomodule" in doubt_of("nomodule", "f", str(folder))


def test_a_checkpoints_statements_are_bound_without_the_module(tmp_path, folder):
    text = ("CREATE STREAM s (a INT) FROM rate; CREATE FUNCTION f FROM 'read_detectors:price';"
            "CREATE FUNCTION g FROM 'read_detectors:sometimes';"
            "CREATE QUERY q AS SELECT f(a, a) + 1 AS x FROM s WHERE g(a)")
    bound = bind(text, folder=folder, load=read_signature)
    (folder / "read_detectors.py").unlink()
    again = bind_statements(bound.statements, importing=False)
    assert again == bound
    (condition,) = again.queries["q"].branches[0].where
    assert not condition.deterministic
    assert not (folder / "was-run").exists()
