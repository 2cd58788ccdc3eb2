"""What would be decided about the window aggregates of a plan, before anything runs.

`penstock explain` shows it. It asks the refresher itself, so the preview is what the run will do.
Costs are the paper's (merges of panes) until jobs have been measured.
"""

from __future__ import annotations

from penstock.engine.aggregates.refresher import Refresher
from penstock.engine.aggregates.windows import asked
from penstock.events.kinds import PeriodsChosen
from penstock.explain.plans import Renewal
from penstock.plan import Plan
from penstock.policies.refresh import QueryGroup, policy
from penstock.policies.refresh.hybrid import ways
from penstock.rendering import render
from penstock.synopses import Family, gathered


def renewals(plan: Plan, refresh: str) -> dict[str, Renewal]:
    """By group, what its synopsis would keep, and the periods that a refresh policy would choose.

    >>> from penstock.language import bind
    >>> from penstock.planning import plan
    >>> made = plan(bind("CREATE STREAM s (a INT) FROM rate; "
    ...     "CREATE QUERY x AS SELECT MAX(a) FROM s [WINDOW 10 S SLIDE 2 S];"
    ...     "CREATE QUERY y AS SELECT SUM(a) FROM s [WINDOW 15 S SLIDE 3 S]"))
    >>> [told] = renewals(made, "hybrid").values()
    >>> told.families, told.periods
    (('scalars of a',), {'x': 2, 'y': 2})
    """
    groups = [QueryGroup(one.id, tuple(asked(plan.query(m.query), one.pane) for m in one.members),
                    pane=one.pane) for one in plan.groups]
    refresher = Refresher(policy(refresh))
    refresher.adopt(0.0, groups)
    chosen = {e.group: e for e in refresher.noted() if isinstance(e, PeriodsChosen)}
    return {one.id: Renewal(
        families=tuple(_told(family) for family in gathered(one.aggregates)), policy=refresh,
        periods=chosen[one.id].periods, costs=chosen[one.id].costs, ways=ways(group))
        for one, group in zip(plan.groups, groups, strict=True)}


def _told(family: Family) -> str:
    """A family in words: its kind, and what it measures."""
    args = [*family.args, *(measure.arg for measure in family.measures if measure.arg is not None)]
    names = dict.fromkeys(render(arg) for arg in args)
    return f"{family.kind} of {', '.join(names)}" if names else "the number of rows"
