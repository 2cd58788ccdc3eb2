"""The documents tell the truth: their commands and code run, their tables are the product's own.

Fenced blocks of the README and of docs/ are carried out in order, each document in a folder of its
own. ``sh`` is run, ``python`` too (one namespace per document), ``sql`` is bound on top of the
document's earlier ``sql``, ``toml`` is read as a workload. Comments before a block say what else to
do with it:

    <!-- file: app.sql -->          save it under that name; sql is then bound by itself
    <!-- not run: reason -->        leave it alone
    <!-- exit: 1 -->                its last command ends with this status
    <!-- error -->                  binding or reading it is refused
    <!-- output -->                 the block is what the one before printed, or its error
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness import record
from penstock import errors
from penstock.events import KINDS
from penstock.language import bind
from penstock.language.aggregates import AGGREGATES
from penstock.language.aggregates import SYNONYMS as AGGREGATE_SYNONYMS
from penstock.language.functions import ADMITTED, REFUSED, SYNONYMS
from penstock.language.settings import SETTINGS
from penstock.language.types import SIMPLE
from penstock.model import Application
from penstock.policies import filters, refresh
from penstock.policies.operators import POLICIES
from penstock.simulator.description import read
from penstock.sinks import SINKS

ROOT = Path(__file__).parent.parent
INDEX = ROOT / "docs" / "README.md"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
DOCUMENTS = [ROOT / "README.md", *PAGES]
ON_SPARK = [ROOT / "README.md", *(ROOT / "docs" / name for name in (
    "explanation/window-aggregates.md", "how-to/ask-questions.md",
    "how-to/queries-over-queries.md", "how-to/recover-after-a-crash.md",
    "how-to/python-and-notebooks.md", "how-to/relations-that-change.md",
    "how-to/run-on-a-cluster.md", "how-to/see-answers.md",
    "how-to/the-shell.md", "how-to/write-a-sink.md", "reference/python.md",
    "reference/running.md", "tutorial/first-queries.md"))]
OTHERS = [ROOT / name for name in (
    "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
SILENT = ("csv", "json", "text")
"""What is shown or saved, not carried out."""
FAST = "-XX:TieredStopAtLevel=1"
"""A JVM that lives for seconds is not worth the best code."""

_BLOCK = re.compile(r"((?:^<!-- [^\n]*? -->\n)*)^```(\w*)\n(.*?)^```$", re.M | re.S)
_COMMENT = re.compile(r"<!-- (.*?) -->")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@dataclass(frozen=True)
class Fenced:
    """A fenced block of a document."""

    language: str
    text: str
    says: dict[str, str]
    place: str


def fenced(path: Path) -> list[Fenced]:
    text = path.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        words = [comment.partition(":") for comment in _COMMENT.findall(match[1])]
        line = text.count("\n", 0, match.start(3))
        found.append(Fenced(match[2], match[3], {k: v.strip() for k, _, v in words},
                            f"{name_of(path)}, line {line}"))
    return found


# --- carrying a document out --------------------------------------------------------------------


@dataclass
class Walk:
    """Goes through the blocks of one document."""

    folder: Path
    here: bool
    """Whether `penstock` commands run in this process, on the session that all tests share."""
    application: Application = field(default_factory=Application)
    namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    said: str = ""
    """What the block before printed."""

    def take(self, block: Fenced) -> None:
        if "not run" in block.says:
            assert block.says["not run"], f"{block.place}: why is it not run?"
        elif "output" in block.says:
            assert tidy(self.said) == tidy(block.text), block.place
        elif "file" in block.says:
            self.save(block)
        elif block.language == "sql":
            self.bind(block, self.application)
        elif block.language == "toml":
            self.describe(block)
        elif block.language == "sh":
            self.shell(block)
        elif block.language == "python":
            self.python(block)
        else:
            assert block.language in SILENT, f"{block.place}: {block.language!r} is not carried out"

    def save(self, block: Fenced) -> None:
        file = self.folder / block.says["file"]
        file.write_text(block.text, encoding="utf-8")
        sys.modules.pop(file.stem, None)  # another document's module of the same name
        if block.language == "sql":
            self.bind(block, Application())
        elif block.language == "toml":
            self.describe(block)

    def describe(self, block: Fenced) -> None:
        place = block.says.get("file", "workload")
        if "error" in block.says:
            with pytest.raises(errors.WorkloadError) as refused:
                read(block.text, self.folder, place=place)
            self.said = str(refused.value)
        else:
            read(block.text, self.folder, place=place)

    def bind(self, block: Fenced, onto: Application) -> None:
        if "error" in block.says:
            with pytest.raises(errors.LanguageError) as refused:
                bind(block.text, onto, folder=self.folder)
            self.said = str(refused.value)
            return
        bound = bind(block.text, onto, folder=self.folder)
        if "file" not in block.says:
            self.application = bound

    def python(self, block: Fenced) -> None:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(block.text, block.place, "exec"), self.namespace)
        self.said = out.getvalue()

    def shell(self, block: Fenced) -> None:
        lines = [line for line in block.text.replace("\\\n", " ").splitlines() if line.strip()]
        self.said, wanted = "", [0] * (len(lines) - 1) + [int(block.says.get("exit", 0))]
        for line, status in zip(lines, wanted, strict=True):
            found = re.fullmatch(r"(.+) < ([\w.]+)", line)
            command, redirected = (found[1], found[2]) if found else (line, "")
            words = shlex.split(command, comments=True)
            bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", command)  # in quotes nothing is the shell's
            plain = words[0] == "penstock" and not re.search(r"[|&;<>$*]", bare)
            if self.here and plain:
                with self.standard_input(redirected):
                    ended, out, err = self.inside(words[1:])
            else:
                ended, out, err = self.outside([line])
            assert ended == status, f"{block.place}: {line}\n{out}\n{err}"
            self.said += out

    @contextlib.contextmanager
    def standard_input(self, file: str) -> Iterator[None]:
        before = sys.stdin
        with open(self.folder / file if file else os.devnull, encoding="utf-8") as sys.stdin:
            try:
                yield
            finally:
                sys.stdin = before

    def inside(self, arguments: list[str]) -> tuple[int, str, str]:
        from penstock.cli import main

        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(arguments)
        return status, out.getvalue(), err.getvalue()

    def outside(self, lines: list[str]) -> tuple[int, str, str]:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        done = subprocess.run(
            ["bash", "-eu", "-c", *lines], cwd=self.folder, capture_output=True, text=True,
            env={**os.environ, "PATH": path, "JAVA_TOOL_OPTIONS": FAST})
        return done.returncode, done.stdout, done.stderr


def tidy(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


@pytest.fixture
def shared_session(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines that would start a Spark of their own use the one that all tests share."""
    from penstock import api

    shared = request.getfixturevalue("spark")

    class Engine(api.Engine):
        def __init__(self, spark: Any = None, checkpoint: Any = None, **options: Any) -> None:
            super().__init__(spark or shared, checkpoint, **options)

    monkeypatch.setattr(api, "Engine", Engine)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in; modules imported from it are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def _carried_out(path: Path) -> Any:
    marks = [pytest.mark.spark, pytest.mark.slow] if path in ON_SPARK else []
    if path == ROOT / "README.md":
        marks.append(pytest.mark.processes)
    return pytest.param(path, id=name_of(path), marks=marks)


