"""Shared window joins in virtual time: rows of two streams probe each other's windows.

One processor does one probe at a time and finishes it. The same `ProbeSchedule` decides as on
Spark; an outer is a row here, as in the joins paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from penstock.engine.joins.probe_schedule import Pairs, Probe, ProbeSchedule
from penstock.policies.joins import JoinWindow, Policy, ScanCost
from penstock.simulator.outcomes import Floats

Method = Literal["hash", "nested_loops"]
FAR = 2.0**30
"""Times and numbers of rows stay below this."""


@dataclass(frozen=True)
class JoinLoad:
    """Two streams that are joined, whatever the policy."""

    times: Floats
    """When the rows of both streams arrive, in order."""
    sides: npt.NDArray[np.int64]
    """By row: the stream it belongs to, 0 or 1."""
    keys: npt.NDArray[np.int64]
    """By row: its join key, a whole number."""
    windows: tuple[JoinWindow, ...]
    compare: float
    """Seconds to look at one row of the window."""
    emit: float = 0.0
    """Seconds to make one pair."""
    route: float = 0.0
    """Seconds to compare a pair with one window. A probe over several slices compares each of its
    pairs with one window after another, until one is long enough. The pairs of a single slice all
    have the same windows, so they are not compared."""
    method: Method = "hash"
    """Hash: an outer looks at the rows with its own key. Nested loops: at every row."""
    filled: int = 0
    """So many rows are in the windows already when the first outer comes, and probe nothing."""

    def __post_init__(self) -> None:
        """Rows are numbered in the order of their arrival."""
        assert (np.diff(self.times) >= 0).all(), "rows come in the order of their times"


@dataclass(slots=True)
class Responses:
    """How long pairs took to reach the queries of a window, from the later of the two rows on."""

    pairs: int = 0
    total: float = 0.0
    longest: float = 0.0

    def add(self, pairs: int, total: float, longest: float) -> None:
        """Some pairs have left."""
        if pairs:
            self.pairs += pairs
            self.total += total
            self.longest = max(self.longest, longest)

    @property
    def mean(self) -> float:
        """Seconds."""
        return self.total / self.pairs if self.pairs else 0.0


@dataclass(slots=True)
class Joined:
    """What came of it."""

    responses: dict[float, Responses]
    """By window length."""
    seconds: float = 0.0
    busy: float = 0.0
    """Seconds in which the processor worked."""
    probes: int = 0
    waiting_peak: int = 0
    """The most outers that were not through at one time."""
    held_peak: int = 0
    """The most pairs that were held back at one time."""
    held_rows_peak: int = 0
    """The most outers that had pairs held back at one time."""
    released: list[tuple[float, Pairs]] = field(default_factory=list)
    """What left, and when, if that was asked for."""

    def mean_of(self, windows: Sequence[JoinWindow]) -> float:
        """The mean over all queries of the mean response of their pairs."""
        total = sum(window.queries * self.responses[window.length].mean for window in windows)
        return total / sum(window.queries for window in windows)

    def mean_pair(self, windows: Sequence[JoinWindow]) -> float:
        """The mean response over all pairs that all queries got: large windows have the most."""
        queries = {window.length: window.queries for window in windows}
        pairs = sum(queries[length] * found.pairs for length, found in self.responses.items())
        total = sum(queries[length] * found.total for length, found in self.responses.items())
        return total / pairs if pairs else 0.0


def reaches(
    load: JoinLoad, lengths: Sequence[float]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """By row and length: rows of the other stream, and those with its key, met within the length.

    A row meets the rows that came before it, less than the length ago. The first column is of no
    length.
    """
    shape = len(load.times), len(lengths) + 1
    seen, matched = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for side in (0, 1):
        outers, others = np.flatnonzero(load.sides == side), np.flatnonzero(load.sides != side)
        # Rows are numbered in the order of arrival, so that of equal times the earlier comes first.
        come = np.searchsorted(others, outers)
        alike = _by_key(load.keys[others], others)
        met = np.searchsorted(np.sort(alike), _by_key(load.keys[outers], outers))
        aged = np.sort(_by_key(load.keys[others], load.times[others]))
        for n, length in enumerate(lengths, 1):
            since = load.times[outers] - length
            seen[outers, n] = come - np.searchsorted(load.times[others], since, "right")
            matched[outers, n] = met - np.searchsorted(
                aged, _by_key(load.keys[outers], since), "right")
    return seen, matched


def _by_key(keys: npt.NDArray[np.int64], values: npt.NDArray[Any]) -> Floats:
    """Numbers that sort by key, then by value: values are far smaller than the distance of keys."""
    return np.asarray(keys * FAR + values, float)


class JoinSimulation:
    """Plays a load under a policy."""

    def __init__(self, load: JoinLoad, policy: Policy, keep: bool = False) -> None:
        """With ``keep`` everything that leaves is kept, with its time."""
        self.load, self.policy, self.keep = load, policy, keep
        self.schedule = ProbeSchedule(policy, load.windows, ScanCost())
        self.found = Joined({window.length: Responses() for window in load.windows})
        self._now = 0.0
        self._held = 0
        self._held_of: dict[tuple[int, int], int] = {}
        """By scan and outer: its pairs that are held back, if there are any."""
        self._counts: list[tuple[list[list[int]], list[list[int]]]] = []
        """By scan: what each row that probes sees and matches, within each of the lengths."""
        for scan in self.schedule.scans:
            seen, matched = reaches(load, [window.length for window in scan.windows])
            self._counts.append((seen[load.filled:].tolist(), matched[load.filled:].tolist()))

    def run(self) -> Joined:
        """Let all rows come and all pairs leave."""
        times, coming, rows = self.load.times.tolist(), self.load.filled, len(self.load.times)
        begun = self._now = times[coming] if coming < rows else 0.0
        while True:
            while coming < rows and times[coming] <= self._now:
                self.schedule.arrive(coming)
                coming += 1
            self.found.waiting_peak = max(self.found.waiting_peak, self.schedule.waiting)
            probe = self.schedule.decide()
            if probe is not None:
                self._carry_out(probe)
            elif coming < rows:
                self._now = times[coming]
            else:
                self.found.seconds = self._now - begun
                return self.found

    def _carry_out(self, probe: Probe) -> None:
        """One probe; pairs leave one by one, at its end, or when an earlier outer is through."""
        begun = self._now
        ends = [begun]
        for level in range(probe.first, probe.last):
            ends.append(ends[-1] + self._seconds(probe, level))
        self._now = ends[-1]
        self.found.busy += self._now - begun
        self.found.probes += 1
        self._hold(probe.scan, probe.outer,
                   self._pairs(probe.scan, probe.outer, probe.first, probe.last))
        self.found.held_peak = max(self.found.held_peak, self._held)
        self.found.held_rows_peak = max(self.found.held_rows_peak, len(self._held_of))
        for pairs in self.schedule.finish(probe):
            self._leave(pairs, probe, ends)

    def _hold(self, scan: int, outer: int, pairs: int) -> None:
        """So many more pairs of an outer are held back, or fewer."""
        held = self._held_of.pop((scan, outer), 0) + pairs
        if held:
            self._held_of[scan, outer] = held
        self._held += pairs

    def _leave(self, pairs: Pairs, probe: Probe, ends: Sequence[float]) -> None:
        scan, arrived = self.schedule.scans[pairs.scan], float(self.load.times[pairs.outer])
        if pairs.window == scan.levels:
            self._hold(pairs.scan, pairs.outer,
                       -self._pairs(pairs.scan, pairs.outer, pairs.first, pairs.last))
        responses = self.found.responses[scan.reach(pairs.window)]
        if self.keep:
            self.found.released.append((self._now, pairs))
        for level in range(pairs.first, pairs.last):
            count = self._pairs(pairs.scan, pairs.outer, level, level + 1)
            streamed = (self.policy.streams and pairs.outer == probe.outer
                        and level >= probe.first)
            last = ends[level - probe.first + 1] if streamed else self._now
            spread = last - ends[level - probe.first] if streamed else 0.0
            # The n-th of the pairs of a level leaves when n parts of the level are scanned.
            total = count * (last - arrived) - spread * (count - 1) / 2
            responses.add(count, total, last - arrived)

    def _pairs(self, scan: int, outer: int, first: int, last: int) -> int:
        matched = self._counts[scan][1][outer - self.load.filled]
        return matched[last] - matched[first]

    def _seconds(self, probe: Probe, level: int) -> float:
        """What one slice of a probe takes."""
        load = self.load
        seen, matched = (counts[probe.outer - load.filled] for counts in self._counts[probe.scan])
        pairs = matched[level + 1] - matched[level]
        looked = pairs if load.method == "hash" else seen[level + 1] - seen[level]
        alone = probe.last == probe.first + 1
        compared = 0 if alone else level + 1 - probe.first
        return load.compare * looked + (load.emit + load.route * compared) * pairs


def play_join(load: JoinLoad, policy: Policy, keep: bool = False) -> Joined:
    """Run a policy until all pairs have left.

    Three rows of one stream meet two of the other, a second apart, under windows of 2 and 9 s:

    >>> from penstock.policies.joins import policy
    >>> load = JoinLoad(np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.array([0, 1, 0, 1, 0]),
    ...                 np.zeros(5, int), (JoinWindow(2.0), JoinWindow(9.0)), compare=0.25)
    >>> found = play_join(load, policy("lwo"))
    >>> [(length, some.pairs, some.mean) for length, some in found.responses.items()]
    [(2.0, 4, 0.25), (9.0, 6, 0.3333333333333333)]
    """
    return JoinSimulation(load, policy, keep).run()
