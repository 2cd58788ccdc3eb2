"""Panes and merges: from pane tables to the answers of window aggregates, in pure NumPy."""

from penstock.synopses.families import Family, Measure, families, gathered
from penstock.synopses.sessions import SessionRule
from penstock.synopses.synopsis import Question, Synopsis

__all__ = ["Family", "Measure", "Question", "SessionRule", "Synopsis", "families", "gathered"]
