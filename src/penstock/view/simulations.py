"""A described workload under several policies: tables and figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar
from rich.text import Text

from penstock.policies.operators import Route
from penstock.policies.operators.model.charts import Chart, chart
from penstock.report.figures import REMEDY, Drawing, available, draw, draw_chart
from penstock.report.numbers import shown
from penstock.simulator.comparison import (
    BOUND,
    Curve,
    SimulationOutcome,
    averaged,
    averaged_queries,
)
from penstock.simulator.scenario import Scenario
from penstock.view.comparison import ProgressChart, by_query, progress, side_by_side
from penstock.view.formats import counted

_MOST_CHARTS = 8


def followed(runs: Iterable[SimulationOutcome], total: int) -> Iterator[SimulationOutcome]:
    """The runs as they finish, with a progress bar if standard error is a terminal."""
    out = Console(stderr=True)
    bar = ProgressBar(
        TextColumn(" simulating"), BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.description}", style="bright_black"),
        console=out, transient=True, disable=not out.is_terminal)
    with bar:
        task = bar.add_task("", total=total)
        for run in runs:
            bar.update(task, advance=1, description=run.policy)
            yield run


def shown_outcomes(
    scenario: Scenario, outcomes: Sequence[SimulationOutcome], charts: bool
) -> Iterator[RenderableType]:
    """What was simulated, the policies side by side, and each query by itself."""
    yield _heading(scenario, len({each.seed for each in outcomes}))
    yield Text()
    if charts:
        yield progress([_progress(route, known) for route, known in _charts(scenario)],
                       scenario.unit)
    yield side_by_side(averaged(outcomes), scenario.unit)
    yield Text()
    if len(scenario.routes_of) > 1:
        yield by_query(averaged_queries(outcomes), scenario.unit)


def _heading(scenario: Scenario, seeds: int) -> Text:
    """What was simulated, in two lines."""
    workload, unit = scenario.workload, scenario.unit
    routes = workload.network.routes
    times = [workload.times(route.id) for route in routes]
    span = max(each[-1] for each in times) - min(each[0] for each in times)
    work = sum(float(workload.entering(route.id).sum()) * route.cost for route in routes)
    text = Text(f" {workload.name}", "bold")
    text.append(f"  {counted(len(scenario.routes_of), 'query')}, "
                f"{counted(len(workload.network.operators), 'operator')}, {workload.model}, ",
                "bright_black")
    text.append("seed " + str(workload.seed) if seeds == 1 else
                f"means of {seeds} seeds from {workload.seed} on", "bright_black")
    text.append(f"\n {counted(sum(map(len, times)), 'block')} within {shown(span)} {unit}"
                f" bring {shown(work)} {unit} of work", "bright_black")
    return text


def _charts(scenario: Scenario) -> list[tuple[Route, Chart]]:
    """The progress charts that policies get, of the first few routes, per block."""
    workload = scenario.workload
    found = []
    for route in workload.network.told()[:_MOST_CHARTS]:
        known, rows = chart(route), workload.entering(route.id)[0]
        found.append((route, Chart(tuple(time * rows for time in known.times), known.sizes)))
    return found


def _progress(route: Route, known: Chart) -> ProgressChart:
    """A chart in numbers; a segment's release is in rows, as a policy's gamma is."""
    rates, ends = chart(route).slopes, known.envelope
    lines = []
    for i, stage in enumerate(route.stages, 1):
        segment = next(number for number, end in enumerate(ends[1:]) if i <= end)
        lines.append((stage.operator, known.times[i], known.sizes[i], rates[segment], segment + 1))
    return ProgressChart(route.id, tuple(lines))


# --- drawing ---------------------------------------------------------------------------------


def draw_outcomes(
    scenario: Scenario, outcomes: Sequence[SimulationOutcome], out: Path, notes: Console
) -> None:
    """Memory and latency over time with the first seed, and the progress charts."""
    if not available():
        message = f"penstock: no figures: they need matplotlib, {REMEDY}"
        notes.print(message, markup=False, soft_wrap=True)
        return
    runs = [each for each in outcomes if each.seed == scenario.workload.seed]
    unit, name = scenario.unit, scenario.workload.name
    memory = Drawing(f"{name}: waiting memory", f"time [{unit}]", "rows", steps=True)
    latency = Drawing(f"{name}: latency of answers", f"time of output [{unit}]",
                      f"latency [{unit}]", lines=_promise(scenario))
    draw(out / "memory.png", memory, _told_apart({each.policy: each.memory for each in runs}))
    draw(out / "latency.png", latency, _told_apart(
        {each.policy: each.latency for each in runs if each.policy != BOUND}))
    charts = _charts(scenario)
    for route, known in charts:
        points = list(zip(known.times, known.sizes, strict=True))
        draw_chart(out / f"chart-{_file_name(route.id)}.png",
                   f"{route.id}: a block over time [{unit}]", points, known.envelope)
    notes.print(f" figures in {out}: memory.png, latency.png"
                f" and {counted(len(charts), 'progress chart')}", soft_wrap=True)


def _promise(scenario: Scenario) -> tuple[tuple[float, str], ...]:
    """The latency goal as a line; with several goals, one could not tell whose it is."""
    queries = list(scenario.routes_of)
    promised = scenario.promised(queries[0])
    return ((promised, "promised"),) if len(queries) == 1 and promised < inf else ()


def _told_apart(curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """Merge curves that lie on each other, under all their names.

    >>> _told_apart({"fifo": ([0], [1]), "edf": ([0], [1]), "chain": ([0], [0])})
    {'fifo, edf': ([0], [1]), 'chain': ([0], [0])}
    """
    names: dict[tuple[tuple[float, ...], tuple[float, ...]], list[str]] = {}
    for name, (x, y) in curves.items():
        names.setdefault((tuple(x), tuple(y)), []).append(name)
    return {_few(same): (list(x), list(y)) for (x, y), same in names.items()}


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _file_name(route: str) -> str:
    """A route as part of a file's name.

    >>> _file_name("a/b c")
    'a-b-c'
    """
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in route)
