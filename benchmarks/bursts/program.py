"""`python -m benchmarks bursts`: pipelines, arrivals and policies, and what is asked of them.

A burst of blocks comes faster than whole paths can be run, but not faster than their steep
segments. What waits meanwhile is the core's own account (`Queued` events), beside native Structured
Streaming on the same files, and beside what no schedule could be below. Every policy is measured
several times: a row has the means, but the latency at worst is the worst of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.bursts.arrivals import ARRIVALS, absent
from benchmarks.bursts.bound import bound
from benchmarks.bursts.checks import check
from benchmarks.bursts.measuring import WARM_ROUNDS, Ground, Measured, measure, native
from benchmarks.bursts.pacing import Pace
from benchmarks.bursts.pipelines import PIPELINES, Pipeline, prepare
from benchmarks.bursts.policies import (
    LIMITED,
    MAIN,
    POLICIES,
    routes,
    slope_between,
    threshold,
    written,
)
from benchmarks.live import workplace
from harness.findings import Report
from harness.program import Option, Progress, Selective, several
from penstock.policies.operators import policies as policies_of
from penstock.report.figures import Drawing, draw
from penstock.simulator.outcomes import Floats
from penstock.whatif.predictions import PolicyOutcome, compare
from penstock.whatif.recorded import Recording

REPEATS = 3
"""One stall of a machine makes one more block wait: once does not tell peaks of a few blocks
apart."""
QUICK_BLOCKS = 24
COLUMNS = ("workload", "policy", "peak waiting MB", "peak least MB", "peak most MB", "p50 s",
           "p99 s", "max s", "rows/s", "times native", "jobs", "whole peak MB",
           "predicted peak MB", "mean s", "predicted mean s")


def run(
    quick: bool, out: Path, progress: Progress, pipelines: Sequence[str] | None = None,
    policies: Sequence[str] | None = None, repeats: int | None = None,
) -> Iterator[Report]:
    """A report per pipeline."""
    default = PIPELINES[:1] if quick else PIPELINES
    wanted = [each for each in PIPELINES if each.id in pipelines] if pipelines else default
    often = repeats or (1 if quick else REPEATS)
    missing = absent() if any("DEC-PKT" in each.arrivals for each in wanted) else ""
    if missing:
        progress(missing)
    with workplace("bursts") as (spark, work):
        prepare(work / "prepared", max(
            WARM_ROUNDS * len(pipeline.questions) + max(pipeline.blocks, pipeline.at_once)
            for pipeline in wanted))
        ground = Ground(spark, work / "prepared", work)
        progress("warming up")
        Pace.of(wanted[0], replace(ground, home=work / "warm"))
        for pipeline in wanted:
            shorter = replace(pipeline, blocks=min(QUICK_BLOCKS, pipeline.blocks),
                              arrivals=pipeline.arrivals[:1]) if quick else pipeline
            report = Report(f"bursts-{pipeline.id}", title=f"Bursts on Spark: {pipeline.name}",
                            columns=COLUMNS)
            report.about = [__doc__ or "", *([missing] if missing else [])]
            tried = policies or (tuple(POLICIES) if pipeline.thorough and not quick else MAIN)
            _pipeline(shorter, tried, often, bool(missing), ground, out, report, progress)
            yield report


PROGRAM = Selective(run, (
    Option("pipelines", "which ones, with commas between them: "
           + ", ".join(pipeline.id for pipeline in PIPELINES),
           several(pipeline.id for pipeline in PIPELINES)),
    Option("policies", f"which ones beside fifo and native Spark: {', '.join(POLICIES)}",
           several(POLICIES)),
    Option("repeats", f"how often each is measured (default: {REPEATS})", int),
))


def _pipeline(
    pipeline: Pipeline, tried: Sequence[str], often: int, no_trace: bool, ground: Ground,
    out: Path, report: Report, progress: Progress,
) -> None:
    progress(f"{pipeline.name}: what a block takes")
    here = replace(ground, home=ground.home / pipeline.id)
    here.home.mkdir()
    pace = Pace.of(pipeline, here)
    report.about.append(
        f"Seconds per block: {pace.chain:.2f} for Chain's first segment, {pace.fifo:.2f} from end "
        f"to end under FIFO; one comes every {pace.every:.2f} s where it is busy.")
    for kind in pipeline.arrivals:
        if kind == "DEC-PKT" and no_trace:
            continue
        workload = f"{pipeline.name}, {kind}"
        times = ARRIVALS[kind](pipeline.blocks) * pace.every
        those = [name for name in tried if name in MAIN or kind == pipeline.arrivals[0]]
        found = _measured(workload, pipeline, those, times, often, here, progress)
        _report(workload, pipeline, found, out, report)


def _measured(
    workload: str, pipeline: Pipeline, tried: Sequence[str], times: Floats, often: int,
    ground: Ground, progress: Progress,
) -> dict[str, list[Measured]]:
    """By the name of the policy; native Spark is one, too.

    FIFO and native Spark take turns, and then all others do, so that a machine that becomes slower
    does so for all.
    """
    found: dict[str, list[Measured]] = {"fifo": []} if pipeline.windows else {
        "native": [], "fifo": []}
    for number in range(often):
        for name in found:
            progress(f"{workload}: {name}, {number + 1} of {often}")
            found[name].append(native(pipeline, times, ground) if name == "native" else
                               measure(pipeline, name, times, ground))
    limit = threshold(max(each.figures["max s"] for each in found["fifo"]))
    gamma = slope_between(routes(Recording.of(_middle(found["fifo"]).events)))
    others = [name for name in tried if name != "fifo"]
    for number in range(often):
        for name in others:
            progress(f"{workload}: {name}, {number + 1} of {often}")
            one = measure(pipeline, written(name, limit, gamma), times, ground)
            found.setdefault(name, []).append(
                replace(one, limit=limit) if name in LIMITED else one)
    return found


def _middle(several: Sequence[Measured]) -> Measured:
    """The one whose peak is in the middle."""
    return sorted(several, key=lambda each: each.peak)[len(several) // 2]


def _report(
    workload: str, pipeline: Pipeline, found: Mapping[str, Sequence[Measured]], out: Path,
    report: Report,
) -> None:
    fifo = _middle(found["fifo"])
    texts = {name: several[0].policy for name, several in found.items() if name != "native"}
    predicted = compare(fifo.events, policies_of(", ".join(texts.values())))
    least = bound(predicted.recording, fifo.events, fifo.began)
    rows: dict[str, dict[str, Any]] = {
        name: {"workload": workload, "policy": name, "written": several[0].policy,
               **_means(several)} for name, several in found.items()}
    if "native" in rows:
        for row in rows.values():
            row["times native"] = row["rows/s"] / rows["native"]["rows/s"]
    outcomes = {outcome.policy: outcome for outcome in predicted.simulated}
    for name, text in texts.items():
        was = [compare(each.events, {}).recorded for each in found[name]]
        rows[name] |= _predicted(was, outcomes[text])
    rows["bound"] = {"workload": workload, "policy": "bound", "peak waiting MB": max(least[1])}
    report.rows += rows.values()
    ids = check(workload, pipeline, found, rows, report)
    file = draw(
        out / f"bursts-{workload.replace(', ', '-').replace(' ', '-')}.png",
        Drawing(f"{workload}: bytes that wait", "seconds", "MB", steps=True),
        {**{name: _middle(several).waiting for name, several in found.items()}, "bound": least})
    report.figure(workload, f"What waits: {workload}", file, checks=ids)


def _means(several: Sequence[Measured]) -> dict[str, Any]:
    """The mean of every figure, where the peaks lie, and the worst of all latencies."""
    figures = {name: sum(each.figures[name] for each in several) / len(several)
               for name in several[0].figures}
    peaks = [each.peak for each in several]
    return {**figures, "peak least MB": min(peaks), "peak most MB": max(peaks),
            "max s": max(each.figures["max s"] for each in several), "measured": len(several)}


def _predicted(was: Sequence[PolicyOutcome], would_be: PolicyOutcome) -> dict[str, float]:
    """Both by the same fold over the events of the whole run, with what came before the burst."""
    assert would_be.latency
    means = [each.latency.mean for each in was if each.latency]
    return {"whole peak MB": sum(each.peak_bytes for each in was) / len(was) / 1e6,
            "predicted peak MB": would_be.peak_bytes / 1e6,
            "mean s": sum(means) / len(means), "predicted mean s": would_be.latency.mean}
