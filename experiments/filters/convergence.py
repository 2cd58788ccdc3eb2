"""Section 9.2: how good the orders are if nothing changes. Figs 9 to 11; random conjunctions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from experiments.filters.runs import A_GREEDY, INDEPENDENT, OPTIMAL, Case, Size, Sweeping, sweeping
from experiments.filters.telling import RATE, Telling, each
from experiments.filters.workload import Filters
from penstock.policies.filters import DropPatterns
from penstock.policies.filters.model.drop_patterns import greedy_order
from penstock.policies.filters.model.exhaustive import exhaustive_order
from penstock.report.figures import Drawing

PAIR = (A_GREEDY, INDEPENDENT)
STAYING = "independent(alpha=0.5)"
"""Filters of one selectivity stay as they are written: none drops twice as much as another."""
SEARCHED = 10
"""Exhaustive search is made for so many filters at most."""


def stable(run: Size, /, **given: object) -> Filters:
    """Filters that never change, and the rows to learn them and to measure."""
    return replace(Filters(rows=run.rows, warm_up=run.rows), **given)  # type: ignore[arg-type]


def counts(size: Size) -> Sweeping:
    """Fig. 9."""
    return sweeping("filters", size.counts, [stable(size, count=count) for count in size.counts],
                    (*PAIR, OPTIMAL), size.seeds, optimal=SEARCHED)


def in_a_row(size: Size) -> Sweeping:
    """Fig. 9, if Independent evaluates the filters of a group one after the other."""
    return sweeping("filters", size.counts, [
        stable(size, count=count, in_a_row=True) for count in size.counts],
        (A_GREEDY, STAYING), size.seeds)


def selectivities(size: Size) -> Sweeping:
    """Fig. 10."""
    kept = tuple(tenths / 10 for tenths in range(1, 10))
    return sweeping("selectivity", kept, [stable(size, keeps=(one,)) for one in kept], PAIR,
                    size.seeds)


def correlations(size: Size) -> Sweeping:
    """Fig. 11."""
    factors = (1, 2, 3, 4, 5, 6, 7, 8)
    return sweeping("correlation factor", factors, [stable(size, size=one) for one in factors],
                    PAIR, size.seeds)


def tell_counts(telling: Telling, sweep: Sweeping, in_a_row: Sweeping) -> None:
    """Fig. 9."""
    x = sweep.x
    lead = telling.mean(sweep, A_GREEDY) / telling.mean(sweep, INDEPENDENT)
    several = np.array(x) > 2
    telling.check("n-ahead", "A-Greedy is ahead of Independent throughout",
                  "at every number of filters above 2; two are one group and have no better order",
                  f"{each(x, lead, '.3f')} times", bool((lead[several] > 1).all()))
    telling.check("n-widens", "the gap widens with the number of filters",
                  "never smaller at the next number, within 1 %",
                  f"{each(x, lead, '.3f')} times",
                  bool((lead[1:] >= 0.99 * lead[:-1]).all() and lead[-1] > lead[0]))
    worst = telling.mean(in_a_row, A_GREEDY) / telling.mean(in_a_row, STAYING)
    work = (telling.mean(in_a_row, STAYING, "tuples")
            / telling.mean(in_a_row, A_GREEDY, "tuples"))
    telling.check("n-widens-in-a-row", "the gap in work on rows widens if Independent stays in an "
                  "order in which the filters of a group follow each other (beyond the paper)",
                  "never smaller at the next number, within 1 %",
                  f"{each(x, work, '.3f')} times; with all overhead {each(x, worst, '.3f')}",
                  bool((work[1:] >= 0.99 * work[:-1]).all() and work[-1] > 1.1 * work[0]))
    telling.rows("fig9-in-a-row", "filters", x, {
        name: telling.mean(in_a_row, name) for name in in_a_row.policies})
    searched = sweep.points(OPTIMAL)
    best = telling.mean(sweep, OPTIMAL)
    near = telling.mean(sweep, A_GREEDY)[:len(best)] / best
    telling.check("n-near", "A-Greedy is near-optimal for small n",
                  "within 3 % of the optimal order up to 6 filters",
                  f"{each(searched, near, '.3f')} times",
                  bool((near[np.array(searched) <= 6] >= 0.97).all()))
    ours = sweep.values(telling.runs, A_GREEDY, "tuples")[several]
    theirs = sweep.values(telling.runs, INDEPENDENT, "tuples")[several]
    telling.check("n-order", "Independent's order almost always costs more than A-Greedy's",
                  "more work on rows in 9 of 10 runs above 2 filters",
                  f"{(theirs > ours).mean():.0%} of {ours.size} runs; on average "
                  f"{(theirs / ours).mean():.3f} times", bool((theirs > ours).mean() >= 0.9))
    tuples = _tuples_over_optimal(telling, sweep)
    share = float((tuples <= 1.005).mean())
    telling.check("n-usually", "A-Greedy usually finds the optimal order",
                  "in 9 of 10 runs the work on rows is within 0.5 % of that in the optimal order",
                  f"{share:.0%} of {tuples.size} runs; at most {tuples.max():.4f} times",
                  share >= 0.9)
    telling.curves("fig9", Drawing("Fig. 9: the number of filters", "filters", RATE, marks=True),
                   sweep, caption="Selectivity 0.5, groups of 2, equal costs.",
                   checks=("n-ahead", "n-widens", "n-order", "n-near", "n-usually"))


def _tuples_over_optimal(telling: Telling, sweep: Sweeping) -> np.ndarray:
    """The work on rows in A-Greedy's orders over that in the optimal one, on the same rows."""
    best = sweep.values(telling.runs, OPTIMAL, "tuples")
    return sweep.values(telling.runs, A_GREEDY, "tuples")[:len(best)] / best


