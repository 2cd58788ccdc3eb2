"""In which order the conjunction of each path is evaluated: asks the filters policy between blocks.

The conjunction of a path without Python is made of its SQL conditions. What they cost and drop is
measured beside a job, on a few rows of its blocks. Workers profile predicates in Python themselves.
If that takes a large part of a job, not every job does it: a predicate that is costly enough is
costly on the profiled rows, too.

Jobs report what they profiled. The policy looks at it when a job has ended, and its decision holds
for the jobs that begin from then on. Rows that were kept between two predicates know which
predicates they have met, so a job over such rows evaluates the others, in the present order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from penstock.engine.instructions import AS_WRITTEN, Evaluation, Note
from penstock.events.kinds import ConjunctionProfile, OrderChanged
from penstock.plan import Path, Plan
from penstock.policies.filters import (
    AdaptiveOrder,
    Decision,
    FilterPredicate,
    Policy,
    ProfileBatch,
    View,
    view_of,
)

LOOKAHEAD = 512
"""Rows that a task profiles before it begins, if nothing is known of the predicates: the order in
which they are written may be many times as costly as the best one."""
OFTEN = 0.05
"""Workers profile in every job if that takes at most this part of it: a drift is seen at once."""
PROFILING_SHARE = 0.025
"""The part of the time of the jobs of a path that it may take if it takes more of a job."""
SQL_SHARE = 0.01
"""The same for SQL conditions, which are not profiled by workers."""


@dataclass(slots=True)
class FilterOrders:
    """The orders of all conjunctions, and the profiles from which they are chosen."""

    policy: Policy
    planned: Plan = field(default_factory=lambda: Plan((), ()))
    """The plan with all conjunctions as they are written."""
    _paths: dict[str, Path] = field(default_factory=dict)
    """By path with a conjunction of several predicates, the path as planned."""
    _adaptive: dict[str, AdaptiveOrder] = field(default_factory=dict)
    _worked: dict[str, float] = field(default_factory=dict)
    """By path, the seconds that its jobs took."""
    _profiled: dict[str, float] = field(default_factory=dict)
    """By path, the seconds that profiling took."""
    _latest: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By path, the seconds of profiling and of the job when it was last done, but for the first
    time, when tasks look ahead."""
    _notes: list[Note] = field(default_factory=list)

    # --- plan and policy ---------------------------------------------------------------------

    def adopt(self, plan: Plan) -> None:
        """Learn about the conjunctions of a plan; those that it had before keep their order."""
        before = self._paths
        self.planned = plan
        self._paths = {path.id: path for path in plan.paths if len(path.conjunction) > 1}
        self._adaptive = {
            id: self._adaptive[id]
            if id in before and _texts(before[id]) == _texts(path) else self._begun(path)
            for id, path in self._paths.items()}

    def use(self, policy: Policy) -> None:
        """Let another policy decide, from the present orders on; it begins to learn."""
        self.policy = policy
        orders = {id: adaptive.order for id, adaptive in self._adaptive.items()}
        for id, order in orders.items():
            self._adaptive[id] = self._begun(self._paths[id])
            self._adaptive[id].go_on(order)

    def _begun(self, path: Path) -> AdaptiveOrder:
        return AdaptiveOrder(self.policy, [FilterPredicate(text) for text in _texts(path)])

    @property
    def plan(self) -> Plan:
        """The plan with all conjunctions in their present order."""
        if not self._adaptive:
            return self.planned
        return replace(self.planned, paths=tuple(
            path.in_order(self._adaptive[path.id].order) if path.id in self._adaptive else path
            for path in self.planned.paths))

    # --- jobs --------------------------------------------------------------------------------

    def path(self, id: str, order: Sequence[int]) -> Path:
        """A path with its conjunction in the order in which a job evaluates it."""
        return self._paths[id].in_order(order)

    def evaluation(self, id: str, met: Iterable[int], rows: int, job: int) -> Evaluation:
        """What a job over so many rows of blocks does with the conjunction of its path.

        Rows that met other predicates than the present order begins with are not profiled. So few
        rows are chosen that those of a block fit into the window, in whichever job they are.
        """
        if id not in self._adaptive:
            return AS_WRITTEN
        order = self._sequence(id, met)
        asked = self._adaptive[id].request
        if order != asked.order or not rows or self._is_too_soon(id):
            return Evaluation(order=order)
        # To profile SQL conditions on few rows takes as long as on as many as the window holds.
        share = 1.0 if self._paths[id].conditions else asked.probability
        return Evaluation(
            order=order, rate=min(share, asked.most / rows), version=asked.version,
            unasked=_places(order, asked.unasked), seed=job,
            per_partition=self.policy.per_partition, enough=int(self.policy.enough),
            lookahead=LOOKAHEAD if self._is_unknown(id) else 0)

    def _is_unknown(self, id: str) -> bool:
        """Whether nothing is known of predicates that workers can evaluate beforehand."""
        profile = self._adaptive[id].profile
        return not profile.rows and profile.is_complete and not self._paths[id].conditions

    def _is_too_soon(self, id: str) -> bool:
        """Whether predicates were profiled so recently that a job should do without.

        Partitions find orders of their own only if they profile.
        """
        if self.policy.per_partition:
            return False
        worked, profiled = self._worked.get(id, 0.0), self._profiled.get(id, 0.0)
        if self._paths[id].conditions:
            return profiled > SQL_SHARE * worked
        latest, job = self._latest.get(id, (0.0, 0.0))
        return latest > OFTEN * job and profiled + latest > PROFILING_SHARE * worked

    def _sequence(self, id: str, met: Iterable[int]) -> tuple[int, ...]:
        order, past = self._adaptive[id].order, set(met)
        return (*(number for number in order if number in past),
                *(number for number in order if number not in past))

    # --- profiles ----------------------------------------------------------------------------

    def take(
        self, id: str, profile: ConjunctionProfile | None, at: float, seconds: float = 0.0
    ) -> str:
        """Take what a job of so many seconds profiled, and ask the policy.

        Return the reason if the order has changed.
        """
        adaptive = self._adaptive.get(id)
        self._worked[id] = self._worked.get(id, 0.0) + seconds
        if profile is not None:
            took = profile.sampling / profile.cores
            if id in self._profiled:
                self._latest[id] = took, seconds
            self._profiled[id] = self._profiled.get(id, 0.0) + took
        if adaptive is None or profile is None or (
                len(profile.seconds) != len(adaptive.order)):
            return ""
        adaptive.observe(batch_of(profile))
        view = view_of(adaptive.profile)
        decision = adaptive.decide()
        if decision is None:
            return ""
        self._note(id, view, decision, at)
        return decision.reason

    def _note(self, id: str, view: View, decision: Decision, at: float) -> None:
        predicates = self._paths[id].conjunction
        self._notes.append(Note(event=OrderChanged(
            at=at, path=id, stages=() if self._paths[id].conditions else tuple(
                predicates[n].id for n in decision.order),
            order=tuple(predicates[n].text for n in decision.order), reason=decision.reason,
            before=decision.before, after=decision.after, rows=view.rows,
            matrix=tuple(map(tuple, view.matrix.tolist())))))

    def notes(self) -> list[Note]:
        """The orders that have changed since the last call."""
        notes, self._notes = self._notes, []
        return notes


