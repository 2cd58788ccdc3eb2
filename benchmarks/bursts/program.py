"""`python -m benchmarks bursts`: pipelines, arrivals and policies, and what is asked of them.

A burst of blocks comes faster than whole paths can be run, but not faster than their steep
segments. What waits meanwhile is the core's own account (`Queued` events), beside native Structured
Streaming on the same files, and beside what no schedule could be below.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

from benchmarks.bursts.arrivals import ARRIVALS, absent
from benchmarks.bursts.bound import bound
from benchmarks.bursts.checks import check
from benchmarks.bursts.measuring import WARM_ROUNDS, Ground, Measured, measure, middle, native
from benchmarks.bursts.pacing import Pace
from benchmarks.bursts.pipelines import PIPELINES, Pipeline, prepare
from harness.findings import Report
from harness.program import Progress
from penstock import Engine
from penstock.policies.operators import POLICIES, policies
from penstock.report.figures import Drawing, draw
from penstock.simulator.outcomes import Floats
from penstock.whatif.predictions import PolicyOutcome, compare

LIMITED = {"chain_flush": "chain_flush(latency={}, exact=true)", "mixed": "mixed(latency={})"}
PLAY = 1.75
"""Those who keep a latency are given so many times that which FIFO has at worst. It binds where
Chain alone takes longer, as it does with three queries. Little more than FIFO has would leave it to
a few per cent of time whether blocks are held back, and the peak with it."""
TIMES = 3
"""How often FIFO is measured, from whose record the others are predicted, and who is as low as
Chain, to a block, with Chain itself. Reported is of each the one whose peak is in the middle: once
does not tell peaks of a few blocks apart, for one stall of the machine is a block more."""
QUICK_BLOCKS = 24
MAIN = ("fifo", "round_robin", "chain", "chain_flush")


def run(quick: bool, out: Path, progress: Progress) -> Report:
    report = Report("bursts", title="Bursts on Spark")
    report.about = [__doc__ or ""]
    assert next(iter(POLICIES)) == MAIN[0] == "fifo", "what the others promise follows from it"
    missing = "" if quick else absent()
    if missing:
        report.about.append(missing)
        progress(missing)
    work = Path(tempfile.mkdtemp(prefix="penstock-bursts-"))
    try:
        most = max(WARM_ROUNDS * len(pipeline.questions) + max(pipeline.blocks, pipeline.at_once)
                   for pipeline in PIPELINES)
        prepare(work / "prepared", most)
        with Engine(checkpoint=work / "session", master="local[2]") as host:
            ground = Ground(host.session, work / "prepared", work)
            shown = (replace(PIPELINES[0], blocks=QUICK_BLOCKS),) if quick else PIPELINES
            progress("warming up")
            Pace.of(shown[0], replace(ground, home=work / "warm"))
            for pipeline in shown:
                _pipeline(pipeline, quick, bool(missing), ground, out, report, progress)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return report


def _pipeline(
    pipeline: Pipeline, quick: bool, no_trace: bool, ground: Ground, out: Path, report: Report,
    progress: Progress,
) -> None:
    progress(f"{pipeline.name}: what a block takes")
    here = replace(ground, home=ground.home / pipeline.name.replace(" ", "-"))
    pace = Pace.of(pipeline, here)
    for kind in pipeline.arrivals[:1] if quick else pipeline.arrivals:
        if kind == "DEC-PKT" and no_trace:
            continue
        workload = f"{pipeline.name}, {kind}"
        tried = MAIN if quick or kind != pipeline.arrivals[0] else tuple(POLICIES)
        times = ARRIVALS[kind](pipeline.blocks) * pace.every
        found = _measured(workload, pipeline, tried, times, 1 if quick else TIMES, here, progress)
        _report(workload, len(pipeline.questions), pace, found, out, report)


def _measured(
    workload: str, pipeline: Pipeline, tried: Sequence[str], times: Floats, often: int,
    ground: Ground, progress: Progress,
) -> dict[str, Measured]:
    """By the name of the policy; native Spark is one, too."""
    progress(f"{workload}: native")
    found = {"native": native(pipeline, times, ground)}

    def measured(name: str) -> Measured:
        progress(f"{workload}: {name}")
        limit, text = inf, name
        if name in LIMITED:
            limit = round(PLAY * found["fifo"].figures["max s"], 3)
            text = LIMITED[name].format(limit)
        return replace(measure(pipeline, text, times, ground), limit=limit)

    for name in tried:  # FIFO is the first
        found[name] = middle([measured(name) for _ in range(often if name == "fifo" else 1)])
    near = found["chain"].peak + found["fifo"].block
    for name in [name for name in tried if found[name].peak < near]:
        found[name] = middle([found[name], *(measured(name) for _ in range(often - 1))])
    return found


def _report(
    workload: str, queries: int, pace: Pace, found: Mapping[str, Measured], out: Path,
    report: Report,
) -> None:
    fifo = found["fifo"]
    texts = {name: each.policy for name, each in found.items() if name != "native"}
    predicted = compare(fifo.events, policies(", ".join(texts.values())))
    least = bound(predicted.recording, fifo.events, fifo.began)
    rate = found["native"].figures["rows/s"]
    rows = {name: {"workload": workload, "policy": name, **each.figures,
                   "times native": each.figures["rows/s"] / rate} for name, each in found.items()}
    outcomes = {outcome.policy: outcome for outcome in predicted.simulated}
    for name, text in texts.items():
        rows[name] |= _predicted(compare(found[name].events, {}).recorded, outcomes[text])
    rows["bound"] = {"workload": workload, "policy": "bound", "peak waiting MB": max(least[1])}
    report.rows += rows.values()
    ids = check(workload, queries, pace, found, rows, report)
    file = draw(
        out / f"bursts-{workload.replace(', ', '-').replace(' ', '-')}.png",
        Drawing(f"{workload}: bytes that wait", "seconds", "MB", steps=True),
        {**{name: each.waiting for name, each in found.items()}, "bound": least})
    report.figure(workload, f"What waits: {workload}", file, checks=ids)


def _predicted(was: PolicyOutcome, would_be: PolicyOutcome) -> dict[str, float]:
    """Both by the same fold over the events of the whole run, with what came before the burst."""
    assert was.latency and would_be.latency
    return {"whole peak MB": was.peak_bytes / 1e6, "predicted peak MB": would_be.peak_bytes / 1e6,
            "mean s": was.latency.mean, "predicted mean s": would_be.latency.mean}
