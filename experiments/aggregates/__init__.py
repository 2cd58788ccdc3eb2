"""Schedule synchronisation of window aggregates, the aggregates paper: Figs 4-8."""

from experiments.aggregates.program import PROGRAM

__all__ = ["PROGRAM"]
