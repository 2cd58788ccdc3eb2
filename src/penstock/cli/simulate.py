"""`penstock simulate`: a described workload under several policies."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from math import inf
from pathlib import Path

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from penstock.cli.arguments import CallFault
from penstock.policies.operators import Route, policies
from penstock.policies.operators.charts import Chart, chart
from penstock.report.figures import REMEDY, Drawing, available, draw, draw_chart
from penstock.report.numbers import shown
from penstock.simulator import fleet
from penstock.simulator.comparison import (
    BOUND,
    Curve,
    Outcome,
    Scatter,
    averaged,
    averaged_queries,
    compare,
    has_bound,
)
from penstock.simulator.description import load
from penstock.simulator.scenario import Scenario
from penstock.view.comparison import Progress as ProgressChart
from penstock.view.comparison import by_query, progress, side_by_side
from penstock.view.formats import counted

_WORTH_A_FLEET = 300_000
"""Operator invocations, roughly, below which starting processes takes longer than it saves."""
_MOST_CHARTS = 8


def simulate(arguments: Namespace, console: Console) -> int:
    """Run the simulations, show what came of them, draw them."""
    first = load(arguments.workload)
    chosen = tuple(policies(arguments.policies)) if arguments.policies else first.policies
    if not chosen:
        raise CallFault("--policies names no policy")
    seeds = range(first.workload.seed + 1, first.workload.seed + arguments.seeds)
    scenarios = [first, *(load(arguments.workload, seed) for seed in seeds)]
    runs = compare(scenarios, chosen, _scatter(arguments, scenarios, len(chosen)))
    total = (len(chosen) + has_bound(first)) * len(scenarios)
    outcomes = list(_followed(runs, total))
    if arguments.json:
        print(json.dumps(as_json(first, outcomes), indent=2))
    else:
        for part in _shown(first, outcomes, arguments.charts):
            console.print(part)
    if not arguments.no_figures:
        out = arguments.out or Path("out") / "simulate" / arguments.workload.stem
        try:
            _draw(first, outcomes, out, Console(stderr=True, highlight=False))
        except OSError as error:
            raise CallFault(f"no figures in {out}: {error.strerror}") from error
    return 0


# --- running ---------------------------------------------------------------------------------


def _scatter(arguments: Namespace, scenarios: Sequence[Scenario], policies: int) -> Scatter:
    if arguments.spark or arguments.master:
        from penstock.spark.fleet import scatter

        return partial(scatter, master=arguments.master)
    processes = arguments.processes
    if processes is None and policies * sum(map(_steps, scenarios)) < _WORTH_A_FLEET:
        processes = 1
    return partial(fleet.scatter, processes=processes)


def _steps(scenario: Scenario) -> int:
    """How many operators have to be run on how many blocks."""
    workload = scenario.workload
    return sum(len(workload.times(r.id)) * len(r.stages) for r in workload.network.routes)


def _followed(runs: Iterable[Outcome], total: int) -> Iterator[Outcome]:
    """The runs as they come, with a bar on a terminal's standard error."""
    out = Console(stderr=True)
    bar = Progress(
        TextColumn(" simulating"), BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.description}", style="bright_black"),
        console=out, transient=True, disable=not out.is_terminal)
    with bar:
        task = bar.add_task("", total=total)
        for run in runs:
            bar.update(task, advance=1, description=run.policy)
            yield run


# --- showing ---------------------------------------------------------------------------------


def _shown(
    scenario: Scenario, outcomes: Sequence[Outcome], charts: bool
) -> Iterator[RenderableType]:
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
    """The progress charts as policies are told of them, of the first few routes, per block."""
    workload = scenario.workload
    found = []
    for route in workload.network.told()[:_MOST_CHARTS]:
        known, rows = chart(route), workload.entering(route.id)[0]
        found.append((route, Chart(tuple(time * rows for time in known.times), known.sizes)))
    return found


def _progress(route: Route, known: Chart) -> ProgressChart:
    """A chart in numbers; what a segment frees is in rows, as a policy's gamma is."""
    rates, ends = chart(route).slopes, known.envelope
    lines = []
    for i, stage in enumerate(route.stages, 1):
        segment = next(number for number, end in enumerate(ends[1:]) if i <= end)
        lines.append((stage.operator, known.times[i], known.sizes[i], rates[segment], segment + 1))
    return ProgressChart(route.id, tuple(lines))


def as_json(scenario: Scenario, outcomes: Sequence[Outcome]) -> dict[str, object]:
    """Everything as data: the averages, and each run with its seed."""
    runs = [{"policy": each.policy, "seed": each.seed, **each.figures, "queries": each.queries}
            for each in outcomes]
    return {
        "workload": scenario.workload.name,
        "unit": scenario.unit,
        "overhead": asdict(scenario.overhead),
        "policies": averaged(outcomes),
        "queries": averaged_queries(outcomes),
        "runs": runs,
    }


# --- drawing ---------------------------------------------------------------------------------


def _draw(scenario: Scenario, outcomes: Sequence[Outcome], out: Path, notes: Console) -> None:
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
    """What the query was promised, as a line; with several, nobody could tell whose it is."""
    queries = list(scenario.routes_of)
    promised = scenario.promised(queries[0])
    return ((promised, "promised"),) if len(queries) == 1 and promised < inf else ()


def _told_apart(curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """Curves that lie on each other become one, with all their names.

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
