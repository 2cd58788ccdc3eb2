"""What all tests of the Spark host share: whatever an engine did, its books must balance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from penstock.api import Engine


@pytest.fixture(autouse=True)
def balanced_books(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """After every run of every engine: rows in = rows out + filtered + late + rejected."""
    from penstock.api import Engine

    faults: list[str] = []
    stop = Engine.stop

    def stop_and_check(self: Engine, within: float | None = None) -> None:
        stop(self, within)
        faults.extend(self.status().accounting())

    monkeypatch.setattr(Engine, "stop", stop_and_check)
    yield
    assert faults == []


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Iterator[Callable[..., Engine]]:
    """Opens engines on checkpoints below the test's folder, and closes what is left open."""
    from penstock.api import Engine

    opened: list[Engine] = []

    def open_engine(checkpoint: str = "checkpoint", **options: Any) -> Engine:
        opened.append(Engine(spark=spark, checkpoint=tmp_path / checkpoint, **options))
        return opened[-1]

    yield open_engine
    for one in opened:
        one.close()
