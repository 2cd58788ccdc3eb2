"""What the parts of the experiment read from and write to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.joins.runs import POLICIES, Runs, Sweep
from harness.findings import Report
from penstock.report.figures import Drawing, Points, draw


@dataclass(frozen=True, slots=True)
class Telling:
    """A report, and the runs it is made from."""

    report: Report
    runs: Runs
    folder: Path

    def check(self, id: str, text: str, target: str, measured: str, holds: bool) -> None:
        """Add a claim and what became of it."""
        self.report.check(id, text, target, measured, holds)

    def figure(
        self, id: str, drawing: Drawing, series: Mapping[str, Points], caption: str,
        checks: Sequence[str] = (),
    ) -> None:
        """Draw lines."""
        file = draw(self.folder / "figures" / f"joins-{id}.png", drawing, series)
        self.report.figure(id, drawing.title, file, caption, checks)

    def mean(self, sweep: Sweep, name: str, what: str = "mean") -> np.ndarray:
        """A figure under a policy, over the parameter of a sweep."""
        return sweep.mean(self.runs, name, what)

    def means(self, sweep: Sweep, what: str = "mean") -> dict[str, np.ndarray]:
        """The same under every policy."""
        return {name: self.mean(sweep, name, what) for name in POLICIES}

    def rows(
        self, id: str, name: str, x: Sequence[str], columns: Mapping[str, Sequence[float]]
    ) -> None:
        """A row of numbers for every point."""
        for place, at in enumerate(x):
            self.report.rows.append({
                "figure": id, "at": f"{name} {at}",
                **{column: float(f"{values[place]:.4g}") for column, values in columns.items()}})


def each(sweep: Sweep, values: Sequence[float]) -> str:
    """A number for each x, in words."""
    listed = ", ".join(f"{value:.2f}" for value in values)
    return f"{listed} at {', '.join(sweep.x)}"
