"""What SQL names and only a Python program has: functions, callbacks and streaming DataFrames.

A checkpoint keeps their names. A program that resumes from it gives them to its engine again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from penstock.model import DATAFRAME, PROGRAM, Application, PythonCall, Sink, walk

_CALLBACK = Sink("callback")
"""The sink of a query whose callback the program gives."""


@dataclass(frozen=True, slots=True)
class ProgramPart:
    """Something that a Python program gives its engine.

    >>> print(ProgramPart("stream", "clicks"))
    stream clicks reads a DataFrame of a Python program; give it: engine.stream('clicks', df)
    """

    kind: Literal["function", "callback", "stream"]
    name: str
    """Of the function in Python, of the query that calls back, or of the stream."""

    def __str__(self) -> str:
        """What needs it, and the call that gives it."""
        told, call = _TOLD[self.kind]
        return f"{told.format(self.name)}; give it: engine.{call.format(self.name)}"


_TOLD = {
    "function": ("function {0} is one of a Python program", "function({0})"),
    "callback": ("query {0} calls back a function of a Python program", "on({0!r}, function)"),
    "stream": ("stream {0} reads a DataFrame of a Python program", "stream({0!r}, df)"),
}


def program_parts(application: Application) -> Iterator[ProgramPart]:
    """What the queries of an application need of a Python program."""
    queries = application.queries.values()
    called = {part.function for query in queries for branch in query.branches
              for expression in branch.expressions for part in walk(expression)
              if isinstance(part, PythonCall)}
    for function in application.functions.values():
        if function.module == PROGRAM and function.name in called:
            yield ProgramPart("function", function.attribute)
    read = {name for query in queries for name in query.streams}
    for stream in application.streams.values():
        if stream.format == DATAFRAME and stream.name in read:
            yield ProgramPart("stream", stream.name)
    for query in queries:
        if query.sink == _CALLBACK:
            yield ProgramPart("callback", query.name)
