"""Callbacks: a user's function is called in a thread of its own, which can be left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any


class GivenUp(Exception):
    """A call that did not return, and was left behind."""


class Calls:
    """The calls under way, one for each job at most.

    Python cannot stop a thread. One that does not come back is left to itself; it is a daemon, so
    the process can end without it.
    """

    def __init__(self) -> None:
        """Nobody is called."""
        self._waiting: dict[int, Future[None]] = {}

    def call(self, run: int, function: Callable[..., Any], *args: Any) -> None:
        """Call a function for a job; what it raises is raised here, and `GivenUp` when told to."""
        came_back: Future[None] = Future()

        def work() -> None:
            raised: BaseException | None = None
            try:
                function(*args)
            except BaseException as error:
                raised = error
            with suppress(InvalidStateError):  # nobody waits for it any more
                came_back.set_exception(raised) if raised else came_back.set_result(None)

        self._waiting[run] = came_back
        threading.Thread(target=work, name="penstock-callback", daemon=True).start()
        try:
            came_back.result()
        finally:
            del self._waiting[run]

    def give_up(self, run: int, reason: str) -> bool:
        """Leave the call of a job behind; False if it has none under way.

        Without a reason it is nobody's fault: the engine stops.
        """
        waiting = self._waiting.get(run)
        if waiting is None:
            return False
        with suppress(InvalidStateError):
            waiting.set_exception(GivenUp(reason))
        return True
