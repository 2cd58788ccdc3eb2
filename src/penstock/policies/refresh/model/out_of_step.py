"""The cheapest periods for tasks that never share a scan, because they are out of step; exactly.

The cost of a schedule is then the sum of its tasks. Take the sub-group with the most costly scan,
and give it a task of some period t. A sub-group of period t or longer can ride on that task and
pays only for its answers, so it needs no task of a period shorter than t. A sub-group of a shorter
period cannot ride on it. So the sub-groups on the two sides of t are settled separately. Each side
is like the whole: a range of periods, with or without a task that carries the range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SubGroup:
    """Queries of one period."""

    period: int
    scan: float
    """The cost of scanning their longest window."""
    answering: float
    """The cost of their answers after a scan."""


def cheapest_apart(parts: Sequence[SubGroup]) -> dict[int, int]:
    """The period that every sub-group should have, by its own; ties go to the shorter one.

    Periods 2 and 4 coincide whenever the second is due. Out of step they never do, so the second
    rides with the first, although its own scan is more costly.

    >>> cheapest_apart([SubGroup(2, 9.0, 0.0), SubGroup(4, 10.0, 0.0)])
    {2: 2, 4: 2}
    >>> cheapest_apart([SubGroup(2, 9.0, 0.0), SubGroup(4, 10.0, 25.0)])
    {2: 2, 4: 4}
    """
    search = _Search(sorted(parts, key=lambda part: part.period))
    return dict(sorted(search.best(0, len(parts), 0, carried=False).taken))


@dataclass(frozen=True, slots=True)
class _Schedule:
    """The cost per pane of some of the sub-groups, and the period that each of them takes."""

    cost: float = 0.0
    taken: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class _Search:
    """Remembers the cost of each range of periods, from each rank of scans on."""

    parts: Sequence[SubGroup]
    """In the order of their periods."""
    _order: list[int] = field(init=False)
    """Their numbers, the most costly scan first."""
    _rank: dict[int, int] = field(init=False)
    _known: dict[tuple[int, int, int, bool], _Schedule] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Nothing is settled yet."""
        self._order = sorted(range(len(self.parts)),
                             key=lambda at: (-self.parts[at].scan, self.parts[at].period))
        self._rank = {at: rank for rank, at in enumerate(self._order)}

    def best(self, first: int, last: int, rank: int, carried: bool) -> _Schedule:
        """Settle the sub-groups from a rank on whose periods lie in a range.

        ``carried`` says whether the first period of the range has a task that all may ride on.
        """
        while rank < len(self._order) and not first <= self._order[rank] < last:
            rank += 1
        if rank == len(self._order):
            return _Schedule()
        key = first, last, rank, carried
        if key not in self._known:
            self._known[key] = min(self._ways(*key), key=lambda way: way.cost)
        return self._known[key]

    def _ways(self, first: int, last: int, rank: int, carried: bool) -> list[_Schedule]:
        """Everything the most costly of them may do, with the best choice for the others."""
        at = self._order[rank]
        part, ways = self.parts[at], []
        if carried:
            period = self.parts[first].period
            ways.append(_joined((part.period, period), part.answering / period,
                                self.best(first, last, rank + 1, carried)))
        for new in range(first + carried, at + 1):
            if self._rank[new] >= rank:  # otherwise its own queries already ride elsewhere
                period = self.parts[new].period
                ways.append(_joined((part.period, period), (part.scan + part.answering) / period,
                                    self.best(first, new, rank + 1, carried),
                                    self.best(new, last, rank + 1, carried=True)))
        return ways


def _joined(taken: tuple[int, int], cost: float, *others: _Schedule) -> _Schedule:
    return _Schedule(cost + sum(other.cost for other in others),
                     (taken, *(one for other in others for one in other.taken)))
