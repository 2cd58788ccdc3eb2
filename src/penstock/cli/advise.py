"""`penstock advise`: the policy that would have met given limits, with the evidence."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from math import inf
from typing import TYPE_CHECKING

from penstock.cli.shared import CallFault, add_record, console

if TYPE_CHECKING:
    from penstock.whatif.advice import Advice, AdviceGoals

HELP = "name the policy that would have met given limits"
ABOUT = "Replay a recorded run under all policies and name the best within limits."
EXAMPLES = """\
RUN is a checkpoint folder (its newest run), the folder of one run, or an
events.jsonl. Exit status 1 when no policy would have met the limits.
Latencies of window aggregates do not count: their answers are not replayed.

examples:
  penstock advise state --memory '64 MB' --latency '2 seconds'
  penstock advise state --latency '500 ms' --json
"""


def add(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    add_record(parser)
    parser.add_argument("--memory", metavar="SIZE", help="the most that may wait, such as '64 MB'")
    parser.add_argument("--latency", metavar="TIME",
                        help="the longest time from arrival to delivery, such as '2 seconds'")
    parser.add_argument("--json", action="store_true", help="all figures as JSON")


def run(arguments: Namespace) -> int:
    """Replay, rank and report; the status is 1 if no policy would have met the limits."""
    from penstock.events import find_record, read_events
    from penstock.view.advice import shown
    from penstock.whatif.advice import advise

    advice = advise(read_events(find_record(arguments.run)), _limits(arguments))
    if arguments.json:
        print(json.dumps(_data(advice), indent=2))
    else:
        for part in shown(advice):
            console().print(part)
    return 0 if advice.chosen else 1


def _limits(arguments: Namespace) -> AdviceGoals:
    from penstock.language import durations, sizes
    from penstock.whatif.advice import AdviceGoals

    if arguments.memory is None and arguments.latency is None:
        raise CallFault("name a limit: --memory '64 MB', --latency '2 seconds', or both")
    try:
        memory = inf if arguments.memory is None else sizes.bytes(arguments.memory)
        latency = inf if arguments.latency is None else durations.seconds(arguments.latency)
    except ValueError as error:
        raise CallFault(str(error)) from error
    if memory <= 0 or latency <= 0:
        raise CallFault("a limit must be positive")
    return AdviceGoals(memory, latency)


def _data(advice: Advice) -> dict[str, object]:
    chosen = advice.chosen
    family, policy = advice.setting(chosen) if chosen else ("operators", None)
    return {
        "too_thin": advice.thin or None,
        "operators": policy if family == "operators" else None,
        "joins": policy if family == "joins" else None,
        "candidates": [
            {"policy": outcome.policy, "peak_bytes": outcome.peak_bytes,
             "max_latency": outcome.latency.max if outcome.latency else None,
             "mean_latency": outcome.latency.mean if outcome.latency else None,
             "meets": advice.limits.met_by(outcome)}
            for outcome in advice.ranked],
        "closeness": {name: found.percent
                      for name, found in advice.comparison.closeness().items()},
        "notes": list(advice.comparison.notes),
    }
