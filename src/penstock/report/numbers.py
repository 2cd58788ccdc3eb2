"""Numbers as people read them."""

from __future__ import annotations

from typing import Any


def shown(value: Any) -> str:
    """A figure as people read it.

    >>> shown(1234567), shown(0.12345), shown(None)
    ('1,234,567', '0.123', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
