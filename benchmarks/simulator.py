"""Simulator: operator invocations a second on one core, and the same model in SimPy beside it.

A workload is built once, with the fates of its blocks; what is timed is the simulation alone, from
the policy's preparation to the arrays of the result, in seconds of one core.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.queueing import Processor, response
from harness.findings import Report
from harness.program import Progress
from penstock.policies.operators import Route, policy
from penstock.simulator.arrivals import poisson
from penstock.simulator.host import simulate
from penstock.simulator.network import Network, path
from penstock.simulator.outcomes import Fate
from penstock.simulator.workload import Workload

RANKED = ("fifo", "edf", "greedy", "chain", "mixed(gamma=0.2)", "rate_based",
          "preemptive_rate_based")
"""The policies whose choice is the lowest rank."""
LOOKING = ("round_robin(quantum=5)", "chain_flush(latency=2000)")
"""One that ranks anew at every turn, and one that looks at all queues for every decision."""
TARGET = 200_000
MEASURED = 5_000
"""Blocks of the run in which memory is measured, which is slow."""

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Size:
    blocks: int
    ours: int
    """The best of so many repetitions counts."""
    simpy: int


FULL, QUICK = Size(100_000, 7, 2), Size(20_000, 4, 1)


@dataclass(frozen=True, slots=True)
class Built(Workload):
    """A workload whose blocks and fates are drawn already."""

    drawn: list[tuple[float, int, Fate]] = field(default_factory=list)

    def script(self) -> list[tuple[float, int, Fate]]:
        return self.drawn


def build(workload: Workload) -> Built:
    """Draw the fates of a workload."""
    known = {each.name: getattr(workload, each.name) for each in fields(workload)}
    return Built(**known, drawn=workload.script())


# --- workloads with fifty operators --------------------------------------------------------------


def single(blocks: int) -> Workload:
    """Fifty operators side by side, at a utilisation of 0.9."""
    return loaded(routes(50, 1), blocks, utilisation=0.9)


def chained(blocks: int) -> Workload:
    """Ten paths of five operators, at a utilisation of 0.9."""
    return loaded(routes(10, 5), blocks // 4, utilisation=0.9)


def burst(blocks: int) -> Workload:
    """Fifty operators side by side, and everything arrives in a hundredth of the time it takes."""
    return loaded(routes(50, 1), blocks, utilisation=100.0)


WORKLOADS: dict[str, Callable[[int], Workload]] = {
    "50 paths": single, "10 paths of 5": chained, "burst": burst}


def routes(paths: int, operators: int) -> list[Route]:
    """Paths whose operators differ in cost, selectivity and promise."""
    random = np.random.default_rng(5)
    return [
        path(f"p{i}", list(zip(random.uniform(1, 10, operators).tolist(),
                               random.uniform(0.5, 1, operators).tolist(), strict=True)),
             latency=float(random.uniform(100, 1000)))
        for i in range(paths)]


def loaded(routes: list[Route], blocks: int, utilisation: float) -> Workload:
    """Poisson arrivals at every path, at the same rate."""
    random = np.random.default_rng(6)
    gap = sum(route.cost for route in routes) / utilisation
    arrivals = {route.id: poisson(gap, blocks // len(routes), random) for route in routes}
    return Workload(Network(tuple(routes)), arrivals, model="tuples", seed=7)


# --- measuring -----------------------------------------------------------------------------------


def best(repetitions: int, run: Callable[[], _Found]) -> tuple[float, _Found]:
    """The least seconds of one core that a run took, and what it gave."""
    least = float("inf")
    for _ in range(repetitions):
        began = time.process_time()
        found = run()
        least = min(least, time.process_time() - began)
    return least, found


def in_simpy(workload: Workload, name: str) -> Processor:
    """The same in SimPy, without the search for cycles too."""
    processor = Processor(workload, policy(name))
    gc.disable()
    try:
        processor.run()
    finally:
        gc.enable()
    return processor


def bytes_per_block() -> dict[str, float]:
    """The most memory that a simulation held, beyond its workload, per block."""
    found = {}
    for label, make in WORKLOADS.items():
        workload = build(make(MEASURED))
        tracemalloc.start()
        result = simulate(workload, policy("chain"))
        found[label] = tracemalloc.get_traced_memory()[1] / len(workload.drawn)
        tracemalloc.stop()
        assert result.outputs
    return found


def run(quick: bool, out: Path, progress: Progress) -> Report:
    size = QUICK if quick else FULL
    report = Report("simulator")
    for label, make in WORKLOADS.items():
        workload = build(make(size.blocks))
        for name in (*RANKED, *LOOKING):
            progress(f"{label}: {name}")
            report.rows.append(_row(label, workload, name, size))
    _checks(report, bytes_per_block())
    return report


def _row(label: str, workload: Built, name: str, size: Size) -> dict[str, Any]:
    repetitions = size.ours if name in RANKED else 1
    seconds, result = best(repetitions, lambda: simulate(workload, policy(name)))
    row = {"workload": label, "policy": name, "invocations": result.invocations,
           "per s": round(result.invocations / seconds), "SimPy per s": None,
           "ratio": None, "response": result.mean_latency, "SimPy's": None}
    if name in RANKED:
        theirs, processor = best(size.simpy, lambda: in_simpy(workload, name))
        assert processor.invocations == result.invocations, (label, name)
        row |= {"SimPy per s": round(processor.invocations / theirs),
                "ratio": round(theirs / seconds, 2),
                "SimPy's": response(processor.latencies)}
    return row


def _checks(report: Report, memory: dict[str, float]) -> None:
    ranked = [row for row in report.rows if row["policy"] in RANKED]
    slowest = min(ranked, key=lambda row: row["per s"])
    report.check(
        "rate", "operator invocations a second on one core, at least, under a policy that ranks",
        f">= {TARGET:,}",
        f"{slowest['per s']:,} ({slowest['policy']}, {slowest['workload']})",
        slowest["per s"] >= TARGET)
    apart = max(abs(row["response"] / row["SimPy's"] - 1) for row in ranked)
    report.check("same", "mean response times differ from SimPy's by at most", "1e-9 of them",
                 f"{apart:.1e}", apart <= 1e-9)
    least = min(ranked, key=lambda row: row["ratio"])
    report.check(
        "simpy", "times as fast as SimPy, at least", ">= 1",
        f"{least['ratio']} ({least['policy']}, {least['workload']})", least["ratio"] >= 1)
    report.check(
        "memory", "bytes per block that a simulation holds at most, its results included",
        "<= 1,000", ", ".join(f"{label}: {held:.0f}" for label, held in memory.items()),
        max(memory.values()) <= 1000)
