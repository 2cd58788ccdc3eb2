"""In which order the conjunction of each path is evaluated: asks the filters policy between blocks.

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


@dataclass(slots=True)
class FilterOrders:
    """The orders of all conjunctions, and the profiles from which they are chosen."""

    policy: Policy
    planned: Plan = field(default_factory=lambda: Plan((), ()))
    """The plan with all conjunctions as they are written."""
    _paths: dict[str, Path] = field(default_factory=dict)
    """By path with a conjunction of several predicates, the path as planned."""
    _adaptive: dict[str, AdaptiveOrder] = field(default_factory=dict)
    _notes: list[Note] = field(default_factory=list)

    # --- plan and policy ---------------------------------------------------------------------

    def adopt(self, plan: Plan) -> None:
        """Learn about the conjunctions of a plan; those that it had before keep their order."""
        before = self._paths
        self.planned = plan
        self._paths = {path.id: path for path in plan.paths if path.movable > 1}
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
        if order != asked.order or not rows:
            return Evaluation(order=order)
        return Evaluation(
            order=order, rate=min(asked.probability, asked.most / rows), version=asked.version,
            unasked=_places(order, asked.unasked), seed=job,
            per_partition=self.policy.per_partition, enough=int(self.policy.enough))

    def _sequence(self, id: str, met: Iterable[int]) -> tuple[int, ...]:
        order, past = self._adaptive[id].order, set(met)
        return (*(number for number in order if number in past),
                *(number for number in order if number not in past))

    # --- profiles ----------------------------------------------------------------------------

    def take(self, id: str, profile: ConjunctionProfile | None, at: float) -> str:
        """Take what a job profiled, and ask the policy; the reason if the order has changed."""
        adaptive = self._adaptive.get(id)
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
            at=at, path=id, stages=tuple(predicates[n].id for n in decision.order),
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
