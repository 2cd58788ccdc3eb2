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
AS_OFTEN = "independent(p=0.01)"
"""Independent with A-Greedy's drop-profiling probability."""
WHOLE = "local_swaps(enough=1000)"
"""LocalSwaps, if it waits for a full window after every change."""
NARROW = "a_greedy(window=200)"
"""A window that covers 20,000 rows instead of 100,000."""
PAST = (f"{A_GREEDY}(p=0.02)", f"{SWEEP}(p=0.02)")
"""With these a period of 1,000,000 is past the crossing of Fig. 19."""
PROBABILITIES = (0.01, 0.02, 0.05)
SETTLED = 1.05
"""An order is as good as the last one from where on its work stays within 5 % of it."""


def timeline(size: Size) -> list[Case]:
    """Figs 16 to 18."""
    filters = Filters(keeps=SELECTIVITIES, rows=2 * CHANGE, period=CHANGE)
    return [Case(filters, name, seed) for name in (*ADAPTIVE, AS_OFTEN, WHOLE)
            for seed in range(4 * size.seeds)]


def periods(size: Size) -> Sweeping:
    """Fig. 19."""
    return sweeping("period", size.periods, [
        Filters(keeps=SELECTIVITIES, costly=10.0, rows=size.workload, period=period)
        for period in size.periods], ADAPTIVE, size.seeds)


def probabilities(size: Size) -> Sweeping:
    """Fig. 19 with other drop-profiling probabilities, and with a narrow window."""
    names = [f"{name}(p={p})" for p in PROBABILITIES for name in (A_GREEDY, SWEEP)]
    again = periods(size)
    return sweeping("period", again.x, again.filters, (*names, NARROW, WHOLE), size.seeds)


