"""The engine core in virtual time: its own queues, trains and decisions, with modelled costs.

`host.py` simulates operators one block at a time, as the papers do. This host runs the production
core instead, so it differs from a run on Spark only in what the jobs cost.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import TypeAlias, TypeVar

from penstock.clock import VirtualClock
from penstock.engine import (
    Cancel,
    Cool,
    Core,
    Drain,
    Finish,
    Forget,
    Instruction,
    Note,
    Pause,
    ProbeJob,
    ReadRelation,
    RefreshJob,
    Release,
    Resume,
    SegmentJob,
    Trim,
    Wake,
)
from penstock.events import kinds as ev

_End: TypeAlias = ev.JobFinished | ev.JobFailed
_E = TypeVar("_E", bound=_End)


@dataclass(slots=True)
class VirtualHost:
    """A host whose jobs take no real time; its subclasses say how a job ends."""

    core: Core
    clock: VirtualClock = field(default_factory=VirtualClock)
    record: list[ev.Event] = field(default_factory=list)
    """Every event, including the core's own."""
    runs: list[SegmentJob] = field(default_factory=list)
    refreshes: list[RefreshJob] = field(default_factory=list)
    probes: list[ProbeJob] = field(default_factory=list)
    released: list[tuple[str, int]] = field(default_factory=list)
    forgotten: list[int] = field(default_factory=list)
    """Jobs whose kept rows nobody will take up."""
    paused: bool = False
    """Whether the streams should pause; the script goes on regardless."""
    finished: Finish | None = None
    _agenda: list[tuple[float, int, ev.Event]] = field(default_factory=list)
    _wakes: set[float] = field(default_factory=set)
    _sequence: int = 0

    def outcome(self, job: SegmentJob) -> ev.JobFinished | ev.JobFailed:
        """How a job that begins now will end, and when."""
        raise NotImplementedError

    def renewal(self, refresh: RefreshJob) -> ev.JobFinished | ev.JobFailed:
        """How a refresh that begins now will end, and when."""
        raise NotImplementedError

    def probed(self, probe: ProbeJob) -> ev.JobFinished | ev.JobFailed:
        """How a probe that begins now will end, and when."""
        raise NotImplementedError

    def trim(self, trim: Trim) -> None:
        """Drop panes that no answer will read; a host that holds none has nothing to do."""

    def read(self, order: ReadRelation) -> ev.RelationRead:
        """What a relation holds that is read now, and when that is known."""
        raise NotImplementedError

    def drain(self, drain: Drain) -> None:
        """Nothing more comes on a derived stream; a replay goes by what was recorded of it."""

    def plan_event(self, event: ev.Event) -> None:
        """Plan an event for its time; events at one time keep their order."""
        self._sequence += 1
        heapq.heappush(self._agenda, (event.at, self._sequence, event))

    def run(self, until: float = inf) -> None:
        """Let everything planned happen, and what follows from it, up to a time."""
        while self._agenda and self._agenda[0][0] <= until:
            at, _, event = heapq.heappop(self._agenda)
            self.clock.advance(at)
            self.handle(event)

    def handle(self, event: ev.Event) -> list[Instruction]:
        """Give the core an event and carry out its instructions."""
        self.record.append(event)
        instructions = self.core.handle(event)
        for instruction in instructions:
            self._carry_out(instruction)
        return instructions

    def _carry_out(self, instruction: Instruction) -> None:
        match instruction:
            case Note(event=event):
                self.record.append(event)
            case SegmentJob():
                self.runs.append(instruction)
                self._begin(instruction)
            case RefreshJob():
                self.refreshes.append(instruction)
                self.plan_event(self.renewal(instruction))
            case ProbeJob():
                self.probes.append(instruction)
                self.plan_event(self.probed(instruction))
            case Cancel(job=job, limit=limit):
                self._cancel(job, limit)
            case Trim():
                self.trim(instruction)
            case Cool(stream=stream, number=number):
                self.record.append(ev.BlockCold(at=self.clock.now(), stream=stream, number=number))
            case Release(stream=stream, number=number):
                self.released.append((stream, number))
            case Forget(job=job):
                self.forgotten.append(job)
            case Wake(at=at):
                self._wake(max(at, self.clock.now()))
            case Drain():
                self.drain(instruction)
            case ReadRelation():
                self.plan_event(self.read(instruction))
            case Pause() | Resume():
                self.paused = isinstance(instruction, Pause)
            case Finish():
                self.finished = instruction

    def busy_after(self, seconds: float) -> float:
        """For how long the active jobs will still have the cores after this many seconds."""
        ends = [event.at for _, _, event in self._agenda
                if isinstance(event, _End) and event.kind != "refresh"]
        return max(max(ends, default=0.0) - self.clock.now() - seconds, 0.0)

    def _begin(self, job: SegmentJob) -> None:
        end = self.outcome(job)
        if job.urgent:
            end = self._preempt(end)
        if not isinstance(end, ev.JobFailed):
            for event in _warmed(job, end.at):
                self.plan_event(event)
        self.plan_event(end)

    def _cancel(self, job: int, limit: float) -> None:
        """A job ends now instead of when it would have ended."""
        ends = {number: event for _, number, event in self._agenda
                if isinstance(event, _End) and event.job == job}
        self._agenda = [planned for planned in self._agenda if planned[1] not in ends]
        heapq.heapify(self._agenda)
        reason = f"it did not finish within {limit:g} s"
        for event in ends.values():
            self.plan_event(ev.JobFailed(at=self.clock.now(), job=job, kind=event.kind,
                                         reason=reason))

    def _preempt(self, end: _E) -> _E:
        """A job preempts the active ones: all end later."""
        under_way = [(number, event) for _, number, event in self._agenda
                     if isinstance(event, _End)]
        end, others = shared(self.clock.now(), end, [event for _, event in under_way])
        preempted = dict(zip((number for number, _ in under_way), others, strict=True))
        self._agenda = [(preempted[number].at, number, preempted[number]) if number in preempted
                        else (at, number, event) for at, number, event in self._agenda]
        heapq.heapify(self._agenda)
        return end

    def _wake(self, at: float) -> None:
        """Tick once at that time, however often the core asks for it."""
        if at not in self._wakes:
            self._wakes.add(at)
            self.plan_event(ev.Tick(at=at))


def shared(now: float, end: _E, others: Sequence[_End]) -> tuple[_E, list[_End]]:
    """When a preempting job ends, and when the preempted ones do: they share the cores by halves.

    Each takes longer by the time that it gives to the other meanwhile.

    >>> end, others = shared(10.0, ev.JobFailed(at=12.0, job=1, kind="segment", reason=""), [
    ...     ev.JobFailed(at=15.0, job=2, kind="segment", reason=""),
    ...     ev.JobFailed(at=11.0, job=3, kind="segment", reason="")])
    >>> end.at, [other.at for other in others]
    (14.0, [17.0, 12.0])
    """
    taken = end.at - now
    left = max((other.at - now for other in others), default=0.0)
    return (later(end, min(taken, left)),
            [later(other, min(taken, other.at - now)) for other in others])


def later(event: _E, seconds: float) -> _E:
    """The end of a job that is preempted."""
    if isinstance(event, ev.JobFailed):
        return replace(event, at=event.at + seconds)
    return replace(event, at=event.at + seconds, seconds=event.seconds + seconds)


def _warmed(job: SegmentJob, at: float) -> Iterable[ev.BlockHot]:
    """The blocks of a job that are in memory when it ends."""
    return (ev.BlockHot(at=at, stream=block.stream, number=block.number, bytes=block.bytes)
            for block in job.blocks if block.number in job.keep)
