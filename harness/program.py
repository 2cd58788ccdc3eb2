"""The one form of benchmarks and experiments: a command line, a table, a JSON file, a page.

A check that does not hold is a finding, not a fault of the program: it is shown and kept, and the
exit status is 0. Only a program that broke exits with 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from harness.findings import Report
from harness.origin import Origin, machine
from harness.page import page
from harness.tables import show

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Option:
    """What a program can be told beside its size, `--NAME VALUE`: which parts to run, how often."""

    name: str
    help: str
    read: Callable[[str], Any]
    """Makes a value of the text; ValueError says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Selective:
    """A program of which parts can be run."""

    run: Callable[..., Report | Iterable[Report]]
    options: tuple[Option, ...]

    def __call__(
        self, quick: bool, out: Path, progress: Progress, **chosen: Any
    ) -> Report | Iterable[Report]:
        """Run the chosen parts."""
        return self.run(quick, out, progress, **chosen)


Program = Callable[[bool, Path, Progress], Report | Iterable[Report]] | Selective
"""Takes (quick, folder for figures and data, progress) and gives what it found: one report, or
several, each of which is written as soon as it is there."""


def several(known: Iterable[str]) -> Callable[[str], tuple[str, ...]]:
    """Read names out of a known set, with commas between them.

    >>> several(["a", "b", "c"])("c,a")
    ('c', 'a')
    >>> several(["a", "b"])("d")
    Traceback (most recent call last):
    ValueError: there is no 'd'; there are a, b
    """
    known = tuple(known)

    def read(text: str) -> tuple[str, ...]:
        given = tuple(name.strip() for name in text.split(",") if name.strip())
        for name in given:
            if name not in known:
                raise ValueError(f"there is no {name!r}; there are {', '.join(known)}")
        return given

    return read


def main(kind: str, programs: Mapping[str, Program], argv: Sequence[str] | None = None) -> int:
    """The command line of `python -m benchmarks` and `python -m experiments`."""
    options = {option.name: option for program in programs.values()
               for option in _options(program)}
    parser = _parser(kind, programs, options)
    arguments = parser.parse_args(argv)
    names = [arguments.name] if arguments.name else list(programs)
    chosen = _chosen(parser, arguments, options)
    for name in names:
        for foreign in chosen.keys() - {option.name for option in _options(programs[name])}:
            parser.error(f"{name} has no option --{foreign}")
    return max(_play(programs[name], arguments.quick, arguments.out, chosen) for name in names)


def _options(program: Program) -> tuple[Option, ...]:
    return program.options if isinstance(program, Selective) else ()


def _parser(
    kind: str, programs: Mapping[str, Program], options: Mapping[str, Option]
) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m {kind}", description=f"Run Penstock's {kind}.")
    parser.add_argument("name", choices=sorted(programs), nargs="?",
                        help="which one (default: all of them)")
    parser.add_argument("--quick", action="store_true", help="a smaller size, within minutes")
    parser.add_argument("--out", type=Path, default=Path("out") / kind, metavar="DIR",
                        help="where NAME.json and figures go (default: %(default)s)")
    for name, option in options.items():
        those = [known for known, program in programs.items() if option in _options(program)]
        parser.add_argument(f"--{name}", metavar="...", help=f"{', '.join(those)}: {option.help}")
    return parser


def _chosen(
    parser: argparse.ArgumentParser, arguments: argparse.Namespace,
    options: Mapping[str, Option],
) -> dict[str, Any]:
    """By option what was given for it."""
    chosen = {}
    for name, option in options.items():
        text = getattr(arguments, name)
        if text is None:
            continue
        try:
            chosen[name] = option.read(text)
        except ValueError as error:
            parser.error(f"--{name}: {error}")
    return chosen


def _play(program: Program, quick: bool, out: Path, chosen: Mapping[str, Any]) -> int:
    """One program, with what it found on the terminal and in its files; 1 if it broke."""
    progress, origin, began = Console(stderr=True), Origin.now(), time.monotonic()
    try:
        found = program(quick, out, lambda text: progress.print(f"[dim]{text}[/]"), **chosen)
        for report in (found,) if isinstance(found, Report) else found:
            now = time.monotonic()
            _tell(report, out, origin, quick, now - began)
            began = now
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def _tell(report: Report, out: Path, origin: Origin, quick: bool, seconds: float) -> None:
    console = Console()
    show(report, console)
    written = write(report, out, origin, quick, seconds)
    console.print(f"written: {written}")
    if report.figures:
        console.print(f"and the page: {written.with_suffix('.html')}")


def run(kind: str, programs: Mapping[str, Program]) -> None:
    """`main` as a program."""
    sys.exit(main(kind, programs))


def write(
    report: Report, folder: Path, origin: Origin, quick: bool = False, seconds: float = 0.0
) -> Path:
    """Write ``NAME.json`` into a folder, and a page beside it if there are figures."""
    folder.mkdir(parents=True, exist_ok=True)
    if report.figures:
        (folder / f"{report.name}.html").write_text(page(report))
    path = folder / f"{report.name}.json"
    found = {"name": report.name, **asdict(origin), "quick": quick, "seconds": round(seconds),
             "machine": machine(), "columns": report.columns, "rows": report.rows,
             "checks": [asdict(check) for check in report.checks]}
    path.write_text(json.dumps(found, indent=2) + "\n")
    return path
