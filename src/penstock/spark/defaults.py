"""The defaults of settings, and the values that the core gets for them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from math import inf

from penstock.engine.settings import Settings
from penstock.language import durations, sizes
from penstock.language.settings import AUTO
from penstock.model import Application, Stream
from penstock.policies import FAMILIES

DRAIN_BATCHING = 1.0
"""Seconds for which blocks are batched while bounded sources are drained: only the end counts."""
KEEP_FROM = 4 << 20
"""Bytes of the smallest block that is kept in memory. Planning a cached block takes the driver 0.05
s, and a train has up to 64 of them. Reading a block of this size from its file again takes as long.
"""
DEFAULTS = {**{name: family.default for name, family in FAMILIES.items()},
            "memory": "512 MB", "synopses": "512 MB", "quantum": "1 second",
            "retention": "1 hour", "retry": "10 minutes", "slots": "auto",
            "spool": "none", "timeout": "5 minutes", "trigger": "50 ms"}


def setting(application: Application, name: str) -> str:
    """The text of a setting: the value that `SET` gave, or the default."""
    return application.settings.get(name, DEFAULTS[name])


def settings(application: Application, until_drained: bool) -> Settings:
    """The settings of an application as the core takes them."""
    written = partial(setting, application)
    paced = has_own_pace(application.streams.values())
    return Settings(
        slots=1 if written("slots") == AUTO else int(written("slots")),
        overlap=written("slots") == AUTO,
        memory=sizes.bytes(written("memory")),
        retention=durations.seconds(written("retention")),
        keep_from=KEEP_FROM,
        until_drained=until_drained,
        paced=paced,
        quantum=durations.seconds(written("quantum")),
        spool=inf if written("spool") == "none" else sizes.bytes(written("spool")),
        timeout=durations.seconds(written("timeout")),
        gather=DRAIN_BATCHING if until_drained and not paced else 0.0,
    )


def has_own_pace(streams: Iterable[Stream]) -> bool:
    """Whether the rows of some stream come at their own pace, even if the stream ends."""
    return any(name.lower() == "pace" and str(value).lower() == "clock"
               for stream in streams for name, value in stream.options)
