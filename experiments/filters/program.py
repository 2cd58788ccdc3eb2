"""All parts of the experiment, in the order of the paper."""

from __future__ import annotations

from pathlib import Path

from experiments.filters import adaptivity, convergence, on_arrow, overheads, routers
from experiments.filters.runs import Size, run_all
from experiments.filters.telling import Telling
from harness.findings import Report
from harness.program import Progress

FULL = Size(seeds=3, rows=500_000, counts=(2, 4, 6, 8, 10, 12, 16, 20), workload=2_000_000,
            periods=(20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000),
            instances=1000, blocks=8)
QUICK = Size(seeds=2, rows=400_000, counts=(2, 4, 6, 8, 10, 16), workload=2_000_000,
             periods=(20_000, 100_000, 500_000, 1_000_000), instances=150,
             blocks=3)

ABOUT = (
    "Figures 9 to 21 and Table 2 of S. Babu, R. Motwani, K. Munagala, I. Nishizawa, J. Widom, "
    "\"Adaptive ordering of pipelined stream filters\" (2004), in virtual time: work is counted in "
    "probes of a filter. {rows:,} rows are measured after as many to converge. Means over {seeds} "
    "seeds; the filters are written in a random order.",
    "The policies and the matrix view are those of the product. Filters on rows and on profiled "
    "rows are counted. The upkeep of the window and the matrix has a price in probes, which is "
    "that of Table 2 for a drop-profiling probability of 0.01.",
    "The figures on Arrow are measured: predicates match a column of texts with a regular "
    "expression, one record batch after the other, and only rows that are left are looked at.",
)


def run(quick: bool, out: Path, progress: Progress) -> Report:
    """Everything the paper shows."""
    size = QUICK if quick else FULL
    report = Report("filters", title="Adaptive order of filters", about=[
        text.format(rows=size.rows, seeds=size.seeds) for text in ABOUT])
    counts, in_a_row, selectivities, correlations = (part(size) for part in (
        convergence.counts, convergence.in_a_row, convergence.selectivities,
        convergence.correlations))
    table, wide = overheads.table(size), overheads.wide(size)
    frequent, costs, probabilities, mixed = (part(size) for part in (
        overheads.counts, overheads.costs, overheads.often, overheads.mixed))
    alike = [overheads.alike(size, mixed) for mixed in (False, True)]
    timeline, periods, given, rarest = (part(size) for part in (
        adaptivity.timeline, adaptivity.periods, adaptivity.probabilities, adaptivity.rarest))
    often, seldom = (adaptivity.costs(size, period)
                     for period in (adaptivity.FREQUENT, adaptivity.RARE))
    runs = run_all([*convergence.cases(
        counts, in_a_row, selectivities, correlations, *table, wide, frequent, costs, probabilities,
        mixed, *alike, periods, given, rarest, often, seldom), *timeline], progress)
    telling = Telling(report, runs, out)
    convergence.tell_counts(telling, counts, in_a_row)
    convergence.tell_selectivities(telling, selectivities)
    convergence.tell_correlations(telling, correlations)
    convergence.tell_instances(telling, size)
    overheads.tell_table(telling, table, wide)
    overheads.tell_counts(telling, frequent)
    overheads.tell_costs(telling, costs, probabilities, mixed)
    overheads.tell_traps(telling, *alike)
    adaptivity.tell_timeline(telling, timeline)
    adaptivity.tell_periods(telling, periods, given, rarest)
    adaptivity.tell_costs(telling, often, seldom)
    routers.tell(telling, size)
    on_arrow.tell(telling, size, progress)
    return report
