"""Tables and texts as HTML, for notebooks: plain markup that takes the notebook's own style."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from penstock.rendering import visible


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a title; nothing if it has no rows.

    >>> html_table("streams", ["name"], [["a<b"]])
    '<table><caption>streams</caption><tr><th>name</th></tr><tr><td>a&lt;b</td></tr></table>'
    """
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    head = f"<caption>{_text(title)}</caption><tr>{_cells('th', columns)}</tr>"
    return f"<table>{head}{body}</table>" if body else ""


def html_lines(lines: Iterable[str]) -> str:
    """Lines of prose, each a paragraph."""
    return "".join(f"<p>{_text(line)}</p>" for line in lines)


def html_text(text: str) -> str:
    """A text in which every column counts."""
    return f"<pre>{escape(text)}</pre>"


def _cells(tag: str, values: Sequence[object]) -> str:
    return "".join(f"<{tag}>{_text(value)}</{tag}>" for value in values)


def _text(value: object) -> str:
    if value is None:
        return ""
    return escape(visible(f"{value:,}" if isinstance(value, int) else str(value)))
