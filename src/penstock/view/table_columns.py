"""The columns of the tables: what each shows, and from which width on there is room for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

from rich.progress_bar import ProgressBar
from rich.style import Style
from rich.table import Column, Table
from rich.text import Text

from penstock.events import (
    Histogram,
    OrderMeasures,
    QueryMeasures,
    QueueMeasures,
    StreamMeasures,
    Summary,
)
from penstock.rendering import apart, span
from penstock.view.formats import counted, exact, moment, one_line, seconds, short, size

Row = TypeVar("Row")
_Cell: TypeAlias = Text | ProgressBar | str

STATES = {
    "running": "green",
    "reading": "green",
    "ended": "cyan",
    "done": "cyan",
    "drained": "cyan",
    "dropped": "bright_black",
    "stopped": "yellow",
    "starting": "yellow",
    "retrying": "yellow",
    "failed": "bold red",
    "broken": "bold red",
}
"""The colour of each state."""


@dataclass(frozen=True, slots=True)
class Shown(Generic[Row]):
    """A column."""

    title: str
    cell: Callable[[Summary, Row], _Cell]
    width: int = 0
    """The terminal must be this wide for the column to be shown."""
    fixed: int | None = None
    """The width of the column, whatever it holds: live numbers must not make the table jump."""
    ratio: int | None = None
    """The column takes the remaining width, in this proportion to others that do."""
    right: bool = True
    least: int = 0
    """The least that the column needs of the remaining width."""
    named: Callable[[Row], str] | None = None
    """The name of a row, for a column that must show all of it: others make room for it."""


_NAME = 0.5
"""The part of the terminal that a name may take; a longer one is cut."""
_PADDING = 2


def table(columns: Sequence[Shown[Row]], summary: Summary, rows: Sequence[Row], wide: int) -> Table:
    """A table of those columns that a terminal of this width has room for.

    If names are long, the columns that need the widest terminal make room for them.
    """
    shown = [column for column in columns if column.width <= wide]
    cells = {column.title: [column.cell(summary, row) for row in rows] for column in shown}
    longest = int(_NAME * wide)
    needed = {column.title: _needed(column, cells[column.title], rows, longest)
              for column in shown}
    while sum(needed[column.title] for column in shown) > wide and (
        last := max(column.width for column in shown)
    ):
        shown.remove([column for column in shown if column.width == last][-1])
    drawn = Table(
        *(_drawn(column, needed[column.title] - _PADDING, longest) for column in shown),
        box=None, expand=True, padding=(0, 1), pad_edge=True, header_style="bright_black",
    )  # fmt: skip
    for number in range(len(rows)):
        drawn.add_row(*(cells[column.title][number] for column in shown))
    return drawn


def _needed(
    column: Shown[Row], cells: Sequence[_Cell], rows: Sequence[Row], longest_name: int
) -> int:
    """The characters that a column needs, including the space beside it."""
    if column.fixed is not None:
        return column.fixed + _PADDING
    least = column.least
    if column.named is not None:
        longest = max((len(column.named(row)) for row in rows), default=0)
        least = max(least, len(column.title), min(longest, longest_name))
    elif column.ratio is None:
        longest = max((len(cell) for cell in cells if isinstance(cell, str | Text)), default=0)
        least = max(len(column.title), longest)
    return least + _PADDING


def _drawn(column: Shown[Row], least: int, longest_name: int) -> Column:
    side: Literal["left", "right"] = "right" if column.right else "left"
    return Column(
        column.title, width=column.fixed, ratio=column.ratio, justify=side, no_wrap=True,
        min_width=None if column.named is None else least, overflow="ellipsis",
        max_width=None if column.named is None else max(least, longest_name),
    )  # fmt: skip


# --- streams ------------------------------------------------------------------------------------


def _stream_progress(summary: Summary, stream: StreamMeasures) -> Text | ProgressBar:
    done = stream.fraction
    if stream.state == "failed":
        return Text(f"failed: {one_line(stream.reason)}", "bold red")
    if stream.state == "retrying":
        return Text(f"tried again: {one_line(stream.reason)}", "yellow")
    if summary.run.spool_full is not None and stream.state == "reading":
        return Text("waits: the spool is full", "yellow")
    if done is None:
        return Text("endless", "bright_black")
    if stream.state == "ended":
        return Text("ended", STATES["ended"])
    return ProgressBar(total=1.0, completed=done, complete_style=Style(color="green"))


def _percent(summary: Summary, stream: StreamMeasures) -> Text:
    done = stream.fraction
    return Text("" if done is None else f"{done:.0%}")


def _alarming(count: int) -> Text:
    return Text(short(count), "yellow" if count else "bright_black")


STREAMS: tuple[Shown[StreamMeasures], ...] = (
    Shown("stream", lambda _, s: Text(s.name, "bold"), right=False, named=lambda s: s.name),
    Shown("rows/s", lambda summary, s: Text(short(summary.rate(s.name)), "cyan"), fixed=6),
    Shown("read", lambda _, s: short(s.read), fixed=6),
    Shown("late", lambda _, s: _alarming(s.late), width=92, fixed=6),
    Shown("rejected", lambda _, s: _alarming(s.rejected), width=92, fixed=8),
    Shown("files aside", lambda _, s: _alarming(s.files_rejected), width=130, fixed=11),
    Shown("waiting", lambda _, s: counted(len(s.queue.waiting), "block"), fixed=10),
    Shown("rows", lambda _, s: short(s.queue.rows), width=110, fixed=6),
    Shown("bytes", lambda _, s: size(s.queue.bytes), width=76, fixed=8),
    Shown("hot", lambda _, s: size(s.hot_bytes), fixed=8),
    Shown("hot peak", lambda _, s: size(s.hot_peak), width=120, fixed=8),
    Shown("progress", _stream_progress, ratio=4, right=False, least=8),
    Shown("", _percent, fixed=4),
)

STREAM_TOTALS: tuple[Shown[StreamMeasures], ...] = (
    Shown("stream", lambda _, s: Text(s.name, "bold"), right=False),
    Shown("read", lambda _, s: exact(s.read)),
    Shown("kept", lambda _, s: exact(s.kept)),
    Shown("late", lambda _, s: exact(s.late)),
    Shown("rejected", lambda _, s: exact(s.rejected)),
    Shown("files", lambda _, s: exact(s.files), width=100),
    Shown("files aside", lambda _, s: exact(s.files_rejected), width=88),
    Shown("blocks", lambda _, s: exact(s.blocks)),
    Shown("waiting", lambda _, s: exact(len(s.queue.waiting))),
    Shown("queue peak", lambda _, s: size(s.queue_peak), width=100),
    Shown("hot peak", lambda _, s: size(s.hot_peak), width=88),
    Shown("state", lambda _, s: Text(s.state, STATES.get(s.state, "")), right=False),
)

# --- queues -------------------------------------------------------------------------------------

QUEUES: tuple[Shown[QueueMeasures], ...] = (
    Shown("queue", lambda _, q: Text(q.name, "bold"), right=False, named=lambda q: q.name),
    Shown("waiting", lambda _, q: short(q.entries), fixed=7),
    Shown("bytes", lambda _, q: size(q.bytes), fixed=8),
    Shown("hot", lambda _, q: size(q.hot), fixed=8),
    Shown("cold", lambda _, q: size(q.cold), fixed=8),
    Shown("peak", lambda _, q: size(q.peak), fixed=8),
    Shown("", lambda summary, q: _share(summary, q), ratio=4, right=False),
)


def _share(summary: Summary, queue: QueueMeasures) -> ProgressBar:
    """How full it is, relative to the fullest that any queue has been."""
    fullest = max(queue.peak for queue in list(summary.queues.values()))
    return ProgressBar(total=max(fullest, 1), completed=queue.bytes,
                       complete_style=Style(color="cyan"), finished_style=Style(color="cyan"))


# --- conjunctions -------------------------------------------------------------------------------

CONJUNCTIONS: tuple[Shown[OrderMeasures], ...] = (
    Shown("predicates of", lambda _, c: Text(c.name, "bold"), right=False, named=lambda c: c.name),
    Shown("changes", lambda _, c: short(c.changes), fixed=7),
    Shown("a row", lambda _, c: f"{c.after * 1e6:.3g} us", fixed=9),
    Shown("before", lambda _, c: f"{c.before * 1e6:.3g} us", 90, fixed=9),
    Shown("order", lambda _, c: one_line(", ".join(c.order)), ratio=4, right=False, least=16),
)


# --- queries ------------------------------------------------------------------------------------


def _state(_: Summary, query: QueryMeasures) -> Text:
    reason = f": {one_line(query.reason)}" if query.state == "failed" else ""
    return Text(query.state + reason, STATES.get(query.state, ""))


_Of: TypeAlias = Callable[[Summary, QueryMeasures], Histogram]


def _latency(_: Summary, query: QueryMeasures) -> Histogram:
    return query.latency.whole()


def _recent(summary: Summary, query: QueryMeasures) -> Histogram:
    return query.latency.last_minute(summary.run.now)


def _lag(_: Summary, query: QueryMeasures) -> Histogram:
    return query.lag.whole()


def _recent_lag(summary: Summary, query: QueryMeasures) -> Histogram:
    return query.lag.last_minute(summary.run.now)


def _blocks(_: Summary, query: QueryMeasures) -> Histogram:
    return query.block_latency


def _percentile(
    share: float, of: _Of = _latency
) -> Callable[[Summary, QueryMeasures], Text]:
    """A latency; one beyond the latency goal stands out."""
    def cell(summary: Summary, query: QueryMeasures) -> Text:
        return _judged(query, of(summary, query).percentile(share))

    return cell


def _percentile_of_lag(
    share: float, of: _Of = _recent_lag
) -> Callable[[Summary, QueryMeasures], Text]:
    """How old an event is when it is answered; latency goals do not concern it."""
    def cell(summary: Summary, query: QueryMeasures) -> Text:
        return Text(seconds(of(summary, query).percentile(share)))

    return cell


def _longest(_: Summary, query: QueryMeasures) -> Text:
    latency = query.latency.whole()
    return _judged(query, latency.maximum if latency.weight else None)


def _judged(query: QueryMeasures, value: float | None) -> Text:
    """A latency; one beyond the goal stands out."""
    goal = query.latency_goal
    missed = value is not None and goal is not None and value > goal
    return Text(seconds(value), "yellow" if missed else "")


def _missed(
    count: Callable[[QueryMeasures], int], shown: Callable[[int], str] = short
) -> Callable[[Summary, QueryMeasures], Text]:
    """What was delivered later than the latency goal; empty if there is no goal."""
    def cell(_: Summary, query: QueryMeasures) -> Text:
        if query.latency_goal is None:
            return Text("-", "bright_black")
        return Text(shown(count(query)), "yellow" if count(query) else "bright_black")

    return cell


def _delivered(summary: Summary, query: QueryMeasures) -> Text:
    if query.last_delivery is None:
        return Text("-", "bright_black")
    since = summary.run.now - query.last_delivery
    return Text("now" if since < 1 else f"{seconds(since)} ago")


def _into(_: Summary, query: QueryMeasures) -> Text:
    """The kinds of its sinks, without their folders."""
    return Text(", ".join(sink.partition(" ")[0] for sink in query.sinks), "bright_black")


QUERIES: tuple[Shown[QueryMeasures], ...] = (
    Shown("query", lambda _, q: Text(q.name, "bold"), right=False, named=lambda q: q.name),
    Shown("in", lambda _, q: short(q.rows_in), fixed=6),
    Shown("out", lambda _, q: Text(short(q.rows_out), "cyan"), fixed=6),
    Shown("rejected", lambda _, q: _alarming(q.rejected), width=124, fixed=8),
    Shown("p50", _percentile(0.5), fixed=7),
    Shown("p99", _percentile(0.99), fixed=7),
    Shown("max", _longest, width=112, fixed=7),
    Shown("p50·1m", _percentile(0.5, _recent), width=78, fixed=7),
    Shown("p99·1m", _percentile(0.99, _recent), width=90, fixed=7),
    Shown("lag·1m", _percentile_of_lag(0.5), width=76, fixed=7),
    Shown("missed", _missed(lambda q: q.missed_rows), width=76, fixed=6),
    Shown("in blocks", _missed(lambda q: q.missed_blocks), width=160, fixed=9),
    Shown("block p50", _percentile(0.5, _blocks), width=170, fixed=9),
    Shown("block p99", _percentile(0.99, _blocks), width=170, fixed=9),
    Shown("goal", lambda _, q: seconds(q.latency_goal), width=150, fixed=7),
    Shown("delivered", _delivered, width=132, fixed=11),
    Shown("into", _into, width=118, fixed=8, right=False),
    Shown("state", _state, ratio=3, right=False, least=7),
)

QUERY_TOTALS: tuple[Shown[QueryMeasures], ...] = (
    Shown("query", lambda _, q: Text(q.name, "bold"), right=False),
    Shown("in", lambda _, q: exact(q.rows_in)),
    Shown("added", lambda _, q: exact(q.added), width=110),
    Shown("out", lambda _, q: Text(exact(q.rows_out), "cyan")),
    Shown("filtered", lambda _, q: exact(q.filtered), width=88),
    Shown("rejected", lambda _, q: exact(q.rejected)),
    Shown("p50", _percentile(0.5)),
    Shown("p99", _percentile(0.99)),
    Shown("max", _longest, width=88),
    Shown("lag p50", _percentile_of_lag(0.5, _lag), width=116),
    Shown("lag p99", _percentile_of_lag(0.99, _lag), width=116),
    Shown("goal", lambda _, q: seconds(q.latency_goal), width=110),
    Shown("missed", _missed(lambda q: q.missed_rows, exact)),
    Shown("in blocks", _missed(lambda q: q.missed_blocks, exact), width=120),
    Shown("block p50", _percentile(0.5, _blocks), width=150),
    Shown("block p99", _percentile(0.99, _blocks), width=150),
    Shown("state", lambda _, q: Text(q.state, STATES.get(q.state, "")), right=False),
)

# --- window joins -------------------------------------------------------------------------------


def _apart(_: Summary, query: QueryMeasures) -> str:
    return apart(*query.join, rows=query.join_rows) if query.join else "-"


def _whole_second(_: Summary, query: QueryMeasures) -> str:
    """Up to which second a query has all pairs: the time of a row often has microseconds."""
    end = query.last_end
    return moment(None if end is None else end // 1_000_000 * 1_000_000, date=False)


def _probes(summary: Summary, query: QueryMeasures) -> str:
    """The orders of probes that have changed: whose rows look where first.

    >>> from penstock.events import ProbesReordered, Summary
    >>> summary = Summary.of([ProbesReordered(
    ...     at=1.0, join="a*b*c@1", stream="a", order=("c", "b"), reason="", before=2.0,
    ...     after=1.0)])
    >>> _probes(summary, QueryMeasures("q", joined_by="a*b*c@1"))
    'a: c, b'
    """
    told = summary.probes.get(query.joined_by, {})
    return "; ".join(f"{stream}: {', '.join(known.order)}" for stream, known in told.items()) or "-"


JOINS: tuple[Shown[QueryMeasures], ...] = (
    Shown("join", lambda _, q: Text(q.name, "bold"), right=False, named=lambda q: q.name),
    Shown("window", _apart, least=7),
    Shown("in", lambda _, q: short(q.rows_in), width=92, fixed=6),
    Shown("late", lambda _, q: _alarming(q.late), width=118, fixed=6),
    Shown("pairs", lambda _, q: Text(short(q.rows_out), "cyan"), fixed=6),
    Shown("rejected", lambda _, q: _alarming(q.rejected), width=140, fixed=8),
    Shown("pairs until", _whole_second, width=76, fixed=11),
    Shown("p50", _percentile(0.5), fixed=7),
    Shown("p99", _percentile(0.99), fixed=7),
    Shown("p99·1m", _percentile(0.99, _recent), width=104, fixed=7),
    Shown("max", _longest, width=112, fixed=7),
    Shown("lag·1m", _percentile_of_lag(0.5), width=90, fixed=7),
    Shown("missed", _missed(lambda q: q.missed_rows), width=150, fixed=6),
    Shown("delivered", _delivered, width=160, fixed=11),
    Shown("into", _into, width=126, fixed=8, right=False),
    Shown("probes", _probes, width=180, ratio=1, right=False, least=7),
    Shown("state", _state, ratio=3, right=False, least=7),
)

JOIN_TOTALS: tuple[Shown[QueryMeasures], ...] = (
    Shown("join", lambda _, q: Text(q.name, "bold"), right=False),
    Shown("window", _apart),
    Shown("in", lambda _, q: exact(q.rows_in)),
    Shown("added", lambda _, q: exact(q.added), width=126),
    Shown("filtered", lambda _, q: exact(q.filtered), width=126),
    Shown("late", lambda _, q: exact(q.late)),
    Shown("rejected", lambda _, q: exact(q.rejected), width=110),
    Shown("pairs", lambda _, q: Text(exact(q.rows_out), "cyan")),
    Shown("pairs until", lambda _, q: moment(q.last_end), width=88),
    Shown("p50", _percentile(0.5)),
    Shown("p99", _percentile(0.99)),
    Shown("max", _longest, width=88),
    Shown("lag p50", _percentile_of_lag(0.5, _lag), width=116),
    Shown("lag p99", _percentile_of_lag(0.99, _lag), width=126),
    Shown("goal", lambda _, q: seconds(q.latency_goal), width=150),
    Shown("missed", _missed(lambda q: q.missed_rows, exact), width=150),
    Shown("probes", _probes, width=170, right=False),
    Shown("state", lambda _, q: Text(q.state, STATES.get(q.state, "")), right=False),
)

# --- window aggregates --------------------------------------------------------------------------


def _length(_: Summary, query: QueryMeasures) -> str:
    if query.gap:
        return "session"
    return span(query.window[0]) if query.window else "-"


def _slide(_: Summary, query: QueryMeasures) -> str:
    return span(query.window[1]) if query.window else "-"


WINDOWS: tuple[Shown[QueryMeasures], ...] = (
    Shown("aggregate", lambda _, q: Text(q.name, "bold"), right=False, named=lambda q: q.name),
    Shown("window", _length, fixed=7),
    Shown("slide", _slide, fixed=7),
    Shown("in", lambda _, q: short(q.rows_in), width=118, fixed=6),
    Shown("late", lambda _, q: _alarming(q.late), width=140, fixed=6),
    Shown("windows", lambda _, q: short(q.answers), fixed=7),
    Shown("skipped", lambda _, q: _alarming(q.skipped), width=92, fixed=7),
    Shown("out", lambda _, q: Text(short(q.rows_out), "cyan"), fixed=6),
    Shown("last end", lambda _, q: moment(q.last_end, date=False), width=76, fixed=10),
    Shown("p50", _percentile(0.5), width=108, fixed=7),
    Shown("p99", _percentile(0.99), fixed=7),
    Shown("p99·1m", _percentile(0.99, _recent), width=104, fixed=7),
    Shown("max", _longest, width=132, fixed=7),
    Shown("lag·1m", _percentile_of_lag(0.5), width=90, fixed=7),
    Shown("missed", _missed(lambda q: q.missed_rows), width=150, fixed=6),
    Shown("delivered", _delivered, width=160, fixed=11),
    Shown("into", _into, width=126, fixed=8, right=False),
    Shown("state", _state, ratio=3, right=False, least=7),
)

WINDOW_TOTALS: tuple[Shown[QueryMeasures], ...] = (
    Shown("aggregate", lambda _, q: Text(q.name, "bold"), right=False),
    Shown("window", _length),
    Shown("slide", _slide),
    Shown("in", lambda _, q: exact(q.rows_in), width=88),
    Shown("filtered", lambda _, q: exact(q.filtered), width=110),
    Shown("late", lambda _, q: exact(q.late)),
    Shown("rejected", lambda _, q: exact(q.rejected), width=110),
    Shown("windows", lambda _, q: exact(q.answers)),
    Shown("skipped", lambda _, q: Text(exact(q.skipped), "yellow" if q.skipped else "")),
    Shown("out", lambda _, q: Text(exact(q.rows_out), "cyan")),
    Shown("last window ends", lambda _, q: moment(q.last_end), width=88),
    Shown("p50", _percentile(0.5), width=88),
    Shown("p99", _percentile(0.99)),
    Shown("max", _longest, width=110),
    Shown("lag p50", _percentile_of_lag(0.5, _lag), width=126),
    Shown("lag p99", _percentile_of_lag(0.99, _lag), width=126),
    Shown("goal", lambda _, q: seconds(q.latency_goal), width=150),
    Shown("missed", _missed(lambda q: q.missed_rows, exact), width=150),
    Shown("state", lambda _, q: Text(q.state, STATES.get(q.state, "")), right=False),
)
