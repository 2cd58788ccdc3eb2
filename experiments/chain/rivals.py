"""The policies of the experiment, and how they are called in figures."""

from __future__ import annotations

from math import inf

from experiments.chain.queries import MICROSECOND
from penstock.policies.operators import Decision, Policy, Segment, policy
from penstock.policies.operators.chain import Chain
from penstock.policies.operators.greedy import Greedy

QUANTUM = 400e-6
"""A turn of Round-Robin in seconds, a tenth of a page's time; the paper leaves it open."""
ROUND_ROBIN = f"round_robin(quantum={QUANTUM:g})"
PAPERS = ("chain", "fifo", "greedy", ROUND_ROBIN)
"""Those of the paper's figures on memory."""
OTHERS = ("edf", "rate_based", "preemptive_rate_based")
BOUND = "bound"
"""In place of a policy: what no schedule can beat, at each instant."""
TURN = 1000
"""Tuples that Chain-Flush gives an operator at most before it looks again, as in section 5.2."""


def flush(latency: float) -> str:
    """Chain-Flush in its efficient form, with a threshold in seconds."""
    return f"chain_flush(latency={latency:g},tuples={TURN})"


def mixed(gamma: float) -> str:
    """Mixed with the paper's threshold, which is in pages per microsecond."""
    return f"mixed(gamma={gamma / MICROSECOND:g})"


def labels(*thresholds: float, gammas: tuple[float, ...] = ()) -> dict[str, str]:
    """Policies by what they are called: the four of the paper, and these."""
    return {
        **dict(zip(("chain", "fifo", "greedy", "round_robin"), PAPERS, strict=True)),
        **{f"chain_flush({threshold * 1e3:.3g} ms)": flush(threshold) for threshold in thresholds},
        **{f"mixed({gamma:.4f})": mixed(gamma) for gamma in gammas},
    }


class ChainByOperator(Chain):
    """As section 4.2 implements it: an operator goes on until its queue is empty or a block comes.

    Chain in the engine carries each block to the end of its segment before it takes the next, as
    its definition says and Proposition 2 needs.
    """

    def turn(self, segment: Segment) -> Decision:
        """The whole queue."""
        return Decision(segment.id, segment.reason, limit=inf)


class GreedyByOperator(Greedy):
    """Greedy in the same manner."""

    def turn(self, segment: Segment) -> Decision:
        """The whole queue."""
        return Decision(segment.id, segment.reason, limit=inf)


BY_OPERATOR: dict[str, Policy] = {
    "chain by operator": ChainByOperator(), "greedy by operator": GreedyByOperator()}


def rival(text: str) -> Policy:
    """The policy that a job names."""
    return BY_OPERATOR.get(text) or policy(text)
