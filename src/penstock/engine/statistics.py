"""Costs and selectivities, measured in one window of time and used in the next."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.policies.operators import Stage


@dataclass(slots=True)
class _Sums:
    rows_in: float = 0
    rows_out: float = 0
    seconds: float = 0.0
    bytes_in: float = 0
    bytes_out: float = 0


@dataclass(slots=True)
class Statistics:
    """By segment, the seconds per row, and the rows and bytes out per row and byte in.

    >>> statistics = Statistics(window=10.0)
    >>> statistics.record("a", at=1.0, rows_in=100, rows_out=20, seconds=0.5)
    False
    >>> statistics.cost("a"), statistics.selectivity("a")
    (0.005, 0.2)

    The first window serves itself, since there is none before it. The first job of a segment waits
    for generated code and new processes, so it counts only until there is another:

    >>> statistics.record("a", at=2.0, rows_in=100, rows_out=20, seconds=0.1)
    False
    >>> statistics.cost("a")
    0.001
    """

    window: float = 10.0
    _began: float | None = None
    _now: dict[str, _Sums] = field(default_factory=dict)
    _last: dict[str, _Sums] = field(default_factory=dict)
    _cold: dict[str, bool] = field(default_factory=dict)
    """By segment, whether only its first job was measured."""

    def record(
        self, segment: str, at: float, rows_in: float, rows_out: float, seconds: float,
        bytes_in: float = 0.0, bytes_out: float = 0.0,
    ) -> bool:
        """Add a finished job; True if it begins a new window, so that the figures have changed."""
        if self._began is None:
            self._began = at
        renewed = at - self._began >= self.window
        if renewed:
            self._last.update(self._now)  # a segment that did not run keeps its older figures
            self._now, self._began = {}, at
        if self._cold.get(segment):
            self._now.pop(segment, None)
            self._last.pop(segment, None)
        self._cold[segment] = segment not in self._cold
        sums = self._now.setdefault(segment, _Sums())
        sums.rows_in += rows_in
        sums.rows_out += rows_out
        sums.seconds += seconds
        sums.bytes_in += bytes_in
        sums.bytes_out += bytes_out
        return renewed

    def knows(self, segment: str) -> bool:
        """Whether anything was measured of a segment."""
        return self._known(segment) is not None

    def cost(self, segment: str) -> float:
        """Seconds per row; 0 while nothing is known."""
        sums = self._known(segment)
        return sums.seconds / sums.rows_in if sums and sums.rows_in else 0.0

    def selectivity(self, segment: str) -> float:
        """Rows out per row in; 1 while nothing is known."""
        sums = self._known(segment)
        return sums.rows_out / sums.rows_in if sums and sums.rows_in else 1.0

    def width(self, segment: str) -> float:
        """Bytes of a row out per byte of a row in; 1 while nothing is known."""
        sums = self._known(segment)
        if sums is None or not (sums.bytes_in and sums.bytes_out and sums.rows_in):
            return 1.0
        return (sums.bytes_out / sums.rows_out) / (sums.bytes_in / sums.rows_in)

    def stage(self, name: str) -> Stage:
        """The figures of a segment as policies see them."""
        return Stage(name, self.cost(name), self.selectivity(name), self.width(name))

    def _known(self, segment: str) -> _Sums | None:
        return self._last.get(segment) or self._now.get(segment)
