"""The one form of benchmarks and experiments: a command line, a table, a JSON file, a page.

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console

from harness.findings import Report
from harness.page import page
from harness.tables import show

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
    show(report, console)
    written = write(report, out)
    console.print(f"written: {written}")
    if report.figures:
        console.print(f"and the page: {written.with_suffix('.html')}")
    return 0


def run(kind: str, programs: Mapping[str, Program]) -> None:
    """`main` as a program."""
    sys.exit(main(kind, programs))


def write(report: Report, folder: Path) -> Path:
    """Write ``NAME.json`` into a folder, and a page beside it if there are figures."""
    folder.mkdir(parents=True, exist_ok=True)
    if report.figures:
        (folder / f"{report.name}.html").write_text(page(report))
    path = folder / f"{report.name}.json"
    found = {"name": report.name, "machine": machine(), "rows": report.rows,
             "checks": [asdict(check) for check in report.checks]}
    path.write_text(json.dumps(found, indent=2) + "\n")
    return path


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
