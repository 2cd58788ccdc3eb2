"""Figures 5 to 8: throughput and latency at two data rates, and what the paper says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.aggregates.queries import Load
from experiments.aggregates.runs import (
    AS,
    CS,
    H_LP,
    HS,
    NO_S,
    PAPERS,
    SHORT,
    Runs,
    Size,
    Sweep,
)
from experiments.telling import ReportOfRuns
from penstock.report.figures import Drawing
from penstock.simulator.outcomes import Floats

THROUGHPUT, LATENCY = "answers per second", "panes too many between answers"
QUERIES = "queries"
LABELS = SHORT | PAPERS
UNSYNCHRONISED = tuple(name for name in SHORT if name != AS)
LATE = ("lp-throughput", "lp-throughput-but-as", "lp-latency", "lp-latency-but-as")


@dataclass(frozen=True, slots=True)
class Telling(ReportOfRuns[Runs]):
    """What the parts of the experiment read from and write to."""

    def mean(self, sweep: Sweep, name: str, what: str) -> Floats:
        """A figure under a policy, over the parameter of a sweep."""
        return sweep.mean(self.runs, name, what)

    def curves(
        self, id: str, drawing: Drawing, sweep: Sweep, what: str, caption: str,
        checks: Sequence[str] = (),
    ) -> None:
        """A figure with a line for every policy, and its numbers as rows."""
        means = {name: self.mean(sweep, name, what) for name in sweep.policies}
        self.figure(id, drawing, {name: (sweep.x, means[name]) for name in sweep.policies},
                    caption, checks)
        self.rows(id, sweep, what)

    def rows(self, id: str, sweep: Sweep, what: str) -> None:
        """A row of numbers for every point of a sweep."""
        means = {name: self.mean(sweep, name, what) for name in sweep.policies}
        for i, x in enumerate(sweep.x):
            numbers = {LABELS[name]: round(float(means[name][i]), 2) for name in sweep.policies}
            self.report.rows.append({"figure": id, "at": f"{sweep.name} {x:g}", "what": what,
                                     **dict.fromkeys(LABELS.values()), **numbers})


def rate(size: Size, high: bool, ratio: float, factor: float) -> Sweep:
    """More and more queries at one data rate."""
    loads = tuple(Load(queries, high, ratio, factor, size.seconds) for queries in size.queries)
    return Sweep(f"{'high' if high else 'low'} rate, queries", size.queries, loads,
                 tuple(SHORT), size.seeds)


def tell(telling: Telling, low: Sweep, high: Sweep) -> None:
    """Figures and claims."""
    _draw(telling, low, high)
    hybrid(telling, low)
    late(telling, high)
    _extremes(telling, low, high)


def _draw(telling: Telling, low: Sweep, high: Sweep) -> None:
    telling.curves(
        "fig5", Drawing("Fig. 5: throughput at 1500 packets a second", QUERIES, THROUGHPUT,
                        marks=True), low, "throughput",
        "Under overload what counts is how many answers a scan serves. While it is late HS has a "
        "fifth to two fifths of CS's tasks; AS has eight in all.",
        ("hs-doubles", "hs-half", "as-throughput"))
    telling.curves(
        "fig6", Drawing("Fig. 6: latency at 1500 packets a second", QUERIES, LATENCY, marks=True),
        low, "latency",
        "AS is in time here where the paper has it late: a group whose queries all ride in every "
        "run is at most a round of the eight groups late.", ("hs-tenth", "as-latency"))
    telling.curves(
        "fig7", Drawing("Fig. 7: throughput at 3000 packets a second", QUERIES, THROUGHPUT,
                        marks=True), high, "throughput",
        "Twice the packets and twice the values in every field: a scan takes twice as long.",
        ("lp-doubles", *LATE[:2], "worst", "as-drops"))
    telling.curves(
        "fig8", Drawing("Fig. 8: latency at 3000 packets a second", QUERIES, LATENCY, marks=True),
        high, "latency", "CS falls back to No-S: tasks that are late to different degrees never "
        "share.", LATE[2:])


def hybrid(telling: Telling, low: Sweep, id: str = "", given: str = "") -> None:
    """What the paper says of HS at the low rate."""
    more = telling.mean(low, HS, "throughput") / telling.mean(low, CS, "throughput")
    telling.check(f"hs-doubles{id}", f"HS at least doubles CS's throughput at the low rate{given}",
                  "2 times or more, the mean over the numbers of queries",
                  f"{more.mean():.2f} ({each(low, more)})", bool(more.mean() >= 2))
    less = _ratio(telling.mean(low, CS, "latency"), telling.mean(low, HS, "latency"))
    telling.check(f"hs-tenth{id}",
                  f"HS cuts CS's latency by an order of magnitude at the low rate{given}",
                  "divided by 5 or more, the median over the numbers of queries",
                  f"{np.median(less):.1f} ({each(low, less)})", bool(np.median(less) >= 5))
    kept = telling.mean(low, HS, "tasks")
    telling.check(f"hs-half{id}", "HS shortens periods so that about half of the tasks are left"
                  f"{given}", "0.6 of CS's tasks or fewer, the mean over the numbers of queries",
                  f"{kept.mean():.2f} ({each(low, kept)})", bool(kept.mean() <= 0.6))


def late(telling: Telling, high: Sweep, id: str = "", given: str = "") -> None:
    """What it says of H-LP at the high one."""
    ours, base = (telling.mean(high, name, "throughput") for name in (H_LP, HS))
    more = ours / base
    telling.check(f"lp-doubles{id}",
                  f"H-LP at least doubles HS's throughput at the high rate{given}",
                  "2 times or more, the mean over the numbers of queries",
                  f"{more.mean():.2f} ({each(high, more)})", bool(more.mean() >= 2))
    for rivals, name, words in ((tuple(SHORT), "", ""), (UNSYNCHRONISED, "-but-as", ", AS aside")):
        lead = ours / _of(telling, high, "throughput", rivals).max(axis=0)
        telling.check(f"lp-throughput{name}{id}",
                      f"H-LP has the highest throughput at the high rate{words}{given}",
                      "at least as much as every other (within 2 %)",
                      f"{each(high, lead)} times the next best", bool((lead >= 0.98).all()))
        behind = (telling.mean(high, H_LP, "latency")
                  / _of(telling, high, "latency", rivals).min(axis=0))
        telling.check(f"lp-latency{name}{id}",
                      f"H-LP has the lowest latency at the high rate{words}{given}",
                      "at most that of every other (within 2 %)",
                      f"{each(high, behind)} times the next best", bool((behind <= 1.02).all()))


def _extremes(telling: Telling, low: Sweep, high: Sweep) -> None:
    rivals = tuple(name for name in SHORT if name != NO_S)
    worst = all(
        (telling.mean(sweep, NO_S, "throughput") <= 1.01 * telling.mean(sweep, name, "throughput")
         ).all() and (telling.mean(sweep, NO_S, "latency")
                      >= 0.99 * telling.mean(sweep, name, "latency")).all()
        for sweep in (low, high) for name in rivals)
    telling.check(
        "worst", "No-S is the worst in throughput and latency at both rates",
        "at every number of queries (within 1 %)",
        f"CS answers {each(high, _over(telling, high, CS, NO_S))} times as much at the high rate",
        worst)
    quick = _over(telling, low, AS, HS)
    telling.check("as-throughput", "AS achieves a good throughput at the low rate",
                  "at least HS's", f"{each(low, quick)} times", bool((quick >= 1).all()))
    late = _ratio(telling.mean(low, AS, "latency"), telling.mean(low, HS, "latency"))
    telling.check("as-latency", "AS has a poor latency at the low rate", "above HS's",
                  f"{each(low, late)} times", bool((late > 1).all()))
    drops = {name: telling.mean(high, name, "throughput") / telling.mean(low, name, "throughput")
             for name in SHORT}
    others = np.array([drop for name, drop in drops.items() if name != AS])
    telling.check("as-drops", "AS's throughput drops more than that of the others at the high rate",
                  "to a smaller part of what it is at the low rate, at every number of queries",
                  f"to {each(high, drops[AS])}; the others to {each(high, others.min(axis=0))} "
                  f"at the least", bool((drops[AS] < others.min(axis=0)).all()))


def _over(telling: Telling, sweep: Sweep, name: str, other: str) -> Floats:
    return telling.mean(sweep, name, "throughput") / telling.mean(sweep, other, "throughput")


def _of(telling: Telling, sweep: Sweep, what: str, names: Sequence[str]) -> Floats:
    """A row per policy other than H-LP."""
    return np.array([telling.mean(sweep, name, what) for name in names if name != H_LP])


def _ratio(above: Floats, below: Floats) -> Floats:
    """Of latencies, which may be 0: a hundredth of a pane is none."""
    ratio: Floats = np.maximum(above, 0.01) / np.maximum(below, 0.01)
    return ratio


def each(sweep: Sweep, values: Floats) -> str:
    """A number for each x, in words."""
    listed = ", ".join(f"{value:.2f}" for value in values)
    return f"{listed} at {', '.join(f'{x:g}' for x in sweep.x)}"
