"""The same groups for real: a live engine on Spark, asked for more than this machine can do.

A pane is a fifth of a second and windows are 4 to 20 seconds, so that a run is short. The fields of
a packet are drawn evenly, as in the paper. This machine is faster than the paper's, so there are
`SCALE` times as many packets in a pane and values in a field. Every group is one synopsis of the
frequencies of its field or pair of fields; a condition that every packet meets keeps groups apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.aggregates.queries import GROUPS, LONGEST, RATE, SHORTEST, VALUES
from experiments.aggregates.runs import AS, CS, H_LP, HS, NO_S, SHORT
from experiments.telling import ReportOfRuns
from harness.findings import Report
from harness.program import Progress
from penstock import Engine
from penstock.events.kinds import Event, JobDecided, JobFinished, RefreshWork, ScanWork
from penstock.policies.refresh import WindowQuery
from penstock.simulator.refreshes import Refreshed

PANE = 0.2
SCALE = 10
SEEDS = 3
WARM_UP = 25.0
"""Seconds until the longest window is full and the JVM is warm."""
SECONDS = 30.0
FIELDS = {field: f"ABS(MOD(XXHASH64(ts, src, dst, {number}), {SCALE * values}))"
          for number, (field, values) in enumerate(VALUES.items())}
"""SQL for a field of a packet, drawn evenly from as many values as it has."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A continuous query: window and slide in panes."""

    name: str
    group: int
    window: int
    slide: int

    @property
    def text(self) -> str:
        """As SQL: every other query of a group asks for the top ten, the others for a quantile."""
        even = int(self.name.rsplit("_", 1)[1]) // len(GROUPS) % 2 == 0
        answer = f"TOPK({self.key}, 10)" if even else f"PERCENTILE({self.key}, 0.9)"
        window = f"WINDOW {round(self.window * PANE * 1000)} ms SLIDE "
        return (f"CREATE QUERY {self.name} INTO noop AS SELECT {answer} FROM packets "
                f"[{window} {round(self.slide * PANE * 1000)} ms] WHERE length > {self.group};")

    @property
    def key(self) -> str:
        """The field of its group, or a number for each pair of fields."""
        first, *second = GROUPS[self.group]
        return " + ".join([FIELDS[first], *(
            f"{SCALE * VALUES[first]} * {FIELDS[field]}" for field in second)])


@dataclass(frozen=True, slots=True)
class Measured:
    """What a live run has done after its warm-up."""

    throughput: float
    latency: float
    """Panes more than asked between two answers, the mean over the queries."""
    starved: int
    """Queries that were answered less than twice."""


