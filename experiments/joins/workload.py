"""The streams and windows of the joins paper, section 5."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.policies.joins import JoinWindow
from penstock.simulator.joins import JoinLoad, Method
from penstock.simulator.outcomes import Floats

DISTRIBUTIONS: dict[str, tuple[float, ...]] = {
    "Uniform": (1, 100, 200, 300, 400, 500, 600),
    "Mostly-Small": (1, 5, 15, 30, 60, 300, 600),
    "Mostly-Large": (1, 60, 300, 420, 510, 570, 600),
    "Small-Large": (1, 5, 15, 300, 510, 570, 600),
}
"""Table 1: window sizes in seconds."""
APART: tuple[float, ...] = (1, 5, 15, 30, 60, 400, 600)
"""Mostly-Small with its sixth window further from the fifth than from the seventh."""
KEYS = 500
"""A row joins one in so many: the selectivity of 0.002."""
RATES: dict[Method, float] = {"hash": 100.0, "nested_loops": 15.0}
"""Rows per second of each stream."""
EMITTING = 0.4
"""The part of a hash join's time that making pairs takes (section 3.4)."""
LOAD = 0.8
"""The part of its time that the machine is busy, which the paper does not state. With this LWO
responds about alike for all windows, SWF's largest window responds twice as fast in Mostly-Small as
in Uniform, and MQT's largest several times faster than SWF's under bursts, as the paper says."""


@dataclass(frozen=True, slots=True)
class Streams:
    """What a process is asked to join."""

    windows: tuple[float, ...]
    queries: tuple[int, ...]
    """By window: how many queries have it."""
    outers: int
    """So many rows probe, of both streams together, after the windows have been filled."""
    burst: float = 1.0
    """Rows that come together, on average."""
    load: float = LOAD
    """The part of its time that the machine needs to scan the largest window for every row."""
    method: Method = "hash"
    routing: float = 0.0
    """What it takes to compare a pair with one window, as a part of what it takes to find it."""

    @property
    def listed(self) -> tuple[JoinWindow, ...]:
        """The windows as policies know them."""
        return tuple(JoinWindow(length, queries)
                     for length, queries in zip(self.windows, self.queries, strict=True))

    def drawn(self, seed: int) -> JoinLoad:
        """Streams with a beginning of one largest window, which fills the join's buffers."""
        rng = np.random.default_rng(seed)
        rate, largest = RATES[self.method], max(self.windows)
        end = largest + self.outers / (2 * rate)
        streams = [arrivals(rng, rate, end, self.burst) for _ in range(2)]
        times = np.concatenate(streams)
        order = np.argsort(times, kind="stable")
        sides = np.repeat([0, 1], [len(stream) for stream in streams])[order]
        buffered = rate * largest
        per_outer = self.load / (2 * rate)
        pairs = per_outer * KEYS / buffered
        hashed = self.method == "hash"
        return JoinLoad(
            times[order], sides, rng.integers(0, KEYS, len(times)), self.listed,
            compare=(1 - EMITTING) * pairs if hashed else per_outer / buffered,
            emit=EMITTING * pairs if hashed else 0.0, route=self.routing * pairs,
            method=self.method,
            filled=int(np.searchsorted(times[order], largest)))


def streams(
    name: str, outers: int, queries: tuple[int, ...] = (1,) * 7, burst: float = 1.0,
    load: float = LOAD, method: Method = "hash", routing: float = 0.0,
) -> Streams:
    """Streams under one of the window distributions."""
    return Streams(DISTRIBUTIONS[name], queries, outers, burst, load, method, routing)


def arrivals(rng: np.random.Generator, rate: float, end: float, burst: float) -> Floats:
    """Times up to an end; bursts have a Pareto number of rows, intervals are exponential.

    The shape is that of a mean of ``burst`` rows, and bursts are rarer by as much.

    >>> times = arrivals(np.random.default_rng(1), rate=100.0, end=3000.0, burst=3.0)
    >>> len(times) / 3000 / 100 > 0.8, len(np.unique(times)) / len(times) < 0.6
    (True, True)
    """
    count = int(1.5 * rate * end / burst) + 100
    starts = np.cumsum(rng.exponential(burst / rate, count))
    starts = starts[starts < end]
    if burst == 1.0:
        return starts
    sizes = rng.pareto(burst / (burst - 1), len(starts)) + 1
    rows = np.floor(sizes) + (rng.random(len(starts)) < sizes % 1)
    return np.repeat(starts, rows.astype(int))
