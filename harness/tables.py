"""Findings as tables on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from rich.console import Console
from rich.table import Table

from harness.findings import Report
from penstock.report.numbers import shown


def show(report: Report, console: Console) -> None:
    """Print the rows and the checks as tables."""
    if len(report.rows) == 1:  # a single row reads better as a list
        listed = [{"figure": name, "value": shown(v)} for name, v in report.rows[0].items()]
        console.print(_table(report.name, ["figure", "value"], listed))
    elif report.rows:
        rows = [chosen(report.columns, row) for row in report.rows]
        for columns in _fitting(rows, console.width):
            console.print(_table(report.name, columns, rows))
    table = Table(title="checks", title_justify="left")
    for column in ("check", "target", "measured", "holds"):
        table.add_column(column, overflow="fold")
    for check in report.checks:
        verdict = "[green]yes[/]" if check.holds else "[red]no[/]"
        table.add_row(check.text, check.target, check.measured, verdict)
    console.print(table)


def chosen(columns: Sequence[str], row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a row that a table shows; without any, all of them.

    >>> chosen(("b",), {"a": 1, "b": 2}), chosen((), {"a": 1})
    ({'b': 2}, {'a': 1})
    """
    return {name: row.get(name) for name in columns or row}


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
