"""The profile of a conjunction, put together from what the tasks of a job report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from penstock.engine.instructions import Evaluation
from penstock.events.kinds import ConjunctionProfile
from penstock.spark.compile.conjunction_worker import ProfileReport
from penstock.spark.compile.python_worker import TaskReport


def combined(
    evaluation: Evaluation, first: int, tasks: Sequence[TaskReport],
    profiles: Sequence[ProfileReport],
) -> ConjunctionProfile | None:
    """The profile of a job that began at a place of the order; None if no row was chosen.

    Of a predicate that the job evaluated on more rows than were chosen, the job itself says what it
    costs. Rows that passed are known to the job that evaluates the last predicate:

    >>> asked = Evaluation(order=(1, 0), rate=0.1, version=3)
    >>> ran = ((100, 40, 2.0), (40, 20, 4.0))
    >>> sampled = ((50, 0.5), (50, 1.5))
    >>> combined(  # doctest: +NORMALIZE_WHITESPACE
    ...     asked, 0, [(ran, 0, 0.0)], [((0, 0), ((0, 2), (1, 6), (3, 2)), sampled, (1, 0))])
    ConjunctionProfile(version=3, patterns={'01': 6, '11': 2}, seconds=(0.03, 0.02), passed=0.25,
                       sampling=2.0, cores=1, own=((0, 1),))
    """
    order = evaluation.order[first:]
    spent = [[one[place] for _, _, one, _ in profiles if one] for place in range(len(order))]
    if not tasks or not any(spent):
        return None
    places = min(len(order), len(tasks[0][0]))  # predicates that must stay come after them
    ran = [[steps[place] for steps, _, _ in tasks] for place in range(places)]
    seconds: list[float | None] = [None] * len(evaluation.order)
    for place, number in enumerate(order):
        measured = [spent[place]]
        if place < len(ran):
            measured.append([(rows, took) for rows, _, took in ran[place]])
        seconds[number] = typical(max(measured, key=lambda some: sum(rows for rows, _ in some)))
    found: Counter[str] = Counter()
    for _, patterns, _, _ in profiles:
        for bits, rows in patterns:
            found[_in_plan_order(bits, order, len(seconds))] += rows
    passed = found.pop("0" * len(seconds), 0)
    dropped = sum(found.values())
    return ConjunctionProfile(
        version=evaluation.version, patterns=dict(sorted(found.items())), seconds=tuple(seconds),
        passed=passed / dropped if dropped else 0.0,
        sampling=sum(took for task in spent for _, took in task),
        own=tuple(tuple(order[place] for place in own if place < len(order))
                  for _, _, _, own in profiles if own))


def typical(measured: Sequence[tuple[int, float]]) -> float | None:
    """Seconds per row that half of the rows do not exceed: a task may have waited for its core.

    >>> typical([(100, 1.0), (50, 20.0), (100, 1.5)]), typical([(0, 0.0)])
    (0.015, None)
    """
    each = sorted((took / rows, rows) for rows, took in measured if rows)
    half = sum(rows for _, rows in each) / 2
    for cost, rows in each:
        half -= rows
        if half <= 0:
            return cost
    return None


def _in_plan_order(bits: int, order: Sequence[int], count: int) -> str:
    dropped = {number for place, number in enumerate(order) if bits >> place & 1}
    return "".join("1" if number in dropped else "0" for number in range(count))
