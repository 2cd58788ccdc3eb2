"""All parts of the experiment, in the order of the paper."""

from __future__ import annotations

from pathlib import Path

from penstock.report.form import Progress, Report


def run(quick: bool, out: Path, progress: Progress) -> Report:
    return Report("chain", title="Operator scheduling in data stream systems")
