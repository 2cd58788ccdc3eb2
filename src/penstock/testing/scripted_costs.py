"""What jobs cost, and whether they fail, unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from penstock.engine import Job, ProbeJob, RefreshJob, SegmentJob
from penstock.events import kinds as ev
from penstock.plan import Operator

Figures: TypeAlias = Mapping[str, tuple[float, float]]
"""By the id of an operator: seconds per row, and rows out per row in."""
_FREE = (0.0, 1.0)
_ROWS = 100.0


def one_second(job: SegmentJob | ProbeJob) -> float:
    """The seconds of every job over blocks, and of every probe."""
    return 1.0


def a_tenth(refresh: RefreshJob) -> float:
    """The seconds of every refresh."""
    return 0.1


def never(job: Job) -> str:
    """Why a job fails: it does not."""
    return ""


def carried(
    rows: float, stages: Iterable[tuple[Operator, ...]], figures: Figures
) -> tuple[float, float]:
    """Seconds that rows take through some stages, and how many come out."""
    seconds = 0.0
    for stage in stages:
        per_row, passed = figures.get(stage[0].id, _FREE)
        seconds += rows * per_row
        rows *= passed
    return seconds, rows


def measured(
    stages: Iterable[tuple[Operator, ...]], figures: Figures, how: Literal["sample", "worker"]
) -> dict[str, ev.StageFigures]:
    """What is measured of the stages."""
    known = {stage[0].id: figures.get(stage[0].id, _FREE) for stage in stages}
    return {id: ev.StageFigures(rows_in=_ROWS, rows_out=_ROWS * passed, seconds=_ROWS * per_row,
                                how=how)
            for id, (per_row, passed) in known.items()}
