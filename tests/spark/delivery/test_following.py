"""A loop over answers as they come: plain, and beside other tasks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

from penstock.spark.delivery import following
from penstock.spark.delivery.following import Following


@pytest.fixture(autouse=True)
def short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PAUSE", 0.02)


def looks(*found: int | None) -> Iterator[pa.Table | None]:
    """A table with this number, or nothing new."""
    return (None if number is None else pa.table({"n": [number]}) for number in found)


def number(table: pa.Table) -> int:
    return table["n"][0].as_py()


def test_a_loop_waits_for_tables_and_ends_with_the_run() -> None:
    following = Following(looks(1, None, None, 2, None), number)
    assert list(following) == [1, 2]
    assert list(following) == []


def test_other_tasks_run_while_nothing_is_new() -> None:
    seen: list[int | str] = []

    async def watch() -> None:
        async for found in Following(looks(1, *[None] * 10, 2), number):
            seen.append(found)

    async def other() -> None:
        await asyncio.sleep(0.05)
        seen.append("other")

    async def both() -> None:
        await asyncio.gather(watch(), other())

    asyncio.run(both())
    assert seen == [1, "other", 2]


def test_a_task_that_waits_for_answers_can_be_cancelled() -> None:
    def endless() -> Iterator[None]:
        while True:
            yield None

    async def cancelled() -> None:
        async with asyncio.timeout(0.1):
            async for _ in Following(endless(), number):
                pass

    began = time.monotonic()
    with pytest.raises(TimeoutError):
        asyncio.run(cancelled())
    assert time.monotonic() - began < 5


def test_an_error_ends_the_loop() -> None:
    def failing() -> Iterator[pa.Table]:
        yield pa.table({"n": [1]})
        raise OSError("the disk is gone")

    async def all_of_it() -> list[int]:
        return [found async for found in Following(failing(), number)]

    with pytest.raises(OSError, match="the disk is gone"):
        list(Following(failing(), number))
    with pytest.raises(OSError, match="the disk is gone"):
        asyncio.run(all_of_it())
