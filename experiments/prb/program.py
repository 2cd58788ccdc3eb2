"""All parts of the experiment, in the order of the paper."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from experiments.prb import expensive, overhead, readings, skew
from experiments.prb.runs import Size, play_all
from experiments.prb.telling import Telling
from harness.findings import Report
from harness.program import Progress

FULL = Size(
    tuples=10_000,
    flat=40,
    deep=16,
    slow=8,
    skews=tuple(i / 10 for i in range(10)),
    numbers=(1, 2, 4, 8, 16, 24, 32),
    prices=(25.0, 50.0, 100.0, 150.0, 200.0, 250.0, 300.0, 350.0, 400.0),
    overheads=(0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    per_stream=10_000,
)
QUICK = Size(
    tuples=10_000,
    flat=12,
    deep=3,
    slow=2,
    skews=(0.0, 0.3, 0.6, 0.9),
    numbers=(1, 4, 8, 16, 32),
    prices=(25.0, 150.0, 300.0, 400.0),
    overheads=(0.0, 0.5, 1.0, 10.0, 60.0),
    per_stream=1_000,
)
PARTS = (skew, expensive, overhead, readings)

ABOUT = (
    "Figures 3 to 12 of M. Sharaf, P. Chrysanthis, A. Labrinidis, \"Preemptive rate-based operator "
    "scheduling in a data stream management system\" (2005), simulated in virtual time: trees of "
    "operators, individual tuples, Poisson arrivals at every leaf at a utilisation of 0.9. The "
    "response time is that of the tuples that come out. Round-Robin's quantum is 1.",
    "The paper's streams have 10,000 tuples. That is read as all streams together, so that every "
    "point can be the mean over many draws of costs and arrivals, the same draws for every policy: "
    "{flat} of the tree with a single level, {deep} of the one with six, {slow} where Round-Robin "
    "runs too. The last section shows that 10,000 per stream saves the same.",
    "The paper does not say what merging at the root costs. Its numbers come out when it is free; "
    "the last section shows what becomes of them when it is not. It does not say either how the "
    "overhead of transitions enters the response time; Fig. 12 is given in three readings.",
)


def run(quick: bool, out: Path, progress: Progress) -> Report:
    """Everything the paper shows."""
    size = QUICK if quick else FULL
    report = Report("prb", title="Preemptive rate-based operator scheduling",
                    about=[text.format(**asdict(size)) for text in ABOUT])
    cases = [case for part in PARTS for sweep in part.sweeps(size) for case in sweep.cases()]
    telling = Telling(report, play_all(cases, progress), out)
    for part in PARTS:
        part.tell(telling, size)
    return report
