"""Sizes of memory as people write them: ``512 MB``, ``2 GB``, ``64k``."""

from __future__ import annotations

import re

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_WRITTEN = re.compile(
    r"\s*+(\d++(?:\.\d*+)?|\.\d++)\s*+([kmgt]?)(i?b|bytes?)?\s*+", re.ASCII | re.I
)
_LARGEST = 1 << 60


def bytes(text: str) -> int:
    """The number of bytes of a written size; a kilobyte has 1024, as in Spark.

    >>> bytes("512 MB"), bytes("1.5g"), bytes("100 bytes")
    (536870912, 1610612736, 100)
    >>> bytes("a lot")
    Traceback (most recent call last):
    ValueError: 'a lot' is not a size such as '512 MB' or '2 GB'
    """
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size such as '512 MB' or '2 GB'")
    size = float(match[1]) * 1024 ** _POWERS[match[2].lower()]
    if size > _LARGEST:
        raise ValueError(f"{text!r} is too large")
    return int(size)
