"""What jobs cost, and whether they fail, unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from penstock.engine import Job, ProbeJob, RefreshJob, SegmentJob
from penstock.engine.instructions import Evaluation
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


def drawn(
    drops: Mapping[str, float], predicates: Sequence[Operator], figures: Figures,
    evaluation: Evaluation, rows: int, first: int, last: int,
) -> ev.ConjunctionProfile | None:
    """The profile of a job that evaluates some places of a conjunction, exactly as scripted.

    ``rows`` are those of its blocks. ``drops`` has the share of each pattern among all rows. Rows
    that an earlier predicate drops do not come to the job, and what is not asked for is not
    evaluated.

    >>> one, two = Operator("one", "python", "one(a)"), Operator("two", "python", "two(a)")
    >>> drawn({"11": 0.25, "01": 0.5}, (one, two), {"two": (2.0, 0.5)},
    ...       Evaluation(order=(0, 1), rate=0.1, unasked=((1,), ())), 400, 0, 2).patterns
    {'11': 10, '01': 20}
    """
    if not evaluation.rate:
        return None
    found: dict[str, int] = {}
    dropped = 0.0
    for pattern, share in drops.items():
        places = [place for place, number in enumerate(evaluation.order) if pattern[number] == "1"]
        if places and first <= places[0] < last:
            seen = {places[0], *evaluation.unasked[places[0]]} & set(places)
            bits = ["1" if evaluation.order.index(number) in seen else "0"
                    for number in range(len(pattern))]
            profiled = round(rows * evaluation.rate * share)
            found["".join(bits)] = found.get("".join(bits), 0) + profiled
            dropped += share
    passed = 1 - sum(share for pattern, share in drops.items() if "1" in pattern)
    return ev.ConjunctionProfile(
        version=evaluation.version, patterns=found,
        seconds=tuple(figures.get(predicate.id, _FREE)[0] for predicate in predicates),
        passed=passed / dropped if dropped and last == len(evaluation.order) else 0.0)
