"""Answers as they come, for a loop: plain, or asynchronous."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

Answers = TypeVar("Answers")
PAUSE = 0.25
"""Seconds between two looks for new answers."""
_END: Any = object()


class Following(Generic[Answers]):
    """The answers of a query, table by table: for ``for`` or ``async for``, once.

    Between two looks for new answers it sleeps. In ``async for`` other tasks run meanwhile, and the
    looks are in a thread.
    """

    def __init__(
        self, looks: Iterator[pa.Table | None], form: Callable[[pa.Table], Answers]
    ) -> None:
        """``looks`` gives None where there is nothing new; ``form`` is how tables are shown."""
        self._looks, self._form = looks, form

    def __iter__(self) -> Following[Answers]:
        return self

    def __next__(self) -> Answers:
        while (found := self._look()) is None:
            time.sleep(PAUSE)
        if found is _END:
            raise StopIteration
        return found

    def __aiter__(self) -> Following[Answers]:
        return self

    async def __anext__(self) -> Answers:
        import asyncio  # late: few programs loop so

        while (found := await asyncio.to_thread(self._look)) is None:
            await asyncio.sleep(PAUSE)
        if found is _END:
            raise StopAsyncIteration
        return found

    def _look(self) -> Answers | None:
        table = next(self._looks, _END)
        return table if table is None or table is _END else self._form(table)
