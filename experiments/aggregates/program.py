"""All parts of the experiment, in the order of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.aggregates import calibration, example, figures, influences, on_spark, weighing
from experiments.aggregates.figures import Telling
from experiments.aggregates.runs import Size, run_all
from harness.findings import Report
from harness.program import Option, Progress, Selective, several

FULL = Size(queries=(40, 80, 160, 240), seeds=5, seconds=200, factors=(0.25, 0.5, 1.0, 2.0, 4.0),
            ratios=(0.0, 0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0), varied=160,
            cheap=(0.001, 0.01, 0.03, 0.1, 0.3), live=(80, 240))
QUICK = Size(queries=(40, 80, 160, 240), seeds=2, seconds=200, factors=(0.5, 1.0, 2.0),
             ratios=(0.0, 0.01, 0.3, 3.0), varied=80, cheap=(0.01,))
FACTOR = 1.0
TABLES, ARRAYS = 0.71, 2.8
"""b / a as `calibration` measured it on a quiet machine, with hash tables and with arrays. It is
fixed here, so that the figures are a function of the seeds."""

ABOUT = (
    "Figures 4 to 8 of L. Golab, K. G. Bijay, M. T. Özsu, \"Multi-query optimization of sliding "
    "window aggregates by schedule synchronization\" (2006), in virtual time: eight groups of "
    "top-k and quantile queries over packets, windows of 20 to 100 s, slides from 1 s to half the "
    "window, one pane a second, 200 s, and a one-time query about every second. Means over {seeds} "
    "seeds.",
    "A joint run costs a for every value of every pane of the longest window and b for every value "
    "of the window of every answer. The paper's program kept hash tables. With hash tables b / a "
    "is {tables:.2f} ({now:.2f} if measured just now), and the figures have that. With arrays, as "
    "Penstock has them, it is {arrays:.2f}; a figure shows what other prices change.",
    "The paper's machine was slower, and what matters is how much more is asked than it can do. So "
    "the machine is taken to be as fast as the conservative schedule of 40 queries needs at the "
    "low rate (a load of {factor:g}). One figure shows other loads.",
)


SIMULATED = "simulated"
PARTS = (SIMULATED, *(f"spark-{queries}" for queries in FULL.live))


def run(
    quick: bool, out: Path, progress: Progress, parts: Sequence[str] | None = None
) -> Iterator[Report]:
    """Everything the paper shows, then the same on Spark, a report for each number of queries.

    What runs on Spark takes a minute for each policy and seed, so it is left out of the quick form
    unless it is asked for by name.
    """
    for part in parts or ((SIMULATED,) if quick else PARTS):
        if part == SIMULATED:
            yield simulated(QUICK if quick else FULL, out, progress)
        else:
            queries = int(part.removeprefix("spark-"))
            yield on_spark.measured_live(queries, 1 if quick else on_spark.SEEDS, out, progress)


PROGRAM = Selective(run, (Option("parts", f"which parts: {', '.join(PARTS)}", several(PARTS)),))


def simulated(size: Size, out: Path, progress: Progress) -> Report:
    """Figures 4 to 8 and what explains them, in virtual time."""
    now = calibration.hash_tables().ratio
    progress(f"an answer costs {now:.2f} per value with hash tables now; {TABLES:.2f} is taken")
    report = Report("aggregates", title="Refreshing window aggregates together", about=[
        text.format(seeds=size.seeds, tables=TABLES, arrays=ARRAYS, now=now, factor=FACTOR)
        for text in ABOUT])
    rates = [figures.rate(size, high, TABLES, FACTOR) for high in (False, True)]
    loads = influences.loads(size, TABLES)
    answers, untold = (influences.answers(size, FACTOR, told) for told in (True, False))
    free = [figures.rate(size, high, 0.0, FACTOR) for high in (False, True)]
    grid = weighing.sweeps(size, TABLES, FACTOR)
    sweeps = [*rates, *loads, *answers, *untold, *free, *grid.values()]
    telling = Telling(report, run_all([case for sweep in sweeps for case in sweep.cases()],
                                      progress), out)
    example.tell(telling)
    figures.tell(telling, *rates)
    influences.tell_loads(telling, loads)
    influences.tell_answers(telling, answers, untold, TABLES, ARRAYS)
    influences.tell_free(telling, *free)
    weighing.tell(telling, grid, size)
    return report
