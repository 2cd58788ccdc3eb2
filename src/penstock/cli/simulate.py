"""`penstock simulate`: a described workload under several policies."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.shared import FIGURES, CallFault, console, count

if TYPE_CHECKING:
    from penstock.simulator.comparison import Scatter, SimulationOutcome
    from penstock.simulator.scenario import Scenario

_WORTH_A_FLEET = 300_000
"""Below about this many operator invocations, starting processes takes longer than it saves."""

HELP = "compare policies on a described workload"
ABOUT = "Run a described workload under several policies, in virtual time."
EXAMPLES = """\
The file describes queries by the costs and selectivities of their operators,
and what arrives; docs/reference/simulator.md has every key. Needs neither Spark
nor Java, except with --spark.

examples:
  penstock simulate workload.toml                             every policy there is
  penstock simulate workload.toml --policies 'chain, fifo, mixed(gamma=0.01)'
  penstock simulate workload.toml --seeds 20 --processes 8    means over 20 seeds
  penstock simulate workload.toml --json --no-figures | python3 -m json.tool
"""


def add(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("workload", type=Path, metavar="workload.toml", help="a description")
    parser.add_argument("--policies", metavar="LIST",
                        help="policies, separated by commas (default: the file's, or all)")
    parser.add_argument("--seeds", type=count, default=1, metavar="N",
                        help="run with this many seeds and show the means (default: 1)")
    parser.add_argument("--out", type=Path, metavar="DIR",
                        help="where figures go (default: penstock-figures/simulate/NAME)")
    parser.add_argument("--no-figures", action="store_true", help="draw none")
    parser.add_argument("--charts", action="store_true",
                        help="print the progress charts and their segments too")
    parser.add_argument("--json", action="store_true", help="all figures as JSON")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--processes", type=count, metavar="N",
                       help="simulations at a time (default: one per core, if it is worth it)")
    where.add_argument("--spark", action="store_true", help="spread the simulations with Spark")
    parser.add_argument("--master", metavar="URL", help="the Spark master; implies --spark")


def run(arguments: Namespace) -> int:
    """Run the simulations, show their results, and draw them."""
    from rich.console import Console

    from penstock.policies.operators import policies
    from penstock.simulator.comparison import compare, has_bound
    from penstock.simulator.description import load
    from penstock.view.simulations import draw_outcomes, followed, shown_outcomes

    first = load(arguments.workload)
    chosen = tuple(policies(arguments.policies)) if arguments.policies else first.policies
    if not chosen:
        raise CallFault("--policies names no policy")
    seeds = range(first.workload.seed + 1, first.workload.seed + arguments.seeds)
    scenarios = [first, *(load(arguments.workload, seed) for seed in seeds)]
    runs = compare(scenarios, chosen, _scatter(arguments, scenarios, len(chosen)))
    total = (len(chosen) + has_bound(first)) * len(scenarios)
    outcomes = list(followed(runs, total))
    if arguments.json:
        print(json.dumps(_data(first, outcomes), indent=2))
    else:
        for part in shown_outcomes(first, outcomes, arguments.charts):
            console().print(part)
    if not arguments.no_figures:
        out = arguments.out or FIGURES / "simulate" / arguments.workload.stem
        try:
            draw_outcomes(first, outcomes, out, Console(stderr=True, highlight=False))
        except OSError as error:
            raise CallFault(f"no figures in {out}: {error.strerror}") from error
    return 0


def _scatter(arguments: Namespace, scenarios: Sequence[Scenario], policies: int) -> Scatter:
    from penstock.simulator import fleet

    if arguments.spark or arguments.master:
        from penstock.spark.fleet import scatter

        return partial(scatter, master=arguments.master)
    processes = arguments.processes
    if processes is None and policies * sum(map(_steps, scenarios)) < _WORTH_A_FLEET:
        processes = 1
    return partial(fleet.scatter, processes=processes)


def _steps(scenario: Scenario) -> int:
    """The number of operator invocations: each operator runs on each of its blocks."""
    workload = scenario.workload
    return sum(len(workload.times(r.id)) * len(r.stages) for r in workload.network.routes)


def _data(scenario: Scenario, outcomes: Sequence[SimulationOutcome]) -> dict[str, object]:
    """Everything as data: the averages, and each run with its seed."""
    from penstock.simulator.comparison import averaged, averaged_queries

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
