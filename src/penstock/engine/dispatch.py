"""The dispatcher fills slots with the jobs that departments offer, and knows whose each job is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from penstock.engine.instructions import Instruction, Note, Wake
from penstock.engine.overlap import Overlap
from penstock.engine.state import EngineState
from penstock.engine.time_shares import TimeShares
from penstock.engine.timeouts import Timeouts
from penstock.engine.work import Department, Ended, Rider
from penstock.events import kinds as ev


@dataclass(slots=True)
class Dispatcher:
    """Asks departments for work while slots are free; whoever has had least time is asked first."""

    state: EngineState
    departments: Sequence[Department[Any]]
    timeouts: Timeouts
    last_job: int = 0
    """The highest number given to a job so far."""
    _shares: TimeShares = field(init=False)
    _under_way: dict[int, tuple[int, Sequence[Rider]]] = field(default_factory=dict)
    """By job, its department and its riders."""
    _overlap: Overlap = field(default_factory=Overlap)

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
        waking = [department.wake_at for department in self.departments]
        if self.state.settings.overlap and at < self._overlap.opens_at < inf:
            waking.append(self._overlap.opens_at)
        yield from (Wake(at=wake) for wake in waking if wake is not None)

    def _begin_one(self, at: float) -> Sequence[Instruction]:
        taken = sum(department.slots for department in self.departments)
        free = self.state.settings.slots - taken
        beside = ""
        if free == 0 < taken and self.state.settings.overlap and self._overlap.opens_at <= at:
            free, beside = 1, f", {self._overlap.beside(at)}"
        first = [n for n, department in enumerate(self.departments) if department.goes_first]
        for number in self._shares.order(first):
            department = self.departments[number]
            if free > 0 or (free == 0 and department.preempts):
                offer = department.offer(at, preempting=free <= 0)
                if offer is not None:
                    return [_because(one, beside) for one in self._begin(at, number, offer)]
        return ()

    def _begin(self, at: float, number: int, offer: object) -> Sequence[Instruction]:
        self.last_job += 1
        begun = self.departments[number].begin(at, self.last_job, offer)
        again = self.timeouts.has_suspects(begun.riders)
        self.timeouts.begin(self.last_job, at, self.timeouts.limit(begun.expected, again))
        self._under_way[self.last_job] = number, begun.riders
        self._overlap.begin(self.last_job, at, begun.expected, begun.fixed)
        return begun.instructions

    def end(self, event: ev.JobFinished | ev.JobFailed) -> Ended:
        """A job has ended: its department says what follows."""
        number, riders = self._under_way.pop(event.job)
        self._overlap.end(event.job)
        if isinstance(event, ev.JobFinished):
            self.timeouts.end(event.job)
            self.timeouts.clear(riders)
            self._shares.record(number, event.seconds)
        return self.departments[number].end(event)


def _because(instruction: Instruction, more: str) -> Instruction:
    """A note on a decision with one more reason, if there is one; anything else as it is."""
    match instruction:
        case Note(event=ev.JobDecided() as decided) if more:
            return Note(event=replace(decided, reason=decided.reason + more))
    return instruction
