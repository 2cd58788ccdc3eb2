"""What the program that uses an engine has given it: functions, callbacks, streaming DataFrames.

They live as long as the engine does. The checkpoint keeps their names and their types, so that the
application can be bound without them. A run cannot do without.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark import cloudpickle  # the pickler with which Spark ships functions
from pyspark.sql import DataFrame

from penstock.errors import FunctionError, LanguageError, RunError
from penstock.functions import PythonFunction
from penstock.language import (
    ProgramPart,
    bind,
    bind_statements,
    durations,
    load_function,
    program_parts,
)
from penstock.model import DATAFRAME, PROGRAM, Application, name_key, quoted


@dataclass(frozen=True, slots=True)
class StreamTiming:
    """What is said of the times of a stream; a part that is empty is not said."""

    time: str = ""
    unit: str = ""
    lateness: str = ""
    max_ahead: str = ""

    @property
    def clauses(self) -> str:
        """As CREATE STREAM has it; ValueError names a length of time that is none.

        >>> StreamTiming("ts", lateness="5 seconds").clauses
        " TIME `ts` LATENESS '5 seconds'"
        """
        for length in filter(None, (self.lateness, self.max_ahead)):
            durations.seconds(length)
        return "".join((
            f" OPTIONS (maxAhead = {_text(self.max_ahead)})" if self.max_ahead else "",
            f" TIME {quoted(self.time)}" if self.time else "",
            f" UNIT {self.unit}" if self.unit else "",
            f" LATENESS {_text(self.lateness)}" if self.lateness else ""))


def _text(length: str) -> str:
    """A length of time as a quoted text; quotes within it may be of either kind."""
    return "'" + length.replace("'", '"') + "'"


@dataclass(slots=True)
class Provided:
    """What a program has given, by name."""

    functions: dict[str, PythonFunction] = field(default_factory=dict)
    """By their names in Python."""
    frames: dict[str, DataFrame] = field(default_factory=dict)
    """By the names of streams, in lower case."""
    callbacks: dict[str, Callable[..., Any]] = field(default_factory=dict)
    """By the names of queries, in lower case."""

    # --- what is given -----------------------------------------------------------------------

    def with_function(
        self, application: Application, name: str, function: PythonFunction
    ) -> Application:
        """The application in which SQL may call a function, which is given from now on."""
        if not name.isidentifier():
            raise ValueError(f"{name!r} is no name for a function; give it one: "
                             "engine.function(call, name='...')")
        _check_shippable(name, function.call)
        text = f"CREATE FUNCTION {quoted(name)} FROM '{PROGRAM}:{name}'"
        given = Provided({**self.functions, name: function})
        try:
            fresh = bind(text, application, load=given.load)
        except LanguageError:
            if name_key(name) not in map(name_key, application.functions):
                raise
            fresh = bind(text, _without_function(application, name), load=given.load)
        self.functions = given.functions
        return fresh

    def call_back(self, application: Application, query: str, call: Callable[..., Any]) -> None:
        """Have a query ``INTO callback`` call a function from now on, or once it is declared."""
        _check_callback(call)
        known = application.query(query)
        if known is not None and ProgramPart("callback", known.name) not in program_parts(
                application):
            raise RunError(f"query '{known.name}' calls back no function of the program; declare "
                           f"it CREATE QUERY {known.name} INTO callback AS SELECT ..., or read its "
                           f"answers: engine.follow({known.name!r})")
        self.callbacks[name_key(query)] = call

    def with_stream(
        self, application: Application, name: str, rows: Any, timing: StreamTiming,
        *, replacing: bool,
    ) -> Application:
        """The application with a stream of a DataFrame's rows, which is given from now on.

        Unless it may be ``replacing`` a frame, the stream must be new.
        """
        from penstock.spark.ingest import dataframes  # late: every engine has a `Provided`

        frame = dataframes.streaming(rows, name)
        columns = dataframes.declaration(dataframes.columns_of(frame, f"stream {name}"))
        text = f"CREATE STREAM {quoted(name)} ({columns}) FROM {DATAFRAME}{timing.clauses}"
        fresh = bind(text, application)
        if fresh == application and not replacing:
            raise RunError(f"the engine is reading stream {name}; stop it first")
        self.frames[name_key(name)] = frame
        return fresh

    # --- what is needed ----------------------------------------------------------------------

    def load(self, module: str, attribute: str, folder: str) -> PythonFunction:
        """The function that a statement names; ValueError says why it cannot be had.

        One that a script declares at its top level may be named without having been given.
        """
        if module == PROGRAM and attribute not in self.functions:
            try:
                self.functions[attribute] = load_function(module, attribute, folder)
            except ValueError:
                raise ValueError(str(ProgramPart("function", attribute))) from None
        return self.function(module, attribute, folder)

    def function(self, module: str, attribute: str, folder: str) -> PythonFunction:
        """The function that a query calls; ValueError says why it cannot be had."""
        if module != PROGRAM:
            return load_function(module, attribute, folder)
        if attribute not in self.functions:
            raise ValueError(str(ProgramPart("function", attribute)))
        return self.functions[attribute]

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
            kinds: Mapping[str, Mapping[str, object]] = {
                "function": self.functions, "callback": self.callbacks, "stream": self.frames}
            given = kinds[part.kind]
            if (part.name if part.kind == "function" else name_key(part.name)) not in given:
                yield part


def _without_function(application: Application, name: str) -> Application:
    """The application without a function, which may be declared otherwise if nothing calls it."""
    others = [statement for statement in application.statements
              if (statement.kind, name_key(statement.name)) != ("function", name_key(name))]
    try:
        return bind_statements(others)
    except LanguageError:
        raise RunError(f"function {name} has other arguments or another type than before, and "
                       "queries call it; DROP them first, or give it another name") from None


def _check_shippable(name: str, call: Callable[..., Any]) -> None:
    """Refuse a function that cannot go to Spark's workers with all that it uses."""
    try:
        cloudpickle.dumps(call)  # type: ignore[no-untyped-call]
    except Exception as error:  # whatever the objects that it uses raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FunctionError(
            f"function {name} uses something that cannot be sent to Spark's workers, such as an "
            f"engine, a session or an open file: {reason[:300]}") from error


def _check_callback(function: Callable[..., Any]) -> None:
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