def drawn(queries: int, seed: int) -> list[Asked]:
    """Random windows and slides, as the paper draws them."""
    random = np.random.default_rng([seed, queries])
    asked = []
    for number in range(queries):
        window = int(random.integers(SHORTEST, LONGEST + 1))
        slide = int(random.integers(1, window // 2 + 1))
        asked.append(Asked(f"q_{number}", number % len(GROUPS), window, slide))
    return asked


def measured(
    asked: Sequence[Asked], events: Iterable[Event], since: float, seconds: float
) -> Measured:
    """Answers per second, and how late they were; by the rule of the simulation.

    So a query that still waits at the end counts with what it has waited, also if it was never
    answered. Panes close by the clock. They are counted from the newest that had an answer when
    the warm-up was over; if none had, from the one that closed then, as the freshest answer tells.
    """
    ends: dict[int, tuple[ScanWork, ...]] = {}
    done: list[tuple[float, ScanWork]] = []
    for event in events:
        if isinstance(event, JobDecided) and isinstance(event.work, RefreshWork):
            ends[event.job] = event.work.scans
        elif isinstance(event, JobFinished):
            done += [(event.at, scan) for scan in ends.get(event.job, ())]
    early = [scan.end for at, scan in done if at < since]
    fresh = [scan.end - round((at - since) / PANE) for at, scan in done]
    first = max(early or fresh, default=0)
    found = Refreshed(seconds, round(seconds / PANE), {
        one.name: WindowQuery(one.name, one.window, one.slide) for one in asked})
    for at, scan in done:
        for query in scan.queries if since <= at <= since + seconds else ():
            found.ends.setdefault(query, []).append(scan.end - first)
    starved = sum(len(found.ends.get(one.name, ())) < 2 for one in asked)
    return Measured(found.throughput, found.latency, starved)


def run(policy: str, asked: Sequence[Asked]) -> Measured:
    """Run the queries live under a policy."""
    events: list[Event] = []
    with Engine(on_event=events.append) as engine:
        engine.execute(
            "CREATE STREAM packets (ts TIMESTAMP, src INT, dst INT, length INT) FROM onoff "
            f"OPTIONS (rate = {RATE * SCALE}, burst = 1) TIME ts;"
            f"SET refresh = '{policy}'; SET synopses = '4 GB'; SET trigger = '500 ms';"
            + "".join(one.text for one in asked))
        engine.start()
        engine.wait(WARM_UP)
        began = max((event.at for event in events), default=0.0)
        engine.wait(SECONDS)
        engine.stop()
    return measured(asked, list(events), began, SECONDS)


def measured_live(queries: int, seeds: int, out: Path, progress: Progress) -> Report:
    """Run every policy with so many queries, and hold the claims against what was measured."""
    report = Report(f"aggregates-spark-{queries}", title="Refreshing window aggregates on Spark",
                    about=[__doc__ or ""])
    telling = ReportOfRuns(report, None, out)
    found: dict[str, list[Measured]] = {}
    for seed in range(seeds):
        for name in SHORT:
            progress(f"live on Spark: {queries} queries, seed {seed}, {name}")
            found.setdefault(name, []).append(run(name, drawn(queries, seed)))
    report.rows += [_row(name, runs) for name, runs in found.items()]
    _claims(telling, found, queries)
    return report


def _row(policy: str, runs: Sequence[Measured]) -> dict[str, Any]:
    """The mean of some runs, and where they lie."""
    shown: dict[str, Any] = {"policy": SHORT[policy]}
    for what, get in (("answers/s", "throughput"), ("panes late", "latency")):
        values = [getattr(one, get) for one in runs]
        shown |= {what: float(np.mean(values)), f"{what} least": min(values),
                  f"{what} most": max(values)}
    return {**shown, "answered less than twice": _mean(runs, "starved"), "runs": len(runs)}


def _mean(runs: Sequence[Measured], what: str) -> float:
    return float(np.mean([getattr(one, what) for one in runs]))


def _claims(telling: ReportOfRuns[None], at: dict[str, list[Measured]], most: int) -> None:
    """What the paper says, seed by seed: a claim holds if it does for every one."""
    leads = [_ratio(at, H_LP, name, "throughput") for name in SHORT if name not in (AS, H_LP)]
    telling.check(
        "spark-lp", f"On Spark, {most} queries: H-LP answers most (AS aside)",
        "more than every other, for every seed",
        f"{np.min(leads):.2f} to {np.max(leads):.2f} times", bool(np.min(leads) > 1))
    more = _ratio(at, HS, CS, "throughput")
    telling.check(
        "spark-hs", f"On Spark, {most} queries: HS at least doubles CS's throughput",
        "2 times or more, for every seed", f"{min(more):.2f} to {max(more):.2f} times",
        min(more) >= 2)
    worst = [max(at[name][seed].latency for name in SHORT if name != NO_S)
             for seed in range(len(at[NO_S]))]
    telling.check(
        "spark-no-s", f"On Spark, {most} queries: No-S is the latest",
        "later than every other, for every seed",
        f"{_mean(at[NO_S], 'latency'):.1f} panes, the latest other {np.mean(worst):.1f}",
        all(one.latency > other for one, other in zip(at[NO_S], worst, strict=True)))


def _ratio(at: dict[str, list[Measured]], over: str, under: str, what: str) -> list[float]:
    return [getattr(one, what) / max(getattr(other, what), 1e-9)
            for one, other in zip(at[over], at[under], strict=True)]
