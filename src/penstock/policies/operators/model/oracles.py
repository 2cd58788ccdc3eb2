"""Oracles: what no schedule can beat. For tests and figures to compare policies with.

`clairvoyant` is a lower bound on the waiting memory at every instant, cheap for any number of
blocks. `least_memory` and `least_peak` are what a scheduler that knows the future really reaches.
They try every schedule, for a handful of blocks: the problem is NP-complete (Theorem 4.4 of the
chain paper).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from math import inf

from penstock.policies.operators.model.charts import Chart, chart
from penstock.policies.operators.model.routes import Route

# --- the bound -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Level:
    """An amount over time: from ``times[i]`` on it is ``levels[i]`` and falls by ``falls[i]``.

    >>> level = Level(times=(0.0, 2.0), levels=(1.0, 3.0), falls=(0.5, 1.0))
    >>> level.at(1.0), level.before(2.0), level.at(2.0), level.at(4.0)
    (0.5, 0.0, 3.0, 1.0)
    """

    times: tuple[float, ...]
    levels: tuple[float, ...]
    falls: tuple[float, ...]

    def at(self, time: float) -> float:
        """The amount at a time, including what arrives at that time."""
        return self._from(bisect_right(self.times, time) - 1, time)

    def before(self, time: float) -> float:
        """The amount just before a time."""
        return self._from(bisect_left(self.times, time) - 1, time)

    def _from(self, piece: int, time: float) -> float:
        if piece < 0:
            return 0.0
        return self.levels[piece] - self.falls[piece] * (time - self.times[piece])

    @property
    def peak(self) -> float:
        """The largest amount: it only falls between arrivals."""
        return max(self.levels, default=0.0)

    def corners(self) -> tuple[list[float], list[float]]:
        """The ends of its straight pieces, for drawing."""
        at: list[float] = []
        amount: list[float] = []
        following = [*self.times[1:], *self.times[-1:]]
        for begin, end, high, fall in zip(
                self.times, following, self.levels, self.falls, strict=True):
            at += [begin, end]
            amount += [high, high - fall * (end - begin)]
        return at, amount


def clairvoyant(
    routes: Sequence[Route],
    arrivals: Mapping[str, Sequence[float]],
    rows: Mapping[str, Sequence[float]] | None = None,
) -> Level:
    """The memory below which no schedule can go, at each instant.

    A block on its lower envelope is never larger than on its chart, and there it frees memory
    steadily. Whoever always works on the steepest slope that has work frees the most by any time.
    Slopes only flatten along an envelope, so the steepest work never waits for work that must come
    before it. So it is enough to know how many seconds of work of each slope wait: blocks and their
    order do not matter.

    ``arrivals`` holds the times at which blocks enter each route, ``rows`` their sizes (1 each, if
    not given). In Example 1 of the paper Greedy is at the bound whenever an operator ends:

    >>> from penstock.policies.operators.model.routes import Stage
    >>> route = Route("q", (Stage("1", 1.0, 0.2), Stage("2", 5.0)))
    >>> bound = clairvoyant([route], {"q": range(7)})
    >>> [round(bound.at(time), 6) for time in range(7)]
    [1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2]

    Reference: Theorem 4.1 and Proposition 3 of the chain paper.
    """
    charts = {route.id: chart(route) for route in routes}
    sizes = rows or {}
    agenda = sorted(
        (float(at), float(size), route) for route in charts if route in arrivals
        for at, size in zip(arrivals[route], sizes.get(route, repeat(1.0)), strict=False))
    pieces = list(_pieces(charts, agenda))
    return Level(*(tuple(piece[i] for piece in pieces) for i in range(3)))


def _pieces(
    charts: Mapping[str, Chart], agenda: Sequence[tuple[float, float, str]]
) -> Iterator[tuple[float, float, float]]:
    """The pieces of the level: from when, how high, and how fast it falls."""
    waiting = {slope: 0.0 for known in charts.values() for slope in known.slopes}
    steepest_first = sorted(waiting, reverse=True)
    level = 0.0
    following = [at for at, _, _ in agenda[1:]] + [inf]
    for (now, size, route), until in zip(agenda, following, strict=False):
        level += size
        for slope, seconds, freed in _work(charts[route]):
            waiting[slope] += seconds * size
            level -= 0.0 if seconds else freed * size  # work that costs nothing is done at once
        for slope in steepest_first:
            spent = min(waiting[slope], until - now)
            if spent > 0:
                yield now, level, slope
                level -= slope * spent
                waiting[slope] -= spent
                now += spent
        if now < until:
            yield now, level, 0.0


def _work(known: Chart) -> Iterator[tuple[float, float, float]]:
    """The segments of the envelope: slope, seconds, size freed."""
    for slope, (a, b) in zip(known.slopes, pairwise(known.envelope), strict=True):
        yield slope, known.times[b] - known.times[a], known.sizes[a] - known.sizes[b]


# --- every schedule --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SearchBlock:
    """A block for exhaustive search: time moves in whole steps, and so do all its costs."""

    chart: Chart
    arrives: int
    deadline: float = inf
    """When it must be finished."""

    @property
    def work(self) -> int:
        """Steps until it is finished."""
        return round(self.chart.times[-1])

    def sizes(self) -> tuple[float, ...]:
        """The memory that it occupies after 0, 1, 2, ... steps of work.

        >>> SearchBlock(Chart((0.0, 1.0, 3.0), (1.0, 0.2, 0.0)), arrives=0).sizes()
        (1.0, 0.2, 0.2, 0.0)
        """
        if any(abs(time - round(time)) > 1e-9 for time in self.chart.times):
            raise ValueError(f"costs must be whole steps: {self.chart.times}")
        known = Chart(tuple(float(round(time)) for time in self.chart.times), self.chart.sizes)
        return tuple(known.size(progress) for progress in range(self.work + 1))


_State = tuple[int, ...]
"""The steps of work that each block has had."""


def least_memory(jobs: Sequence[SearchBlock]) -> tuple[float, ...]:
    """For each instant 0, 1, 2, ..., the least memory that any schedule has then.

    At every step one block is worked on, or none; an operator may be interrupted. Different
    instants may need different schedules. If blocks have deadlines, only schedules that keep them
    all count.

    >>> chart = Chart((0.0, 1.0, 2.0), (1.0, 0.2, 0.0))
    >>> least_memory([SearchBlock(chart, arrives=0), SearchBlock(chart, arrives=1)])
    (1.0, 1.2, 0.4, 0.2, 0.0, 0.0)
    >>> least_memory([SearchBlock(chart, arrives=0, deadline=2), SearchBlock(chart, arrives=1)])
    (1.0, 1.2, 1.0, 0.2, 0.0, 0.0)
    """
    return tuple(min((memory for _, memory in layer.values()), default=inf)
                 for layer in _layers(jobs))


def least_peak(jobs: Sequence[SearchBlock]) -> float:
    """The least memory with which a schedule finishes; infinite if none keeps the deadlines.

    >>> chart = Chart((0.0, 1.0, 2.0), (1.0, 0.2, 0.0))
    >>> [least_peak([SearchBlock(chart, arrives=at, deadline=at + latency)
    ...              for at in (0, 1, 2, 5, 6)]) for latency in (9, 4, 3)]
    [1.4, 2.0, inf]
    """
    *_, last = _layers(jobs)
    through = tuple(job.work for job in jobs)
    return last[through][0] if through in last else inf


def _layers(jobs: Sequence[SearchBlock]) -> Iterator[dict[_State, tuple[float, float]]]:
    """For each instant, the reachable states: the least peak on the way, and the memory."""
    sizes = [job.sizes() for job in jobs]
    steps = max((job.arrives for job in jobs), default=0) + sum(job.work for job in jobs)
    before: dict[_State, float] = {(0,) * len(jobs): 0.0}
    for now in range(steps + 1):
        arrived = [i for i, job in enumerate(jobs) if job.arrives <= now]
        layer = {}
        for state, peak in before.items():
            if _can_keep(jobs, state, now):
                memory = sum(sizes[i][state[i]] for i in arrived)
                layer[state] = max(peak, memory), memory
        yield layer
        before = {}
        for state, (peak, _) in layer.items():
            for after in _next(jobs, state, arrived):
                before[after] = min(peak, before.get(after, inf))


def _next(jobs: Sequence[SearchBlock], state: _State, arrived: Sequence[int]) -> Iterator[_State]:
    yield state
    for i in arrived:
        if state[i] < jobs[i].work:
            yield (*state[:i], state[i] + 1, *state[i + 1 :])


def _can_keep(jobs: Sequence[SearchBlock], state: _State, now: int) -> bool:
    """Whether all deadlines can be kept from here on: earliest deadline first would keep them."""
    open_ = sorted((job.deadline, job.arrives, job.work - done)
                   for job, done in zip(jobs, state, strict=True)
                   if done < job.work and job.deadline < inf)
    for last, _, _ in open_:  # work due by then that arrives after some time must fit between
        due = [(max(arrives, now), left) for deadline, arrives, left in open_ if deadline <= last]
        if any(start + sum(left for arrives, left in due if arrives >= start) > last
               for start, _ in due):
            return False
    return True
