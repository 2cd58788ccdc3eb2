"""What the parts of the experiment read from and write to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.filters.runs import Runs, Sweeping
from experiments.telling import ReportOfRuns
from penstock.report.figures import Drawing

RATE = "rows per 1000 probes"
PART = "part of the work"


@dataclass(frozen=True, slots=True)
class Telling(ReportOfRuns[Runs]):
    """A report, and the runs it is made from."""

    def mean(self, sweep: Sweeping, name: str, what: str = "rate") -> np.ndarray:
        """A figure under a policy over the parameter, averaged over the seeds."""
        return sweep.values(self.runs, name, what).mean(axis=1)

    def curves(
        self, id: str, drawing: Drawing, sweep: Sweeping, what: str = "rate", caption: str = "",
        checks: Sequence[str] = (), policies: Sequence[str] = (),
    ) -> None:
        """A line for each policy, and a row of numbers for each point."""
        names = tuple(policies) or sweep.policies
        self.figure(id, drawing, {name: (sweep.points(name), self.mean(sweep, name, what).tolist())
                                  for name in names}, caption, checks)
        self.rows(id, sweep.name, sweep.x, {name: self.mean(sweep, name, what) for name in names})

    def rows(
        self, id: str, name: str, x: Sequence[object], columns: Mapping[str, Sequence[float]]
    ) -> None:
        """A row of numbers for every point."""
        for place, at in enumerate(x):
            self.report.rows.append({
                "figure": id, "at": f"{name} {at:g}" if isinstance(at, float) else f"{name} {at}",
                **{column: float(f"{values[place]:.4g}") for column, values in columns.items()
                   if place < len(values)}})


def each(x: Sequence[float], values: Sequence[float], form: str = ".2f") -> str:
    """A number for each x, in words."""
    listed = ", ".join(f"{value:{form}}" for value in values)
    return f"{listed} at {', '.join(f'{at:g}' for at in x)}"
