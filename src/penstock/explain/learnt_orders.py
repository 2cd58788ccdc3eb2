"""The orders that a run has learnt, in words: how they are now, and why they changed last.

`penstock explain app.sql --after RUN` shows them beside the plan. The plan itself has conjunctions
as they are written, since nothing is measured before a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.events import OrderMeasures, Summary
from penstock.plan import Plan


def explain_orders(summary: Summary, plan: Plan) -> str:
    """The conjunctions and the probes of multiway joins whose order has changed, as text.

    >>> from penstock.events import OrderChanged
    >>> summary = Summary.of([OrderChanged(
    ...     at=4.0, path="q#0", stages=("q#0:python2", "q#0:python1"), order=("f(a)", "slow(a)"),
    ...     reason="f(a) before slow(a): drops 9 per second against 2",
    ...     before=2.0, after=1.0, rows=120, matrix=((40, 80), (0, 60)))])
    >>> print(explain_orders(summary, Plan((), ())))
    orders
      q#0 evaluates f(a), slow(a)
          changed once, because f(a) before slow(a): drops 9 per second against 2
          dropped of 120 profiled, by place in the order before that:
            slow(a)  40  80
            f(a)         60
    <BLANKLINE>
    """
    lines = [line for one in list(summary.conjunctions.values())
             for line in _order(one, f"{one.name} evaluates", _written(plan, one))]
    for join, known in list(summary.probes.items()):
        for one in list(known.values()):
            lines += _order(one, f"{join}: rows of {one.name} probe", one.previous)
    return "\n".join(["orders", *(f"  {line}" for line in lines), ""]) if lines else ""


def _written(plan: Plan, one: OrderMeasures) -> Sequence[str]:
    """The order before the last change; if it was the first one, that in which it is written."""
    path = next((path for path in plan.paths if path.id == one.name), None)
    texts = [predicate.text for predicate in path.conjunction] if path else []
    known = sorted(texts) == sorted(one.order)
    return one.previous or (texts if known else ())


def _order(one: OrderMeasures, does: str, before: Sequence[str]) -> Iterator[str]:
    yield f"{does} {', '.join(one.order)}"
    often = "once" if one.changes == 1 else f"{one.changes} times, the last time"
    yield f"    changed {often}{',' if one.changes == 1 else ''} because {one.reason}"
    if not one.matrix:
        return
    # Of two there was only one other order.
    names = list(before) or (list(one.order[::-1]) if len(one.order) == 2 else [])
    names = names or [f"place {number}" for number in range(1, len(one.order) + 1)]
    yield f"    dropped of {one.rows} profiled, by place in the order before that:"
    wide, digits = max(map(len, names)), len(str(max(map(max, one.matrix))))
    for place, (name, counts) in enumerate(zip(names, one.matrix, strict=True)):
        cells = (str(count) if at >= place else "" for at, count in enumerate(counts))
        yield f"      {name:<{wide}}  {'  '.join(f'{cell:>{digits}}' for cell in cells)}"
