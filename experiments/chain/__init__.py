"""Operator scheduling of the chain paper: Figs 4-20 and Table 1."""

from experiments.chain.program import run

__all__ = ["run"]
