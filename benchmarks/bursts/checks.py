"""What a burst must show, with verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.bursts.measuring import Measured
from benchmarks.bursts.pacing import Pace
from benchmarks.bursts.pipelines import QUANTUM
from harness.findings import Report

CLOSE = 0.25
"""A prediction may be off by this part."""
Rows = Mapping[str, Mapping[str, Any]]
"""By policy the row of the report."""


def check(
    workload: str, queries: int, pace: Pace, found: Mapping[str, Measured], rows: Rows,
    report: Report,
) -> list[str]:
    """Add the checks of a workload to the report; their ids."""
    before = len(report.checks)
    ours = {name: row for name, row in rows.items() if name not in ("native", "bound")}
    _pace(workload, pace, report)
    _memory(workload, found["fifo"], rows, ours, report)
    _speed(workload, queries, rows, ours, report)
    _latency(workload, found, rows, report)
    _answers(workload, found, report)
    _predictions(workload, ours, report)
    return [each.id for each in report.checks[before:]]


def _pace(workload: str, pace: Pace, report: Report) -> None:
    report.check(
        f"pace: {workload}", f"{workload}: the burst lies between Chain's and FIFO's rates",
        "seconds per block: Chain < burst < FIFO",
        f"{pace.chain:.2f} < {pace.every:.2f} < {pace.fifo:.2f}",
        pace.chain < pace.every < pace.fifo)


def _memory(workload: str, fifo: Measured, rows: Rows, ours: Rows, report: Report) -> None:
    peaks = {name: row["peak waiting MB"] for name, row in rows.items()}
    shown = ", ".join(f"{name} {peak:.2f}" for name, peak in peaks.items())
    if workload.startswith("two operators"):
        ratios = {name: peaks["chain"] / peaks[name] for name in ("fifo", "round_robin")}
        report.check(
            f"half: {workload}", f"{workload}: Chain's peak is at most half of FIFO's and of "
            "Round-Robin's", "<= 0.5",
            ", ".join(f"of {name}'s {ratio:.2f}" for name, ratio in ratios.items()),
            max(ratios.values()) <= 0.5)
    least = min(peaks[name] for name in ours)
    report.check(
        f"lowest: {workload}", f"{workload}: Chain's peak is the lowest of all policies",
        f"none lower by a block ({fifo.block:.2f} MB): less cannot be told", shown,
        peaks["chain"] < least + fifo.block)


def _speed(workload: str, queries: int, rows: Rows, ours: Rows, report: Report) -> None:
    rates = {name: row["rows/s"] for name, row in ours.items()}
    best = max(rates, key=rates.__getitem__)
    report.check(
        f"rate: {workload}", f"{workload}: Chain's throughput", ">= 0.9 of the best policy's",
        f"{rates['chain'] / rates[best]:.2f} of {best}'s", rates["chain"] >= 0.9 * rates[best])
    if queries == 1:  # native Spark runs several at once, each in a thread of its own
        ratio = rows["fifo"]["times native"]
        report.check(
            f"native: {workload}", f"{workload}: the engine with FIFO against native Spark",
            "rows a second, ratio >= 1", f"{ratio:.2f}", ratio >= 1)
    worst = max(row["scheduling %"] for row in ours.values())
    report.check(f"deciding: {workload}", f"{workload}: deciding costs little", "< 2 % of the run",
                 f"{worst:.2f} %", worst < 2.0)


def _latency(
    workload: str, found: Mapping[str, Measured], rows: Rows, report: Report
) -> None:
    limit, worst = found["chain_flush"].limit, rows["chain_flush"]["max s"]
    report.check(
        f"chain_flush: {workload}", f"{workload}: Chain-Flush keeps a threshold that FIFO keeps",
        f"at most {limit:.2f} s (FIFO's worst is {rows['fifo']['max s']:.2f} s) and a quantum of "
        f"{QUANTUM:g} s", f"{worst:.2f} s (Chain's worst is {rows['chain']['max s']:.2f} s)",
        worst <= limit + QUANTUM)


def _answers(workload: str, found: Mapping[str, Measured], report: Report) -> None:
    different = len({each.answers for each in found.values()})
    report.check(f"answers: {workload}", f"{workload}: all give the same answers",
                 "the same rows", "the same" if different == 1 else f"{different} kinds",
                 different == 1)


def _predictions(workload: str, ours: Rows, report: Report) -> None:
    for what, measured, predicted in (
            ("peak", "whole peak MB", "predicted peak MB"),
            ("mean latency", "mean s", "predicted mean s")):
        ratios = {name: row[predicted] / row[measured] for name, row in ours.items()}
        report.check(
            f"predicted {what}: {workload}",
            f"{workload}: what-if from FIFO's record predicts the {what} of every policy",
            f"within {CLOSE:.0%} of what was measured",
            ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()),
            all(abs(ratio - 1) <= CLOSE for ratio in ratios.values()))
