"""The repository keeps its own promises: one set of commands, a sorted public API, no strays."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import penstock
from penstock import events, testing, view

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SOURCES = [path for path in sorted((ROOT / "src").rglob("*.py")) if path.stat().st_size]


def targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", MAKEFILE, re.M))


def shell(text: str) -> list[str]:
    """The commands in the fenced sh blocks of a document."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.S)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


# --- commands -----------------------------------------------------------------------------------


def test_the_makefile_has_the_targets_that_were_promised() -> None:
    promised = {"setup", "demo", "test", "check", "bench", "reproduce", "clean"}
    assert promised <= targets()


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_every_make_command_in_the_documents_exists(text: str) -> None:
    calls = [line.split()[1:] for line in shell(text) if line.startswith("make")]
    named = {target for call in calls for target in call}
    assert named
    assert named <= targets()


def test_the_readme_names_the_two_commands() -> None:
    assert {"make demo", "make test"} <= set(shell(README))


def test_the_ci_runs_what_the_documents_say() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "exec make check test" in script.read_text()
    assert "`make check test`" in CONTRIBUTING


def test_every_penstock_command_in_the_readme_parses() -> None:
    from penstock.cli.arguments import parser

    commands = [shlex.split(line)[1:] for line in shell(README) if line.startswith("penstock ")]
    assert commands
    for command in commands:
        parser().parse_args(command)


@pytest.mark.parametrize(("variables", "message"), [
    ({"PYTHON": "no-such-python"}, "Python 3.11 or later is needed"),
    ({"JAVA_HOME": "/no/such/jdk"}, "Java 17 or later is needed")])
def test_what_is_missing_is_said_in_one_sentence(variables: dict[str, str], message: str) -> None:
    what = "python" if "PYTHON" in variables else "java"
    run = subprocess.run([ROOT / ".ci" / "prerequisites", what], capture_output=True, text=True,
                         env={**os.environ, **variables})
    assert run.returncode == 1
    assert run.stdout == ""
    assert message in run.stderr
    assert run.stderr.count("\n") == 1


def test_the_prerequisites_are_met_here() -> None:
    subprocess.run([ROOT / ".ci" / "prerequisites", "python"], check=True)


# --- the package --------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [penstock, events, testing, view],
                         ids=lambda module: module.__name__)
def test_public_names_are_sorted_and_exist(module: object) -> None:
    names = module.__all__  # type: ignore[attr-defined]
    assert names == sorted(names, key=_rank)
    assert all(hasattr(module, name) for name in names)


def _rank(name: str) -> tuple[int, str]:
    """As ruff sorts: constants, classes, the rest."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2), name


def test_the_public_api_is_small_and_known() -> None:
    assert penstock.__all__ == ["Engine", "PenstockError", "__version__", "predicate", "scalar"]


def test_the_version_is_the_newest_in_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    newest = re.search(r"^## \[(.+?)\]", changelog, re.M)
    assert newest is not None
    assert newest[1] == penstock.__version__


def test_what_the_package_ships_is_declared() -> None:
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["penstock"]
    package = ROOT / "src" / "penstock"
    declared = {path for pattern in patterns for path in package.glob(pattern)}
    others = {path for path in package.rglob("*") if path.is_file()
              and path.suffix not in (".py", ".pyc")}
    assert others == declared


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_a_source_file_begins_by_saying_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


PER_FAMILY = {"Decision", "Policy", "View"}
"""Each family of policies has its own, under one name: the contract is the same."""


def test_no_class_name_occurs_twice() -> None:
    found = Counter(node.name for path in SOURCES for node in ast.walk(ast.parse(path.read_text()))
                    if isinstance(node, ast.ClassDef))
    assert {name for name, count in found.items() if count > 1} <= PER_FAMILY


IN_SEVERAL_ROOMS = {
    "__init__": "a room",
    "__main__": "a room as a program",
    "advice": "what to change: found by what-if, shown by the view",
    "answers": "what a query is told: made of panes, delivered, shown",
    "base": "the contract that the other files of its folder keep",
    "comparison": "policies side by side: measured by the simulator, shown by the view",
    "department": "the part of the engine that knows one kind of work",
    "doctor": "the examination of this machine, and the command",
    "edf": "earliest deadline first, in each family",
    "expressions": "expressions of SQL: bound, and compiled for Spark",
    "fanout": "many branches in one pass: planned, and compiled for Spark",
    "files": "files: the sinks of that kind, and how they are listed and moved",
    "fleet": "many simulations at once: on this machine, and on a cluster",
    "functions": "functions that SQL may call: those of Python, and those of the language",
    "kafka": "topics: how they are written in SQL, and the sink",
    "host": "what carries out the decisions of an engine or a scheduler",
    "predictions": "what another policy would have done: computed, and shown",
    "refreshes": "refreshes of answers: as events, as Spark jobs, in virtual time",
    "relation_versions": "versions of relations that change: decided, and stored",
    "relations": "stored relations: what the record says of them, and their rows",
    "results": "what came of it: of simulations, and the command for the answers of a query",
    "retries": "what is tried again: jobs in the engine, streams at ingest",
    "settings": "SET: what it may say, and what the engine knows of it",
    "sinks": "the kinds of sinks: the catalogue, and how they are written in SQL",
    "windows": "windows of aggregates: as they are written, and as they close",
}
"""Module names that several rooms use, and the one thing that each means everywhere."""


def test_a_module_name_occurs_twice_only_for_the_same_thing_in_two_rooms() -> None:
    found = Counter(path.stem for path in SOURCES)
    assert {name for name, count in found.items() if count > 1} <= IN_SEVERAL_ROOMS.keys()


def test_names_are_compared_in_one_way() -> None:
    """By `penstock.model.name_key`: to fold case as dictionaries do would lose a column."""
    assert [path.name for path in SOURCES if "casefold" in path.read_text()] == []


# --- the distribution -----------------------------------------------------------------------------


def pinned() -> dict[str, Version]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): Version(version) for name, version in pairs}


def test_nothing_tells_users_to_install_the_package_of_another_project() -> None:
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *SOURCES,
             *(ROOT / "tests").rglob("*.py"), ROOT / "pyproject.toml"]
    extra = re.compile(r"\bpenstock\\*\[")
    named = re.compile(r"pip install [\"'`]?penstock(?!-spark)\b")
    here = Path(__file__)
    assert not [file.name for file in files if file != here
                and (extra.search(file.read_text()) or named.search(file.read_text()))]
    assert PROJECT["project"]["name"] == "penstock-spark"


def test_the_constraints_pin_every_dependency_within_its_range() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = [*PROJECT["project"]["dependencies"], *extras["dev"], *extras["figures"]]
    versions = pinned()
    for requirement in map(Requirement, wanted):
        if requirement.name != "penstock-spark":
            assert versions[canonicalize_name(requirement.name)] in requirement.specifier


def test_every_dependency_has_an_upper_bound() -> None:
    for line in PROJECT["project"]["dependencies"]:
        assert any(part.operator == "<" for part in Requirement(line).specifier), line


def test_the_constraints_name_no_host_and_are_what_make_installs() -> None:
    text = (ROOT / "constraints.txt").read_text()
    assert "://" not in text and "@" not in text
    assert "--constraint constraints.txt" in MAKEFILE
