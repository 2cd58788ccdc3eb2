"""One tree of errors. Everything Penstock raises on purpose is below `PenstockError`.

::

    PenstockError
    ├── LanguageError      text that cannot be bound: statement, line, column, the place underlined
    │   ├── SyntaxFault    the text is not Penstock SQL
    │   ├── UnknownName    a stream, column, function, query or setting that was not declared
    │   ├── TypeFault      types that do not fit
    │   ├── Refused        a function or statement that is not admitted
    │   └── NotYet         part of the language that this version does not run
    ├── PlanError          a plan that breaks an invariant: a defect of ours
    ├── PolicyError        an unknown policy, or parameters it does not take
    ├── WorkloadError      a workload that cannot be simulated
    ├── SourceError        a stream or relation that cannot be read
    ├── FunctionError      a Python function that cannot be loaded or used
    ├── CheckpointError    a checkpoint folder that is damaged or does not fit the application
    ├── RunError           a run that could not go on
    └── SetupError         the machine lacks something: Java, memory
"""

from __future__ import annotations


class PenstockError(Exception):
    """The root."""


class LanguageError(PenstockError):
    """An error in the user's text, with its place.

    >>> print(UnknownName("no column 'lenght'", text="SELECT lenght\\nFROM s", start=7, end=13,
    ...                   statement="query q", hint="did you mean 'length'?"))
    query q, line 1, column 8: no column 'lenght'; did you mean 'length'?
      SELECT lenght
             ^^^^^^
    """

    def __init__(
        self,
        message: str,
        *,
        text: str = "",
        start: int = 0,
        end: int | None = None,
        statement: str = "",
        hint: str = "",
    ) -> None:
        """``start`` and ``end`` are character offsets into ``text``, the whole application."""
        start = max(0, min(start, len(text)))
        self.message, self.hint, self.statement = message, hint, statement
        self.line = text.count("\n", 0, start) + 1
        begin = text.rfind("\n", 0, start) + 1
        self.column = start - begin + 1
        stop = text.find("\n", start)
        self.source_line = text[begin : stop if stop >= 0 else len(text)]
        width = (end if end is not None else start + 1) - start
        self.width = max(1, min(width, len(self.source_line) - self.column + 1))
        super().__init__(self._render())

    def _render(self) -> str:
        place = f"line {self.line}, column {self.column}"
        head = f"{self.statement}, {place}" if self.statement else place
        message = f"{self.message}; {self.hint}" if self.hint else self.message
        shown, shift = _window(self.source_line, self.column - 1)
        pad = "".join("\t" if c == "\t" else " " for c in shown[:shift])
        marks = "^" * max(1, min(self.width, len(shown) - shift))
        return f"{head}: {message}\n  {shown}\n  {pad}{marks}"


def _window(line: str, column: int, width: int = 120) -> tuple[str, int]:
    """The part of a long line around a column, and where the column is in it."""
    if len(line) <= width:
        return line, column
    begin = max(0, min(column - width // 2, len(line) - width))
    return line[begin : begin + width], column - begin


class SyntaxFault(LanguageError):
    """The text is not Penstock SQL."""


class UnknownName(LanguageError):
    """A name that was not declared."""


class TypeFault(LanguageError):
    """Types that do not fit."""


class Refused(LanguageError):
    """A function or statement that is not admitted."""


class NotYet(LanguageError):
    """Part of the language that this version does not run."""


class PlanError(PenstockError):
    """A plan that breaks an invariant."""


class PolicyError(PenstockError):
    """An unknown policy, or parameters it does not take."""


class WorkloadError(PenstockError):
    """A workload that cannot be simulated."""


class SourceError(PenstockError):
    """A stream or relation that cannot be read."""


class FunctionError(PenstockError):
    """A Python function that cannot be loaded or used."""


class CheckpointError(PenstockError):
    """A checkpoint folder that is damaged or does not fit the application."""


class RunError(PenstockError):
    """A run that could not go on."""


class SetupError(PenstockError):
    """The machine lacks something."""
