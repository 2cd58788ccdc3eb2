"""The demonstration: an application that ships with the package, copied for users to change."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.generators.packets import OnOff
from penstock.rendering import brief
from penstock.sinks import SINKS

if TYPE_CHECKING:
    import pyarrow

    from penstock.api import Engine

FILES = ("packets.sql", "hosts.csv", "detectors.py")
SAMPLE = 3
"""Rows shown of each query's answers."""
_ONOFF = re.compile(r"OPTIONS \((rate[^)]*)\)")
_SLOW = re.compile(r"OPTIONS \((slice[^)]*)\)")
"""A stream that comes in slices of its own: its rate does not depend on the machine."""
_RATE = re.compile(r"rate = ([\d.]+)")


def prepare(folder: Path, seconds: float, *, rate: float, fresh: bool) -> Path:
    """Copy the application into a folder, with this many packets a second; return its file.

    ``fresh`` removes earlier answers and the checkpoint beside them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in ("answers", "checkpoint") if fresh else ():
        shutil.rmtree(folder / old, ignore_errors=True)
    for name in FILES:
        shutil.copyfile(Path(__file__).parent / name, folder / name)
    file = folder / FILES[0]
    file.write_text(sized(file.read_text(encoding="utf-8"), seconds, rate), encoding="utf-8")
    return file


def sized(text: str, seconds: float, rate: float) -> str:
    """The application with ``rate`` packets a second over all of its streams, for so long.

    Each stream keeps its part of them. A stream with a slice of its own keeps its rate.

    >>> text = "OPTIONS (rate = 100, burst = 5, length = 0.2, seed = 7, rows = 9)"
    >>> sized(text, 5, 100)
    'OPTIONS (rate = 100, burst = 5, length = 0.2, seed = 7, rows = 1113)'
    >>> sized(text, 5, 50)
    'OPTIONS (rate = 50, burst = 5, length = 0.2, seed = 7, rows = 557)'
    """
    part = rate / declared_rate(text)
    text = _ONOFF.sub(lambda match: _resized(match[0], seconds, part), text)
    return _SLOW.sub(lambda match: _resized(match[0], seconds, 1.0), text)


def declared_rate(text: str) -> float:
    """Packets a second over all streams of an application."""
    return sum(float(rate) for options in _ONOFF.findall(text) for rate in _RATE.findall(options))


def _resized(options: str, seconds: float, part: float) -> str:
    given = dict(re.findall(r"(rate|burst|length|seed) = ([\d.]+)", options))
    traffic = OnOff(
        rate=max(1.0, round(float(given["rate"]) * part)), burst=float(given["burst"]),
        length=float(given["length"]), seed=int(given["seed"]),
    )  # fmt: skip
    options = _RATE.sub(f"rate = {traffic.rate:.0f}", options)
    return re.sub(r"rows = \d+", f"rows = {traffic.count(0, seconds)}", options)


def introduction(file: Path, seconds: float, rate: float) -> str:
    """What will be seen."""
    return (
        f"Twenty-two standing queries over bursty streams of packets and two of readings: about "
        f"{seconds:.0f} seconds in real time, {rate:,.0f} packets a second.\n"
        f"The application is {file}: plain SQL, yours to change.\n"
    )


# --- afterwards ---------------------------------------------------------------------------------


def show_answers(engine: Engine, console: Console, file: Path, penstock: str) -> None:
    """A few rows of each query's answers, where all of them are, and what to try next.

    ``penstock`` is how the reader calls the command.
    """
    console.print()
    console.rule("answers", style="bright_black")
    for line in _answers(engine):
        console.print(line)
    console.rule("what next", style="bright_black")
    for call, gain in _next(engine, file):
        console.print(Text.assemble(" ", (f"{penstock} {call}", "bold"), f"   {gain}"))


def _answers(engine: Engine) -> Iterator[Text | Table]:
    for query in engine.application.queries.values():
        if not SINKS[query.sink.kind].is_readable:
            rows = engine.status().queries[query.name].rows_out
            yield Text.assemble((query.name, "bold cyan"), f"  {rows:,} rows to {query.sink.kind}")
            continue
        table = engine.results(query.name)
        where = f"in {_shown(query.sink.target)}" if query.sink.target else "in memory"
        yield Text.assemble((query.name, "bold cyan"), f"  {table.num_rows:,} rows {where}")
        if table.num_rows:
            yield _sample(table)


def _shown(path: str) -> str:
    """A path as short as it can be said from here."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path


def _sample(table: pyarrow.Table) -> Table:
    drawn = Table(*table.column_names, box=None, padding=(0, 2), header_style="bright_black")
    for row in table.slice(0, SAMPLE).to_pylist():
        drawn.add_row(*(_cell(value) for value in row.values()))
    return drawn


def _cell(value: object) -> Text:
    return Text(brief(value).removesuffix("+00:00"), no_wrap=True, overflow="ellipsis")


def _next(engine: Engine, file: Path) -> tuple[tuple[str, str], ...]:
    return (
        (f"events {_shown(str(engine.checkpoint))}", "what the run amounted to"),
        (f"explain {file}", "what the queries share"),
        (f"ask {_shown(str(engine.checkpoint))} \"SELECT TOPK(dst, 5) FROM packets [WINDOW 5 S]\"",
         "one more question, once"),
        ("demo --seconds 120 --rate 20000", "longer, and with more packets"),
        (f"run {file}", "once you have changed it; without `rows = ...` it is endless"),
    )
