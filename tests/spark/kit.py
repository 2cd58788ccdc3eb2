"""What tests of the Spark host do alike."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(condition: Callable[[], bool], what: str, seconds: float = 120) -> None:
    """Wait until something is so; a test fails that has waited for too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.02)