def rarest(size: Size) -> Sweeping:
    """Fig. 19 at a longer period."""
    filters = Filters(keeps=SELECTIVITIES, costly=10.0, rows=5 * size.workload,
                      period=5 * size.workload // 2)
    return sweeping("period", (filters.period,), [filters], (A_GREEDY, SWEEP), size.seeds)


def costs(size: Size, period: int) -> Sweeping:
    """Figs 20 and 21, and Fig. 21 with another drop-profiling probability."""
    return sweeping("cost", COSTLY, [
        Filters(keeps=SELECTIVITIES, costly=costly, rows=size.workload, period=period)
        for costly in COSTLY], (A_GREEDY, SWEEP, *(PAST if period == RARE else ())), size.seeds)


def tell_timeline(telling: Telling, cases: list[Case]) -> None:
    """Figs 16 to 18."""
    lines = {name: np.array([telling.runs[case].timeline for case in cases if case.policy == name])
             for name in (*ADAPTIVE, AS_OFTEN, WHOLE)}
    first = CHANGE // EVERY
    after = {name: np.mean([_settled(line[first:]) for line in lines[name]]) for name in lines}
    told = ", ".join(f"{name} {rows:,.0f}" for name, rows in after.items())
    for rival in (SWEEP, SWAPS):
        telling.check(f"faster-{rival}", f"a_greedy settles sooner after a change than {rival}",
                      "rows until the work stays within 5 % of the final, mean over the runs, at "
                      "most half", told, bool(after[A_GREEDY] <= after[rival] / 2))
    telling.check("faster-whole-window", "the same if LocalSwaps waits for a full window after "
                  "every change (beyond the paper)", "at most half", told,
                  bool(after[A_GREEDY] <= after[WHOLE] / 2))
    telling.check("quick-independent", "Independent adapts quickly too",
                  "at most twice A-Greedy's rows, or within 50,000", told,
                  bool(after[INDEPENDENT] <= max(2 * after[A_GREEDY], 50_000)))
    telling.check("quick-independent-p", "so it does with A-Greedy's drop-profiling probability "
                  "(beyond the paper)", "at most 1.25 times A-Greedy's rows", told,
                  bool(after[AS_OFTEN] <= 1.25 * after[A_GREEDY]))
    ends = {name: (lines[name][:, first // 2:first].mean(), lines[name][:, -first // 2:].mean())
            for name in ADAPTIVE}
    telling.check("worse-independent", "Independent's order is worse before and after the change",
                  "more filters per row than A-Greedy, both times",
                  ", ".join(f"{name} {before / EVERY:.2f} and {then / EVERY:.2f}"
                            for name, (before, then) in ends.items()),
                  all(theirs > ours for theirs, ours in
                      zip(ends[INDEPENDENT], ends[A_GREEDY], strict=True)))
    falls = {name: _steepest(lines[name][:, first:]) for name in (SWEEP, SWAPS)}
    telling.check("smoother-local_swaps", "LocalSwaps' work changes more smoothly than Sweep's",
                  "a smaller part of the fall after the change is within 10,000 rows, the mean "
                  "over the runs in which the work falls by 5 %",
                  ", ".join(f"{name} {100 * part:.0f} %" for name, part in falls.items()),
                  falls[SWAPS] < falls[SWEEP])
    shown = slice(first - 25, first + 175)
    x = (np.arange(lines[A_GREEDY].shape[1]) + 1)[shown] * EVERY / 1000
    for id, rival in (("fig16", SWEEP), ("fig17", SWAPS), ("fig18", INDEPENDENT)):
        telling.figure(
            id, Drawing(f"Fig. {id[3:]}: a_greedy and {rival}, a change after 600,000 rows",
                        "thousand rows", "filters evaluated per 2000 rows"),
            {name: (x.tolist(), lines[name].mean(axis=0)[shown].tolist())
             for name in (A_GREEDY, rival)},
            "The mean of all runs, each with a change of its own.",
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


def _steepest(lines: np.ndarray) -> float:
    """The largest part of a fall to the last level that lies within 10,000 rows."""
    points = 10_000 // EVERY
    found = []
    for line in lines:
        smooth = np.convolve(line, np.ones(points) / points, "valid")
        level = smooth[-len(smooth) // 4:].mean()
        if smooth[0] > SETTLED * level:
            found.append((smooth[:-points] - smooth[points:]).max() / (smooth[0] - level))
    return float(np.mean(found)) if found else 0.0


def tell_periods(
    telling: Telling, sweep: Sweeping, given: Sweeping, rarest: Sweeping
) -> None:
    """Fig. 19."""
    x = sweep.x
    total = {name: telling.mean(sweep, name, "total") for name in ADAPTIVE}
    ratio = total[SWEEP] / total[A_GREEDY]
    often = x.index(FREQUENT)
    telling.check("high-rate", "A-Greedy outperforms Sweep when changes are frequent",
                  "Sweep takes 5 % more work at a period of 100,000, where the paper begins",
                  f"{each(x, ratio, '.3f')} times", bool(ratio[often] >= 1.05))
    independent = total[SWEEP] / total[INDEPENDENT]
    telling.check("high-rate-independent", "so does Independent", "the same",
                  f"{each(x, independent, '.3f')} times", bool(independent[often] >= 1.05))
    swaps = total[SWAPS] / total[A_GREEDY]
    telling.check("high-rate-swaps", "A-Greedy outperforms LocalSwaps too",
                  "LocalSwaps takes 5 % more work at a period of 100,000",
                  f"{each(x, swaps, '.3f')} times", bool(swaps[often] >= 1.05))
    whole = telling.mean(given, WHOLE, "total") / total[A_GREEDY]
    telling.check("high-rate-swaps-whole", "it does if LocalSwaps waits for a full window after "
                  "every change (beyond the paper)", "the same", f"{each(x, whole, '.3f')} times",
                  bool(whole[often] >= 1.05))
    narrow = total[A_GREEDY] / telling.mean(given, NARROW, "total")
    telling.check("short-periods", "at a period of 20,000 a window of 200 rows serves A-Greedy "
                  "better than one of 1000, which covers 100,000 rows (beyond the paper)",
                  "less work there, not at the longest period",
                  f"{each(x, narrow, '.3f')} times as much with 1000",
                  bool(narrow[0] > 1.02 and narrow[-1] <= 1.01))
    telling.check("crossing", "Sweep overtakes A-Greedy when changes are rare",
                  "behind at a period of 100,000 rows, ahead at the longest",
                  f"{each(x, ratio, '.3f')} times A-Greedy's work",
                  bool(ratio[often] > 1 and ratio[-1] < 1))
    late = float((telling.mean(rarest, SWEEP, "total")
                  / telling.mean(rarest, A_GREEDY, "total"))[0])
    telling.check("crossing-later", "it does at a longer period (beyond the paper)",
                  f"ahead at {rarest.x[0]:,}", f"{late:.3f} times", late < 1)
    lines = {f"p = {p:g}": telling.mean(given, f"{SWEEP}(p={p})", "total")
             / telling.mean(given, f"{A_GREEDY}(p={p})", "total") for p in PROBABILITIES}
    telling.check("crossing-p", "where they cross depends on the drop-profiling probability "
                  "(beyond the paper)", "at 100,000 behind with 0.01, ahead with 0.02 and 0.05",
                  "; ".join(f"{name}: {each(x, one, '.3f')}" for name, one in lines.items()),
                  bool(lines["p = 0.01"][often] > 1 > lines["p = 0.02"][often]
                       > lines["p = 0.05"][often]))
    telling.figure("fig19-p", Drawing("Sweep's work over A-Greedy's", "rows between two changes",
                                      "times", marks=True, log_x=True, lines=((1.0, ""),)),
                   {name: (x, one.tolist()) for name, one in lines.items()},
                   "The same as Fig. 19, with other drop-profiling probabilities.",
                   ("crossing-p",))
    telling.rows("fig19-p", "period", x, lines)
    telling.curves("fig19", Drawing("Fig. 19: how often selectivities change", "rows between two",
                                    "probes for the workload", marks=True, log_x=True),
                   sweep, "total", "8 filters, four of cost 10; the same rows for everybody.",
                   ("high-rate", "high-rate-independent", "high-rate-swaps", "crossing",
                    "short-periods"))


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
    past = telling.mean(seldom, PAST[1], "total") / telling.mean(seldom, PAST[0], "total")
    telling.check("seldom-costs-past", "it does where a period of 1,000,000 is past the crossing, "
                  "with a drop-profiling probability of 0.02 (beyond the paper)", "the same",
                  f"Sweep takes {each(x, past, '.3f')} times",
                  bool(past[-1] < 1 and past[-1] < past[0]))
    for id, sweep, period in (("fig20", often, FREQUENT), ("fig21", seldom, RARE)):
        telling.curves(id, Drawing(f"Fig. {id[3:]}: a change every {period:,} rows",
                                   "cost of four filters", "probes for the workload", marks=True,
                                   log_x=True, log_y=True), sweep, "total",
                       checks=("often-costs",) if id == "fig20" else (
                           "seldom-costs", "seldom-costs-past"))


