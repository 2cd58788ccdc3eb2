"""Durations as people write them: ``10 MIN``, ``500 ms``, ``INTERVAL '10' MINUTE``."""

from __future__ import annotations

import re
from decimal import Decimal, localcontext

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
    r"\s*+(?:INTERVAL\s++)?(['\"]?)\s*+(\d++(?:\.\d*+)?|\.\d++)\s*+\1\s*+([a-z]++)\s*+",
    re.ASCII | re.I,
)
"""Every repetition is possessive, so that no text is read twice."""
_LONGEST = 100_000_000_000  # seconds, three thousand years: more is a slip and overflows timestamps


def seconds(text: str) -> float:
    """The length of a written duration.

    >>> seconds("10 MIN"), seconds("500 ms"), seconds("INTERVAL '1.5' HOUR")
    (600.0, 0.5, 5400.0)
    >>> seconds("10 fortnights")
    Traceback (most recent call last):
    ValueError: '10 fortnights' is not a duration such as '10 minutes' or '500 ms'
    """
    amount, size = _read(text)
    return float(amount) * size


def microseconds(text: str) -> int:
    """The length of a written duration, exactly: the times of rows are whole microseconds.

    >>> microseconds("2.5 s"), microseconds("INTERVAL '10' MINUTE")
    (2500000, 600000000)
    >>> microseconds("0.5 us")
    Traceback (most recent call last):
    ValueError: '0.5 us' is no whole number of microseconds
    """
    amount, size = _read(text)
    with localcontext(prec=len(text) + 20):  # no digit that was written is rounded away
        exact = amount * round(size * 1_000_000)
        if exact != exact.to_integral_value():
            raise ValueError(f"{text!r} is no whole number of microseconds")
        return int(exact)


def _read(text: str) -> tuple[Decimal, float]:
    """The amount, and the seconds in its unit."""
    match = _WRITTEN.fullmatch(text)
    size = SECONDS.get(match[3].lower()) if match else None
    if match is None or size is None:
        raise ValueError(f"{text!r} is not a duration such as '10 minutes' or '500 ms'")
    amount = Decimal(match[2])
    if amount > _LONGEST / size:
        raise ValueError(f"{text!r} is too long")
    return amount, size


def is_unit(word: str) -> bool:
    """Whether a word names a unit of time."""
    return word.lower() in SECONDS
