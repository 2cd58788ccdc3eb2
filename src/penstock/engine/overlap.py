"""When the next job may begin although every slot is taken: while the others are about to end."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

UNKNOWN = 0.5
"""After so many seconds the next job begins beside one whose duration is unknown. It is the first
of its path and waits for code to be compiled and workers to be forked, which leaves a core idle."""


@dataclass(slots=True)
class Overlap:
    """The active jobs, each with the time from which on it leaves the cores to others.

    The driver plans a job before the executors have anything to do, and delivers its answers after
    they are done. This is the fixed part of its cost, in which the cores are idle. So the next job
    begins when the rest of the present one takes about as long as a job's fixed part. Then the
    driver plans one job while the executors work on the other.

    >>> overlap = Overlap()
    >>> overlap.opens_at
    inf
    >>> overlap.begin(1, at=10.0, expected=1.0, fixed=0.25)
    >>> overlap.opens_at
    10.75

    A job over few rows is mostly fixed part, so the next one begins beside it at once. A job whose
    duration is unknown has the cores to itself for a moment.

    >>> overlap.begin(2, at=10.75, expected=0.3, fixed=0.3)
    >>> overlap.opens_at
    10.75
    >>> overlap.begin(3, at=10.8, expected=0.0, fixed=0.0)
    >>> overlap.opens_at
    11.3
    >>> overlap.end(3)
    >>> overlap.beside(11.0)
    'beside job 2, which should end in 0.05 s'
    """

    _opens: dict[int, float] = field(default_factory=dict)
    """By active job, the time from which on it leaves the cores to others."""
    _ends: dict[int, float] = field(default_factory=dict)
    """By active job, when it should end."""

    def begin(self, job: int, at: float, expected: float, fixed: float) -> None:
        """A job begins that should take ``expected`` seconds; the cores idle for ``fixed`` of them.

        ``fixed`` is infinite for a job that the driver does alone, however long it takes.
        """
        self._ends[job] = at + expected
        busy = max(expected - fixed, 0.0) if expected or fixed else UNKNOWN
        self._opens[job] = at + busy

    def end(self, job: int) -> None:
        """A job has ended."""
        del self._ends[job], self._opens[job]

    @property
    def opens_at(self) -> float:
        """The time from which on one more job may begin; never while no job is active."""
        return max(self._opens.values(), default=inf)

    def beside(self, at: float) -> str:
        """In words, why a job begins although it has no slot."""
        job = max(self._ends, key=self._ends.__getitem__)
        return f"beside job {job}, which should end in {max(self._ends[job] - at, 0.0):.2f} s"

