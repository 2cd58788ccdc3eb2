"""What the conjunctions of a recorded run would have cost under other filters policies.

A record has a sample of the rows that the predicates of a path dropped, job by job, and what each
predicate took. If all predicates were evaluated on these rows, they say what any order would have
cost, and what any policy would have learnt. So every policy decides again after each job, on what
it would have asked of the same rows. The schedule is not played again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from penstock.engine.paths.filter_orders import batch_of
from penstock.events import kinds as ev
from penstock.policies import FAMILIES
from penstock.policies.filters import (
    AdaptiveOrder,
    DropPatterns,
    FilterPredicate,
    Policy,
    ProfileBatch,
    policy,
)
from penstock.policies.filters.model.drop_patterns import Bits, Floats, Order
from penstock.policies.filters.model.exhaustive import exhaustive_order

SEARCHED = 10
"""The best order is searched for among so many predicates at most."""
AS_WRITTEN, BEST = "as written", "best order"
"""Outcomes that are no policy's: one order from the first job to the last."""


@dataclass(frozen=True, slots=True)
class OrderOutcome:
    """What a conjunction would have cost under a policy."""

    policy: str
    seconds: float
    """Of its predicates, per row."""
    profiling: float = 0.0
    """Of profiling, per row: at most, since large blocks are sampled thinner."""
    changes: int = 0


@dataclass(frozen=True, slots=True)
class ConjunctionOutcomes:
    """A conjunction under all policies that were tried."""

    path: str
    rows: int
    """Profiled rows, on which all this is based."""
    outcomes: tuple[OrderOutcome, ...]
    """The order written, the policy that ran, the others, and the best order in hindsight."""


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """What a job told of a conjunction."""

    dropped: Bits
    passed: float
    """Rows that met all predicates."""
    seconds: Floats
    share: float
    """The drop-profiling probability under which it was taken."""

    @property
    def rows(self) -> float:
        return len(self.dropped) + self.passed


def compare_orders(
    events: Iterable[ev.Event], policies: Mapping[str, Policy]
) -> tuple[tuple[ConjunctionOutcomes, ...], tuple[str, ...]]:
    """The conjunctions of a record, and those paths whose record says too little."""
    reading = _Profiles()
    for event in events:
        reading.take(event)
    found = []
    for (path, _), samples in reading.samples.items():
        tried = {reading.ran: policy(reading.ran)}
        tried.update((name, one) for name, one in policies.items() if one != tried[reading.ran])
        found.append(ConjunctionOutcomes(
            path, sum(len(one.dropped) for one in samples), tuple(_outcomes(samples, tried))))
    known = {one.path for one in found}
    return tuple(found), tuple(path for path in reading.thin if path not in known)


@dataclass(slots=True)
class _Profiles:
    """Reads a record."""

    samples: dict[tuple[str, int], list[_Sample]] = field(default_factory=dict)
    """By path and number of its predicates."""
    thin: dict[str, None] = field(default_factory=dict)
    """Paths that were profiled by a policy which does not evaluate all predicates."""
    ran: str = FAMILIES["filters"].default
    """The policy at first."""
    _now: Policy = field(default_factory=lambda: policy(FAMILIES["filters"].default))
    _homes: dict[int, str] = field(default_factory=dict)
    _paths: dict[int, str] = field(default_factory=dict)

    def take(self, event: ev.Event) -> None:
        match event:
            case ev.EngineStarted(policies={"filters": name}):
                self.ran, self._now = name, policy(name)
            case ev.PolicyChanged(policies={"filters": name}):
                self._now = policy(name)
            case ev.RidersFormed(riders=riders, path=path):
                self._homes[riders] = path
            case ev.JobDecided(job=job, work=ev.PathWork() as work):
                self._paths[job] = self._homes.get(work.riders, work.segment)
            case ev.JobFinished(job=job, result=ev.PathResult(profile=profile)) if profile:
                self._add(self._paths.get(job, ""), profile)

    def _add(self, path: str, profile: ev.ConjunctionProfile) -> None:
        count = len(profile.seconds)
        predicates = [FilterPredicate(str(number)) for number in range(count)]
        if not self._now.prepare(predicates).is_complete:
            self.thin[path] = None
            return
        batch = batch_of(profile)
        self.samples.setdefault((path, count), []).append(_Sample(
            batch.dropped, profile.passed * len(batch.dropped), batch.seconds, self._now.p))


