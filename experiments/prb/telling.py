"""How sweeps are told: a figure, a row of numbers for every point, and checks beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.prb.runs import FIFO, PRB, RB, RR, Runs, Sweep
from experiments.telling import ReportOfRuns
from penstock.report.figures import Drawing
from penstock.simulator.outcomes import Floats

SHORT = {RR: "RR", FIFO: "FIFO", RB: "RB", PRB: "PRB"}
RESPONSE = "mean response time"
GAIN = "response time saved over RB, %"
COST_SKEW = "skew of the costs (Zipf parameter)"


@dataclass(frozen=True, slots=True)
class Telling(ReportOfRuns[Runs]):
    """What the parts of the experiment read from and write to."""

    def response(self, sweep: Sweep, name: str) -> Floats:
        """Mean response times over the parameter."""
        return sweep.response(self.runs, name)

    def gains(self, sweep: Sweep) -> Floats:
        """Per cent that PRB saves over RB, a row per draw."""
        return sweep.gains(self.runs)

    def responses(
        self, id: str, drawing: Drawing, sweep: Sweep, caption: str, checks: Sequence[str] = ()
    ) -> None:
        """A figure of mean response times, and their rows."""
        series = {name: (sweep.x, self.response(sweep, name)) for name in sweep.policies}
        self.figure(id, drawing, series, caption, checks)
        self.rows(id, sweep)

    def savings(
        self, id: str, drawing: Drawing, sweep: Sweep, caption: str, checks: Sequence[str] = ()
    ) -> None:
        """A figure of what PRB saves over RB, with its spread over the draws."""
        gains = self.gains(sweep)
        series = {f"{PRB}, mean of {sweep.draws} draws": (sweep.x, gains.mean(axis=0)),
                  f"{PRB}, highest": (sweep.x, gains.max(axis=0)),
                  f"{PRB}, lowest": (sweep.x, gains.min(axis=0))}
        self.figure(id, drawing, series, caption, checks)

    def rows(self, id: str, sweep: Sweep) -> None:
        """A row of numbers for every point of a sweep."""
        gains = self.gains(sweep)
        for i, value in enumerate(sweep.x):
            means = {short: round(float(self.response(sweep, name)[i]), 1)
                     for name, short in SHORT.items() if name in sweep.policies}
            self.report.rows.append({
                "figure": id, "at": f"{sweep.name} {value:g}", **dict.fromkeys(SHORT.values()),
                **means, "gain %": round(float(gains[:, i].mean()), 2),
                "± %": round(float(gains[:, i].std(ddof=1)), 2), "draws": sweep.draws})
