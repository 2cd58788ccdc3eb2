"""All parts of the experiment, in the order of the paper."""

from __future__ import annotations

from pathlib import Path

from experiments.chain import charts, latency, memory, mixed, overheads, robin, sweeps
from experiments.chain.book import Book, Plan
from experiments.chain.calibration import MULTIPLE, SINGLE, TRACE, plan, utilisation
from experiments.chain.queries import QUERIES, service
from experiments.chain.runs import Job, Runs, play
from experiments.chain.traces import Recorded, present
from harness.findings import Report
from harness.program import Progress
from penstock.simulator.fleet import scatter

TITLE = "Operator scheduling in data stream systems"
PARTS = (memory, sweeps, latency, mixed, robin, overheads)


def run(quick: bool, out: Path, progress: Progress) -> Report:
    """Run everything that any part needs, then let each tell what was found."""
    progress("how fast the trace is to be played")
    shared = plan(quick)
    wanted = list(dict.fromkeys(job for part in PARTS for job in part.jobs(shared)))
    report = Report("chain", title=TITLE, about=_about(shared))
    book = Book(shared, _run(wanted, progress), report, out)
    charts.tell(book)
    for part in PARTS:
        part.tell(book)
    return report


def _run(wanted: list[Job], progress: Progress) -> Runs:
    runs: Runs = {}
    for done, (job, found) in enumerate(zip(wanted, scatter(play, wanted), strict=True), 1):
        runs[job] = found
        if done % 50 == 0 or done == len(wanted):
            progress(f"{done} of {len(wanted)} simulations")
    return runs


def _about(shared: Plan) -> list[str]:
    """What was done, and with what."""
    source = (f"the recorded arrivals of {TRACE} (the UDP packets of the trace that the paper used)"
              if present(TRACE) else
              "a generated hour (ON/OFF model), because no recorded trace was found; set "
              f"PENSTOCK_DATA to a folder with {TRACE}_arrivals.csv.gz to use it")
    speeds = "; ".join(_speed(query, load.traffic) for query, load in shared.real.items()
                       if isinstance(load.traffic, Recorded))
    single, multiple = (shared.scale * seconds * 1e3 for seconds in (SINGLE, MULTIPLE))
    quick = (" This is the quick form: shorter bursts (about a third of the paper's latencies, but "
             "for Table 1) and fewer points." if shared.quick else "")
    return [
        "Figs 4 to 20 and Table 1 of B. Babcock, S. Babu, M. Datar, R. Motwani, D. Thomas, "
        "\"Operator scheduling in data stream systems\", VLDB Journal 13 (2004), made again with "
        "Penstock's policies in virtual time, and a verdict on each claim. A claim that does not "
        f"hold is a finding: its reason stands beside it.{quick}",
        f"Real data set: {source}. The trace carries times only, so selectivities are met by "
        "chance, tuple by tuple. Synthetic data set: Penstock's ON/OFF generator in the paper's "
        "setting (flows begin once per unit of time, Pareto durations with alpha 2.3 and k 1).",
        "Tuples of 24 bytes arrive one by one and cost a hundredth of the chart's microseconds "
        "per page. Waiting for full pages would blur short bursts, and the paper's Chain at "
        "2.5 KB, one page, did not wait for any. KB are 1000 bytes. Round-Robin's turn is 400 µs.",
        "The paper does not say how fast its trace was played. We play it so fast that FIFO's "
        f"worst latency is that of the paper ({single:g} ms for single queries, {multiple:g} ms "
        "for three, 24.1 ms for Table 1), and show the busy period in which it occurs. FIFO's "
        "latency depends on arrivals and total work alone, so this favours no policy. "
        f"Utilisation over the hour, and speed: {speeds}. The window join is played at the "
        "utilisation of the single queries. The synthetic stream has utilisation 0.5, and its "
        "unit of time is set by the same latencies.",
    ]


def _speed(query: str, traffic: Recorded) -> str:
    used = utilisation(traffic, service(QUERIES[query]()))
    return f"{query} {used:.2f} (trace {traffic.speed:.0f} times as fast)"
