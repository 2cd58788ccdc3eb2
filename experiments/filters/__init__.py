"""Adaptive filters, the filters paper: Figs 9-21, Table 2, and the convergence on Arrow."""

from experiments.filters.program import run

__all__ = ["run"]