def batch_of(profile: ConjunctionProfile) -> ProfileBatch:
    """The profiled rows of a job, one by one.

    Their patterns are spread evenly: when the window is full, the rows that leave it first are as
    those that stay.

    >>> batch_of(ConjunctionProfile(version=1, patterns={"01": 1, "10": 3},
    ...                             seconds=(0.5, None))).dropped.astype(int).tolist()
    [[1, 0], [0, 1], [1, 0], [1, 0]]
    """
    counts = list(profile.patterns.items())
    rows = [((place + 0.5) / count, number) for number, (_, count) in enumerate(counts)
            for place in range(count)]
    bits = [[bit == "1" for bit in counts[number][0]] for _, number in sorted(rows)]
    seconds = [np.nan if one is None else one for one in profile.seconds]
    return ProfileBatch(np.array(bits, bool).reshape(-1, len(seconds)), np.array(seconds),
                        profile.passed, profile.version)


def _texts(path: Path) -> tuple[str, ...]:
    return tuple(predicate.text for predicate in path.conjunction)


def _places(
    order: tuple[int, ...], unasked: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, ...], ...]:
    """By place at which a row was dropped, the places of the predicates to evaluate as well."""
    place = {number: at for at, number in enumerate(order)}
    return tuple(tuple(sorted(place[number] for number in later)) for later in unasked)
