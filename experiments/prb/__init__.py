"""Preemptive rate-based scheduling, the prb paper: Figs 3-12."""

from experiments.prb.program import run

__all__ = ["run"]
