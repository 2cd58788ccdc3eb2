"""A report as one HTML page that needs no other file: claims beside the figures they speak of."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from penstock.report.numbers import shown

if TYPE_CHECKING:
    from penstock.report.form import Check, Figure, Report

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 1180px; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.6em } h2 { font-size: 1.15em; margin: 2em 0 .4em; border-top: 1px solid #ddd; padding-top: 1em }
.pair { display: flex; gap: 1.5em; align-items: flex-start; flex-wrap: wrap }
.pair figure { margin: 0; flex: 0 1 620px } .pair img { max-width: 100% } .pair > div { flex: 1 1 380px }
figcaption { color: #555; font-size: .9em }
table { border-collapse: collapse; font-size: .9em } td, th { padding: .25em .7em; border-bottom: 1px solid #e4e4e4; text-align: left; vertical-align: top }
td.n { text-align: right; font-variant-numeric: tabular-nums }
.yes { color: #1b7837; font-weight: 600 } .no { color: #b2182b; font-weight: 600 }
nav a { margin-right: 1em }
"""  # noqa: E501


def page(report: Report) -> str:
    """The report as HTML."""
    held = sum(check.holds for check in report.checks)
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(report.title)}</title>",
        f"<style>{_STYLE}</style><h1>{escape(report.title)}</h1>",
        *(f"<p>{escape(paragraph)}</p>" for paragraph in report.about),
        f"<p>{held} of {len(report.checks)} claims hold.</p>",
        _claims(report.checks),
        *(_section(report, figure) for figure in report.figures),
        "<h2>All figures as numbers</h2>", _table(report.rows), "</html>",
    ]
    return "\n".join(part for part in parts if part)


def _section(report: Report, figure: Figure) -> str:
    checks = [check for check in report.checks if check.id in figure.checks]
    image = base64.b64encode(figure.file.read_bytes()).decode()
    return "\n".join([
        f"<h2 id='{escape(figure.id)}'>{escape(figure.title)}</h2><div class=pair><figure>",
        f"<img alt='{escape(figure.title)}' src='data:image/png;base64,{image}'>",
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>",
        f"<div>{_claims(checks)}</div></div>",
    ])


def _claims(checks: Iterable[Check]) -> str:
    rows = [
        f"<tr><td>{escape(check.text)}<td>{escape(check.target)}<td>{escape(check.measured)}"
        f"<td class={'yes' if check.holds else 'no'}>{'holds' if check.holds else 'does not hold'}"
        for check in checks
    ]
    if not rows:
        return ""
    return f"<table><tr><th>claim<th>expected<th>measured<th>verdict{''.join(rows)}</table>"


def _table(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    head = "".join(f"<th>{escape(column)}" for column in columns)
    body = "".join(f"<tr>{_cells(row, columns)}" for row in rows)
    return f"<table><tr>{head}{body}</table>"


def _cells(row: Mapping[str, Any], columns: list[str]) -> str:
    return "".join(
        f"<td{' class=n' if isinstance(row.get(column), int | float) else ''}>"
        f"{escape(shown(row.get(column)))}" for column in columns)
