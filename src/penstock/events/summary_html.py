"""A summary in a notebook: what became of each stream and query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.html_tables import html_lines, html_table

if TYPE_CHECKING:
    from penstock.events.summary import Summary


def summary_html(summary: Summary) -> str:
    """The run in a line, its streams and queries as tables, and what failed or was warned of."""
    streams = [(s.name, s.state, s.read, s.late, s.rejected, s.reason)
               for s in list(summary.streams.values())]
    queries = [(q.name, q.state, q.rows_in, q.rows_out, q.filtered, q.rejected, q.late,
                _seconds(q.latency.whole().percentile(0.99)), ", ".join(q.sinks), q.reason)
               for q in list(summary.queries.values())]
    return (html_lines(_lines(summary))
            + html_table("streams", ("name", "state", "read", "late", "rejected", "reason"),
                         streams)
            + html_table("queries", ("name", "state", "rows in", "rows out", "filtered", "rejected",
                                     "late", "latency (99 %)", "sink", "reason"), queries))


def _lines(summary: Summary) -> Iterator[str]:
    run = summary.run
    told = f"{run.state}: {run.reason}" if run.reason else run.state
    yield f"{told}, {run.seconds:.1f} s, {run.finished + run.refreshes:,} jobs"
    yield from (f"{name} failed: {reason}" for name, reason in summary.failures())
    yield from (f"{one.subject}: {one.text}" for one in list(summary.warnings))
    yield from (f"the books do not balance: {fault}" for fault in summary.accounting())


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f} s"
