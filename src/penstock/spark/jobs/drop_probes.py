"""Drop probing: the streams of a multiway join are asked for keys of fresh rows, one after another.

In each round, every stream whose fresh rows are still in question asks the next stream of its order
which of their keys it has. The keys that it has not are dropped, and no other stream is asked for
them. One Spark job serves a round, whichever streams ask and are asked. If nothing is left, the
remaining rounds and the join itself do not take place.

A sample of the dropped keys goes on through all rounds: it shows what the other streams would have
dropped, and so how they overlap. The filters policies order the probes by that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.engine.instructions import ProbeOrder, ProbeScan
from penstock.events import kinds as ev
from penstock.spark.compile.multiway import (
    FRESH,
    HELD,
    KEY,
    TIME,
    Hashes,
    MultiwayCompiler,
    Rows,
    Survivors,
    link,
)

Mask = npt.NDArray[np.bool_]
_SHARES = 1 << 16
"""A key is sampled if the lowest bits of its hash, as a share of this, are below the probability.
"""


@dataclass(frozen=True, slots=True)
class Dropped:
    """What drop probing has left."""

    survivors: Survivors | None
    """None if no result is possible."""
    profiles: tuple[ev.ProbeProfile, ...]
    jobs: int
    """Spark jobs that it took."""


@dataclass(slots=True)
class _HeldKeys:
    """What a stream has of the keys that it was asked for, once for each way to go on."""

    keys: Hashes
    """The keys by which it was asked."""
    onward: npt.NDArray[np.int64]
    """By link of the stream and key: the keys by which the streams behind it are asked."""
    rows: Hashes


@dataclass(slots=True)
class _FreshKeys:
    """The keys of the fresh rows of one stream, and what has become of them."""

    stream: int
    order: ProbeOrder
    links: npt.NDArray[np.int64]
    """By link of the stream and key: its hash."""
    first: Hashes
    last: Hashes
    """The times of the first and the last fresh row with each key."""
    alive: Mask
    sampled: Mask
    drops: npt.NDArray[np.bool_]
    """By stream and key: whether the stream, or one that leads to it, has dropped the key."""
    held: dict[int, _HeldKeys] = field(default_factory=dict)
    probed: list[int] = field(default_factory=list)
    """By round, the keys that were alive before it."""
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class DropProbes:
    """Carries out the rounds of a scan."""

    compiler: MultiwayCompiler
    rows: Rows
    clock: Callable[[], float] = time.perf_counter

    def run(self, scan: ProbeScan, orders: Sequence[ProbeOrder]) -> Dropped:
        """Ask until nothing is left, or every stream has been asked."""
        fresh = self._fresh(scan, orders)
        jobs = 1
        for number in range(len(scan.sides) - 1):
            if not any(one.alive.any() for one in fresh):
                break
            self._round(scan, number, fresh)
            jobs += 1
        is_left = any(one.alive.any() for one in fresh)
        survivors = self._survivors(fresh) if is_left else None
        return Dropped(survivors, tuple(map(self._profile, fresh)), jobs)

    def _fresh(self, scan: ProbeScan, orders: Sequence[ProbeOrder]) -> list[_FreshKeys]:
        found = self.compiler.fresh_keys(scan, self.rows).toArrow()
        whose = found[FRESH].to_numpy()
        return [self._of_stream(stream, orders[stream], found.filter(pa.array(whose == stream)))
                for stream in range(len(scan.sides)) if (whose == stream).any()]

    def _of_stream(self, stream: int, order: ProbeOrder, rows: pa.Table) -> _FreshKeys:
        times, own = rows[TIME].to_numpy(), range(len(self.compiler.links[stream]))
        links, first, last = _spans(
            np.array([rows[link(number)].to_numpy() for number in own]), times, times)
        nothing = np.zeros(len(first), bool)
        return _FreshKeys(stream, order, links, first, last, ~nothing, nothing,
                          np.zeros((len(self.compiler.links), len(first)), bool))

    # --- one round ---------------------------------------------------------------------------

    def _round(self, scan: ProbeScan, number: int, fresh: Sequence[_FreshKeys]) -> None:
        began = self.clock()
        asking = [self._asked(scan, one, one.order.order[number]) for one in fresh]
        # One chunk: to an empty one, as of a stream that asks nothing, Spark stops to read.
        table = pa.concat_tables(asking).combine_chunks()
        asked = sorted({(one.order.order[number], self._link_of(one, one.order.order[number]))
                        for one, some in zip(fresh, asking, strict=True) if some.num_rows})
        found = self.compiler.held(scan, asked, table, self.rows).toArrow()
        seconds = self.clock() - began
        read = {stream: sum(block.rows for block in scan.sides[stream].window)
                for stream, _ in asked}
        whose = found[FRESH].to_numpy()
        for one, some in zip(fresh, asking, strict=True):
            stream = one.order.order[number]
            one.probed.append(int(one.alive.sum()))
            share = read[stream] / max(sum(read.values()), 1) if some.num_rows else 0.0
            one.seconds.append(seconds * share / one.alive.size)
            self._take(one, stream, found.filter(pa.array(whose == one.stream)))
            self._sample(scan, one)

    def _asked(self, scan: ProbeScan, one: _FreshKeys, stream: int) -> pa.Table:
        """The keys for which the fresh rows of a stream ask another."""
        parent = self._parent(one, stream)
        asked = one.alive | one.sampled
        if parent == one.stream:
            keys = one.links[self.compiler.link_to(one.stream, stream), asked]
            first, last = one.first[asked], one.last[asked]
        else:
            through = self._connected(one, parent, asked)
            keys = one.held[parent].onward[self.compiler.link_to(parent, stream), through]
            first = np.full(len(keys), one.first[asked].min() if asked.any() else 0)
            last = np.full(len(keys), one.last[asked].max() if asked.any() else 0)
        (keys,), low, high = _spans(keys[None], first, last)
        span = self.compiler.join.span - 1
        number = self._link_of(one, stream)
        goes_on = stream in self.compiler.graph.parents(one.stream)
        return self.compiler.asking(
            np.full(len(keys), one.stream, np.int32), keys ^ self.compiler.salt(stream, number),
            low - span, np.minimum(high + span, scan.until - 1),
            np.full(len(keys), goes_on))

    def _take(self, one: _FreshKeys, stream: int, found: pa.Table) -> None:
        """Note what a stream has, and which fresh keys are dropped."""
        salt = self.compiler.salt(stream, self._link_of(one, stream))
        leads_on = stream in self.compiler.graph.parents(one.stream)
        links = len(self.compiler.links[stream]) if leads_on else 0
        onward = np.empty((links, found.num_rows), np.int64)
        for number in range(links):
            onward[number] = found[link(number)].to_numpy()
        one.held[stream] = _HeldKeys(found[KEY].to_numpy() ^ salt, onward, found[HELD].to_numpy())
        one.drops[stream] = ~self._reaches(one, stream)
        one.alive &= ~one.drops[stream]

    def _reaches(self, one: _FreshKeys, stream: int) -> Mask:
        """Which fresh keys a stream has rows for, through the streams that lead to it."""
        keys, child = one.held[stream].keys, stream
        while (parent := self._parent(one, child)) != one.stream:
            held = one.held[parent]
            keys = held.keys[np.isin(held.onward[self.compiler.link_to(parent, child)], keys)]
            child = parent
        return np.isin(one.links[self.compiler.link_to(one.stream, child)], keys)

    def _connected(self, one: _FreshKeys, stream: int, keys: Mask) -> Mask:
        """What a stream holds for some of the fresh keys."""
        parent, held = self._parent(one, stream), one.held[stream]
        if parent == one.stream:
            return np.isin(held.keys, one.links[self.compiler.link_to(parent, stream), keys])
        number, through = self.compiler.link_to(parent, stream), self._connected(one, parent, keys)
        return np.isin(held.keys, one.held[parent].onward[number, through])

    def _sample(self, scan: ProbeScan, one: _FreshKeys) -> None:
        """Choose the dropped keys that go on for the profile, by their hashes."""
        chance = (one.links[0] ^ scan.since) % _SHARES < one.order.probability * _SHARES
        chosen = np.flatnonzero(~one.alive & chance)[: one.order.most]
        one.sampled = np.zeros_like(one.sampled)
        one.sampled[chosen] = True

    # --- what is left ------------------------------------------------------------------------

    def _survivors(self, fresh: Sequence[_FreshKeys]) -> Survivors:
        keys: list[dict[int, list[Hashes]]] = [{} for _ in self.compiler.links]
        rows = 0
        for one in fresh:
            if not one.alive.any():
                continue
            keys[one.stream].setdefault(0, []).append(one.links[0, one.alive])
            for stream, held in one.held.items():
                left = self._connected(one, stream, one.alive)
                keys[stream].setdefault(self._link_of(one, stream), []).append(held.keys[left])
                rows += int(held.rows[left].sum())
        unique = tuple({number: np.unique(np.concatenate(some)) for number, some in found.items()}
                       for found in keys)
        return Survivors(unique, rows)

    def _profile(self, one: _FreshKeys) -> ev.ProbeProfile:
        others = [stream for stream in range(len(one.drops)) if stream != one.stream]
        is_whole = len(one.probed) == len(others)
        bits = one.drops[others][:, one.sampled & ~one.alive]
        patterns = (bits << np.arange(len(others))[:, None]).sum(axis=0)
        counted = np.unique(patterns, return_counts=True)
        return ev.ProbeProfile(
            stream=one.stream, version=one.order.version, order=one.order.order,
            probed=tuple(one.probed), left=int(one.alive.sum()), seconds=tuple(one.seconds),
            dropped=tuple((int(pattern), int(count))
                          for pattern, count in zip(*counted, strict=True)) if is_whole else ())

    def _parent(self, one: _FreshKeys, stream: int) -> int:
        parent = self.compiler.graph.parents(one.stream)[stream]
        assert parent is not None, "the root is asked for nothing"
        return parent

    def _link_of(self, one: _FreshKeys, stream: int) -> int:
        """The link by which a stream is asked."""
        return self.compiler.link_to(stream, self._parent(one, stream))


def _spans(
    keys: npt.NDArray[np.int64], first: Hashes, last: Hashes
) -> tuple[npt.NDArray[np.int64], Hashes, Hashes]:
    """Keys, each once, with the earliest of their first times and the latest of their last ones.

    A key has a part in each line.

    >>> keys, first, last = (np.array(some) for some in ([[7, 5, 7]], [1, 2, 3], [4, 5, 6]))
    >>> [some.tolist() for some in _spans(keys, first, last)]
    [[[5, 7]], [2, 1], [5, 6]]
    """
    if not keys.size:
        return keys, first, last
    order = np.lexsort(keys)
    keys, first, last = keys[:, order], first[order], last[order]
    is_new = np.concatenate([[True], (keys[:, 1:] != keys[:, :-1]).any(axis=0)])
    begins = np.flatnonzero(is_new)
    return keys[:, begins], np.minimum.reduceat(first, begins), np.maximum.reduceat(last, begins)
