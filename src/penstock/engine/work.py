"""The contract that a department, which knows one kind of work, has with core and dispatcher."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from penstock.engine.instructions import Instruction
from penstock.engine.paths.active_job import ActiveJob
from penstock.events import kinds as ev
from penstock.plan import Member

Offered = TypeVar("Offered")
"""What a department offers; only the department itself looks into it."""
Rider = Member | str
"""The riders of a job: members of a path, or queries that a refresh answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A job that a department has begun."""

    instructions: Sequence[Instruction]
    """The notes on the decision, and the job."""
    riders: Sequence[Rider]
    expected: float = 0.0
    """Seconds that it will take; 0 while unknown."""
    fixed: float = 0.0
    """The part of them in which the cores have nothing to do, while the driver plans and delivers;
    infinite for a job that the driver does alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What follows from the end of a job, beside what its department does itself."""

    stops: Mapping[str, str] = field(default_factory=dict)
    """Queries that stop, and why."""
    rejecting: Sequence[tuple[str, str]] = ()
    """Queries whose function rejects every row, each with a text."""
    oldest: float = 0.0
    """The earliest arrival of what it delivered."""
    deliveries: Iterable[tuple[str, Iterable[tuple[float, int]]]] = ()
    """By query, the arrival and the rows of each block or answer that it got."""
    job: ActiveJob | None = None
    """The job over blocks that has ended: other departments may wait for its rows."""


class Department(Protocol[Offered]):
    """Knows one kind of work: what waits, which jobs are active, and what to begin next."""

    @property
    def slots(self) -> int:
        """The slots that its active jobs take."""

    @property
    def preempts(self) -> bool:
        """Whether it may begin a job although all slots are taken."""

    @property
    def goes_first(self) -> bool:
        """Whether its work goes before all other, however much time it has had."""

    @property
    def idle(self) -> bool:
        """Whether nothing waits and no job is active."""

    @property
    def wake_at(self) -> float | None:
        """When to ask it for an offer again, even if nothing happens until then."""

    def adopt(self) -> None:
        """Work by the plan that the state has from now on."""

    def use(self, policy: Any, at: float, name: str) -> None:
        """Decide by another policy of its family from now on."""

    def take(self, event: ev.Event, job: ActiveJob | None = None) -> None:
        """Something has happened; ``job`` is the job over blocks that has ended, if one has."""

    def leave(self, query: str, at_once: bool) -> None:
        """A query takes no more blocks; with ``at_once`` not even those that wait for it."""

    def owes(self, query: str) -> bool:
        """Whether something waits for a query, or is in an active job for it."""

    def offer(self, at: float, preempting: bool) -> Offered | None:
        """What it would begin now. Only who will begin it asks for it.

        ``preempting``: all slots are taken, so it must be worth the cores of what is under way.
        """

    def begin(self, at: float, job: int, offer: Offered) -> Begun:
        """Begin what it has offered, under this number."""

    def end(self, event: ev.JobFinished | ev.JobFailed) -> Ended:
        """A job of its own has finished or failed."""

    def needed(self) -> Mapping[str, int]:
        """By stream, the time in microseconds from which on rows may be read again."""

    def tidy(self, at: float) -> Iterable[Instruction]:
        """What may be given up, before a job begins to read it."""

    def notes(self) -> Iterable[Instruction]:
        """What it has decided since the last call, beside its jobs."""
