"""What the program that uses an engine has given it: functions, callbacks, streaming DataFrames.

They live as long as the engine does. The checkpoint keeps their names and their types, so that the
application can be bound without them. A run cannot do without.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyspark import cloudpickle  # the pickler with which Spark ships functions
from pyspark.sql import DataFrame

from penstock.errors import FunctionError, RunError
from penstock.functions import PythonFunction
from penstock.language import ProgramPart, load_function, program_parts
from penstock.model import PROGRAM, Application, name_key


@dataclass(slots=True)
class Provided:
    """What a program has given, by name."""

    functions: dict[str, PythonFunction] = field(default_factory=dict)
    """By their names in Python."""
    frames: dict[str, DataFrame] = field(default_factory=dict)
    """By the names of streams, in lower case."""
    callbacks: dict[str, Callable[..., Any]] = field(default_factory=dict)
    """By the names of queries, in lower case."""

    def load(self, module: str, attribute: str, folder: str) -> PythonFunction:
        """The function that SQL names; ValueError says why it cannot be had."""
        if module == PROGRAM and attribute in self.functions:
            return self.functions[attribute]
        try:
            return load_function(module, attribute, folder)
        except ValueError:
            if module != PROGRAM:
                raise
            raise ValueError(str(ProgramPart("function", attribute))) from None

    def callback(self, query: str) -> Callable[..., Any]:
        """The function that a query calls back; ValueError if the program has given none."""
        try:
            return self.callbacks[name_key(query)]
        except KeyError:
            raise ValueError(str(ProgramPart("callback", query))) from None

    def check(self, application: Application) -> None:
        """Refuse to run an application that lacks something of its program."""
        missing = [str(part) for part in self.missing(application)]
        if missing:
            listed = "".join(f"\n  {part}" for part in missing)
            raise RunError(f"the application needs what only its Python program has:{listed}")

    def missing(self, application: Application) -> Iterator[ProgramPart]:
        """What the queries of an application need and have not."""
        for part in program_parts(application):
            try:
                if part.kind == "function":
                    self.load(PROGRAM, part.name, ".")
                elif part.kind == "callback":
                    self.callback(part.name)
                elif name_key(part.name) not in self.frames:
                    yield part
            except ValueError:
                yield part


def check_shippable(name: str, call: Callable[..., Any]) -> None:
    """Refuse a function that cannot go to Spark's workers with all that it uses."""
    try:
        cloudpickle.dumps(call)  # type: ignore[no-untyped-call]
    except Exception as error:  # whatever the objects that it uses raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FunctionError(
            f"function {name} uses something that cannot be sent to Spark's workers, such as an "
            f"engine, a session or an open file: {reason[:300]}") from error


def check_callback(function: Callable[..., Any]) -> None:
    """Refuse what cannot be called with the name of a query and a table."""
    if not callable(function):
        raise FunctionError(f"a callback is a function, not {type(function).__name__}")
    try:
        inspect.signature(function).bind("query", "table")
    except TypeError as error:
        raise FunctionError("a callback is called with the query's name and a table, so it is "
                            f"declared like def call(query, table); {error}") from None
    except ValueError:  # a built-in that does not tell
        return
