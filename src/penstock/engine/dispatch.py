"""The dispatcher fills the slots with what departments offer, and knows whose each job is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.engine.instructions import Instruction, Wake
from penstock.engine.state import EngineState
from penstock.engine.time_shares import TimeShares
from penstock.engine.timeouts import Timeouts
from penstock.engine.work import Department, Ended, Rider
from penstock.events import kinds as ev


@dataclass(slots=True)
class Dispatcher:
    """Asks departments for work while slots are free, in the order of the time they have had."""

    state: EngineState
    departments: Sequence[Department[Any]]
    timeouts: Timeouts
    last_job: int = 0
    """The highest number given to a job so far."""
    _shares: TimeShares = field(init=False)
    _under_way: dict[int, tuple[int, Sequence[Rider]]] = field(default_factory=dict)
    """By job, its department and its riders."""

    def __post_init__(self) -> None:
        """Begin with equal shares of time."""
        self._shares = TimeShares(len(self.departments))

    @property
    def under_way(self) -> tuple[int, ...]:
        """The numbers of the active jobs."""
        return tuple(self._under_way)

    def fill(self, at: float) -> Iterator[Instruction]:
        """Begin jobs until no slot is free or no department has work that may begin now."""
        while begun := self._begin_one(at):
            yield from begun
        waking = (department.wake_at for department in self.departments)
        yield from (Wake(at=wake) for wake in waking if wake is not None)

    def _begin_one(self, at: float) -> Sequence[Instruction]:
        taken = sum(department.slots for department in self.departments)
        free = self.state.settings.slots - taken
        first = [n for n, department in enumerate(self.departments) if department.goes_first]
        for number in self._shares.order(first):
            department = self.departments[number]
            if free > 0 or (free == 0 and department.preempts):
                offer = department.offer(at, preempting=free <= 0)
                if offer is not None:
                    return self._begin(at, number, offer)
        return ()

    def _begin(self, at: float, number: int, offer: object) -> Sequence[Instruction]:
        self.last_job += 1
        begun = self.departments[number].begin(at, self.last_job, offer)
        again = self.timeouts.has_suspects(begun.riders)
        self.timeouts.begin(self.last_job, at, self.timeouts.limit(begun.expected, again))
        self._under_way[self.last_job] = number, begun.riders
        return begun.instructions

    def end(self, event: ev.JobFinished | ev.JobFailed) -> Ended:
        """A job has ended: its department says what follows."""
        number, riders = self._under_way.pop(event.job)
        if isinstance(event, ev.JobFinished):
            self.timeouts.end(event.job)
            self.timeouts.clear(riders)
            self._shares.record(number, event.seconds)
        return self.departments[number].end(event)
