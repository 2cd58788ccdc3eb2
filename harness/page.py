"""A report as one HTML page that needs no other file: claims beside the figures they speak of."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from harness.findings import Check, Figure, Report
from penstock.report.numbers import shown

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 1240px; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.6em } h2 { font-size: 1.15em; margin: 2em 0 .4em; border-top: 1px solid #ddd; padding-top: 1em }
p { max-width: 60em }
.pair { display: flex; gap: 1.5em; align-items: flex-start; flex-wrap: wrap }
.pair figure { margin: 0; flex: 0 1 640px } .pair img { max-width: 100% } .pair > div { flex: 1 1 440px }
figcaption { color: #555; font-size: .9em }
.claim { border-left: 4px solid; padding: .1em 0 .1em .8em; margin: 0 0 1em; font-size: .92em }
.claim p { margin: .15em 0 } .claim .dim { color: #555 } .claim a { color: inherit }
.claim.yes { border-color: #1b7837 } .claim.no { border-color: #b2182b }
.yes b { color: #1b7837 } .no b { color: #b2182b }
table { border-collapse: collapse; font-size: .88em; margin: .6em 0 } td, th { padding: .2em .7em; border-bottom: 1px solid #e4e4e4; text-align: left; vertical-align: top }
td.n { text-align: right; font-variant-numeric: tabular-nums }
summary { cursor: pointer; color: #555; font-size: .9em }
"""  # noqa: E501


def page(report: Report) -> str:
    """The report as HTML."""
    held = sum(check.holds for check in report.checks)
    ids = {figure.id for figure in report.figures}
    elsewhere = [row for row in report.rows if row.get("figure") not in ids]
    title = escape(report.title or report.name)
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>",
        f"<style>{_STYLE}</style><h1>{title}</h1>",
        *(f"<p>{escape(paragraph)}</p>" for paragraph in report.about),
        f"<h2>Claims: {held} of {len(report.checks)} hold</h2>",
        *(_claim(check, _where(report, check)) for check in report.checks),
        *(_section(report, figure) for figure in report.figures),
        "<h2>Numbers</h2>" if elsewhere else "", _table(elsewhere), "</html>",
    ]
    return "\n".join(part for part in parts if part)


def _section(report: Report, figure: Figure) -> str:
    """A figure, the claims on it, and its numbers."""
    claims = [_claim(check) for check in report.checks if check.id in figure.checks]
    rows = [row for row in report.rows if row.get("figure") == figure.id]
    image = base64.b64encode(figure.file.read_bytes()).decode()
    return "\n".join([
        f"<h2 id='{escape(figure.id)}'>{escape(figure.title)}</h2><div class=pair><figure>",
        f"<img alt='{escape(figure.title)}' src='data:image/png;base64,{image}'>",
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>",
        f"<div>{''.join(claims)}</div></div>",
        f"<details><summary>numbers ({len(rows)})</summary>{_table(rows, {'figure'})}"
        "</details>" if rows else "",
    ])


def _claim(check: Check, where: str = "") -> str:
    kind, verdict = ("yes", "holds") if check.holds else ("no", "does not hold")
    return (
        f"<div class='claim {kind}'><p>{escape(check.text)}: <b>{verdict}</b>{where}"
        f"<p class=dim>expected: {escape(check.target)}"
        f"<p class=dim>measured: {escape(check.measured)}</div>")


def _where(report: Report, check: Check) -> str:
    """Links to the figures that show a claim."""
    links = [f"<a href='#{escape(figure.id)}'>{escape(figure.title.split(':')[0])}</a>"
             for figure in report.figures if check.id in figure.checks]
    return f" ({', '.join(links)})" if links else ""


def _table(rows: Sequence[Mapping[str, Any]], but: Iterable[str] = ()) -> str:
    """Rows as a table, without the columns that are empty throughout."""
    columns = [column for column in dict.fromkeys(column for row in rows for column in row)
               if column not in but and any(row.get(column) is not None for row in rows)]
    if not columns:
        return ""
    head = "".join(f"<th>{escape(column.replace('_', ' '))}" for column in columns)
    body = "".join(f"<tr>{_cells(row, columns)}" for row in rows)
    return f"<table><tr>{head}{body}</table>"


def _cells(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    return "".join(
        f"<td{' class=n' if isinstance(row.get(column), int | float) else ''}>"
        f"{escape(shown(row.get(column)))}" for column in columns)
