"""Peaks over a range of intensities: one even burst, and the trace at several speeds.

The contrast between policies depends on how hard it rains. A burst slower than 1 / T is consumed by
everybody; between 1 / T and what Chain's steepest segments consume, FIFO's queue grows in whole
tuples and Chain's in small ones; far beyond both everything waits before the first operator.
"""

from __future__ import annotations

from collections.abc import Mapping

from experiments.chain.book import Book, Plan, times
from experiments.chain.calibration import (
    ANOTHER,
    MULTIPLE,
    SINGLE,
    TRACE,
    excerpt,
    load_for,
    utilisation,
)
from experiments.chain.memory import FIGURES, WITHOUT_BOUND
from experiments.chain.queries import BYTES, QUERIES, chain_rate, excess, most, service
from experiments.chain.rivals import BOUND, labels
from experiments.chain.runs import Found, Job, Load
from experiments.chain.traces import Burst, Recorded, present
from penstock.report.figures import Drawing

TUPLES = 2500
"""Of a burst: 25 pages, 60 KB."""
INTENSITIES = (0.5, 0.8, 1.0, 1.05, 1.1, 1.2, 1.35, 1.5, 1.65, 1.8, 2.0, 2.3, 2.7, 3.2, 4.0, 5.0,
               6.5, 8.0, 10.0, 15.0, 25.0, 50.0)
QUICK = (0.8, 1.1, 1.8, 2.7, 5.0, 8.0, 15.0, 50.0)
QUERIES_SWEPT = ("two operators", "four operators", "selectivity above 1", "window join",
                 "three queries")
UTILISATIONS = {TRACE: (0.5, 0.6, 0.7, 0.75, 0.8, 0.83, 0.86),
                ANOTHER: (0.3, 0.4, 0.5, 0.6, 0.7, 0.75)}
PLAYED = (("four operators", TRACE), ("window join", TRACE), ("three queries", TRACE),
          ("four operators", ANOTHER))
SAME = 0.01
"""Peaks that differ by less are the same: beyond both rates everybody's queue is the burst."""


def burst(query: str, intensity: float, tuples: int = TUPLES) -> Load:
    """A burst at so many times the rate that FIFO can consume, its tuples shrinking as expected."""
    return Load(query, Burst(intensity / service(QUERIES[query]()), tuples), model="divisible")


def jobs(plan: Plan) -> list[Job]:
    """Bursts for every query, the trace for some."""
    bursts = [Job(burst(query, intensity), policy)
              for query in QUERIES_SWEPT for intensity in plan.pick(INTENSITIES, QUICK)
              for policy in _policies(query).values()]
    played = [Job(load, policy) for query, trace in _shown(plan)
              for load in _played(plan, query, trace) for policy in labels().values()]
    return bursts + played


def tell(book: Book) -> None:
    """A figure of ratios for each query, and the claim that Chain's peak is the lowest."""
    for query in QUERIES_SWEPT:
        _burst_figure(book, query)
        if query != "two operators":
            _lowest(book, query)
    for query, trace in _shown(book.plan):
        _played_figure(book, query, trace)
    _fades(book)


# --- one even burst ------------------------------------------------------------------------------


def _policies(query: str) -> dict[str, str]:
    bound = {} if query in WITHOUT_BOUND else {"bound (clairvoyant)": BOUND}
    return {**labels(), "rate_based": "rate_based", **bound}


def ratios(book: Book, query: str) -> dict[str, list[float]]:
    """For each policy its peak over Chain's, intensity by intensity."""
    found: dict[str, list[float]] = {}
    for intensity in book.plan.pick(INTENSITIES, QUICK):
        runs = book.all(burst(query, intensity), _policies(query))
        for label, run in runs.items():
            found.setdefault(label, []).append(run.peak / runs["chain"].peak)
    return found


def _burst_figure(book: Book, query: str) -> None:
    network = QUERIES[query]()
    intensities = book.plan.pick(INTENSITIES, QUICK)
    found = ratios(book, query)
    fifo = found["fifo"]
    at = intensities[fifo.index(max(fifo))]
    limit = most(network)
    drawing = Drawing(
        f"Peaks over burst intensity: {query}", "burst rate / FIFO's consumption rate (1 / T)",
        "peak / Chain's peak", marks=True, log_x=True,
        lines=((limit, f"limit of FIFO: {limit:.2f}"),),
        posts=((1.0, "FIFO's rate"), (chain_rate(network), "Chain's rate")))
    book.draw(
        _id("burst", query), drawing, {label: (intensities, y) for label, y in found.items()},
        f"One burst of {TUPLES} tuples at an even pace, tuples shrinking as expected. FIFO's peak "
        f"is at most {times(max(fifo))} Chain's, at intensity {at:g}; at {intensities[-1]:g} it "
        f"is {times(fifo[-1])}. More than {limit:.2f} is not possible for this query: at that "
        "much both have the same work before them, Chain all of it on the gentlest segment.",
        checks=["two-fifo" if query == "two operators" else f"lowest: {query}", "fades",
                *(["join-round-robin"] if query == "window join" else [])])
    for intensity in intensities:
        runs = book.all(burst(query, intensity), _policies(query))
        book.rows(_id("burst", query), f"burst of {intensity:g}", runs)