@pytest.mark.timeout(900)  # on an idle machine a fifteenth of it for all documents together
@pytest.mark.parametrize("path", [_carried_out(path) for path in DOCUMENTS])
def test_the_commands_and_the_code_of_a_document_work(
    path: Path, workplace: Path, request: pytest.FixtureRequest
) -> None:
    # The README is what a newcomer types, so its commands are processes of their own.
    here = path in ON_SPARK and path != ROOT / "README.md"
    if here:
        request.getfixturevalue("shared_session")
    walk = Walk(workplace, here)
    for block in fenced(path):
        walk.take(block)


NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_the_cells_of_a_notebook_work_and_print_what_is_stored(
    path: Path, workplace: Path, shared_session: None
) -> None:
    """In one namespace, as in Jupyter: with `await` at the top, and the last value displayed."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            place = f"{name_of(path)}, cell {number}"
            said = executed("".join(cell["source"]), place, namespace)
            stored = "".join(line for one in cell["outputs"] for line in one["text"])
            assert tidy(said) == tidy(stored), place


def executed(text: str, place: str, namespace: dict[str, Any]) -> str:
    """What a cell prints; its last expression is shown as a notebook does it."""
    tree = ast.parse(text, place)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    parts = [compile(tree, place, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)]
    if isinstance(last, ast.Expr):
        parts.append(compile(ast.Expression(last.value), place, "eval"))
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as out:
        for part in parts:
            value = eval(part, namespace)
            if inspect.iscoroutine(value):
                value = asyncio.run(value)
    if hasattr(value, "_repr_html_"):
        assert "<" in value._repr_html_(), place
    return out.getvalue()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_comment_before_a_block_is_understood(path: Path) -> None:
    known = {"file", "not run", "exit", "error", "output"}
    for block in fenced(path):
        assert set(block.says) <= known, block.place
    text = path.read_text(encoding="utf-8")
    assert text.count("```") == 2 * len(fenced(path))
    runnable = re.findall(r"^```(\w+)$", text, re.M)
    assert set(runnable) <= {"sh", "sql", "python", "toml", *SILENT}


# --- links --------------------------------------------------------------------------------------


def slug(heading: str) -> str:
    """The anchor of a heading."""
    words = re.sub(r"[^\w\- ]", "", heading.strip().lower().replace("`", ""))
    return words.replace(" ", "-")


def anchors(path: Path) -> set[str]:
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", text, re.M)}


@pytest.mark.parametrize("path", [*DOCUMENTS, *OTHERS], ids=name_of)
def test_every_internal_link_resolves(path: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def linked(path: Path) -> set[Path]:
    """The files that a document links to."""
    targets = re.findall(r"\]\((?!https?:)([^)#\s]+)", path.read_text(encoding="utf-8"))
    return {(path.parent / target).resolve() for target in targets}


def test_the_readme_links_to_the_index_and_to_the_documents_beside_it() -> None:
    assert {INDEX, *OTHERS} <= linked(ROOT / "README.md")


@pytest.mark.parametrize("path", [page for page in PAGES if page != INDEX], ids=name_of)
def test_every_page_is_linked_from_the_index(path: Path) -> None:
    assert path in linked(INDEX)


# --- prose --------------------------------------------------------------------------------------

WIDTH = 100
GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_prose_is_wrapped_at_one_width(path: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    whole = ("|", "!", "#", "<!--")  # tables, pictures, headings and marks take a line each
    assert [line for line in text.splitlines()
            if len(line) > WIDTH and not line.startswith(whole)] == []


def test_the_glossary_has_its_words_once_and_in_order() -> None:
    words = [word for row in rows(GLOSSARY, "glossary") for word in row[0].split(", ")]
    assert len(words) == len(set(words))
    first = [row[0] for row in rows(GLOSSARY, "glossary")]
    assert first == sorted(first)


REPORTS = [page for page in PAGES if page.parent.name == "reports"]


@pytest.mark.parametrize("path", REPORTS, ids=name_of)
def test_what_was_measured_names_its_commit_and_its_date(path: Path) -> None:
    after = path.read_text(encoding="utf-8").split("<!-- measured: ")[1:]
    assert after
    for text in after:
        first = text.split(" -->\n", 1)[1].split("\n\n", 1)[0]
        assert re.match(r"Recorded in commit [0-9a-f]{7}, \d{4}-\d\d-\d\d", first), text[:200]


BENCHMARKS = ROOT / "docs" / "reports" / "benchmarks.md"
UNKEPT = {"aggregates", "bursts", "simulator"}
"""Measured before the JSON of a table was kept; `python -m harness.record` takes one from here."""


def test_a_table_of_benchmarks_is_what_its_json_says() -> None:
    page = BENCHMARKS.read_text(encoding="utf-8")
    kept = {file.stem: json.loads(file.read_text(encoding="utf-8"))
            for file in (BENCHMARKS.parent / record.DATA).glob("*.json")}
    named = set(re.findall(r"<!-- measured: (\S+) -->", page))
    assert named - kept.keys() <= UNKEPT, "every other table keeps its JSON"
    assert kept.keys() <= named, "and every JSON has its table"
    assert not UNKEPT & kept.keys(), "those that are kept now are not among the unkept"
    for found in kept.values():
        assert record.replaced(page, found) == page


# --- tables -------------------------------------------------------------------------------------

LANGUAGE = ROOT / "docs" / "reference" / "language.md"
PYTHON = ROOT / "docs" / "reference" / "python.md"
SCHEDULING = ROOT / "docs" / "explanation" / "operator-scheduling.md"
REFRESH = ROOT / "docs" / "explanation" / "refresh-policies.md"
FILTERS = ROOT / "docs" / "explanation" / "adaptive-filters.md"


def rows(path: Path, mark: str) -> list[list[str]]:
    """The cells of the table after a mark, without its head."""
    after = path.read_text(encoding="utf-8").split(f"<!-- {mark} -->\n", 1)[1]
    lines = after.split("\n\n", 1)[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def names(path: Path, mark: str) -> list[str]:
    """The names in the first cells of a table."""
    return [name for row in rows(path, mark) for name in quoted(row[0])]


def declared(path: Path) -> Application:
    """What the first block of the language's page declares."""
    first = next(block for block in fenced(path) if block.language == "sql")
    return bind(first.text)


