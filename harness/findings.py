"""What a benchmark or an experiment finds: rows, checks and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Check:
    """A claim or a target, beside what was measured."""

    id: str
    text: str
    target: str
    measured: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture, and the checks that speak of it."""

    id: str
    title: str
    file: Path
    caption: str = ""
    checks: tuple[str, ...] = ()


@dataclass(slots=True)
class Report:
    """What a benchmark or an experiment found."""

    name: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    title: str = ""
    about: list[str] = field(default_factory=list)
    """Paragraphs on what was done, and with what."""
    figures: list[Figure] = field(default_factory=list)
    columns: tuple[str, ...] = ()
    """Those of the rows that a table shows; the JSON has all. Without them a table has all, too."""

    def check(self, id: str, text: str, target: str, measured: str, holds: bool) -> None:
        """Add a check."""
        self.checks.append(Check(id, text, target, measured, bool(holds)))

    def figure(
        self, id: str, title: str, file: Path, caption: str = "", checks: Sequence[str] = ()
    ) -> None:
        """Add a figure."""
        self.figures.append(Figure(id, title, file, caption, tuple(checks)))
