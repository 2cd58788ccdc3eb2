"""Figs 13 to 18: the latency of outputs, and what Chain-Flush gives up for it (section 6.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.chain.book import Book, Plan, times
from experiments.chain.calibration import MULTIPLE, SINGLE
from experiments.chain.queries import BYTES, QUERIES, steepest
from experiments.chain.rivals import flush, labels
from experiments.chain.runs import AVERAGED, Found, Job, Load, Series
from penstock.report.figures import Drawing

TOLERANCE = 0.10
"""By how much Chain-Flush may exceed its threshold."""
LATE = 2
"""What is called a multiple. While a mild burst lasts, Chain's last operator gets the time that the
others leave it: on the chart of four operators 45%, which makes 2.2 times FIFO's latency."""
PAPERS = 1.2, 1.8
"""The paper's thresholds, 120 and 180 ms, over FIFO's worst latency, 100 ms."""


@dataclass(frozen=True, slots=True)
class Case:
    """A query whose latency is looked at."""

    query: str
    fifo: float
    """FIFO's worst latency in seconds, as calibrated."""
    figures: tuple[int, int, int]
    """Policies, Chain-Flush, and memory over the threshold."""
    multiples: tuple[float, ...]
    """Thresholds over FIFO's worst latency."""

    def thresholds(self, plan: Plan) -> list[float]:
        """In seconds, ascending."""
        wanted = plan.pick(self.multiples, (self.multiples[0], 1.0, self.multiples[-1]))
        return self.scaled(plan, sorted({*wanted, *PAPERS}))

    def scaled(self, plan: Plan, multiples: Sequence[float]) -> list[float]:
        """Thresholds that are multiples of FIFO's worst latency."""
        return [round(multiple * self.fifo * plan.scale, 6) for multiple in multiples]


CASES = (
    Case("four operators", SINGLE, (13, 14, 17), (0.5, 0.75, 1.0, 1.1, 1.35, 1.5, 2.0, 2.3)),
    Case("three queries", MULTIPLE, (15, 16, 18), (0.5, 1.0, 1.1, 1.5, 2.5, 4.0, 6.0, 9.0)),
)


def jobs(plan: Plan) -> list[Job]:
    """Chain-Flush at every threshold; the rest is run for the figures on memory."""
    return [Job(plan.real[case.query], policy) for case in CASES
            for policy in [*labels().values(), *map(flush, case.thresholds(plan))]]


def tell(book: Book) -> None:
    """Three figures for each case, and the claims."""
    for case in CASES:
        load = book.plan.real[case.query]
        _latencies(book, case, load)
        _flushes(book, case, load)
        _trade(book, case, load)
    _chain_is_late(book)
    _keeps(book)
    _falls(book)
    _almost_fifo(book)
    _below(book)
    _sometimes_sooner(book)


# --- figures -------------------------------------------------------------------------------------


def _latencies(book: Book, case: Case, load: Load) -> None:
    found = book.all(load, labels())
    checks = ["late"] if case.query == "four operators" else ["late", "sooner"]
    _over_time(book, case.figures[0], case, found, checks=checks)


def _flushes(book: Book, case: Case, load: Load) -> None:
    thresholds = case.scaled(book.plan, PAPERS)
    shown = labels(*thresholds)
    found = book.all(load, {label: policy for label, policy in shown.items()
                            if label not in ("greedy", "round_robin")})
    lines = tuple((threshold * 1e3, f"threshold {threshold * 1e3:.0f} ms")
                  for threshold in thresholds)
    _over_time(book, case.figures[1], case, found, lines, ["keeps"])
    book.rows(f"fig{case.figures[1]}", f"{case.query}, real", found)


def _over_time(
    book: Book, number: int, case: Case, found: dict[str, Found],
    lines: tuple[tuple[float, str], ...] = (), checks: Sequence[str] = (),
) -> None:
    worst = ", ".join(f"{label} {run.latency:.0f} ms" for label, run in found.items())
    book.draw(
        f"fig{number}",
        Drawing(f"Fig. {number}: {case.query}, real data set", "seconds",
                f"latency (ms), mean of {AVERAGED} outputs", lines=lines),
        {label: run.latencies for label, run in found.items()},
        f"The worst of all outputs: {worst}.", checks)


def _trade(book: Book, case: Case, load: Load) -> None:
    number = case.figures[2]
    thresholds = case.thresholds(book.plan)
    found = [book.of(load, flush(threshold)) for threshold in thresholds]
    fifo, chain = book.of(load, "fifo"), book.of(load, "chain")
    drawing = Drawing(
        f"Fig. {number}: peak queue size over latency threshold, {case.query}",
        "threshold of Chain-Flush (ms)", "peak (KB)", marks=True,
        lines=((fifo.peak, "FIFO"), (chain.peak, "Chain")),
        posts=((fifo.latency, "FIFO's worst latency"), (chain.latency, "Chain's worst latency")))
    x = [threshold * 1e3 for threshold in thresholds]
    book.draw(
        f"fig{number}", drawing, {"chain_flush": (x, [run.peak for run in found])},
        "What Chain-Flush (efficient form) needs at each threshold; its worst latencies were "
        + ", ".join(f"{run.latency:.0f}" for run in found) + " ms.",
        ["falls", "almost", "below", "keeps"])
    rows = {f"chain_flush({at:.3g} ms)": run for at, run in zip(x, found, strict=True)}
    book.rows(f"fig{number}", f"{case.query}, real", {"chain": chain, "fifo": fifo, **rows})


