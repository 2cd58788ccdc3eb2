"""Advice on the policy, as text and a table."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from penstock.view.formats import seconds, size
from penstock.whatif.advice import Advice
from penstock.whatif.predictions import PolicyOutcome, alike


def shown(advice: Advice) -> Iterator[RenderableType]:
    """The verdict, a table of the policies, and how far the replay can be trusted."""
    if advice.thin:
        thin = f"the record is too thin to advise: {advice.thin}. A longer run, under load, tells "
        yield Padding(Text(f"{thin}more. What it would say:", "yellow"), (0, 1))
    yield Padding(_verdict(advice), (0, 1))
    yield Text()
    yield _table(advice)
    yield Text()
    off = {name: found.percent for name, found in advice.comparison.closeness().items()}
    told = ", ".join(f"{name} {percent:+.0f} %" for name, percent in off.items()
                     if percent is not None)
    ran = advice.comparison.recording.started.policies["operators"]
    yield Padding(f"the replay of {ran}, which really ran, is off by: {told}", (0, 1))
    for note in advice.comparison.notes:
        yield Padding(Text(note, "yellow"), (0, 1))


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
    family, policy = advice.setting(chosen)
    return Text.assemble(f"SET {family} = '", (policy, "bold green"), "'",
                         f" would have met {asked}: {_told(chosen)}")


def _told(outcome: PolicyOutcome) -> str:
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
