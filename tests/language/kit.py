"""What the tests of the language share: an application to bind onto, and golden files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import LanguageError
from penstock.functions import PythonFunction, predicate, scalar
from penstock.language import bind
from penstock.language.loading import load
from penstock.model import Application
from penstock.rendering import render
from tests.language.query_text import render_query, render_view

GOLDEN = Path(__file__).parent / "golden"
CASE, GIVES = "-- case: ", "-- gives:"


@predicate
def is_botnet(src, dst):
    return src


@scalar("DOUBLE")
def score(*columns):
    return columns[0]


def detectors(module: str, attribute: str, folder: str) -> PythonFunction:
    """A loader that knows two functions, and leaves the rest to the real one."""
    known = {"is_botnet": is_botnet, "score": score}
    return known[attribute] if module == "detectors" else load(module, attribute, folder)


def declared() -> Application:
    text = (GOLDEN / "declarations.sql").read_text()
    return bind(text, folder="/app", load=detectors)


@dataclass(frozen=True)
class Case:
    title: str
    text: str
    expected: str


def cases(path: Path) -> Iterator[Case]:
    """The pairs of a golden file: text after ``-- case:``, what it gives after ``-- gives:``."""
    for part in path.read_text().split(CASE)[1:]:
        title, _, rest = part.partition("\n")
        text, _, expected = rest.partition(GIVES)
        expected = "\n".join(
            line.removeprefix("--").removeprefix(" ") for line in expected.strip("\n").splitlines()
        )
        yield Case(title, text.strip("\n"), expected)


def written(case: Case, actual: str) -> str:
    """The case as the golden file holds it."""
    shown = "\n".join(f"-- {line}".rstrip() for line in actual.splitlines())
    return f"{CASE}{case.title}\n{case.text}\n{GIVES}\n{shown}\n\n"


def outcome(text: str, onto: Application) -> str:
    """What binding a text adds to an application, or the error."""
    try:
        bound = bind(text, onto, folder="/app", load=detectors)
    except LanguageError as error:
        return f"{type(error).__name__}: {error}"
    return "\n".join(added(bound, onto)) or "nothing new"


def added(bound: Application, onto: Application) -> Iterator[str]:
    for kind in ("streams", "relations"):
        for name, table in getattr(bound, kind).items():
            if getattr(onto, kind).get(name) != table:
                yield describe(kind, table)
    for view in bound.views.values():
        yield render_view(view)
    for query in bound.queries.values():
        yield render_query(query)
    for name, value in sorted(bound.settings.items()):
        yield f"SET {name} = {value}"


def describe(kind, table) -> str:
    computed = {made.name: f" AS ({render(made.expression)})"
                for made in getattr(table, "computed", ())}
    columns = ", ".join(f"{c.name} {c.type}{computed.get(c.name, '')}" for c in table.columns)
    line = f"{kind[:-1].upper()} {table.name} ({columns}) FROM {table.format} {table.path}"
    line += "".join(f" {k}={v}" for k, v in table.options)
    if kind == "streams":
        line += f" TIME {table.time} LATENESS {table.lateness:g}"
    elif table.refresh is not None:
        line += f" REFRESH every {table.refresh:g} s"
    return line
