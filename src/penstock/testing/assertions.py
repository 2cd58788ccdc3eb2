"""What tests say about a host."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.testing.fake_host import FakeHost


def assert_decisions(
    host: FakeHost, expected: Sequence[tuple[float, str, tuple[int, ...]]]
) -> None:
    """The host decided exactly this, in this order."""
    assert host.decisions == list(expected), "\n".join(map(str, host.decisions))
