"""The orders in which the streams of a multiway join are probed, one for each stream.

A fresh row can be in a result only if every other stream has rows for it. So each of the other
streams is a filter: it drops the row if it has none. The policies that order the predicates of a
conjunction order these filters too, out of the same kind of profile. A stream is probed no sooner
than the one that leads to it (`JoinGraph.valid`).

Reference: section 8 of the filters paper. A path of streams counts as one filter, as there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from penstock.engine.instructions import ProbeOrder
from penstock.events import kinds as ev
from penstock.join_graph import JoinGraph
from penstock.plan import SharedJoin
from penstock.policies.filters import (
    AdaptiveOrder,
    FilterPredicate,
    Policy,
    ProfileBatch,
    view_of,
)

PROFILED = 0.1
"""At least this share of the dropped keys is profiled. A probe asks for thousands of keys at once,
and a tenth of the dropped ones costs it next to nothing."""


class ProbeOrders:
    """Takes what probes report, and decides in which order the next ones go."""

    def __init__(self, policy: Policy, join: SharedJoin) -> None:
        """Begin with the streams in the order in which they are written."""
        self._join = join.id
        self._names = names(join.streams)
        self._graph = JoinGraph.of(len(join.streams), join.on)
        self._adaptive = [self._begun(policy, stream) for stream in range(len(join.streams))]

    def use(self, policy: Policy) -> None:
        """Let another policy decide, from the present orders on; it begins to learn."""
        before, self._adaptive = self._adaptive, [
            self._begun(policy, stream) for stream in range(len(self._names))]
        for adaptive, known in zip(self._adaptive, before, strict=True):
            adaptive.go_on(known.order)

    def _begun(self, policy: Policy, stream: int) -> AdaptiveOrder:
        return AdaptiveOrder(replace(policy, p=max(policy.p, PROFILED)), [
            FilterPredicate(self._names[other]) for other in self._others(stream)])

    @property
    def orders(self) -> tuple[ProbeOrder, ...]:
        """By stream whose fresh rows probe: the order, and what to profile."""
        return tuple(self._ordered(stream) for stream in range(len(self._names)))

    def _ordered(self, stream: int) -> ProbeOrder:
        request = self._adaptive[stream].request
        return ProbeOrder(order=self._streams(stream, request.order), version=request.version,
                          probability=request.probability, most=request.most)

    def take(
        self, at: float, profiles: Iterable[ev.ProbeProfile]
    ) -> Iterator[ev.ProbesReordered]:
        """Learn from a probe; the orders that change for the next one."""
        for profile in profiles:
            adaptive, stream = self._adaptive[profile.stream], profile.stream
            before = self._streams(stream, adaptive.order)
            adaptive.observe(self._batch(profile))
            view = view_of(adaptive.profile)
            decision = adaptive.decide()
            order = self._streams(stream, adaptive.order)
            if decision is not None and order != before:
                yield ev.ProbesReordered(
                    at=at, join=self._join, stream=self._names[stream],
                    order=tuple(self._names[other] for other in order),
                    reason=decision.reason, before=decision.before, after=decision.after,
                    rows=view.rows, matrix=tuple(map(tuple, view.matrix.tolist())))

    def _batch(self, profile: ev.ProbeProfile) -> ProfileBatch:
        others = self._others(profile.stream)
        patterns = np.array([pattern for pattern, count in profile.dropped for _ in range(count)])
        bits = patterns.reshape(-1, 1).astype(int) >> np.arange(len(others)) & 1
        seconds = np.full(len(others), np.nan)
        for other, taken in zip(profile.order, profile.seconds, strict=False):
            seconds[others.index(other)] = taken
        dropped = profile.probed[0] - profile.left if profile.probed else 0
        return ProfileBatch(bits.astype(bool), seconds,
                            passed=profile.left / dropped if dropped else 0.0,
                            version=profile.version)

    def _streams(self, stream: int, order: Iterable[int]) -> tuple[int, ...]:
        """The streams that an order of the filters stands for, as they can be probed."""
        others = self._others(stream)
        return self._graph.valid(stream, [others[number] for number in order])

    def _others(self, stream: int) -> list[int]:
        """The other streams as they are written: the filters of this one."""
        return [other for other in range(len(self._names)) if other != stream]


def names(streams: Iterable[str]) -> tuple[str, ...]:
    """The streams of a join by names of their own.

    >>> names(("packets", "hosts", "packets"))
    ('packets', 'hosts', 'packets (2)')
    """
    seen: Counter[str] = Counter()
    found = []
    for stream in streams:
        seen[stream] += 1
        found.append(f"{stream} ({seen[stream]})" if seen[stream] > 1 else stream)
    return tuple(found)
