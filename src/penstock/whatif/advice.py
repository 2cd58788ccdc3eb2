"""Which policy, with which parameters, would have met given limits in a recorded run.

One family is changed at a time: the operator policy, or that of window joins if there are some.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from penstock.events import kinds as ev
from penstock.policies import joins
from penstock.policies.operators import POLICIES, policy
from penstock.whatif.predictions import Comparison, PolicyOutcome, compare

SHARES = (1.0, 0.8, 0.6)
"""A policy that takes a latency is tried with this limit and with lower ones: it may exceed its own
limit a little."""
FEWEST_JOBS = 20
"""A record with fewer jobs is too thin: costs are guessed from so few."""
FEWEST_WAITING = 2
"""If never so many blocks waited, no policy had a choice."""


@dataclass(frozen=True, slots=True)
class AdviceGoals:
    """What was asked for."""

    memory: float = inf
    """The most bytes that may wait."""
    latency: float = inf
    """The longest time from arrival to delivery, in seconds."""

    def met_by(self, outcome: PolicyOutcome) -> bool:
        """Whether an outcome meets both limits."""
        worst = outcome.latency.max if outcome.latency else 0.0
        return outcome.peak_bytes <= self.memory and worst <= self.latency

    def excess(self, outcome: PolicyOutcome) -> float:
        """The factor by which an outcome misses its worst limit; at most 1 if it meets both."""
        worst = outcome.latency.max if outcome.latency else 0.0
        return max(outcome.peak_bytes / self.memory, worst / self.latency)


@dataclass(frozen=True, slots=True)
class Advice:
    """Every candidate, the best first, and whether it meets the limits."""

    limits: AdviceGoals
    comparison: Comparison
    ranked: tuple[PolicyOutcome, ...]

    def setting(self, outcome: PolicyOutcome) -> tuple[str, str]:
        """What to ``SET``: the family, and its policy."""
        joining = self.comparison.joins.get(outcome.policy)
        return ("operators", outcome.policy) if joining is None else ("joins", joining)

    @property
    def thin(self) -> str:
        """Why the record is too thin to advise, if it is."""
        recorded = self.comparison.recorded
        if recorded.runs < FEWEST_JOBS:
            return (f"it has {recorded.runs} jobs, and fewer than {FEWEST_JOBS} say little of what "
                    "jobs cost")
        if recorded.peak_blocks < FEWEST_WAITING:
            return (f"never more than {recorded.peak_blocks} blocks waited, so that a policy had "
                    "hardly anything to choose from")
        return ""

    @property
    def chosen(self) -> PolicyOutcome | None:
        """The policy to take, if any meets the limits."""
        best = self.ranked[0]
        return best if self.limits.met_by(best) else None


def candidates(limits: AdviceGoals) -> list[str]:
    """The policies to try: all of them; those that take a latency are tried with several.

    >>> [name for name in candidates(AdviceGoals(latency=2.0)) if name.startswith("edf")]
    ['edf', 'edf(latency=2)']
    """
    names = list(POLICIES)
    if limits.latency < inf:
        names += [f"{name}(latency={limits.latency * share:g})" for share in SHARES
                  for name in ("chain_flush", "mixed")]
        names.append(f"edf(latency={limits.latency:g})")
    return names


def advise(events: Iterable[ev.Event], limits: AdviceGoals) -> Advice:
    """Replay a record under all candidates and rank them.

    Those that meet the limits come first. Among them, the one with more room to spare on its
    tighter limit is better. The policy that ran wins ties.
    """
    names = candidates(limits)
    comparison = compare(events, {name: policy(name) for name in names},
                         {name: joins.policy(name) for name in joins.POLICIES})
    ranked = sorted(comparison.simulated, key=lambda outcome: _key(limits, outcome))
    return Advice(limits, comparison, tuple(ranked))


def _key(limits: AdviceGoals, outcome: PolicyOutcome) -> tuple[float, float, float]:
    worst = outcome.latency.max if outcome.latency else 0.0
    return limits.excess(outcome), outcome.peak_bytes, worst
