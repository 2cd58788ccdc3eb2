"""A recorded run beside what it would have been under other policies, for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from penstock.policies.operators import POLICIES
from penstock.report.figures import REMEDY, Drawing, available, draw_panels
from penstock.view.formats import counted, seconds, size
from penstock.whatif.predictions import Closeness, Comparison, Latency, PolicyOutcome, alike
from penstock.whatif.tried_orders import AS_WRITTEN, BEST, ConjunctionOutcomes

_QUIET = "bright_black"
_MOST_QUERIES = 12
"""At most this many queries, or groups of queries that fared alike, are shown one by one."""
_FIGURES: Mapping[str, Callable[[float], str]] = {
    "peak waiting": size, "mean latency": seconds, "seconds running": seconds}

_LONGEST = max(map(len, POLICIES))

Row = tuple[str, PolicyOutcome]


def shown(comparison: Comparison) -> Iterator[RenderableType]:
    """The recorded run beside every policy, what jobs cost, and how close the replay is."""
    rows = [("recorded", comparison.recorded), *alike(comparison.simulated)]
    yield _heading(comparison)
    yield Text()
    yield _policies(rows)
    yield Text()
    yield from _queries(rows)
    yield _part("what jobs cost, from the decision to the answers")
    if comparison.recording.paths:
        yield _costs(comparison)
    if comparison.recording.joins:
        yield _join_costs(comparison)
    yield Text()
    for one in comparison.conjunctions:
        based = counted(one.rows, "profiled row")
        yield _part(f"what the predicates of {one.path} cost, by {based}")
        yield _orders(one)
        yield Text()
    ran = comparison.simulated[0].policy
    yield _part(f"how close the simulation is: {ran}, which really ran")
    yield _close(comparison.closeness())
    yield Text()
    for note in comparison.notes:
        yield Padding(Text(note, "yellow"), (0, 1))


def _heading(comparison: Comparison) -> RenderableType:
    started = comparison.recording.started
    text = Text.assemble(
        (started.policies["operators"], "bold"), f", {comparison.state} after ",
        seconds(comparison.seconds), f": {counted(comparison.recorded.runs, 'job')}, ",
        counted(len(comparison.recorded.queries) + len(comparison.windows), "query"))
    return Padding(text, (0, 1))


def _policies(rows: Sequence[Row]) -> Table:
    table = _table("\npolicy", "peak\nwaiting", "\nblocks", "mean\nlatency", "\np50", "\np99",
                   "\nmax", "\njobs")
    best_peak = min(outcome.peak_bytes for _, outcome in rows[1:])
    best_mean = min((o.latency.mean for _, o in rows[1:] if o.latency), default=0.0)
    for name, outcome in rows:
        judged = name != "recorded"
        peak = "bold green" if judged and outcome.peak_bytes == best_peak else ""
        mean = outcome.latency and outcome.latency.mean == best_mean
        latency = _latency(outcome.latency, "bold green" if judged and mean else "")
        table.add_row(name, Text(size(outcome.peak_bytes), peak), f"{outcome.peak_blocks:,}",
                      *latency, f"{outcome.runs:,}")
    return table


def _queries(rows: Sequence[Row]) -> Iterator[RenderableType]:
    """Latencies per query; queries that fared alike under every policy share a table."""
    groups: dict[tuple[Latency | None, ...], list[str]] = {}
    for query in rows[0][1].queries:
        fared = tuple(outcome.queries.get(query) for _, outcome in rows)
        groups.setdefault(fared, []).append(query)
    for fared, queries in list(groups.items())[:_MOST_QUERIES]:
        yield _part(f"latency of {_listed(queries)}")
        table = _table("policy", "mean", "p50", "p99", "max")
        for (name, _), latency in zip(rows, fared, strict=True):
            table.add_row(name, *_latency(latency))
        yield table
        yield Text()
    hidden = sum(map(len, list(groups.values())[_MOST_QUERIES:]))
    if hidden:
        yield Text(f" … and {counted(hidden, 'more query')}, all of them with --json\n", _QUIET)


def _listed(queries: Sequence[str], most: int = 5) -> str:
    """As many names as can be read.

    >>> _listed(["a", "b", "c"]), _listed(["a", "b", "c"], most=2)
    ('a, b, c', 'a, b and 1 more')
    """
    more = len(queries) - most
    return ", ".join(queries[:most]) + (f" and {more} more" if more > 0 else "")


def _latency(latency: Latency | None, style: str = "") -> list[Text]:
    if latency is None:
        return [Text("-")] * 4
    rest = latency.p50, latency.p99, latency.max
    return [Text(seconds(latency.mean), style), *(Text(seconds(value)) for value in rest)]


def _costs(comparison: Comparison) -> Table:
    table = _table("\npath", "\njobs", "\nper job", "per\n1,000 rows", "\ncold jobs",
                   "\ndeviation")
    for path, model in comparison.recording.paths.items():
        cost = model.cost
        cold = f"{len(cost.cold)}: +{seconds(sum(cost.cold))}" if cost.cold else ""
        work, _ = model.through(0, len(model.stages), 1000.0)
        table.add_row(path, f"{model.runs:,}", seconds(cost.fixed),
                      seconds(work * cost.per_row), cold, f"{cost.error:.0%}")
    return table


def _join_costs(comparison: Comparison) -> Table:
    table = _table("\nwindow join", "\nprobes", "\nper probe", "per million\nrows x s",
                   "\ncold probes", "\ndeviation")
    for join, model in comparison.recording.joins.items():
        cost = model.cost
        cold = f"{len(cost.cold)}: +{seconds(sum(cost.cold))}" if cost.cold else ""
        table.add_row(join, f"{model.runs:,}", seconds(cost.fixed), seconds(1e6 * cost.per_row),
                      cold, f"{cost.error:.0%}")
    return table


def _orders(conjunction: ConjunctionOutcomes) -> Table:
    table = _table("filters policy", "a million rows", "profiling", "changes")
    for one in conjunction.outcomes:
        is_policy = one.policy not in (AS_WRITTEN, BEST)
        table.add_row(one.policy, seconds(1e6 * one.seconds), *(
            (seconds(1e6 * one.profiling), f"{one.changes:,}") if is_policy else ("", "")))
    return table


def _close(closeness: Mapping[str, Closeness]) -> Table:
    table = _table("figure", "recorded", "simulated", "off by")
    for figure, found in closeness.items():
        form = _FIGURES[figure]
        off = "-" if found.percent is None else f"{round(found.percent, 1) + 0.0:+.1f} %"
        table.add_row(figure, form(found.recorded), form(found.simulated), off)
    return table


def _part(title: str) -> Text:
    return Text(f" {title}", "bold")


def _table(first: str, *others: str) -> Table:
    heads = [Column(first, overflow="fold", min_width=_LONGEST),
             *(Column(title, justify="right", no_wrap=True) for title in others)]
    return Table(*heads, box=None, padding=(0, 1), header_style=_QUIET)


# --- drawing ---------------------------------------------------------------------------------


def draw(comparison: Comparison, file: Path, notes: Console) -> None:
    """The waiting bytes over time, as they were and as they would have been."""
    if not available():
        message = f"penstock: no figure: it needs matplotlib, {REMEDY}"
        notes.print(message, markup=False, soft_wrap=True)
        return
    rows = [("recorded", comparison.recorded), *alike(comparison.simulated)]
    unit, name = _unit(max(outcome.peak_bytes for _, outcome in rows))
    drawing = Drawing("bytes of blocks that some query waits for", "seconds since the beginning",
                      name, steps=True)
    behind, *series = ((label, (outcome.times, [level / unit for level in outcome.waiting]))
                       for label, outcome in rows)
    draw_panels(file, drawing, behind, dict(series))
    notes.print(f" figure: {file}", soft_wrap=True)


def _unit(most: int) -> tuple[int, str]:
    """The unit in which this many bytes are easiest to read.

    >>> _unit(5_000), _unit(5_000_000)
    ((1024, 'KB'), (1048576, 'MB'))
    """
    return (2**30, "GB") if most >= 2**30 else (2**20, "MB") if most >= 2**20 else (1024, "KB")
