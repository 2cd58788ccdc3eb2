"""Section 9.4: what happens when selectivities change. Figs 16 to 21."""

from __future__ import annotations

import numpy as np

from experiments.filters.overheads import COSTLY
from experiments.filters.runs import (
    A_GREEDY,
    ADAPTIVE,
    EVERY,
    INDEPENDENT,
    SWAPS,
    SWEEP,
    Case,
    Size,
    Sweeping,
    sweeping,
)
from experiments.filters.telling import Telling, each
from experiments.filters.workload import SELECTIVITIES, Filters
from penstock.report.figures import Drawing

CHANGE = 600_000
"""Figs 16 to 18: selectivities are exchanged after so many rows."""
FREQUENT, RARE = 100_000, 1_000_000
"""The periods of Figs 20 and 21."""
SETTLED = 1.05
"""An order is as good as the last one from where on its work stays within 5 % of it."""


def timeline(size: Size) -> list[Case]:
    """Figs 16 to 18."""
    filters = Filters(keeps=SELECTIVITIES, rows=2 * CHANGE, period=CHANGE)
    return [Case(filters, name, seed) for name in ADAPTIVE for seed in range(4 * size.seeds)]


def periods(size: Size) -> Sweeping:
    """Fig. 19."""
    return sweeping("period", size.periods, [
        Filters(keeps=SELECTIVITIES, costly=10.0, rows=size.workload, period=period)
        for period in size.periods], ADAPTIVE, size.seeds)


def costs(size: Size, period: int) -> Sweeping:
    """Figs 20 and 21."""
    return sweeping("cost", COSTLY, [
        Filters(keeps=SELECTIVITIES, costly=costly, rows=size.workload, period=period)
        for costly in COSTLY], (A_GREEDY, SWEEP), size.seeds)


def tell_timeline(telling: Telling, cases: list[Case]) -> None:
    """Figs 16 to 18."""
    lines = {name: np.array([telling.runs[case].timeline for case in cases if case.policy == name])
             for name in ADAPTIVE}
    first = CHANGE // EVERY
    after = {name: np.mean([_settled(line[first:]) for line in lines[name]]) for name in ADAPTIVE}
    told = ", ".join(f"{name} {rows:,.0f}" for name, rows in after.items())
    for rival in (SWEEP, SWAPS):
        telling.check(f"faster-{rival}", f"a_greedy settles sooner after a change than {rival}",
                      "rows until the work stays within 5 % of the final, mean over the runs, at "
                      "most half", told, bool(after[A_GREEDY] <= after[rival] / 2))
    telling.check("quick-independent", "Independent adapts quickly too",
                  "at most twice A-Greedy's rows, or within 50,000", told,
                  bool(after[INDEPENDENT] <= max(2 * after[A_GREEDY], 50_000)))
    ends = {name: (lines[name][:, first // 2:first].mean(), lines[name][:, -first // 2:].mean())
            for name in ADAPTIVE}
    telling.check("worse-independent", "Independent's order is worse before and after the change",
                  "more filters per row than A-Greedy, both times",
                  ", ".join(f"{name} {before / EVERY:.2f} and {then / EVERY:.2f}"
                            for name, (before, then) in ends.items()),
                  all(theirs > ours for theirs, ours in
                      zip(ends[INDEPENDENT], ends[A_GREEDY], strict=True)))
    shown = slice(first - 25, first + 175)
    x = (np.arange(lines[A_GREEDY].shape[1]) + 1)[shown] * EVERY / 1000
    for id, rival in (("fig16", SWEEP), ("fig17", SWAPS), ("fig18", INDEPENDENT)):
        telling.figure(
            id, Drawing(f"Fig. {id[3:]}: a_greedy and {rival}, a change after 600,000 rows",
                        "thousand rows", "filters evaluated per 2000 rows"),
            {name: (x.tolist(), lines[name][0][shown].tolist()) for name in (A_GREEDY, rival)},
            "One run; the numbers are means of all.",
            (f"faster-{rival}",) if rival != INDEPENDENT else ("quick-independent",
                                                              "worse-independent"))
    telling.rows("fig16", "rows until settled after the change", ("",), {
        name: [rows] for name, rows in after.items()})


def _settled(line: np.ndarray) -> float:
    """Rows from a change to where the mean of five points comes within 5 % of the last level."""
    level = line[-len(line) // 4:].mean()
    smooth = np.convolve(line, np.ones(5) / 5, "valid")
    above = np.flatnonzero(smooth > SETTLED * level)
    return float((above[-1] + 1 if len(above) else 0) * EVERY)


def tell_periods(telling: Telling, sweep: Sweeping) -> None:
    """Fig. 19."""
    x = sweep.x
    total = {name: telling.mean(sweep, name, "total") for name in ADAPTIVE}
    ratio = total[SWEEP] / total[A_GREEDY]
    telling.check("high-rate", "A-Greedy outperforms Sweep when changes are frequent",
                  "5 % less work at the shortest two periods", f"{each(x, ratio, '.3f')} times",
                  bool((ratio[:2] >= 1.05).all()))
    independent = total[SWEEP] / total[INDEPENDENT]
    telling.check("high-rate-independent", "so does Independent",
                  "less work than Sweep at the shortest period",
                  f"{each(x, independent, '.3f')} times", bool(independent[0] > 1))
    crossed = [period for period, one in zip(x, ratio, strict=True) if one < 1]
    telling.check("crossing", "Sweep overtakes A-Greedy when changes are rare",
                  "between a period of 100,000 rows, where it is behind, and the longest",
                  f"first ahead at {crossed[0]:,}" if crossed else "never ahead",
                  bool(crossed) and crossed[0] > FREQUENT and ratio[-1] < 1)
    telling.curves("fig19", Drawing("Fig. 19: how often selectivities change", "rows between two",
                                    "probes for the workload", marks=True, log_x=True),
                   sweep, "total", "8 filters, four of cost 10; the same rows for everybody.",
                   ("high-rate", "high-rate-independent", "crossing"))


def tell_costs(telling: Telling, often: Sweeping, seldom: Sweeping) -> None:
    """Figs 20 and 21."""
    x = often.x
    ratios = [telling.mean(sweep, SWEEP, "total") / telling.mean(sweep, A_GREEDY, "total")
              for sweep in (often, seldom)]
    telling.check("often-costs", "A-Greedy stays ahead of Sweep at a period of 100,000 however "
                  "costly filters are, and its lead grows", "ahead everywhere, more at 100 than "
                  "at 1", f"Sweep takes {each(x, ratios[0], '.3f')} times",
                  bool((ratios[0] > 1).all() and ratios[0][-1] > ratios[0][0]))
    telling.check("seldom-costs", "at a period of 1,000,000 Sweep improves with the cost",
                  "ahead at 100, and a smaller part of A-Greedy's work than at 1",
                  f"Sweep takes {each(x, ratios[1], '.3f')} times",
                  bool(ratios[1][-1] < 1 and ratios[1][-1] < ratios[1][0]))
    for id, sweep, period in (("fig20", often, FREQUENT), ("fig21", seldom, RARE)):
        telling.curves(id, Drawing(f"Fig. {id[3:]}: a change every {period:,} rows",
                                   "cost of four filters", "probes for the workload", marks=True,
                                   log_x=True, log_y=True), sweep, "total",
                       checks=("often-costs",) if id == "fig20" else ("seldom-costs",))