def test_the_page_names_the_admitted_functions_and_no_others() -> None:
    assert names(LANGUAGE, "functions") == sorted(ADMITTED)


@pytest.mark.parametrize("row", rows(LANGUAGE, "functions"), ids=lambda row: quoted(row[0])[0])
def test_the_example_of_a_function_uses_it_and_has_the_type_that_is_told(row: list[str]) -> None:
    name, example = quoted(row[0])[0], quoted(row[2])[0]
    assert name in example
    application = bind(f"CREATE QUERY x AS SELECT {example} AS y FROM packets", declared(LANGUAGE))
    given = str(application.queries["x"].branches[0].select[0].expression.type)
    assert row[1] == given or row[1] not in SIMPLE


def test_the_page_names_the_synonyms() -> None:
    table = rows(LANGUAGE, "synonyms")
    told = {name: quoted(row[1])[0] for row in table for name in quoted(row[0])}
    assert told == SYNONYMS


def test_the_page_names_what_will_not_be_admitted_and_why() -> None:
    told = {name: row[0] for row in rows(LANGUAGE, "refused") for name in quoted(row[1])}
    assert told == REFUSED


def test_the_page_names_the_aggregates_and_no_others() -> None:
    assert names(LANGUAGE, "aggregates") == sorted(AGGREGATES)
    table = rows(LANGUAGE, "aggregate synonyms")
    told = {name: quoted(row[1])[0] for row in table for name in quoted(row[0])}
    assert told == AGGREGATE_SYNONYMS


