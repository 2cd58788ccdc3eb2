"""How long a job may take before it is cancelled, and which of its queries are suspects then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from penstock.plan import Member
from penstock.rendering import span

SLOWER = 10.0
"""A job may take this many times as long as expected, even past the time allowed to all."""
AGAIN = 10.0
"""A retry after a cancelled job gets the allowed time divided by this: it need not show twice that
it is stuck, and the other queries wait meanwhile."""
LEAST = 10.0
"""But a retry gets at least this many seconds, if the setting allows any job as many."""


@dataclass(slots=True)
class Timeouts:
    """The deadlines of active jobs, and the riders of jobs that passed theirs.

    A rider of a cancelled job is a suspect until one of its jobs succeeds. A suspect that passes
    its limit again, alone, stops.

    >>> timeouts = Timeouts(allowed=300.0)
    >>> timeouts.begin(1, at=0.0, limit=timeouts.limit(expected=0.0))
    >>> list(timeouts.over(299.0)), list(timeouts.over(300.0)), timeouts.next
    ([], [(1, 300.0)], 600.0)
    """

    allowed: float = inf
    """Seconds that any job may take."""
    _deadlines: dict[int, tuple[float, float]] = field(default_factory=dict)
    """By active job: when it passes its limit, and that limit."""
    _cancelled: dict[int, float] = field(default_factory=dict)
    """By job that has passed its limit and not ended yet: that limit."""
    _suspects: dict[Member | str, float] = field(default_factory=dict)
    """By rider of a cancelled job, the limit that it passed first. Riders are members, or the
    queries of a refresh."""

    def limit(self, expected: float, again: bool = False) -> float:
        """Seconds that a job may take, given the seconds expected of it, 0 if unknown.

        ``again``: one of its queries was in a job that was cancelled.
        """
        allowed = self.allowed
        if again:
            allowed = max(allowed / AGAIN, min(allowed, LEAST))
        return max(allowed, SLOWER * expected)

    def begin(self, job: int, at: float, limit: float) -> None:
        """A job begins."""
        if limit < inf:
            self._deadlines[job] = at + limit, limit

    def end(self, job: int) -> float | None:
        """A job has ended; return the limit that it had passed, if it was cancelled for that."""
        self._deadlines.pop(job, None)
        return self._cancelled.pop(job, None)

    def over(self, at: float) -> list[tuple[int, float]]:
        """The jobs that have passed their limits; each is listed again after as many seconds."""
        late = [job for job, (deadline, _) in self._deadlines.items() if deadline <= at]
        told = []
        for job in late:
            _, limit = self._deadlines[job]
            self._deadlines[job] = at + limit, limit
            self._cancelled.setdefault(job, limit)
            told.append((job, limit))
        return told

    @property
    def next(self) -> float | None:
        """When the next job passes its limit."""
        return min((deadline for deadline, _ in self._deadlines.values()), default=None)

    # --- suspects ----------------------------------------------------------------------------

    def suspect(self, riders: Iterable[Member | str], limit: float) -> None:
        """The job of these riders was cancelled at its limit."""
        for rider in riders:
            self._suspects.setdefault(rider, limit)

    def clear(self, riders: Iterable[Member | str]) -> None:
        """A job of these riders succeeded, or they have left."""
        for rider in riders:
            self._suspects.pop(rider, None)

    def has_suspects(self, riders: Iterable[Member | str]) -> bool:
        """Whether any of these riders was in a cancelled job."""
        return any(rider in self._suspects for rider in riders)

    def are_suspects(self, riders: Iterable[Member | str]) -> bool:
        """Whether all of these riders were in a cancelled job."""
        return all(rider in self._suspects for rider in riders)

    def reason(self, rider: Member | str, limit: float) -> str:
        """Why a rider stops that has passed a limit again."""
        first = self._suspects.get(rider, limit)
        return (f"its job did not finish within {written(first)}, nor within {written(limit)} when "
                "it was tried again; SET timeout gives jobs more")


def written(seconds: float) -> str:
    """Seconds for people.

    >>> written(300.0), written(2.5), written(33.3333)
    ('5 min', '2500 ms', '33 s')
    """
    return span(round(seconds * 1e6) if seconds < 10 else round(seconds) * 1_000_000)