def tell_selectivities(telling: Telling, sweep: Sweeping) -> None:
    """Fig. 10."""
    lead = telling.mean(sweep, A_GREEDY) / telling.mean(sweep, INDEPENDENT)
    peak = sweep.x[int(np.argmax(lead))]
    telling.check("selectivity-middle", "A-Greedy gains most over Independent at intermediate "
                  "selectivities", "the largest lead between 0.3 and 0.7, the ends at most half "
                  "of it", f"{each(sweep.x, lead, '.3f')} times",
                  0.3 <= peak <= 0.7 and max(lead[0], lead[-1]) - 1 <= (lead.max() - 1) / 2)
    telling.curves("fig10", Drawing("Fig. 10: selectivity", "selectivity of every filter", RATE,
                                    marks=True), sweep,
                   caption="8 filters. At 0.1 and 0.9 independent filters agree on 82 % of the "
                   "rows, so they are left independent.", checks=("selectivity-middle",))


def tell_correlations(telling: Telling, sweep: Sweeping) -> None:
    """Fig. 11."""
    lead = telling.mean(sweep, A_GREEDY) / telling.mean(sweep, INDEPENDENT)
    peak = int(np.argmax(lead))
    telling.check("correlation-middle", "A-Greedy's lead grows with the correlation factor and "
                  "shrinks when all filters are alike", "the largest lead at a factor of 2 to 6; "
                  "that at 8 at most half of it", f"{each(sweep.x, lead, '.3f')} times",
                  2 <= sweep.x[peak] <= 6 and lead[-1] - 1 <= (lead.max() - 1) / 2)
    telling.curves("fig11", Drawing("Fig. 11: correlation", "filters in a group", RATE, marks=True),
                   sweep, caption="8 filters.", checks=("correlation-middle",))


def tell_instances(telling: Telling, size: Size) -> None:
    """Theorem 4.1 on random conjunctions: predicates that overlap in any way, with any costs."""
    rng = np.random.default_rng(4)
    ratios: dict[int, list[float]] = {count: [] for count in (3, 5, 8)}
    for count, found in ratios.items():
        for _ in range(size.instances):
            found.append(_ratio(rng, count))
    together = np.concatenate(list(ratios.values()))
    telling.check("four", "a greedy order costs at most four times the best", "never more",
                  f"at most {together.max():.3f} times in {together.size} random conjunctions; "
                  f"{(together < 1 + 1e-9).mean():.0%} are optimal", bool(together.max() <= 4))
    telling.rows("random", "predicates", list(ratios), {
        "optimal, part": [float(np.mean(np.array(one) < 1 + 1e-9)) for one in ratios.values()],
        "mean ratio": [float(np.mean(one)) for one in ratios.values()],
        "worst ratio": [float(np.max(one)) for one in ratios.values()]})


def _ratio(rng: np.random.Generator, count: int) -> float:
    """Greedy's cost over the least, for 40 patterns of rows that some latent kinds correlate."""
    rates = rng.beta(0.6, 0.9, (4, count))
    dropped = rng.random((40, count)) < rates[rng.integers(0, 4, 40)]
    patterns = DropPatterns(dropped, rng.random(40))
    seconds = np.exp(rng.normal(0, 1, count))
    found = patterns.expected_cost(greedy_order(patterns, seconds, range(count)), seconds)
    return found / patterns.expected_cost(exhaustive_order(patterns, seconds), seconds)


def cases(*sweeps: Sweeping) -> list[Case]:
    """All runs of some sweeps."""
    return [case for sweep in sweeps for case in sweep.cases()]
