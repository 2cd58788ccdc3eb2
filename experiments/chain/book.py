"""The book of the experiment: what is to be run, what was found, and where it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.chain.runs import Found, Job, Load, Runs
from harness.findings import Report
from penstock.report.figures import Drawing, Points, draw


@dataclass(frozen=True, slots=True)
class Plan:
    """The loads that several parts share."""

    quick: bool
    scale: float
    """Latencies are this part of the paper's: in the quick form bursts are shorter."""
    real: Mapping[str, Load]
    """Per query its part of the recorded trace."""
    synthetic: Mapping[str, Load]

    def pick(self, full: Sequence[Any], quick: Sequence[Any]) -> Sequence[Any]:
        """The points of a sweep."""
        return quick if self.quick else full


@dataclass(frozen=True, slots=True)
class Book:
    """What the parts of the experiment write into."""

    plan: Plan
    runs: Runs
    report: Report
    out: Path

    def of(self, load: Load, policy: str) -> Found:
        """What was found of a run."""
        return self.runs[Job(load, policy)]

    def all(self, load: Load, policies: Mapping[str, str]) -> dict[str, Found]:
        """What was found under each policy, by its label."""
        return {label: self.of(load, policy) for label, policy in policies.items()}

    def rows(
        self, figure: str, setting: str, found: Mapping[str, Found],
        paper: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        """One row for each policy: memory and latency, beside the paper's if it prints them."""
        least = found["chain"].peak
        for label, run in found.items():
            row: dict[str, Any] = {
                "figure": figure, "setting": setting, "policy": label, "peak_kb": run.peak,
                "to_chain": run.peak / least, "mean_kb": run.mean or None,
                "peak_ms": run.latency or None, "mean_ms": run.mean_latency or None}
            kb, ms = (paper or {}).get(label, (None, None))
            self.report.rows.append({**row, "paper_kb": kb, "paper_ms": ms})

    def draw(
        self, id: str, drawing: Drawing, series: Mapping[str, Points], caption: str,
        checks: Sequence[str] = (),
    ) -> None:
        """Draw a figure and put it into the report."""
        file = draw(self.out / "figures" / f"chain-{id}.png", drawing, series)
        self.report.figure(id, drawing.title, file, caption, checks)

    def check(self, id: str, text: str, target: str, measured: str, holds: bool) -> None:
        """Put a claim into the report."""
        self.report.check(id, text, target, measured, holds)


def times(ratio: float) -> str:
    """A ratio as people read it.

    >>> times(2.349), times(12.3)
    ('2.35x', '12.3x')
    """
    return f"{ratio:.3g}x"
