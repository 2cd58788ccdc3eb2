"""What the parts of an experiment read from and write to: its runs, and the report made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from harness.findings import Report
from penstock.report.figures import Drawing, Points, draw

Runs = TypeVar("Runs")


@dataclass(frozen=True, slots=True)
class ReportOfRuns(Generic[Runs]):
    """A report, and the runs it is made from."""

    report: Report
    runs: Runs
    folder: Path
    """Pictures go into its `figures`."""

    def check(self, id: str, text: str, target: str, measured: str, holds: bool) -> None:
        """Add a claim and what became of it."""
        self.report.check(id, text, target, measured, holds)

    def figure(
        self, id: str, drawing: Drawing, series: Mapping[str, Points], caption: str,
        checks: Sequence[str] = (),
    ) -> None:
        """Draw lines."""
        file = draw(self.folder / "figures" / f"{self.report.name}-{id}.png", drawing, series)
        self.report.figure(id, drawing.title, file, caption, checks)
