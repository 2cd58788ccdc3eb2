"""Durations as people write them: ``10 MIN``, ``500 ms``, ``INTERVAL '10' MINUTE``."""

from __future__ import annotations

import math
import re

UNITS = {
    1e-6: ("us", "microsecond", "microseconds"),
    1e-3: ("ms", "msec", "millis", "millisecond", "milliseconds"),
    1.0: ("s", "sec", "secs", "second", "seconds"),
    60.0: ("min", "mins", "minute", "minutes"),
    3600.0: ("h", "hr", "hrs", "hour", "hours"),
    86400.0: ("d", "day", "days"),
    604800.0: ("w", "week", "weeks"),
}
"""Seconds in a unit, and the words for it."""

SECONDS = {word: size for size, words in UNITS.items() for word in words}
_WRITTEN = re.compile(
    r"\s*(?:INTERVAL\s+)?(['\"]?)\s*(\d+(?:\.\d*)?|\.\d+)\s*\1\s*([a-z]+)\s*", re.ASCII | re.I
)
_LONGEST = 1e11  # three thousand years: more is a slip of the pen, and overflows timestamps


def seconds(text: str) -> float:
    """The length of a written duration.

    >>> seconds("10 MIN"), seconds("500 ms"), seconds("INTERVAL '1.5' HOUR")
    (600.0, 0.5, 5400.0)
    >>> seconds("10 fortnights")
    Traceback (most recent call last):
    ValueError: '10 fortnights' is not a duration such as '10 minutes' or '500 ms'
    """
    match = _WRITTEN.fullmatch(text)
    size = SECONDS.get(match[3].lower()) if match else None
    if match is None or size is None:
        raise ValueError(f"{text!r} is not a duration such as '10 minutes' or '500 ms'")
    length = float(match[2]) * size
    if not math.isfinite(length) or length > _LONGEST:
        raise ValueError(f"{text!r} is too long")
    return length


def is_unit(word: str) -> bool:
    """Whether a word names a unit of time."""
    return word.lower() in SECONDS
