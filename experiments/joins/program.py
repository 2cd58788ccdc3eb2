"""All parts of the experiment, in the order of the paper."""

from __future__ import annotations

from pathlib import Path

from experiments.joins import analysis, responses
from experiments.joins.causes import causes, tell_causes
from experiments.joins.runs import Size, run_all
from experiments.joins.telling import Telling
from experiments.joins.workload import LOAD
from harness.findings import Report
from harness.program import Progress

FULL = Size(outers=100_000, seeds=3, bursts=(1.0, 2.0, 3.0, 4.0, 5.0),
            loads=(0.3, 0.5, 0.8, 0.9, 0.95))
QUICK = Size(outers=10_000, seeds=2, bursts=(1.0, 3.0, 5.0), loads=(0.3, 0.8, 0.95))

ABOUT = (
    "Figures 2b, 3b and 5 to 9 and the memory study of M. Hammad, M. Franklin, W. Aref, A. "
    "Elmagarmid, \"Scheduling for shared window joins over data streams\" (2003), simulated in "
    "virtual time: two streams, windows of 1 to 600 s, selectivity 0.002, {outers:,} rows that "
    "probe after the windows are full. Means over {seeds} seeds.",
    "The policies and the schedule are those of the product; an outer is a row here. A hash join "
    "takes 60 % of its time to look at the rows of a bucket and 40 % to make pairs, as the paper "
    "says of its own. The machine is busy for {load} of its time, which the paper does not state. "
    "With that LWO responds about alike for all windows, and the largest windows of SWF and MQT "
    "respond as the text says. Other loads, and other suspected causes, have figures and claims of "
    "their own.",
    "A response is the time from the later of two rows to the moment at which a query gets the "
    "pair. Means are over the queries: the mean over all pairs, in the numbers below, is nearly "
    "that of the largest windows, which have the most pairs.",
)


def run(quick: bool, out: Path, progress: Progress) -> Report:
    """Everything the paper shows."""
    size = QUICK if quick else FULL
    report = Report("joins", title="Sharing window joins", about=[
        text.format(outers=size.outers, seeds=size.seeds, load=LOAD) for text in ABOUT])
    hashed, nested = (responses.distributions(size, method) for method in ("hash", "nested_loops"))
    bursts, skews, loads = (part(size) for part in (
        responses.bursts, responses.skews, responses.loads))
    why = causes(size)
    sweeps = (hashed, nested, bursts, skews, loads, *why.sweeps)
    runs = run_all([case for sweep in sweeps for case in sweep.cases()], progress)
    telling = Telling(report, runs, out)
    analysis.tell(telling)
    responses.tell_distributions(telling, hashed, nested)
    responses.tell_bursts(telling, bursts)
    responses.tell_skews(telling, skews)
    responses.tell_loads(telling, loads)
    responses.tell_memory(telling, hashed, bursts)
    tell_causes(telling, why)
    return report
