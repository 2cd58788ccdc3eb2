"""The schedule of a shared window join: which outer scans which slice, and which pairs may leave.

An *outer* probes the window of the other stream, from the most recent rows back to the largest
window. It may stop between two levels to let another outer pass. A query gets its pairs in the
order of their later members, which is that of the outers. So pairs that an outer finds for a query
are held back until all earlier outers have scanned the query's window.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

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

    def arrive(self, number: int, scanned: int = 0) -> None:
        left = [min(scanned, window) for window in range(self.shared.levels + 1)]
        outer = _Outer(number, self.arrived, scanned, left)
        self.arrived += 1
        for window in range(1, scanned + 1):
            self.fronts[window] += 1
        if scanned < self.shared.levels:
            self.outers.append(outer)
            self.queues[scanned].append(outer)

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

    def arrive(self, outer: int, reach: float = 0.0) -> None:
        """An outer has arrived, after all earlier ones.

        One that waited in another schedule may have scanned some of the window already, as far as
        ``reach``. It begins with the levels beyond, but not before an earlier outer.
        """
        for scan in self._state:
            scanned = sum(window.length <= reach for window in scan.shared.windows)
            furthest = scan.outers[-1].scanned if scan.outers else scan.shared.levels
            scan.arrive(outer, min(scanned, furthest))

    def weigh(self, cost: ScanCost) -> None:
        """Scans cost this from now on; what waits goes on where it is."""
        self.scans = tuple(replace(scan, cost=cost) for scan in self.scans)
        for state, scan in zip(self._state, self.scans, strict=True):
            state.shared = scan

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

    def leaving(self, probe: Probe) -> list[Pairs]:
        """The pairs that leave when a probe is through, in the order of windows."""
        scan = self._state[probe.scan]
        outer = scan.queues[probe.first][0]
        assert outer.number == probe.outer, f"outer {probe.outer} was not the first to wait"
        return [found for window in range(probe.first + 1, scan.shared.levels + 1)
                for found in self._leaving(probe, scan, outer, window)]

    def finish(self, probe: Probe) -> list[Pairs]:
        """A probe has finished; return the pairs that leave now, in the order of windows."""
        scan, pairs = self._state[probe.scan], self.leaving(probe)
        outer = scan.queues[probe.first].popleft()
        outer.scanned = probe.last
        for window in range(probe.first + 1, probe.last + 1):
            scan.fronts[window] += scan.fronts[window] == outer.place
        for gone in pairs:
            one = outer if gone.outer == outer.number else scan.at(outer.place + 1)
            assert one is not None and one.number == gone.outer
            one.left[gone.window] = gone.last
        if probe.last < scan.shared.levels:
            scan.queues[probe.last].append(outer)
        else:
            scan.outers.popleft()
        return pairs

    def _leaving(self, probe: Probe, scan: _Scan, outer: _Outer, window: int) -> Iterator[Pairs]:
        """The pairs that leave for the queries of a window when an outer has gone on."""
        if outer.place != scan.fronts[window]:  # an earlier outer has not scanned this window
            return
        yield from _gone(probe, outer, window, probe.last)
        follower = scan.at(outer.place + 1) if self.policy.releases_early else None
        if probe.last >= window and follower is not None:
            yield from _gone(probe, follower, window, follower.scanned)


def _gone(probe: Probe, outer: _Outer, window: int, scanned: int) -> Iterator[Pairs]:
    first, last = outer.left[window], min(scanned, window)
    if first < last:
        yield Pairs(outer.number, probe.scan, window, first, last)