# --- claims --------------------------------------------------------------------------------------


def _chain_is_late(book: Book) -> None:
    both = [(case.query, book.of(book.plan.real[case.query], "chain"),
             book.of(book.plan.real[case.query], "fifo")) for case in CASES]
    book.check(
        "late", "Chain's peak latency is a multiple of FIFO's", f"at least {LATE:g}x",
        ", ".join(f"{query}: {chain.latency:.0f} against {fifo.latency:.0f} ms "
                  f"({times(chain.latency / fifo.latency)})" for query, chain, fifo in both),
        all(chain.latency >= LATE * fifo.latency for _, chain, fifo in both))


def _flushed(book: Book, case: Case) -> list[tuple[float, Found]]:
    return [(threshold, book.of(book.plan.real[case.query], flush(threshold)))
            for threshold in case.thresholds(book.plan)]


def _keeps(book: Book) -> None:
    over = []
    for case in CASES:
        fifo = book.of(book.plan.real[case.query], "fifo").latency
        over += [(run.latency / threshold / 1e3 - 1, case.query, threshold, run.latency)
                 for threshold, run in _flushed(book, case) if threshold * 1e3 >= fifo * 0.99]
    worst, query, threshold, latency = max(over)
    late = max(ended - promised * 1e3 for _, _, promised, ended in over)
    book.check(
        "keeps", "Chain-Flush keeps to its threshold, if FIFO could",
        f"no output later than the threshold by more than {TOLERANCE:.0%}",
        f"{len(over)} thresholds from FIFO's worst latency up: at most {worst:.1%} late "
        f"({query}: {latency:.1f} for {threshold * 1e3:.1f} ms). In time it is late by at most "
        f"{late:.1f} ms, which would be more than a tenth of thresholds below {late * 10:.0f} ms",
        worst <= TOLERANCE)


def _falls(book: Book) -> None:
    told, holds = [], True
    for case in CASES:
        load = book.plan.real[case.query]
        fifo, chain = book.of(load, "fifo"), book.of(load, "chain")
        peaks = [run.peak for _, run in _flushed(book, case)]
        told.append(f"{case.query}: FIFO {fifo.peak:.1f}, Chain-Flush "
                    + ", ".join(f"{peak:.1f}" for peak in peaks) + f", Chain {chain.peak:.1f} KB")
        falling = all(b <= a * 1.02 for a, b in zip(peaks, peaks[1:], strict=False))
        ends = abs(peaks[0] / fifo.peak - 1) <= 0.1 and abs(peaks[-1] / chain.peak - 1) <= 0.1
        holds = holds and falling and ends
    book.check(
        "falls", "Chain-Flush's peak memory falls from FIFO's to Chain's as the threshold grows",
        "never rises (by 2%); within 10% of FIFO's at the least threshold, of Chain's at the "
        "greatest", "; ".join(told), holds)


def _almost_fifo(book: Book) -> None:
    told, holds = [], True
    for case in CASES:
        fifo = book.of(book.plan.real[case.query], "fifo")
        _, run = next((threshold, run) for threshold, run in _flushed(book, case)
                      if threshold * 1e3 >= fifo.latency * 0.99)
        freed = steepest(QUERIES[case.query]()) * BYTES / 1e6
        told.append(f"{case.query}: {run.peak:.1f} KB ({times(run.peak / fifo.peak)} FIFO's), "
                    f"worst latency {run.latency:.1f} ms (FIFO {fifo.latency:.1f}), and the "
                    f"steepest segment frees {freed:.1f} KB per ms")
        holds = holds and abs(run.peak / fifo.peak - 1) <= 0.1
    book.check(
        "almost", "At the least threshold that can be kept, FIFO's worst latency, Chain-Flush "
        "needs almost as much memory as FIFO", "within 10% of FIFO's peak",
        "; ".join(told) + ". The little that it is late is time for steep segments", holds)


def _below(book: Book) -> None:
    told, holds = [], True
    for case in CASES:
        fifo = book.of(book.plan.real[case.query], "fifo")
        low = [(threshold, run) for threshold, run in _flushed(book, case)
               if threshold * 1e3 < fifo.latency * 0.99]
        told += [f"{case.query} at {threshold * 1e3:.3g} ms: {run.peak:.1f} KB and "
                 f"{run.latency:.0f} ms (FIFO {fifo.peak:.1f} KB, {fifo.latency:.0f} ms)"
                 for threshold, run in low]
        holds = holds and all(run.peak > fifo.peak * 1.02 for _, run in low)
    book.check(
        "below", "Below the least threshold that can be kept, Chain-Flush needs more memory than "
        "FIFO, because its flush mode is not FIFO",
        "more than FIFO's peak (by 2%)",
        "; ".join(told) + ". Ours takes the earliest deadline among what is due, at every step, "
        "which for one promise is FIFO",
        holds)


def _sometimes_sooner(book: Book) -> None:
    load = book.plan.real["three queries"]
    chain, fifo = (book.of(load, name).latencies for name in ("chain", "fifo"))
    grid = np.linspace(max(chain[0][0], fifo[0][0]), min(chain[0][-1], fifo[0][-1]), 400)
    part = float((_at(chain, grid) < _at(fifo, grid)).mean())
    book.check(
        "sooner", "With several queries Chain's outputs are sooner than FIFO's for a while, since "
        "FIFO keeps to the order of arrival across all of them",
        "for some part of the time", f"{part:.0%} of the time", part > 0)


def _at(series: Series, grid: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    return np.interp(grid, *series)