@pytest.mark.parametrize("row", rows(LANGUAGE, "aggregates"), ids=lambda row: quoted(row[0])[0])
def test_the_examples_of_an_aggregate_use_it_and_have_the_type_that_is_told(row: list[str]) -> None:
    name = quoted(row[0])[0]
    for example in quoted(row[2]):
        assert example.startswith(f"{name}(")
        text = f"CREATE QUERY x AS SELECT {example} AS y FROM packets [WINDOW 1 MIN]"
        given = bind(text, declared(LANGUAGE)).queries["x"].branches[0].select[-1]
        assert row[1] == str(given.expression.type) or row[1] not in SIMPLE


def test_the_page_names_the_settings_and_their_defaults() -> None:
    from penstock.spark.defaults import DEFAULTS

    assert sorted(names(LANGUAGE, "settings")) == sorted(SETTINGS)
    told = {quoted(row[0])[0]: quoted(row[1])[0].strip("'")
            for row in rows(LANGUAGE, "settings") if quoted(row[1])}
    assert told == DEFAULTS


def test_the_page_names_the_sinks() -> None:
    assert [name.split()[0] for name in names(LANGUAGE, "sinks")] == [
        name for name, kind in SINKS.items() if not kind.is_ours]


def test_the_page_names_the_types() -> None:
    section = LANGUAGE.read_text(encoding="utf-8").split("\n## Types\n", 1)[1].split("\n## ", 1)[0]
    told = {name.partition("(")[0].partition("<")[0] for name in quoted(section)}
    assert set(SIMPLE) | {"DECIMAL", "DEC", "NUMERIC", "ARRAY", "MAP", "STRUCT"} <= told


