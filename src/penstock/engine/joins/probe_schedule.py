"""The schedule of a shared window join: which outer scans which slice, and which pairs may leave.

An *outer* probes the window of the other stream, from the most recent rows back to the largest
window. It may stop between two levels to let another outer pass. A query gets its pairs in the
order of their later members, which is that of the outers. So pairs that an outer finds for a query
are held back until all earlier outers have scanned the query's window.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.policies.joins import JoinWindow, Policy, ScanCost, SharedScan, View, Waiting

NO_FIXED_PART = ScanCost()
"""The cost in the papers' model, where a scan takes as long as its slice is."""


@dataclass(frozen=True, slots=True)
class Probe:
    """An outer scans the levels after ``first`` up to ``last``."""

    outer: int
    scan: int
    first: int
    last: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs that leave: what an outer found at the levels after ``first`` up to ``last``."""

    outer: int
    scan: int
    window: int
    """The level that ends with their window."""
    first: int
    last: int


@dataclass(slots=True)
class _Outer:
    number: int
    place: int
    """Its place in the order of arrival at this scan."""
    scanned: int = 0
    left: list[int] = field(default_factory=list)
    """By window: the level up to which its pairs have left."""


@dataclass(slots=True)
class _Scan:
    """The outers of one scan: their queues by levels scanned, and the progress of each window."""

    shared: SharedScan
    queues: list[deque[_Outer]] = field(init=False)
    fronts: list[int] = field(init=False)
    """By level, how many outers have scanned it; those are the ones that came first."""
    outers: deque[_Outer] = field(default_factory=deque)
    """The outers that have not finished, in the order of arrival."""
    arrived: int = 0

    def __post_init__(self) -> None:
        self.queues = [deque() for _ in range(self.shared.levels)]
        self.fronts = [0] * (self.shared.levels + 1)

    def arrive(self, number: int) -> None:
        outer = _Outer(number, self.arrived, left=[0] * (self.shared.levels + 1))
        self.arrived += 1
        self.outers.append(outer)
        self.queues[0].append(outer)

    def at(self, place: int) -> _Outer | None:
        """The outer at a place in the order of arrival; None if it has finished or not come yet."""
        ahead = place - (self.arrived - len(self.outers))
        return self.outers[ahead] if 0 <= ahead < len(self.outers) else None


class ProbeSchedule:
    """The queues of outers, as in section 3.2 of the joins paper, under any policy.

    Two windows, SWF: the second outer scans the small window before the first goes on.

    >>> from penstock.policies.joins import policy
    >>> schedule = ProbeSchedule(policy("swf"), [JoinWindow(2.0), JoinWindow(6.0)])
    >>> schedule.arrive(11)
    >>> schedule.finish(schedule.decide())  # doctest: +NORMALIZE_WHITESPACE
    [Pairs(outer=11, scan=0, window=1, first=0, last=1),
     Pairs(outer=11, scan=0, window=2, first=0, last=1)]
    >>> schedule.arrive(12)
    >>> step = schedule.decide()
    >>> step.outer, schedule.finish(step)
    (12, [Pairs(outer=12, scan=0, window=1, first=0, last=1)])

    What the second found for the large window waits for the first to scan it.

    >>> step = schedule.decide()
    >>> step.outer, schedule.finish(step)
    (11, [Pairs(outer=11, scan=0, window=2, first=1, last=2)])
    >>> schedule.finish(schedule.decide())
    [Pairs(outer=12, scan=0, window=2, first=0, last=2)]
    """

    def __init__(
        self, policy: Policy, windows: Sequence[JoinWindow], cost: ScanCost = NO_FIXED_PART
    ) -> None:
        """Begin without outers."""
        self.policy = policy
        self.scans = policy.prepare(windows, cost)
        self._state = [_Scan(shared) for shared in self.scans]

    def arrive(self, outer: int) -> None:
        """An outer has arrived, after all earlier ones."""
        for scan in self._state:
            scan.arrive(outer)

    @property
    def waiting(self) -> int:
        """Outers that have not finished, counted once for each scan."""
        return sum(len(scan.outers) for scan in self._state)

    def view(self) -> View:
        """The waiting outers, those that are furthest on first."""
        waiting = []
        for number, scan in enumerate(self._state):
            allowed = scan.shared.levels
            for scanned in range(scan.shared.levels - 1, -1, -1):
                queue = scan.queues[scanned]
                if queue:
                    waiting.append(Waiting(number, scanned, allowed, queue[0].number, len(queue)))
                    allowed = scanned
        return View(self.scans, tuple(waiting))

    def decide(self) -> Probe | None:
        """The next probe; None while nothing waits."""
        chosen = self.policy.choose(self.view())
        if chosen is None:
            return None
        outer = self._state[chosen.scan].queues[chosen.scanned][0]
        return Probe(outer.number, chosen.scan, chosen.scanned, chosen.until, chosen.reason)

    def finish(self, probe: Probe) -> list[Pairs]:
        """A probe has finished; return the pairs that leave now, in the order of windows."""
        scan = self._state[probe.scan]
        outer = scan.queues[probe.first].popleft()
        assert outer.number == probe.outer, f"outer {probe.outer} was not the first to wait"
        outer.scanned = probe.last
        if probe.last < scan.shared.levels:
            scan.queues[probe.last].append(outer)
        pairs = [found for window in range(probe.first + 1, scan.shared.levels + 1)
                 for found in self._leaving(probe.scan, scan, outer, window)]
        if probe.last == scan.shared.levels:
            scan.outers.popleft()
        return pairs

    def _leaving(self, number: int, scan: _Scan, outer: _Outer, window: int) -> list[Pairs]:
        """The pairs that leave for the queries of a window, now that an outer has gone on."""
        if outer.place != scan.fronts[window]:  # an earlier outer has not scanned this window
            return []
        leaving = _let_go(number, outer, window)
        if outer.scanned >= window:
            scan.fronts[window] += 1
            follower = scan.at(outer.place + 1) if self.policy.releases_early else None
            if follower is not None:
                leaving += _let_go(number, follower, window)
        return leaving


def _let_go(scan: int, outer: _Outer, window: int) -> list[Pairs]:
    first, last = outer.left[window], min(outer.scanned, window)
    if first == last:
        return []
    outer.left[window] = last
    return [Pairs(outer.number, scan, window, first, last)]
