"""The segments into which a policy would cut the paths of a plan, before anything runs.

`penstock explain` shows it. It asks the policy itself, with what is known before the first job.
Nothing is measured yet, so every stage costs nothing and keeps all of its rows. Measured costs may
lead to other cuts, which the record shows as they are made (`PathCut`).
"""

from __future__ import annotations

from penstock.engine.paths.stage_costs import StageCosts
from penstock.explain.plans import Segments
from penstock.plan import Plan
from penstock.policies.operators import policy


def segments(plan: Plan, operators: str) -> Segments:
    """By path, the operators of each segment, as the named policy would cut it.

    >>> from penstock.functions import predicate
    >>> from penstock.language import bind
    >>> from penstock.planning import plan
    >>> made = plan(bind("CREATE STREAM s (a INT) FROM rate; "
    ...     "CREATE FUNCTION odd FROM 'm:odd';"
    ...     "CREATE QUERY q AS SELECT a FROM s WHERE a > 1 AND odd(a)",
    ...     load=lambda *_: predicate(lambda a: a % 2 == 1)))
    >>> [len(cut) for cut in segments(made, "fifo").values()]
    [1]
    >>> [len(cut) for cut in segments(made, "greedy").values()]
    [3]
    """
    paths = {path.id: path for path in plan.paths}
    found: dict[str, list[list[str]]] = {id: [] for id in paths}
    for segment in policy(operators).prepare(StageCosts().tell(plan)):
        stages = paths[segment.path].stages
        run = stages[segment.first:segment.first + len(segment.operators)]
        found[segment.path].append([operator.id for stage in run for operator in stage])
    return found
