"""`penstock whatif`: a recorded run beside what it would have been under other policies."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.shared import FIGURES, CallFault, add_record, console

if TYPE_CHECKING:
    from penstock.whatif.predictions import Comparison, PolicyOutcome

HELP = "replay a recorded run under other policies"
ABOUT = "Show what a recorded run would have been under other policies."
EXAMPLES = """\
RUN is a checkpoint folder (its newest run), the folder of one run, or an
events.jsonl. Blocks arrive as they were recorded, jobs cost what the record
says of them, and the engine decides again. Needs neither Spark nor Java.
Latencies of window aggregates are left out: their answers are not replayed.

examples:
  penstock whatif state                                       every policy there is
  penstock whatif state --policies 'chain, edf, chain_flush(latency=2)'
  penstock whatif state --joins 'lwo, mqt'                    of window joins
  penstock whatif state --filters 'a_greedy, sweep'           of Python predicates
  penstock whatif state --json --no-figures | python3 -m json.tool
"""


def add(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    add_record(parser)
    parser.add_argument("--policies", metavar="LIST",
                        help="policies, separated by commas (default: all)")
    parser.add_argument("--joins", metavar="LIST",
                        help="policies of window joins, tried if there are some (default: all)")
    parser.add_argument("--filters", metavar="LIST",
                        help="policies that order predicates, tried where some were profiled "
                             "(default: all)")
    parser.add_argument("--out", type=Path, metavar="DIR",
                        help="where the figure goes (default: penstock-figures/whatif/RUN)")
    parser.add_argument("--no-figures", action="store_true", help="draw none")
    parser.add_argument("--json", action="store_true", help="all figures as JSON")


def run(arguments: Namespace) -> int:
    """Replay, show and draw."""
    from rich.console import Console

    from penstock.events import find_record, read_events
    from penstock.policies import FAMILIES, filters, joins
    from penstock.policies.operators import POLICIES, policies
    from penstock.view.predictions import draw, shown
    from penstock.whatif.predictions import compare

    chosen = policies(arguments.policies or ",".join(POLICIES))
    if not chosen:
        raise CallFault("--policies names no policy")
    joining = FAMILIES["joins"].several(arguments.joins or ",".join(joins.POLICIES))
    ordering = FAMILIES["filters"].several(arguments.filters or ",".join(filters.POLICIES))
    record = find_record(arguments.run)
    comparison = compare(read_events(record), chosen, joining, ordering)
    if arguments.json:
        print(json.dumps(_report(comparison), indent=2))
    else:
        for part in shown(comparison):
            console().print(part)
    if not arguments.no_figures:
        out = arguments.out or FIGURES / "whatif" / _name(record)
        draw(comparison, out / "waiting.png", Console(stderr=True, highlight=False))
    return 0


def _name(record: Path) -> str:
    """The name of the run that a record belongs to.

    >>> _name(Path("state/runs/20250101T000000.000000Z/events.jsonl"))
    '20250101T000000.000000Z'
    >>> _name(Path("yesterday.jsonl"))
    'yesterday'
    """
    return record.resolve().parent.name if record.name == "events.jsonl" else record.stem


def _report(comparison: Comparison) -> dict[str, Any]:
    """Everything as data, except the curves."""
    recording = comparison.recording
    return {
        "state": comparison.state,
        "seconds": comparison.seconds,
        "operators": recording.started.policies["operators"],
        "costs": {path: {"runs": model.runs, **asdict(model.cost),
                         "stages": [asdict(stage) for stage in model.stages]}
                  for path, model in recording.paths.items()},
        "join_costs": {join: {"runs": model.runs, **asdict(model.cost)}
                       for join, model in recording.joins.items()},
        "recorded": _data(comparison.recorded),
        "policies": {outcome.policy: _data(outcome) for outcome in comparison.simulated},
        "conjunctions": {
            one.path: {"rows": one.rows, "policies": {
                found.policy: {"seconds": found.seconds, "profiling": found.profiling,
                               "changes": found.changes} for found in one.outcomes}}
            for one in comparison.conjunctions},
        "closeness": {figure.replace(" ", "_"): {**asdict(found), "percent": found.percent}
                      for figure, found in comparison.closeness().items()},
        "without_latencies": list(comparison.windows),
        "notes": list(comparison.notes),
    }


def _data(outcome: PolicyOutcome) -> dict[str, Any]:
    return {
        "peak_bytes": outcome.peak_bytes,
        "peak_blocks": outcome.peak_blocks,
        "latency": outcome.latency and asdict(outcome.latency),
        "queries": {query: found and asdict(found) for query, found in outcome.queries.items()},
        "runs": outcome.runs,
        "seconds_running": outcome.busy,
    }
