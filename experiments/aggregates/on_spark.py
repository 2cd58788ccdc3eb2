"""The same workload for real: a live engine on Spark, asked for more than this machine can do.

A pane is a fifth of a second and windows are 4 to 20 seconds, so that a run is short. Every group
is one synopsis (its queries have a condition of their own) of the frequencies of one derived
column, of which a window holds some hundred thousand distinct values: an answer is dear enough that
240 queries overload two cores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.aggregates.figures import LATENCY, THROUGHPUT, Telling
from experiments.aggregates.queries import GROUPS, LONGEST, SHORTEST
from experiments.aggregates.runs import AS, CS, H_LP, HS, NO_S, SHORT
from harness.program import Progress
from penstock import Engine
from penstock.events.kinds import Event, JobDecided, JobFinished, RefreshWork, ScanWork
from penstock.report.figures import Drawing

PANE = 0.2
RATE = 8_000
VALUES = 200_000
WARM_UP = 25.0
"""Seconds until the longest window is full and the JVM is warm."""
SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A standing query: window and slide in panes."""

    name: str
    group: int
    window: int
    slide: int

    @property
    def text(self) -> str:
        """As SQL: every other query of a group asks for the top ten, the others for a quantile."""
        hashed = f"MOD(XXHASH64(ts, src, {self.group}), {VALUES})"
        even = int(self.name.rsplit("_", 1)[1]) % 2 == 0
        answer = f"TOPK({hashed}, 10)" if even else f"PERCENTILE({hashed}, 0.9)"
        window = f"WINDOW {round(self.window * PANE * 1000)} ms SLIDE "
        return (f"CREATE QUERY {self.name} INTO noop AS SELECT {answer} FROM packets "
                f"[{window} {round(self.slide * PANE * 1000)} ms] WHERE length > {self.group};")


@dataclass(frozen=True, slots=True)
class Measured:
    """What a live run has done after its warm-up."""

    throughput: float
    latency: float
    """Panes more than asked between two answers, the mean over the queries."""


def drawn(queries: int, seed: int) -> list[Asked]:
    """Random windows and slides, as the paper draws them."""
    random = np.random.default_rng([seed, queries])
    asked = []
    for number in range(queries):
        window = int(random.integers(SHORTEST, LONGEST + 1))
        slide = int(random.integers(1, window // 2 + 1))
        asked.append(Asked(f"q_{number}", number % len(GROUPS), window, slide))
    return asked


def measured(asked: Sequence[Asked], events: Iterable[Event], since: float) -> Measured:
    """Answers per second, and how many panes too many lay between two answers of a query."""
    ends: dict[int, tuple[ScanWork, ...]] = {}
    answered: dict[str, list[int]] = {one.name: [] for one in asked}
    last, count = since, 0
    for event in events:
        if isinstance(event, JobDecided) and isinstance(event.work, RefreshWork):
            ends[event.job] = event.work.scans
        elif isinstance(event, JobFinished) and event.job in ends and event.at >= since:
            last = max(last, event.at)
            for scan in ends[event.job]:
                for query in scan.queries:
                    answered[query].append(scan.end)
                    count += 1
    late = [np.mean([max(0, b - a - one.slide) for a, b in zip(found, found[1:], strict=False)])
            for one in asked if len(found := answered[one.name]) > 1]
    return Measured(count / max(last - since, 1e-9), float(np.mean(late)) if late else float("nan"))


def run(policy: str, asked: Sequence[Asked]) -> Measured:
    """Run the queries live under a policy."""
    events: list[Event] = []
    with Engine(on_event=events.append) as engine:
        engine.execute(
            "CREATE STREAM packets (ts TIMESTAMP, src INT, length INT) FROM onoff "
            f"OPTIONS (rate = {RATE}, burst = 1) TIME ts;"
            f"SET refresh = '{policy}'; SET synopses = '4 GB'; SET trigger = '500 ms';"
            + "".join(one.text for one in asked))
        engine.start()
        engine.wait(WARM_UP)
        began = max((event.at for event in events), default=0.0)
        engine.wait(SECONDS)
        engine.stop()
    return measured(asked, list(events), began)


def tell(telling: Telling, queries: Sequence[int], progress: Progress, seed: int = 0) -> None:
    """Run every policy at every size, draw the figures and hold the claims against them."""
    found: dict[tuple[str, int], Measured] = {}
    for size in queries:
        for name in SHORT:
            progress(f"live on Spark: {size} queries, {name}")
            found[name, size] = run(name, drawn(size, seed))
    for id, what, get in (("spark-throughput", THROUGHPUT, "throughput"),
                          ("spark-latency", LATENCY, "latency")):
        lines = {name: ([float(size) for size in queries],
                        [getattr(found[name, size], get) for size in queries]) for name in SHORT}
        telling.figure(id, Drawing(f"On Spark: {what}", "queries", what), lines,
                       f"One live run of {SECONDS:g} s for each point.", ())
        for size in queries:
            telling.report.rows.append({
                "figure": id, "at": f"on Spark, queries {size}", "what": what,
                **{SHORT[name]: round(getattr(found[name, size], get), 2) for name in SHORT}})
    _claims(telling, found, max(queries))


def _claims(telling: Telling, found: dict[tuple[str, int], Measured], most: int) -> None:
    at = {name: found[name, most] for name in SHORT}
    best = max(at[name].throughput for name in SHORT if name != AS)
    telling.check(
        "spark-lp", f"On Spark, {most} queries: H-LP answers most (AS aside)",
        "at least 0.95 of the best", f"{at[H_LP].throughput / best:.2f}",
        at[H_LP].throughput >= 0.95 * best)
    telling.check(
        "spark-hs", f"On Spark, {most} queries: HS over CS in throughput", "at least 2",
        f"{at[HS].throughput / at[CS].throughput:.2f}",
        at[HS].throughput >= 2 * at[CS].throughput)
    telling.check(
        "spark-no-s", f"On Spark, {most} queries: No-S is the latest", "largest latency",
        f"{at[NO_S].latency:.1f} panes, others at most "
        f"{max(at[name].latency for name in SHORT if name != NO_S):.1f}",
        at[NO_S].latency >= max(at[name].latency for name in SHORT))
