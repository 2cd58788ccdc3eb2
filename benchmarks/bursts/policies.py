"""The policies that go through bursts, with the limits that some of them are given.

Limits follow from FIFO's record on the same machine. The threshold of a latency is *tight*: little
more than FIFO has at worst, so that it binds wherever Chain alone takes longer. `mixed(gamma)` gets
a slope between the steepest and the gentlest segment: steep ones are Chain's, gentle ones FIFO's.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from penstock.policies.operators import Route, Stage, policy
from penstock.whatif.recorded import Recording

TIGHT = 1.1
"""Times the latency that FIFO has at worst."""
POLICIES = {
    "fifo": "fifo", "round_robin": "round_robin", "greedy": "greedy", "chain": "chain",
    "chain_flush": "chain_flush(latency={latency})",
    "chain_flush_exact": "chain_flush(latency={latency}, exact=true)",
    "mixed": "mixed(latency={latency})", "mixed_gamma": "mixed(gamma={gamma})",
    "edf": "edf", "rate_based": "rate_based", "preemptive_rate_based": "preemptive_rate_based",
}
"""By name how a policy is written. FIFO is the first: the limits of the others follow from it."""
MAIN = ("fifo", "round_robin", "greedy", "chain", "chain_flush", "mixed_gamma")
LIMITED = ("chain_flush", "chain_flush_exact", "mixed")
"""Those that keep a latency."""


def written(name: str, latency: float, gamma: float) -> str:
    """A policy with its limits.

    >>> written("mixed_gamma", latency=9.5, gamma=0.25)
    'mixed(gamma=0.25)'
    """
    return POLICIES[name].format(latency=latency, gamma=gamma)


def threshold(worst: float) -> float:
    """The latency to keep where FIFO has this one at worst."""
    return round(TIGHT * worst, 3)


def routes(recording: Recording) -> list[Route]:
    """The paths with the costs that a record has, in the engine's own units."""
    return [Route(name, tuple(
        Stage(stage.name, stage.work * model.cost.per_row, stage.selectivity, stage.width)
        for stage in model.stages)) for name, model in recording.paths.items()]


def slope_between(paths: Sequence[Route]) -> float:
    """The geometric mean of the steepest and the gentlest slope of all paths; 0 if they have one.
    """
    slopes = sorted({-cut.rank for cut in policy("chain").prepare(paths) if 0 < -cut.rank < inf})
    return float(f"{(slopes[0] * slopes[-1]) ** 0.5:.4g}") if len(slopes) > 1 else 0.0
