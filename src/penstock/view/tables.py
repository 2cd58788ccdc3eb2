"""A summary as tables: the picture of a live run, and the account of one that has ended."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from penstock.events import Histogram, QueryMeasures, QueueMeasures, Summary, Warned
from penstock.view.formats import clock, counted, harmless, seconds, size
from penstock.view.table_columns import (
    CONJUNCTIONS,
    JOIN_TOTALS,
    JOINS,
    QUERIES,
    QUERY_TOTALS,
    QUEUES,
    STATES,
    STREAM_TOTALS,
    STREAMS,
    WINDOW_TOTALS,
    WINDOWS,
    Shown,
    table,
)

_QUIET = "bright_black"
_MOST_REASONS = 20
_ROOM_FOR_TABLE = 4
"""With at least so many lines for each, every kind of query has a table of its own."""
_FEWEST = 2
"""A table has at least so many lines, if it has that many queries."""
_FRAME = 7
"""Lines of a picture besides streams and queries: header, footer, rules and titles."""


class Picture:
    """A run as it is now, drawn to fit the terminal it is drawn on."""

    def __init__(self, summary: Summary, title: str, hint: str = "Ctrl-C stops") -> None:
        """``title`` names the application, ``hint`` says what the reader can do."""
        self.summary, self.title, self.hint = summary, title, hint

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Header, streams, the fullest queues, as many queries as there is room for, footer."""
        wide = options.max_width
        # The cursor's line is the last one: to write there would scroll the screen.
        tall = max(10, (options.height or console.size.height) - 1)
        streams = list(self.summary.streams.values())
        if not streams:  # nothing is known before Spark has started
            yield self._header(wide)
            return
        shown = streams[: max(1, (tall - _FRAME) // 3)]
        yield self._header(wide)
        yield _rule()
        yield table(STREAMS, self.summary, shown, wide)
        if len(streams) > len(shown):
            yield _more(len(streams) - len(shown), "stream")
        yield _rule()
        room = tall - len(shown) - (len(streams) > len(shown)) - _FRAME
        queues = fullest(list(self.summary.queues.values()), room // 3 - 2)
        if queues:
            yield table(QUEUES, self.summary, queues, wide)
            yield _rule()
            room -= len(queues) + 2
        if orders := list(self.summary.conjunctions.values())[:max(0, room // 4 - 2)]:
            yield table(CONJUNCTIONS, self.summary, orders, wide)
            yield _rule()
            room -= len(orders) + 2
        yield from _queries(self.summary, wide, room)
        yield _rule()
        yield _footer(self.summary, self.hint, wide)

    def _header(self, wide: int) -> Table:
        run = self.summary.run
        left = Text(" penstock  ", "bold cyan", no_wrap=True, overflow="ellipsis")
        left.append(self.title, "bold default")
        waits = self.summary.waits_for()
        left.append(f"  {waits or run.state}", STATES["starting" if waits else run.state])
        right = Text(no_wrap=True)
        if run.cores and wide >= 60:
            told = ", ".join([*_policies(self.summary, wide), counted(run.cores, "core")])
            right.append(f"{told}  ", _QUIET)
        right.append(f"{clock(run.seconds_open)} ", "bold")
        return _sides(left, right)


def _policies(summary: Summary, wide: int) -> Iterator[str]:
    """The policies that have something to decide, as far as there is room."""
    policies = dict(summary.run.policies)
    aggregates = wide >= 76 and any(query.window for query in list(summary.queries.values()))
    if not aggregates:
        policies.pop("refresh", None)
    if not any(query.join for query in list(summary.queries.values())):
        policies.pop("joins", None)
    if not summary.conjunctions and not summary.probes:
        policies.pop("filters", None)
    yield from policies.values()


def _queries(summary: Summary, wide: int, room: int) -> Iterator[RenderableType]:
    """A table for each kind of query, as far as there is room."""
    tables = [(columns, queries) for columns, queries in zip(
        (QUERIES, JOINS, WINDOWS), parted(list(summary.queries.values())), strict=True) if queries]
    if not tables or (len(tables) > 1 and room < _ROOM_FOR_TABLE * len(tables)):
        everything = [query for _, queries in tables for query in queries]
        yield from _part(QUERIES, summary, everything, wide, room)
        return
    room -= 2 * (len(tables) - 1)  # a rule and another line of titles
    lines = shares([len(queries) for _, queries in tables], room)
    for number, ((columns, queries), share) in enumerate(zip(tables, lines, strict=True)):
        if number:
            yield _rule()
        yield from _part(columns, summary, queries, wide, share)


def shares(lengths: Sequence[int], room: int) -> list[int]:
    """The lines that tables of these lengths get: a few each, and the others by their lengths.

    >>> shares([12, 3, 6], 30), shares([12, 3, 6], 12)
    ([12, 3, 6], [7, 2, 3])
    """
    given = [min(length, _FEWEST) for length in lengths]
    while sum(given) < min(room, sum(lengths)):
        open_ones = [n for n, length in enumerate(lengths) if given[n] < length]
        given[min(open_ones, key=lambda n: given[n] / lengths[n])] += 1
    return given


def _part(
    columns: Sequence[Shown[QueryMeasures]], summary: Summary, queries: Sequence[QueryMeasures],
    wide: int, room: int,
) -> Iterator[RenderableType]:
    """As many queries as there is room for, and the number of those left out."""
    shown = queries if len(queries) <= room else busiest(queries, max(1, room - 1))
    yield table(columns, summary, shown, wide)
    if len(queries) > len(shown):
        yield _more(len(queries) - len(shown), "query")


def parted(
    queries: Sequence[QueryMeasures],
) -> tuple[list[QueryMeasures], list[QueryMeasures], list[QueryMeasures]]:
    """Those that answer row by row, the window joins, and the window aggregates."""
    windows = [query for query in queries if query.window is not None]
    others = [query for query in queries if query.window is None]
    return ([query for query in others if query.join is None],
            [query for query in others if query.join is not None], windows)


def busiest(queries: Sequence[QueryMeasures], count: int) -> list[QueryMeasures]:
    """The queries to show if there is no room for all: failed ones, then the most productive."""
    return sorted(queries, key=lambda query: (query.state != "failed", -query.rows_out))[:count]


def fullest(queues: Sequence[QueueMeasures], count: int) -> list[QueueMeasures]:
    """The queues in which the most bytes have waited, in the order in which they appeared.

    A single queue shows no more than the line of its stream.
    """
    if len(queues) < 2:
        return []
    chosen = sorted(queues, key=lambda queue: -queue.peak)[: max(0, count)]
    return [queue for queue in queues if queue in chosen]


def _footer(summary: Summary, hint: str, wide: int) -> Table:
    run, queries = summary.run, list(summary.queries.values())
    failed = sum(query.state == "failed" for query in queries)
    missed, _ = summary.missed()
    left = Text(f" {counted(len(queries), 'query')}", no_wrap=True, overflow="ellipsis")
    if failed:
        left.append(f", {failed} failed", "bold red")
    if missed:
        left.append(f" · {counted(missed, 'block')} late", "yellow")
    if skipped := summary.run.skipped:
        left.append(f" · {counted(skipped, 'answer')} skipped", "yellow")
    left.append(f" · {counted(run.jobs, 'job')}", _QUIET)
    if run.refreshes:
        left.append(f" · {counted(run.refreshes, 'refresh')}", _QUIET)
    if wide >= 76:
        left.append(f" · running {seconds(run.seconds_running)}", _QUIET)
        left.append(f" · deciding {seconds(run.seconds_deciding)}", _QUIET)
    if run.memory and wide >= 100:
        left.append(f" · hot {size(run.hot_bytes)} of {size(run.memory)}", _QUIET)
    if run.synopses and wide >= 116:
        left.append(f" · synopses {size(run.synopses)}", _QUIET)
    if run.driver_peak and wide >= 116:
        left.append(f" · driver {size(run.driver_peak + run.jvm_peak)}", _QUIET)
    # Room for the ^C that a terminal echoes: if it wrapped, the picture could not be wiped.
    return _sides(left, Text(hint, _QUIET, no_wrap=True), wide - 4)


def _sides(left: Text, right: Text, wide: int | None = None) -> Table:
    line = Table.grid(expand=True)
    line.width = wide
    line.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    line.add_column(justify="right", no_wrap=True)
    line.add_row(left, right)
    return line


def _rule() -> Rule:
    return Rule(style=_QUIET, characters="─")


def _more(count: int, thing: str) -> Text:
    # "12 more" reads as "and 12 more queries": the noun stands in the table's first column.
    noun = counted(count, thing).partition(" ")[2]
    return Text(f" … and {count:,} more {noun}", "italic bright_black", no_wrap=True)


# --- the account of a run -----------------------------------------------------------------------


class RunTotals:
    """The account of a run, with the verdict on its books."""

    def __init__(
        self, summary: Summary, most: int | None = None, told: Collection[str] = ()
    ) -> None:
        """Show at most ``most`` queries: the failed and the busiest.

        ``told`` are lines about failures and warnings that the reader has already seen.
        """
        self.summary, self.most, self.told = summary, most, told

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The run, its streams, its queries, the verdict."""
        summary, wide = self.summary, options.max_width
        yield _run_line(summary)
        yield Text()
        yield table(STREAM_TOTALS, summary, list(summary.streams.values()), wide)
        yield Text()
        yield from self._queries(wide)
        yield from _orders(summary)
        yield Text()
        yield from _failures(summary, self.told)
        yield verdict(summary.accounting())

    def _queries(self, wide: int) -> Iterator[RenderableType]:
        queries = list(self.summary.queries.values())
        most = self.most if self.most is not None else len(queries)
        shown = queries if len(queries) <= most else busiest(queries, most)
        tables = [(columns, some) for columns, some in zip(
            (QUERY_TOTALS, JOIN_TOTALS, WINDOW_TOTALS), parted(shown), strict=True) if some]
        for number, (columns, some) in enumerate(tables or [(QUERY_TOTALS, [])]):
            if number:
                yield Text()
            yield table(columns, self.summary, some, wide)
        hidden = len(queries) - len(shown) + self.summary.forgotten
        if hidden:
            yield _more(hidden, "query")


def _orders(summary: Summary) -> Iterator[RenderableType]:
    """The conjunctions and probes whose order has changed, with the reason in full."""
    changed = [(one, one.name, "evaluates") for one in list(summary.conjunctions.values())]
    changed += [(one, f"{one.name} in {join}", "probes")
                for join, known in list(summary.probes.items()) for one in list(known.values())]
    for one, name, does in changed[:_MOST_REASONS]:
        line = Text.assemble((harmless(name), "bold"))
        line.append(f" {does} {harmless(', '.join(one.order))} in this order")
        line.append(f" since {seconds(one.changed - summary.run.started)}")
        line.append(f" ({counted(one.changes, 'change')}): {harmless(one.reason)}", _QUIET)
        yield Text()
        yield _indented(line)
    if own := summary.profiling.partitions:
        yield Text()
        yield _indented(Text(f"{counted(own, 'partition')} of jobs went on in orders of their own"))


def _run_line(summary: Summary) -> RenderableType:
    run, latency = summary.run, summary.latency()
    line = Text.assemble((run.state, STATES.get(run.state, "bold")))
    line.append(f" after {seconds(run.seconds)}: {counted(run.finished, 'job')}")
    if run.failed:
        line.append(f" ({run.failed} more failed)", "bold red")
    if run.refreshes:
        line.append(f", {counted(run.refreshes, 'refresh')} by {run.policies.get('refresh', '')}")
    line.append(f", {counted(run.jobs, 'Spark job')}, {seconds(run.seconds_running)} running, ")
    line.append(f"{seconds(run.seconds_deciding)} deciding")
    if latency.weight:
        line.append(f"; first answer after {seconds(run.seconds_to_answer)}")
        line.append(f"; from arrival to answer {_percentiles(latency)}, ")
        line.append(f"{seconds(latency.maximum)} (max) by rows, ")
        line.append(f"{_percentiles(summary.latency_of_blocks())} by blocks")
    if (lag := summary.lag()).weight:
        line.append(f"; from event to answer {_percentiles(lag)}")
    line.append(_missed(summary) + _skipped(summary), "yellow")
    if run.waiting_peak:
        line.append(f"; {size(run.waiting_peak)} waiting at most, {size(run.hot_peak)} hot")
    if run.driver_peak:
        line.append(f"; driver {size(run.driver_peak)} at most")
        line.append(f", JVM {size(run.jvm_peak)}" if run.jvm_peak else "")
        line.append(f", synopses {size(run.synopses_peak)}" if run.synopses_peak else "")
    if run.waited:
        line.append(f"; streams waited {seconds(run.waited)} for room in the spool", "yellow")
    if run.reason:  # why each query failed has a line of its own
        reason = run.reason.partition(" (")[0] if run.state == "failed" else run.reason
        colour = "bold red" if run.state in ("failed", "broken") else ""
        line.append(f"\n{harmless(reason)}", colour)
    return _indented(line)


def _percentiles(latency: Histogram) -> str:
    return f"{seconds(latency.percentile(0.5))} (p50), {seconds(latency.percentile(0.99))} (p99)"


def _missed(summary: Summary) -> str:
    """What missed its latency goal, in words."""
    blocks, rows = summary.missed()
    late = sum(query.missed_blocks > 0 for query in list(summary.queries.values()))
    if not blocks:
        return ""
    return (f"; later than the latency goal: {counted(blocks, 'block')} of {counted(rows, 'row')}, "
            f"for {counted(late, 'query')}")


def _skipped(summary: Summary) -> str:
    """What was skipped because the machine was late, in words."""
    count = summary.run.skipped
    late = sum(query.skipped > 0 for query in list(summary.queries.values()))
    if not count:
        return ""
    return (f"; the machine was late and skipped {counted(count, 'answer')} of "
            f"{counted(late, 'query')}")


def _failures(summary: Summary, told: Collection[str]) -> Iterator[RenderableType]:
    """Reasons in full: the table has room only for their beginning."""
    failed = [line for line in failure_lines(summary) if line not in told]
    for line in failed[:_MOST_REASONS]:
        yield _indented(Text(line, "red"))
    if len(failed) > _MOST_REASONS:
        yield _more(len(failed) - _MOST_REASONS, "failure")
    warnings = [warning_line(warning) for warning in list(summary.warnings)]
    for line in [line for line in warnings if line not in told][-_MOST_REASONS:]:
        yield _indented(Text(line, "yellow"))


def failure_lines(summary: Summary) -> list[str]:
    """A line for each failure; queries that failed with their stream have none of their own."""
    failed = summary.failures()
    streams = {f"{name} failed: {reason}" for name, reason in failed if name.startswith("stream ")}
    return [harmless(f"{name} failed: {reason}") for name, reason in failed
            if reason not in streams]


def warning_line(warning: Warned) -> str:
    """A warning."""
    return harmless(f"{warning.subject}: {warning.text}")


def verdict(faults: Sequence[str]) -> RenderableType:
    """Whether the books balance, in words."""
    if not faults:
        text = "balanced: every row read was kept or rejected, and every block reached every "
        text += "query once or still waits"
        return _indented(Text.assemble("accounting ", (text, "green")))
    head = Text.assemble("accounting ", (counted(len(faults), "fault"), "bold red"))
    return Group(_indented(head), *(_indented(Text(fault, "red"), 3) for fault in faults))


def _indented(text: Text, by: int = 1) -> Padding:
    return Padding(text, (0, 1, 0, by))
