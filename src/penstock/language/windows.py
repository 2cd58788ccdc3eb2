"""WINDOW clauses: read and taken out of the tokens, since sqlglot does not know them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from penstock.language.places import Place, Source
from penstock.language.tokens import Cursor

_BEGINS = (TokenType.NUMBER, TokenType.INTERVAL, TokenType.STRING)


@dataclass(frozen=True, slots=True)
class Window:
    """A window of time or of rows, as written."""

    place: Place
    seconds: float | None = None
    rows: int | None = None
    slide: float | None = None
    exactly: bool = False


def take_windows(tokens: Sequence[Token], source: Source) -> tuple[list[Token], list[Window]]:
    """The tokens without WINDOW clauses, in brackets or trailing, and the clauses."""
    rest: list[Token] = []
    windows: list[Window] = []
    cursor = Cursor(tokens, source)
    while cursor.current is not None:
        bracketed = _at_window(tokens, cursor.index + 1) and cursor.word() == "["
        if bracketed or (_at_window(tokens, cursor.index) and _begins_window(tokens, cursor.index)):
            windows.append(_window(cursor, bracketed))
        else:
            rest.append(cursor.advance())
    return rest, windows


def _at_window(tokens: Sequence[Token], index: int) -> bool:
    return index < len(tokens) and tokens[index].token_type is TokenType.WINDOW


def _begins_window(tokens: Sequence[Token], index: int) -> bool:
    """Whether a length follows: otherwise it is a column of that name, or another clause."""
    if index + 1 >= len(tokens):
        return False
    following = tokens[index + 1]
    return following.token_type in _BEGINS or following.text[:1].isdigit()


def _window(cursor: Cursor, bracketed: bool) -> Window:
    first = cursor.place
    if bracketed:
        cursor.expect("[")
    cursor.expect("WINDOW")
    seconds, rows = _length(cursor)
    slide, exactly = None, False
    if cursor.take("SLIDE"):
        exactly = cursor.take("EXACTLY")
        slide, _ = cursor.duration()
    if bracketed:
        cursor.expect("]")
    last = cursor.tokens[cursor.index - 1]
    place = first.until(Place(last.start, last.end + 1))
    return Window(place, seconds, rows, slide, exactly)


def _length(cursor: Cursor) -> tuple[float | None, int | None]:
    following = cursor.tokens[cursor.index + 1 : cursor.index + 2]
    word = following[0].text.upper() if following else ""
    if word in ("ROW", "ROWS"):
        digits, place = cursor.advance().text, cursor.place
        if not (digits.isascii() and digits.isdigit() and 0 < int(digits) < 2**31):
            raise cursor.source.syntax("expected a number of ROWS", place)
        cursor.advance()
        return None, int(digits)
    seconds, place = cursor.duration()
    if seconds <= 0:
        raise cursor.source.syntax("a window is longer than nothing", place)
    return seconds, None
