"""What the parts of the experiment read from and write to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.joins.runs import POLICIES, Runs, Sweep
from experiments.telling import ReportOfRuns


@dataclass(frozen=True, slots=True)
class Telling(ReportOfRuns[Runs]):
    """A report, and the runs it is made from."""

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
