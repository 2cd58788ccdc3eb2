"""Showing a run while it goes on: a live picture on a terminal, lines of text elsewhere."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.text import Text

from penstock.events import Summary
from penstock.view.formats import counted, exact, one_line, seconds, short
from penstock.view.tables import Picture, RunTotals, failure_lines, warning_line

QUERIES_IN_THE_END = 40
"""At most this many queries are listed when a run ends; `penstock events` lists them all."""


class Watch(Protocol):
    """Shows a run now and then."""

    def show(self, summary: Summary) -> None:
        """Show the state of the run."""

    def close(self) -> None:
        """Stop showing the run."""

    @property
    def told(self) -> Collection[str]:
        """The warnings and failures that were shown."""


def watch(console: Console, title: str, hint: str = "Ctrl-C stops") -> Watch:
    """The right way to show a run on this console; ``hint`` says what the reader can do."""
    return LiveWatch(console, title, hint) if console.is_terminal else PlainWatch(console)


def show_account(
    console: Console, summary: Summary, most: int | None = QUERIES_IN_THE_END,
    told: Collection[str] = (),
) -> None:
    """Show the account of the run, without the lines that were ``told`` when they happened."""
    console.print(RunTotals(summary, most, told))


class LiveWatch:
    """A picture that is redrawn in place, and removed when the watch ends."""

    def __init__(self, console: Console, title: str, hint: str) -> None:
        """Nothing is drawn before the first `show`."""
        self._title, self._hint, self._news = title, hint, News()
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def show(self, summary: Summary) -> None:
        """Draw the run."""
        if not self._live.is_started:
            self._live.start()
        for line in self._news.since(summary):
            self._live.console.print(Text(line, "yellow"))  # above the picture, and it stays
        self._live.update(Picture(summary, self._title, self._hint), refresh=True)

    def close(self) -> None:
        """Wipe the picture."""
        self._live.stop()

    @property
    def told(self) -> Collection[str]:
        """The lines that stay above the picture."""
        return self._news.told


class PlainWatch:
    """At most one line a second, and none while nothing changes."""

    def __init__(self, console: Console, interval: float = 1.0) -> None:
        """``interval`` is in seconds."""
        self._console, self._interval = console, interval
        self._last, self._next = "", 0.0
        self._news = News()

    def show(self, summary: Summary) -> None:
        """Print failures at once, and the state of the run when it is time."""
        now = summary.run.seconds_open
        for news in self._news.since(summary):
            self._print(now, news)
        line = progress_line(summary)
        if now >= self._next and line != self._last:
            self._print(now, line)
            self._last, self._next = line, now + self._interval

    def close(self) -> None:
        """Nothing is left to wipe."""

    @property
    def told(self) -> Collection[str]:
        """The lines that were printed when they happened."""
        return self._news.told

    def _print(self, now: float, line: str) -> None:
        self._console.print(Text(f"{now:6.1f} s  {line}"), soft_wrap=True)


class News:
    """What has gone wrong since the last call."""

    def __init__(self) -> None:
        """Begin with nothing shown."""
        self.told: set[str] = set()
        self._warned = 0

    def since(self, summary: Summary) -> list[str]:
        """A line for each warning and each failure that was not shown before."""
        fresh = summary.warned - self._warned
        self._warned = summary.warned
        warnings = list(summary.warnings)[-fresh:] if fresh else []
        lines = [warning_line(warning) for warning in warnings]
        lines += [line for line in failure_lines(summary) if line not in self.told]
        self.told.update(lines)
        return [one_line(line) for line in lines]


def progress_line(summary: Summary) -> str:
    """The state of a run in one line.

    >>> from penstock.events import BlockArrived, QueryAdded
    >>> from penstock.model import Block
    >>> progress_line(Summary.of([
    ...     QueryAdded(at=0.0, query="big", inputs=(("packets",),)),
    ...     BlockArrived(at=1.0, block=Block("packets", 0, 100, 4000, 1.0), read=100)]))
    'packets 100 rows (100/s), 1 block waiting; 1 query, 0 rows out'
    """
    waits = summary.waits_for()
    if waits and not any(stream.read for stream in list(summary.streams.values())):
        return waits
    streams = [_stream_words(summary, name) for name in list(summary.streams)[:4]]
    if len(summary.streams) > 4:
        streams.append(f"and {counted(len(summary.streams) - 4, 'more stream')}")
    return "; ".join([*streams, _query_words(summary)])


def _stream_words(summary: Summary, name: str) -> str:
    stream = summary.streams[name]
    words = f"{name} {exact(stream.read)} rows ({short(summary.rate(name))}/s)"
    if stream.fraction is not None:
        words += f" {stream.fraction:.0%}"
    waiting = len(stream.queue.waiting)
    return f"{words}, {counted(waiting, 'block')} waiting" if waiting else words


def _query_words(summary: Summary) -> str:
    queries = list(summary.queries.values())
    words = f"{counted(len(queries), 'query')}, {exact(sum(q.rows_out for q in queries))} rows out"
    late = summary.latency().percentile(0.99)
    if late is not None:
        words += f", p99 {seconds(late)}"
    missed, rows = summary.missed()
    if missed:
        words += f", {counted(missed, 'block')} of {counted(rows, 'row')} late"
    if skipped := summary.run.skipped:
        words += f", {counted(skipped, 'answer')} skipped"
    failed = sum(query.state == "failed" for query in queries)
    return f"{words}, {failed} failed" if failed else words
