"""Many queries become one shared plan: an ordered tuple of passes, checked after each."""

from penstock.planning.passes import PASSES, plan

__all__ = ["PASSES", "plan"]
