"""Sinks: one file per kind. `penstock.sinks.SINKS` is the catalogue, `base` the contract."""

from __future__ import annotations

from importlib import import_module

from penstock.sinks import SINKS
from penstock.spark.delivery.sinks.base import AnswerSink, SinkTools


def make_sinks(tools: SinkTools) -> dict[str, AnswerSink]:
    """A sink for every kind in the catalogue; kinds of one class share one."""
    made: dict[str, AnswerSink] = {}
    for kind in SINKS.values():
        if kind.made_by not in made:
            module, _, name = kind.made_by.partition(":")
            made[kind.made_by] = getattr(import_module(module), name)(tools)
    return {name: made[kind.made_by] for name, kind in SINKS.items()}
