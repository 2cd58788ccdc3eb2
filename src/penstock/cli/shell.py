"""What the shell does with a statement: declare, ask, show; and when the run begins and ends."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.answers import writer
from penstock.cli.running import STOP_WITHIN, how_called
from penstock.errors import PenstockError
from penstock.language import is_complete, shows, statement_texts

if TYPE_CHECKING:
    import pyarrow

    from penstock.api import Engine

ASKED = ("SELECT", "(", "WITH")
"""How a question begins."""
LEAVING = ("exit", "quit", "\\q")
HELP = """\
CREATE, DROP, SET    change what runs         SELECT ...           asks a question, once
SHOW STREAMS         also QUERIES, RELATIONS, VIEWS, FUNCTIONS, POLICIES, SETTINGS
DESCRIBE name        columns and properties   EXPLAIN query        what it shares with others
SELECT * FROM query  its answers so far       F2                   the live view
REFRESH RELATION name  reads it again
exit                 stops the run and leaves, as Ctrl-D does
"""


class Shell:
    """Carries out statements on an engine, which runs as soon as there is a query."""

    def __init__(self, engine: Engine, arguments: Namespace, folder: Path) -> None:
        """``folder`` is where relative paths of typed statements start."""
        self.engine, self._arguments, self._folder = engine, arguments, folder
        self._threads = ThreadPoolExecutor(4, "penstock-shell")
        self._starting: Future[None] | None = None

    def begin(self, text: str, folder: Path) -> None:
        """Begin with an application."""
        for table in self.engine.load(text, folder=folder):
            self._write(table)
        self.go_on()

    def go_on(self) -> None:
        """Let the queries run, unless they do or the shell only looks.

        Spark starts in another thread: in the main thread it would take over the signals. Nobody
        waits for it before the next statement.
        """
        if self.engine.reading or not self.engine.application.queries:
            return
        if self.engine.wait(0):
            self.engine.stop()
            self._starting = self._threads.submit(
                self.engine.start, until_drained=self._arguments.until_drained)

    @property
    def is_starting(self) -> bool:
        """Whether a run was ordered that has not begun."""
        return self._starting is not None and not self._starting.done()

    def carry_out(self, lines: Iterable[str]) -> int:
        """Carry out the statements of a file or a pipe; the first error ends it with status 1."""
        typed = ""
        try:
            for line in lines:
                typed += line
                if is_complete(typed):
                    for text in statement_texts(typed):
                        self.statement(text)
                    typed = ""
            for text in statement_texts(typed):
                self.statement(text)
            self.settle()
        except PenstockError as error:
            print(f"penstock: {error}", file=sys.stderr)
            return 1
        if self._arguments.until_drained:
            self._drain()
        return 1 if self.engine.status().failures() else 0

    def statement(self, text: str) -> None:
        """Carry out one statement; a question in a script waits for the end of the inputs."""
        self.settle()
        if shows(text):
            for table in self.engine.execute(text):
                self._write(table)
        elif text.lstrip().upper().startswith(ASKED):
            if self._arguments.until_drained:
                self._drain()
            # In another thread, so that Ctrl-C gives up waiting and not the connection to Spark.
            self._write(self._threads.submit(self.engine.ask, text).result())
        else:
            before = self.engine.application
            self.engine.execute(text, folder=self._folder)
            if self.engine.application != before:
                self.go_on()

    def settle(self) -> None:
        """Wait until a run that was ordered has started, or raise why it has not."""
        starting, self._starting = self._starting, None
        if starting is not None:
            starting.result()

    def _drain(self) -> None:
        while not self.engine.wait(0.2):
            pass

    def _write(self, table: pyarrow.Table) -> None:
        out = writer(self._arguments)
        out.write(table)
        out.close()

    def leave(self) -> None:
        """Stop the run, and say how to take it up again."""
        with suppress(PenstockError):
            self.settle()
        self._threads.shutdown(wait=False)
        if self.engine.reading:
            return
        self.engine.stop(STOP_WITHIN)
        if self.engine.application.queries:
            again = f"{how_called()} sql --checkpoint {self.engine.checkpoint}"
            print(f"to go on from here: {again}", file=sys.stderr)