def listed(refuse: Callable[[], object]) -> set[str]:
    """The names that a refusal lists as those there are."""
    with pytest.raises((errors.LanguageError, ValueError)) as refused:
        refuse()
    first = str(refused.value).splitlines()[0]
    return set(re.split(r"there are |it has ", first)[1].split(", "))


def test_the_page_names_the_options_of_a_query() -> None:
    known = listed(lambda: bind("CREATE QUERY q WITH (zzz = 1) AS SELECT a FROM s"))
    text = LANGUAGE.read_text(encoding="utf-8")
    table = text.split("| option | value | meaning |", 1)[1].split("\n\n", 1)[0]
    assert {quoted(line)[0] for line in table.splitlines()[2:]} == known


def test_the_page_names_the_options_of_onoff() -> None:
    from penstock.generators.onoff_options import Options

    assert set(names(LANGUAGE, "onoff")) == listed(lambda: Options.parse({"zzz": "1"}))


def test_the_page_names_the_events() -> None:
    assert sorted(names(PYTHON, "events")) == sorted(kind.__name__ for kind in KINDS)


def test_the_page_shows_the_tree_of_errors() -> None:
    tree = [block.text for block in fenced(PYTHON) if block.text.startswith("PenstockError")]
    told = [line.strip() for line in tree[0].splitlines()]
    assert told == [line.strip() for line in (errors.__doc__ or "").split("::\n")[1].strip()
                    .splitlines()]


def test_the_page_names_what_an_engine_can_do() -> None:
    from penstock.api import Engine

    text = PYTHON.read_text(encoding="utf-8").split("\n## Answers\n", 1)[0]
    told = set(re.findall(r"^\| `(\w+)\b", text, re.M))
    public = {name for name in vars(Engine) if not name.startswith("_")}
    assert public <= told


def test_the_page_names_the_policies_and_their_parameters() -> None:
    table = rows(SCHEDULING, "policies")
    told = {quoted(row[0])[0]: quoted(row[1]) for row in table}
    assert told == {name: list(inspect.signature(kind).parameters)
                    for name, kind in POLICIES.items()}
    assert set(POLICIES) <= anchors(SCHEDULING)


def test_the_page_names_the_refresh_policies_and_their_modifiers() -> None:
    told = names(REFRESH, "refresh policies")
    assert told == [*refresh.POLICIES, *(f"+{modifier}" for modifier in refresh.MODIFIERS)]
    assert f"'{refresh.DEFAULT}'` is the default" in REFRESH.read_text(encoding="utf-8")


def test_the_page_names_the_filters_policies_and_their_parameters() -> None:
    assert names(FILTERS, "filters policies") == list(filters.POLICIES)
    text = FILTERS.read_text(encoding="utf-8")
    for name in inspect.signature(filters.Policy).parameters:
        assert f"`{name}`" in text
