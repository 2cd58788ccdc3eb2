"""`penstock advise`: the policy that would have met given limits, with the evidence."""

from __future__ import annotations

import json
from argparse import Namespace
from math import inf

from rich.console import Console
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from penstock.cli.arguments import CallFault
from penstock.events import find_record, read_events
from penstock.language import durations, sizes
from penstock.view.formats import seconds, size
from penstock.whatif.advice import Advice, Limits, advise
from penstock.whatif.predictions import Outcome, alike


def advise_on(arguments: Namespace, console: Console) -> int:
    """Replay, rank, say; status 1 when nothing would have met the limits."""
    limits = _limits(arguments)
    advice = advise(read_events(find_record(arguments.run)), limits)
    if arguments.json:
        print(json.dumps(_data(advice), indent=2))
    else:
        _show(advice, console)
    return 0 if advice.chosen else 1


def _limits(arguments: Namespace) -> Limits:
    if arguments.memory is None and arguments.latency is None:
        raise CallFault("name a limit: --memory '64 MB', --latency '2 seconds', or both")
    try:
        memory = inf if arguments.memory is None else sizes.bytes(arguments.memory)
        latency = inf if arguments.latency is None else durations.seconds(arguments.latency)
    except ValueError as error:
        raise CallFault(str(error)) from error
    if memory <= 0 or latency <= 0:
        raise CallFault("a limit must be positive")
    return Limits(memory, latency)


def _show(advice: Advice, console: Console) -> None:
    console.print(Padding(_verdict(advice), (0, 1)))
    console.print()
    console.print(_table(advice))
    console.print()
    off = {name: found.percent for name, found in advice.comparison.closeness().items()}
    told = ", ".join(f"{name} {percent:+.0f} %" for name, percent in off.items()
                     if percent is not None)
    ran = advice.comparison.recording.started.operators
    console.print(Padding(f"the replay of {ran}, which really ran, is off by: {told}", (0, 1)))
    for note in advice.comparison.notes:
        console.print(Padding(Text(note, "yellow"), (0, 1)))


def _verdict(advice: Advice) -> Text:
    asked = " and ".join(
        [*([f"at most {size(int(advice.limits.memory))} waiting"]
           if advice.limits.memory < inf else []),
         *([f"answers within {seconds(advice.limits.latency)}"]
           if advice.limits.latency < inf else [])])
    chosen = advice.chosen
    if chosen is None:
        nearest = advice.ranked[0]
        return Text.assemble(("no policy", "bold red"), f" would have met {asked}; nearest is ",
                             (nearest.policy, "bold"), f", {_told(nearest)}")
    return Text.assemble("SET operators = '", (chosen.policy, "bold green"), "'",
                         f" would have met {asked}: {_told(chosen)}")


def _told(outcome: Outcome) -> str:
    worst = seconds(outcome.latency.max) if outcome.latency else "no answers"
    return f"{size(outcome.peak_bytes)} waiting at most, largest latency {worst}"


def _table(advice: Advice) -> Table:
    right = {"justify": "right", "no_wrap": True}
    table = Table(Column("policy", overflow="fold"),
                  *(Column(name, **right)  # type: ignore[arg-type]
                    for name in ("peak", "mean latency", "max latency", "runs", "meets")),
                  box=None, padding=(0, 1), header_style="bright_black")
    for names, outcome in alike(advice.ranked):
        latency = outcome.latency
        meets = advice.limits.met_by(outcome)
        table.add_row(
            names, size(outcome.peak_bytes), seconds(latency.mean) if latency else "-",
            seconds(latency.max) if latency else "-", f"{outcome.runs:,}",
            Text("yes", "green") if meets else Text("no", "red"))
    return table


def _data(advice: Advice) -> dict[str, object]:
    chosen = advice.chosen
    return {
        "operators": chosen.policy if chosen else None,
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