def _outcomes(
    samples: list[_Sample], policies: Mapping[str, Policy]
) -> Iterator[OrderOutcome]:
    count = samples[0].dropped.shape[1]
    usual = np.array([_median(column) for column in np.array([one.seconds for one in samples]).T])
    yield OrderOutcome(AS_WRITTEN, _cost(samples, usual, tuple(range(count))))
    for name, one in policies.items():
        yield _under(name, one, samples, usual)
    if count <= SEARCHED:
        together = DropPatterns(np.concatenate([one.dropped for one in samples]),
                                passed=sum(one.passed for one in samples))
        yield OrderOutcome(BEST, _cost(samples, usual, exhaustive_order(together, usual)))


def _median(seconds: Floats) -> float:
    """What jobs measured of a predicate; nothing, if none did."""
    known = seconds[~np.isnan(seconds)]
    return float(np.median(known)) if len(known) else 0.0


def _cost(samples: Iterable[_Sample], usual: Floats, order: Order) -> float:
    return _mean([(one.rows, _seconds(one, usual, order)) for one in samples])


def _seconds(sample: _Sample, usual: Floats, order: Order) -> float:
    """Seconds per row of a sample under an order."""
    taken = np.where(np.isnan(sample.seconds), usual, sample.seconds)
    return DropPatterns(sample.dropped, passed=sample.passed).expected_cost(order, taken)


def _under(
    name: str, chosen: Policy, samples: Iterable[_Sample], usual: Floats
) -> OrderOutcome:
    """A policy decides after every job, on its own part of what the job profiled."""
    adaptive = AdaptiveOrder(
        chosen, [FilterPredicate(str(number)) for number in range(len(usual))])
    costs: list[tuple[float, float]] = []
    profiling: list[tuple[float, float]] = []
    changes = 0
    for sample in samples:
        costs.append((sample.rows, _seconds(sample, usual, adaptive.order)))
        known, more = _asked(adaptive, sample.dropped)
        taken = np.where(np.isnan(sample.seconds), usual, sample.seconds)
        profiling.append((sample.rows, chosen.p * float((more @ taken).sum())
                          / sample.rows if sample.rows else 0.0))
        mine = _part(len(known), chosen.p / sample.share)
        adaptive.observe(ProfileBatch(
            (sample.dropped & known)[mine], np.where(known, sample.seconds, np.nan)[mine],
            sample.passed / len(known) if len(known) else 0.0, adaptive.profile.version))
        changes += adaptive.decide() is not None
    return OrderOutcome(name, _mean(costs), _mean(profiling), changes)


def _asked(adaptive: AdaptiveOrder, dropped: Bits) -> tuple[Bits, Bits]:
    """By row and predicate: what would have been evaluated on a profiled row; what beside that."""
    request = adaptive.request
    known, more = np.zeros(dropped.shape, bool), np.zeros(dropped.shape, bool)
    at = dropped[:, request.order].argmax(axis=1)
    for place, later in enumerate(request.unasked):
        rows = np.flatnonzero(at == place)[:, None]
        known[rows, list(request.order[:place + 1])] = True
        more[rows, list(later)] = True
    return known | more, more


def _part(rows: int, share: float) -> Bits:
    """A share of some rows, at even distances.

    >>> _part(6, 0.5).tolist(), _part(3, 2.0).tolist()
    ([False, True, False, True, False, True], [True, True, True])
    """
    counted = np.floor(np.arange(rows + 1) * min(share, 1.0) + 1e-9)
    taken: Bits = np.diff(counted) > 0
    return taken


def _mean(weighted: Iterable[tuple[float, float]]) -> float:
    weights, values = np.array(list(weighted), float).reshape(-1, 2).T
    return float(weights @ values / weights.sum()) if weights.sum() else 0.0
