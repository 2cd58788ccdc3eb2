"""How a failed job is retried: as it is, then in halves, until one query fails alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from penstock.engine.timeouts import Timeouts
from penstock.events.kinds import JobFailed
from penstock.plan import Member

_Rider = TypeVar("_Rider", Member, str)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Which queries stop, and how the others are retried."""

    stops: dict[str, str]
    """Queries that stop, and why."""
    first: frozenset[str] = frozenset()
    """The units of the first of two halves; empty if the job is retried as it was."""


@dataclass(frozen=True, slots=True)
class Retries:
    """The rule for jobs of every kind.

    A failed job is retried once as it is: the fault may have been the machine's. If it fails again
    it is halved, and so are its halves, until the one that fails stands alone and stops. A job that
    was cancelled at its limit is halved at once, since a retry would take as long.

    >>> retries = Retries(Timeouts())
    >>> def broke(queries, retried):
    ...     event = JobFailed(at=0.0, job=1, kind="refresh", reason="why")
    ...     return retries.judge(event, queries, unit=str, retried=retried)
    >>> broke(["a", "b"], retried=False)
    Judgement(stops={}, first=frozenset())
    >>> broke(["a", "b"], retried=True)
    Judgement(stops={}, first=frozenset({'a'}))
    >>> broke(["b"], retried=True)
    Judgement(stops={'b': 'why'}, first=frozenset())
    """

    timeouts: Timeouts

    def judge(
        self, event: JobFailed, riders: Sequence[_Rider], unit: Callable[[_Rider], str],
        retried: bool,
    ) -> Judgement:
        """Judge a failed job by its riders; those of one ``unit`` fail together."""
        limit = self.timeouts.end(event.job)
        units = list(dict.fromkeys(map(unit, riders)))
        again = retried if limit is None else self.timeouts.are_suspects(riders)
        stops: dict[str, str] = {}
        if len(units) == 1 and again:
            stops = {_query(rider): event.reason if limit is None
                     else self.timeouts.reason(rider, limit) for rider in riders}
        if limit is not None:
            self.timeouts.suspect(riders, limit)
        halved = len(units) > 1 and (retried or limit is not None)
        return Judgement(stops, frozenset(units[: len(units) // 2]) if halved else frozenset())


def _query(rider: Member | str) -> str:
    return rider if isinstance(rider, str) else rider.query
