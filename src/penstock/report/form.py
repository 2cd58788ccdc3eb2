"""The one form of benchmarks and experiments: rows, checks, a table, and a JSON file.

A check that does not hold is a finding, not a fault of the program: it is shown and kept, and the
exit status is 0. Only a program that broke exits with 1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from itertools import takewhile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from penstock.report.numbers import shown
from penstock.report.page import page


@dataclass(frozen=True, slots=True)
class Check:
    """A claim or a target, beside what was measured."""

    id: str
    text: str
    target: str
    measured: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture, and the checks that speak of it."""

    id: str
    title: str
    file: Path
    caption: str = ""
    checks: tuple[str, ...] = ()


@dataclass(slots=True)
class Report:
    """What a benchmark or an experiment found."""

    name: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    title: str = ""
    about: list[str] = field(default_factory=list)
    """Paragraphs on what was done, and with what."""
    figures: list[Figure] = field(default_factory=list)

    def check(self, id: str, text: str, target: str, measured: str, holds: bool) -> None:
        """Add a check."""
        self.checks.append(Check(id, text, target, measured, bool(holds)))

    def figure(
        self, id: str, title: str, file: Path, caption: str = "", checks: Sequence[str] = ()
    ) -> None:
        """Add a figure."""
        self.figures.append(Figure(id, title, file, caption, tuple(checks)))

    def as_json(self) -> dict[str, Any]:
        """The content of the JSON file."""
        return {"name": self.name, "machine": machine(), "rows": self.rows,
                "checks": [asdict(check) for check in self.checks]}

    def write(self, folder: Path) -> Path:
        """Write ``NAME.json`` into a folder, and a page beside it if there are figures."""
        folder.mkdir(parents=True, exist_ok=True)
        if self.figures:
            (folder / f"{self.name}.html").write_text(page(self))
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps(self.as_json(), indent=2) + "\n")
        return path

    def show(self, console: Console) -> None:
        """Print the rows and the checks as tables."""
        if len(self.rows) == 1:  # a single row reads better as a list
            listed = [{"figure": name, "value": shown(v)} for name, v in self.rows[0].items()]
            console.print(_table(self.name, ["figure", "value"], listed))
        elif self.rows:
            for columns in _fitting(self.rows, console.width):
                console.print(_table(self.name, columns, self.rows))
        table = Table(title="checks", title_justify="left")
        for column in ("check", "target", "measured", "holds"):
            table.add_column(column, overflow="fold")
        for check in self.checks:
            verdict = "[green]yes[/]" if check.holds else "[red]no[/]"
            table.add_row(check.text, check.target, check.measured, verdict)
        console.print(table)


def _fitting(rows: Sequence[Mapping[str, Any]], width: int) -> Iterator[list[str]]:
    """The columns in tables that are not wider than the terminal; each begins with the texts.

    >>> rows = [{"name": "a", "seconds": 1, "rows": 2}, {"name": "b", "seconds": 3, "rows": 4}]
    >>> list(_fitting(rows, 40)), list(_fitting(rows, 20))
    ([['name', 'seconds', 'rows']], [['name', 'seconds'], ['name', 'rows']])
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    wide = {column: 3 + max(len(column), *(len(shown(row.get(column))) for row in rows))
            for column in columns}
    texts = list(takewhile(lambda c: any(isinstance(row.get(c), str) for row in rows), columns))
    taken, room = list(texts), width - 1 - sum(wide[column] for column in texts)
    for column in columns[len(texts):]:
        if wide[column] > room and len(taken) > len(texts):
            yield taken
            taken, room = list(texts), width - 1 - sum(wide[column] for column in texts)
        taken.append(column)
        room -= wide[column]
    yield taken


def _table(title: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        numeric = all(isinstance(row.get(column), int | float | None) for row in rows)
        table.add_column(column, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*[shown(row.get(column)) for column in columns])
    return table


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(pages / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "pyspark": _version_of("pyspark"),
        "penstock": _version_of("penstock-spark"),
    }


def _version_of(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:  # run from a folder of sources
        return "not installed"


Progress = Callable[[str], None]
Program = Callable[[bool, Path, Progress], Report]
"""Takes (quick, folder for figures and data, progress) and gives what it found."""


def main(kind: str, programs: Mapping[str, Program], argv: Sequence[str] | None = None) -> int:
    """The command line of `python -m benchmarks` and `python -m experiments`."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {kind}", description=f"Run Penstock's {kind}.")
    parser.add_argument("name", choices=sorted(programs), nargs="?",
                        help="which one (default: all of them)")
    parser.add_argument("--quick", action="store_true", help="a smaller size, within 3 minutes")
    parser.add_argument("--out", type=Path, default=Path("out") / kind, metavar="DIR",
                        help="where NAME.json and figures go (default: %(default)s)")
    arguments = parser.parse_args(argv)
    names = [arguments.name] if arguments.name else list(programs)
    return max(_play(programs[name], arguments.quick, arguments.out) for name in names)


def _play(program: Program, quick: bool, out: Path) -> int:
    """One program, with what it found on the terminal and in its files; 1 if it broke."""
    console, progress = Console(), Console(stderr=True)
    try:
        report = program(quick, out, lambda text: progress.print(f"[dim]{text}[/]"))
    except Exception:
        traceback.print_exc()
        return 1
    report.show(console)
    written = report.write(out)
    console.print(f"written: {written}")
    if report.figures:
        console.print(f"and the page: {written.with_suffix('.html')}")
    return 0


def run(kind: str, programs: Mapping[str, Program]) -> None:
    """`main` as a program."""
    sys.exit(main(kind, programs))
