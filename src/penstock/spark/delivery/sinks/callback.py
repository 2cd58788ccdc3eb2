"""callback: a Python function of the user's is called with the answers.

The call runs in a thread of its own, which can be abandoned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import replace
from typing import Any

from penstock.errors import PenstockError
from penstock.model import Query
from penstock.spark.compile.python_worker import described
from penstock.spark.delivery.answers import Answers
from penstock.spark.delivery.sinks.base import AnswerSink, SinkTools, Staged, WriteTask, collect


class CallbackSink(AnswerSink):
    """Calls before the commit, so a crash in between calls again with the same rows."""

    def __init__(self, tools: SinkTools) -> None:
        """Begin without a call."""
        super().__init__(tools)
        self._calls = Calls()

    def fault(self, query: Query) -> str:
        """Why the function cannot be found, if it cannot."""
        try:
            self.tools.callback(query.sink.target or "", query.name)
        except (PenstockError, ValueError) as error:
            return str(error)
        return ""

    def stage(self, task: WriteTask, answers: Answers) -> Staged:
        """Call the function; a query whose function raises, or never returns, fails alone."""
        collected, query = collect(task, answers), task.write.members[0].query
        target, fault = task.write.target, ""
        named = f"its callback {target}".rstrip()
        try:
            function = self.tools.callback(target, query)
            self._calls.call(task.job, function, query, collected.table)
        except GivenUp as error:
            if not str(error):
                raise  # the engine stops: the next run calls it again
            fault = f"{named} did not return {error}"
        except BaseException as error:  # whatever a user's function may do
            fault = f"{named} raised {described(error)}"
        return replace(collected.staged, failed={query: fault} if fault else {})

    def give_up(self, job: int, reason: str) -> bool:
        """Abandon the function of a job; without a reason the engine is stopping."""
        return self._calls.give_up(job, reason)


class GivenUp(Exception):
    """A call that did not return, and was abandoned."""


class Calls:
    """The active calls, at most one for each job.

    Python cannot stop a thread. A thread that does not return is abandoned; it is a daemon, so the
    process can end without it.
    """

    def __init__(self) -> None:
        """Begin without a call."""
        self._waiting: dict[int, Future[None]] = {}

    def call(self, job: int, function: Callable[..., Any], *args: Any) -> None:
        """Call a function for a job; raise what it raises, or `GivenUp` when it is abandoned."""
        came_back: Future[None] = Future()

        def work() -> None:
            raised: BaseException | None = None
            try:
                function(*args)
            except BaseException as error:
                raised = error
            with suppress(InvalidStateError):  # nobody waits for it any more
                came_back.set_exception(raised) if raised else came_back.set_result(None)

        self._waiting[job] = came_back
        threading.Thread(target=work, name="penstock-callback", daemon=True).start()
        try:
            came_back.result()
        finally:
            del self._waiting[job]

    def give_up(self, job: int, reason: str) -> bool:
        """Abandon the call of a job; return False if it has none.

        Without a reason nothing is at fault: the engine is stopping.
        """
        waiting = self._waiting.get(job)
        if waiting is None:
            return False
        with suppress(InvalidStateError):
            waiting.set_exception(GivenUp(reason))
        return True
