"""What settings hold where `SET` does not say otherwise, and what they come to."""

from __future__ import annotations

from functools import partial
from math import inf

from penstock.engine.settings import Settings
from penstock.language import durations, sizes
from penstock.model import Application
from penstock.policies import FAMILIES

DRAIN_GATHER = 1.0
"""Seconds for which blocks gather while bounded sources are drained: what counts is the end."""
DEFAULTS = {**{name: family.default for name, family in FAMILIES.items()},
            "memory": "512 MB", "synopses": "512 MB", "quantum": "1 second",
            "retention": "1 hour", "retry": "10 minutes", "slots": "1",
            "spool": "none", "timeout": "5 minutes", "trigger": "200 ms"}


def setting(application: Application, name: str) -> str:
    """A setting as it was written."""
    return application.settings.get(name, DEFAULTS[name])


def settings(application: Application, until_drained: bool) -> Settings:
    """What the core is told of an application's settings."""
    written = partial(setting, application)
    return Settings(
        slots=int(written("slots")),
        memory=sizes.bytes(written("memory")),
        retention=durations.seconds(written("retention")),
        until_drained=until_drained,
        quantum=durations.seconds(written("quantum")),
        spool=inf if written("spool") == "none" else sizes.bytes(written("spool")),
        timeout=durations.seconds(written("timeout")),
        gather=DRAIN_GATHER if until_drained else 0.0,
    )
