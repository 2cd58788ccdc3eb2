"""Policies side by side, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from penstock.report.numbers import shown
from penstock.view.formats import size

Figures = Mapping[str, float]

_QUIET = "bright_black"
_MOST_QUERIES = 12


@dataclass(frozen=True, slots=True)
class Heading:
    """A column: the figure it shows, and whether the smallest value is the best."""

    figure: str
    title: str
    judged: bool = False


_LATENCY = (
    Heading("mean_latency", "mean\nlatency", judged=True),
    Heading("p99_latency", "p99\nlatency", judged=True),
    Heading("max_latency", "max\nlatency", judged=True),
    Heading("missed", "missed\ndeadlines", judged=True),
)


@dataclass(frozen=True, slots=True)
class ProgressChart:
    """The progress chart of a route, for people."""

    route: str
    lines: tuple[tuple[str, float, float, float, int], ...]
    """Operator, time and size of a block after it, rows freed per time, number of its segment."""


def side_by_side(policies: Mapping[str, Figures], unit: str) -> RenderableType:
    """The memory and latency of each policy, and the properties of its schedule."""
    memory = [
        Heading("peak", "peak\nmemory", judged=True),
        Heading("peak_bytes", "\nbytes"),
        Heading("ratio", "times\nbound"),
        Heading("mean_memory", "mean\nmemory", judged=True),
        *_LATENCY,
    ]
    work = [
        Heading("invocations", "operators\ninvoked"),
        Heading("switches", "context\nswitches"),
        Heading("preemptions", "\npreemptions"),
        Heading("decisions", "scheduler\ncalls"),
        Heading("finished", f"finished\nat [{unit}]"),
    ]
    runs = {name: figures for name, figures in policies.items() if "invocations" in figures}
    return Group(
        _part(f"memory in rows, latency of answers in {unit}"), _table(policies, memory), Text(),
        _part("what the schedule was like"), _table(runs, work))


def by_query(queries: Mapping[str, Mapping[str, Figures]], unit: str) -> RenderableType:
    """For each query, the latency under every policy."""
    columns = [Heading("answers", "\nanswers"), *_LATENCY, Heading("promised", "\npromised")]
    parts: list[RenderableType] = []
    for query, policies in list(queries.items())[:_MOST_QUERIES]:
        parts += [_part(f"query {query}, latency in {unit}"), _table(policies, columns), Text()]
    if len(queries) > _MOST_QUERIES:
        more = len(queries) - _MOST_QUERIES
        parts.append(Text(f" … and {more} more queries, all of them with --json", _QUIET))
    return Group(*parts)


def progress(charts: Sequence[ProgressChart], unit: str) -> RenderableType:
    """Progress charts in numbers: what becomes of a block, and which operators run together."""
    parts: list[RenderableType] = []
    for chart in charts:
        table = _plain("operator", f"time\n[{unit}]", "\nsize", f"frees rows\nper {unit}",
                       "\nsegment")
        for name, time, size_, freed, number in chart.lines:
            table.add_row(name, shown(time), shown(size_), shown(freed), str(number))
        parts += [_part(f"progress chart of {chart.route}"), table, Text()]
    return Group(*parts)


def _part(title: str) -> Text:
    return Text(f" {title}", "bold")


def _table(policies: Mapping[str, Figures], columns: Sequence[Heading]) -> Table:
    """The columns for which any policy has a figure; the best of each is highlighted."""
    there = [column for column in columns
             if any(column.figure in figures for figures in policies.values())]
    table = _plain("policy", *(column.title for column in there))
    best = {c.figure: _best(c, policies) for c in there}
    for name, figures in policies.items():
        table.add_row(name, *(_cell(c, figures, best[c.figure]) for c in there))
    return table


def _plain(first: str, *titles: str) -> Table:
    heads = [Column(f"\n{first}", overflow="fold"),
             *(Column(Text(title), justify="right", no_wrap=True) for title in titles)]
    return Table(*heads, box=None, padding=(0, 1), header_style=_QUIET)


def _best(column: Heading, policies: Mapping[str, Figures]) -> str:
    """The smallest value of a column, as it is shown; empty if the column is not judged."""
    runs = [figures for figures in policies.values() if "answers" in figures]
    values = [figures[column.figure] for figures in runs if column.figure in figures]
    if not column.judged or len(values) < 2 or shown(min(values)) == shown(max(values)):
        return ""
    return shown(min(values))


def _cell(column: Heading, figures: Figures, best: str) -> Text:
    if column.figure not in figures:
        return Text()
    value = figures[column.figure]
    text = size(value) if column.figure == "peak_bytes" else shown(value)
    return Text(text, "bold green" if text == best and "answers" in figures else "")
