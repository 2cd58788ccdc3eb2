"""Places in the user's text: every error is raised here, so that none lacks its place."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.errors import LanguageError, SyntaxFault


@dataclass(frozen=True, slots=True)
class Place:
    """Characters ``start`` to ``end`` (exclusive) of the text."""

    start: int
    end: int

    def until(self, other: Place) -> Place:
        """From the start of this place to the end of the other."""
        return Place(self.start, max(self.end, other.end))


@dataclass(frozen=True, slots=True)
class Source:
    """The application's text, and what the statement at hand is called."""

    text: str
    statement: str = ""

    def fault(
        self, kind: type[LanguageError], message: str, place: Place, hint: str = ""
    ) -> LanguageError:
        """An error of that kind at that place."""
        return kind(
            message,
            text=self.text,
            start=place.start,
            end=place.end,
            statement=self.statement,
            hint=hint,
        )

    def syntax(self, message: str, place: Place, hint: str = "") -> LanguageError:
        """The text at that place is not Penstock SQL."""
        return self.fault(SyntaxFault, message, place, hint)


class Misfit(Exception):
    """What is wrong with an expression, raised where its place is not known.

    The binder turns it into the error of that kind at the place of the expression.
    """

    def __init__(self, kind: type[LanguageError], message: str, hint: str = "") -> None:
        """As for `Source.fault`."""
        super().__init__(message)
        self.kind, self.message, self.hint = kind, message, hint


def suggestion(name: str, known: Iterable[str]) -> str:
    """A hint with the closest known name, or nothing.

    >>> suggestion("lenght", ["ts", "length"])
    "did you mean 'length'?"
    >>> suggestion("x", ["length"])
    ''
    """
    by_lower = {k.lower(): k for k in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.7)
    return f"did you mean '{by_lower[close[0]]}'?" if close else ""
