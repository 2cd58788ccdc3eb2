"""Which policy, with which parameters, would have met given limits on a recorded run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from penstock.events import kinds as ev
from penstock.policies.operators import POLICIES, policy
from penstock.whatif.predictions import Comparison, PolicyOutcome, compare

SHARES = (1.0, 0.8, 0.6)
"""A policy that is given a latency is tried with it and with less: it may miss it a little."""


@dataclass(frozen=True, slots=True)
class AdviceGoals:
    """What was asked for."""

    memory: float = inf
    """Bytes that may wait at most."""
    latency: float = inf
    """Seconds from arrival to delivery, at most."""

    def met_by(self, outcome: PolicyOutcome) -> bool:
        """Whether an outcome keeps within both."""
        worst = outcome.latency.max if outcome.latency else 0.0
        return outcome.peak_bytes <= self.memory and worst <= self.latency

    def excess(self, outcome: PolicyOutcome) -> float:
        """By what factor an outcome misses the limit that it misses most; up to 1 it meets both."""
        worst = outcome.latency.max if outcome.latency else 0.0
        return max(outcome.peak_bytes / self.memory, worst / self.latency)


@dataclass(frozen=True, slots=True)
class Advice:
    """Every candidate, the best first, and whether it would do."""

    limits: AdviceGoals
    comparison: Comparison
    ranked: tuple[PolicyOutcome, ...]

    @property
    def chosen(self) -> PolicyOutcome | None:
        """The policy to take, if any meets the limits."""
        best = self.ranked[0]
        return best if self.limits.met_by(best) else None


def candidates(limits: AdviceGoals) -> list[str]:
    """The policies that are tried: all of them, those with a latency at several.

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

    Those that meet the limits come first. Among them the one with more room to spare on whichever
    limit is nearer is the better; the policy that ran wins ties.
    """
    names = candidates(limits)
    comparison = compare(events, {name: policy(name) for name in names})
    ranked = sorted(comparison.simulated, key=lambda outcome: _key(limits, outcome))
    return Advice(limits, comparison, tuple(ranked))


def _key(limits: AdviceGoals, outcome: PolicyOutcome) -> tuple[float, float, float]:
    worst = outcome.latency.max if outcome.latency else 0.0
    return limits.excess(outcome), outcome.peak_bytes, worst
