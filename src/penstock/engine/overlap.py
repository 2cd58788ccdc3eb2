"""When the next job may begin although every slot is taken: while the others are about to end."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf


@dataclass(slots=True)
class Overlap:
    """The jobs under way, each with the time from which on it leaves the cores to others.

    A job is planned by the driver before the executors have anything to do, and the driver delivers
    its answers after they are done. This is the fixed part of its cost, in which the cores are
    idle. So the next job begins when what is left of the present one is about as long as a job's
    fixed part. Then the driver plans the one while the executors work on the other.

    >>> overlap = Overlap()
    >>> overlap.opens_at
    inf
    >>> overlap.begin(1, at=10.0, expected=1.0, fixed=0.25)
    >>> overlap.opens_at
    10.75

    A job that is mostly fixed part, as a job over few rows is, has the next one beside it from the
    beginning. Nothing begins beside a job of which it is not known how long it takes.

    >>> overlap.begin(2, at=10.75, expected=0.3, fixed=0.3)
    >>> overlap.opens_at
    10.75
    >>> overlap.begin(3, at=10.8, expected=0.0, fixed=0.0)
    >>> overlap.opens_at
    inf
    >>> overlap.end(3)
    >>> overlap.beside(11.0)
    'beside job 2, which should end in 0.05 s'
    """

    _opens: dict[int, float] = field(default_factory=dict)
    """By job under way: from when on it leaves the cores to others."""
    _ends: dict[int, float] = field(default_factory=dict)
    """By job under way: when it should end."""

    def begin(self, job: int, at: float, expected: float, fixed: float) -> None:
        """A job begins that should take so long; ``fixed``: the part in which the cores idle.

        That is infinite for a job which the driver does alone, however long it takes.
        """
        self._ends[job] = at + expected
        self._opens[job] = at + max(expected - fixed, 0.0) if expected or fixed else inf

    def end(self, job: int) -> None:
        """A job is through."""
        del self._ends[job], self._opens[job]

    @property
    def opens_at(self) -> float:
        """From when on one more job may begin; never while none is under way."""
        return max(self._opens.values(), default=inf)

    def beside(self, at: float) -> str:
        """Why a job begins that has no slot, in words."""
        job = max(self._ends, key=self._ends.__getitem__)
        return f"beside job {job}, which should end in {max(self._ends[job] - at, 0.0):.2f} s"

