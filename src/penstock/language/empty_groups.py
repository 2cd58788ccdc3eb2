"""``EMPTY GROUPS FOR 1 HOUR``: answers also for groups that have no row in the window.

A group is known from its rows in the hour before the window on. The clause stands at the end of the
query or before HAVING, and is taken out of the tokens, as the windows are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from penstock.language.places import Place, Source
from penstock.language.tokens import Cursor

_WORDS = ("EMPTY", "GROUPS")
_AFTER = (TokenType.R_PAREN, TokenType.HAVING, TokenType.UNION, TokenType.WINDOW)
"""What may follow, if anything does."""


@dataclass(frozen=True, slots=True)
class EmptyGroups:
    """The clause as written."""

    place: Place
    kept: int
    """For how many microseconds before the window a row makes its group known."""


def take_empty_groups(
    tokens: Sequence[Token], source: Source
) -> tuple[list[Token], EmptyGroups | None]:
    """The tokens without the clause, and the clause if it is written."""
    rest: list[Token] = []
    found: EmptyGroups | None = None
    cursor = Cursor(tokens, source)
    while cursor.current is not None:
        first, begin = cursor.place, cursor.index
        if not begin or not cursor.take(*_WORDS):
            rest.append(cursor.advance())
            continue
        if not cursor.take("FOR"):
            hint = "say for how long a group without rows is known: EMPTY GROUPS FOR 1 HOUR"
            raise cursor.expected("FOR", hint)
        kept, place = cursor.microseconds()
        whole = first.until(place)
        if kept == 0:
            raise source.syntax("groups are known for longer than nothing", place)
        if found is not None:
            raise source.syntax("EMPTY GROUPS is written twice", whole)
        if cursor.current is not None and cursor.current.token_type not in _AFTER:
            hint = "it ends the query, or stands before HAVING"
            raise source.syntax("EMPTY GROUPS does not stand here", whole, hint)
        found = EmptyGroups(whole, kept)
    return rest, found