def _lowest(book: Book, query: str) -> None:
    """On the traces, and over all intensities."""
    found = ratios(book, query)
    allowed = excess(QUERIES[query]())
    shown = [(kind, book.all((book.plan.real if kind == "real" else book.plan.synthetic)[query],
                             labels()))
             for _, name, kind in FIGURES if name == query]
    rivals = [label for label in found if label not in ("chain", "bound (clairvoyant)")]
    least = min(min(found[label]) for label in rivals)
    bursts = [book.all(burst(query, x), {label: _policies(query)[label] for label in found
                                         if label in ("chain", *rivals)})
              for x in book.plan.pick(INTENSITIES, QUICK)]
    measured = [f"{kind} (KB): " + ", ".join(f"{label} {run.peak:.1f}"
                                             for label, run in runs.items())
                for kind, runs in shown]
    intensities = book.plan.pick(INTENSITIES, QUICK)
    lower = [f"{label} {times(ratio)} at {x:g}, where {runs['chain'].peak * 1000 / BYTES:.1f} "
             "tuples wait" for label in rivals
             for x, ratio, runs in zip(intensities, found[label], bursts, strict=True)
             if ratio < 1 - SAME]
    measured.append(
        f"bursts of {intensities[0]:g} to {intensities[-1]:g}: the best rival "
        f"{times(least)} to {times(_best_rival(found, rivals))} Chain's, "
        f"FIFO up to {times(max(found['fifo']))}")
    if lower:
        measured.append(f"lower than Chain: {', '.join(lower)}")
    book.check(
        f"lowest: {query}", f"Chain's peak is the lowest: {query}",
        "no rival is lower, on the traces and at every burst intensity, by more than 1% or the "
        f"{allowed:.2g} tuples that Lemma 4.2 allows",
        "; ".join(measured),
        all(_is_lowest(runs, allowed) for runs in [*bursts, *(runs for _, runs in shown)]))


def _is_lowest(runs: Mapping[str, Found], tuples: float) -> bool:
    chain = runs["chain"].peak
    slack = max(SAME * chain, tuples * BYTES / 1000)
    return all(run.peak >= chain - slack for run in runs.values())


def _best_rival(found: Mapping[str, list[float]], rivals: list[str]) -> float:
    """How far even the best rival is behind, where it is furthest."""
    return max(map(min, zip(*(found[label] for label in rivals), strict=True)))


def _fades(book: Book) -> None:
    between, beyond = [], []
    for query in QUERIES_SWEPT:
        rate = chain_rate(QUERIES[query]())
        pairs = list(zip(book.plan.pick(INTENSITIES, QUICK), ratios(book, query)["fifo"],
                         strict=True))
        between.append(max(ratio for x, ratio in pairs if 1 < x <= rate * 1.01))
        beyond.append(pairs[-1][1])
    book.check(
        "fades", "The contrast is large between FIFO's consumption rate and Chain's, and fades "
        "beyond both", "FIFO at least 2x Chain between, at most 1.25x at the most intense burst",
        "between: " + ", ".join(map(times, between)) + "; beyond: "
        + ", ".join(map(times, beyond)) + " (in the order of the figures)",
        min(between) >= 2 and max(beyond) <= 1.25)


# --- the trace, faster and faster ----------------------------------------------------------------


def _shown(plan: Plan) -> list[tuple[str, str]]:
    """The second trace only if it is there: one generated hour says enough."""
    return [(query, trace) for query, trace in plan.pick(PLAYED, PLAYED[:1])
            if trace == TRACE or present(trace)]


def _played(plan: Plan, query: str, trace: str) -> list[Load]:
    return [excerpt(query, load, margin=0.05, name=trace)
            for load in plan.pick(UTILISATIONS[trace], (0.6, 0.75, 0.8))]


def _played_figure(book: Book, query: str, trace: str) -> None:
    seconds = service(QUERIES[query]())
    loads = _played(book.plan, query, trace)
    id = _id("speed", query if trace == TRACE else f"{query} {trace}")
    x = [utilisation(load.traffic, seconds) for load in loads
         if isinstance(load.traffic, Recorded)]
    found = [book.all(load, labels()) for load in loads]
    drawn = {label: (x, [runs[label].peak / runs["chain"].peak for runs in found])
             for label in labels()}
    worst = MULTIPLE if query == "three queries" else SINGLE
    for at, runs in zip(x, found, strict=True):
        book.rows(id, f"{query}, utilisation {at:.2f}", runs)
    book.draw(
        id,
        Drawing(f"Peaks over the speed of the trace {trace}: {query}",
                "utilisation of the processor", "peak / Chain's peak", marks=True,
                posts=((load_for(trace, seconds, worst),
                        f"FIFO's worst latency is {worst * 1e3:g} ms, as in the paper"),)),
        drawn,
        "The trace played so fast that the processor is used this much over the hour; shown is the "
        "busy period in which FIFO does worst. FIFO's peaks from left to right: "
        + ", ".join(f"{runs['fifo'].peak:.2g}" for runs in found) + " KB. Where little waits a "
        "single tuple counts, and ratios say little.",
        checks=[f"lowest: {query}"])


def _id(kind: str, query: str) -> str:
    return f"{kind}-{query.replace(' ', '-')}"
