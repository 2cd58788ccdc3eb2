"""Shared window joins, the joins paper: Figs 2b, 3b, 5-9 and the memory study."""

from experiments.joins.program import run

__all__ = ["run"]
