"""What a burst must show, with verdicts: means of repeated measurements, and their spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.bursts.measuring import Measured
from benchmarks.bursts.pipelines import QUANTUM, Pipeline
from benchmarks.bursts.policies import LIMITED
from harness.findings import Report

CLOSE = 0.25
"""A prediction may be off by this part."""
THIRD = 1 / 3
"""Of FIFO's peak, that Chain's may be."""
Rows = Mapping[str, Mapping[str, Any]]
"""By policy the row of the report: means, but for the latency at worst."""
Found = Mapping[str, Sequence[Measured]]
"""By policy its measurements."""


def check(
    workload: str, pipeline: Pipeline, found: Found, rows: Rows, report: Report
) -> list[str]:
    """Add the checks of a workload to the report; their ids."""
    before = len(report.checks)
    ours = {name: row for name, row in rows.items() if name not in ("native", "bound")}
    if "chain" in ours:
        _memory(workload, pipeline, found, rows, report)
        _speed(workload, ours, report)
        _latency(workload, found, rows, report)
    if "native" in rows:
        ratio = rows["fifo"]["times native"]
        report.check(
            f"native: {workload}", f"{workload}: FIFO's throughput over native Spark's",
            ">= 1", f"{ratio:.2f}", ratio >= 1)
    worst = max(row["scheduling %"] for row in ours.values())
    report.check(f"deciding: {workload}", f"{workload}: deciding costs little", "< 2 % of the run",
                 f"{worst:.2f} %", worst < 2.0)
    different = {each.answers for several in found.values() for each in several}
    report.check(f"answers: {workload}", f"{workload}: all give the same answers", "the same rows",
                 "the same" if len(different) == 1 else f"{len(different)} kinds",
                 len(different) == 1)
    _predictions(workload, ours, report)
    return [each.id for each in report.checks[before:]]


def _memory(
    workload: str, pipeline: Pipeline, found: Found, rows: Rows, report: Report
) -> None:
    peaks = {name: [each.peak for each in several] for name, several in found.items()}
    ratio = rows["chain"]["peak waiting MB"] / rows["fifo"]["peak waiting MB"]
    report.check(
        f"third: {workload}", f"{workload}: Chain's peak over FIFO's",
        f"<= 0.33 (the chart itself allows no less than {1 / pipeline.most:.2f})",
        f"{ratio:.2f}", ratio <= THIRD)
    chain = rows["chain"]["peak waiting MB"]
    ours = {name: row["peak waiting MB"] for name, row in rows.items()
            if name not in ("native", "bound", "chain")}
    lower = [name for name, peak in ours.items() if peak < chain]
    apart = [name for name in lower if max(peaks[name]) < min(peaks["chain"])]
    report.check(
        f"lowest: {workload}", f"{workload}: the mean of Chain's peaks is the lowest",
        "no mean is lower, or measurements of both overlap",
        ", ".join(f"{name} {_spread(peaks[name])}" for name in ("chain", *ours))
        + (f"; lower but not apart: {', '.join(sorted(set(lower) - set(apart)))}"
           if set(lower) - set(apart) else "")
        + (f"; lower: {', '.join(apart)}" if apart else ""), not apart)


def _spread(values: Sequence[float]) -> str:
    """A mean, and where the values lie.

    >>> _spread([2.0, 2.5, 3.0])
    '2.50 (2.00 to 3.00)'
    """
    mean = sum(values) / len(values)
    return f"{mean:.2f} ({min(values):.2f} to {max(values):.2f})"


def _speed(workload: str, ours: Rows, report: Report) -> None:
    rates = {name: row["rows/s"] for name, row in ours.items()}
    best = max(rates, key=rates.__getitem__)
    report.check(
        f"rate: {workload}", f"{workload}: Chain's throughput", ">= 0.9 of the best policy's",
        f"{rates['chain'] / rates[best]:.2f} of {best}'s", rates["chain"] >= 0.9 * rates[best])


def _latency(workload: str, found: Found, rows: Rows, report: Report) -> None:
    """Who keeps a threshold, where Chain alone does not: elsewhere there is nothing to see."""
    for name in LIMITED:
        if name not in found:
            continue
        most = found[name][0].limit + QUANTUM
        if rows["chain"]["max s"] <= most:
            continue
        worst = rows[name]["max s"]
        report.check(
            f"{name}: {workload}", f"{workload}: {name} keeps a threshold that FIFO keeps and "
            "Chain does not, in the worst of all measurements",
            f"at most {found[name][0].limit:.2f} s (FIFO's worst is {rows['fifo']['max s']:.2f} s) "
            f"and a quantum of {QUANTUM:g} s",
            f"{worst:.2f} s (Chain's worst is {rows['chain']['max s']:.2f} s)", worst <= most)


def _predictions(workload: str, ours: Rows, report: Report) -> None:
    for what, measured, predicted in (
            ("peak", "whole peak MB", "predicted peak MB"),
            ("mean latency", "mean s", "predicted mean s")):
        ratios = {name: row[predicted] / row[measured] for name, row in ours.items()}
        close = sum(abs(ratio - 1) <= CLOSE for ratio in ratios.values())
        report.check(
            f"predicted {what}: {workload}",
            f"{workload}: what-if from FIFO's record predicts the {what} of every policy",
            f"within {CLOSE:.0%} of what was measured",
            f"{close} of {len(ratios)}: "
            + ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()),
            close == len(ratios))
