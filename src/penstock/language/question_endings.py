"""What only a question may say: ORDER BY, LIMIT and OFFSET. A standing query has no end to sort.

They are read by hand from the end of the text, as the windows are: the tree of a SELECT does not
tell in which words they were written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import Refused
from penstock.language.parsing import parsed
from penstock.language.places import Place, Source
from penstock.language.tokens import Cursor, place_of

_BEGINS = (TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH)
MOST_ROWS = 2**31 - 1
"""The largest LIMIT, and the largest OFFSET."""


@dataclass(frozen=True, slots=True)
class WrittenKey:
    """One item of ORDER BY."""

    node: exp.Expr
    place: Place
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Ending:
    """What follows the last SELECT of a question."""

    order: tuple[WrittenKey, ...] = ()
    limit: int | None = None
    offset: int = 0


def take_ending(tokens: Sequence[Token], source: Source) -> tuple[Sequence[Token], Ending]:
    """The tokens before ORDER BY, LIMIT and OFFSET, and what these say."""
    begin = _begin(tokens)
    if begin == len(tokens):
        return tokens, Ending()
    if begin == 0:
        raise source.syntax("expected SELECT", place_of(tokens[0]))
    cursor = Cursor(tokens, source)
    cursor.index = begin
    order: tuple[WrittenKey, ...] = ()
    limit, offset = None, 0
    if cursor.current is not None and cursor.current.token_type is TokenType.ORDER_BY:
        cursor.advance()
        order = _order(cursor, tokens)
    if cursor.take("LIMIT"):
        limit = _rows(cursor, "LIMIT")
    if cursor.take("OFFSET"):
        offset = _rows(cursor, "OFFSET")
        cursor.take("ROWS")
    if cursor.word() == "FETCH":
        raise source.fault(Refused, "FETCH is not admitted", cursor.place, "write LIMIT 10")
    cursor.end("ORDER BY, LIMIT or OFFSET, in this order, or the end of the question")
    return tokens[:begin], Ending(order, limit, offset)


def _begin(tokens: Sequence[Token]) -> int:
    """Where the ending begins: outside of all parentheses."""
    depth = 0
    for number, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            depth += 1
        elif token.token_type is TokenType.R_PAREN:
            depth -= 1
        elif depth == 0 and token.token_type in _BEGINS:
            return number
    return len(tokens)


def _rows(cursor: Cursor, what: str) -> int:
    word, place = cursor.word(), cursor.place
    if not (word.isascii() and word.isdigit() and len(word) < 11 and int(word) <= MOST_ROWS):
        raise cursor.source.syntax(f"expected a number of rows after {what}", place)
    cursor.advance()
    return int(word)


def _order(cursor: Cursor, tokens: Sequence[Token]) -> tuple[WrittenKey, ...]:
    select = next((t for t in tokens if t.token_type is TokenType.SELECT), None)
    if select is None:
        raise cursor.source.syntax("expected SELECT", cursor.place)
    found = [_key(cursor, select)]
    while cursor.take(","):
        found.append(_key(cursor, select))
    return tuple(found)


def _key(cursor: Cursor, select: Token) -> WrittenKey:
    """An expression with its direction; NULL comes first, and last of a descending order."""
    taken = _expression(cursor)
    if not taken:
        raise cursor.expected("what to order by: a column, its number, or an expression")
    place = place_of(taken[0]).until(place_of(taken[-1]))
    tree = parsed([select, *taken], cursor.source, place)
    items = tree.expressions if isinstance(tree, exp.Select) else []
    if len(items) != 1 or isinstance(items[0], exp.Alias | exp.Star):
        raise cursor.source.syntax("expected an expression to order by", place)
    descending = cursor.take("DESC")
    if not descending:
        cursor.take("ASC")
    nulls_first = not descending
    if cursor.take("NULLS"):
        nulls_first = cursor.take("FIRST")
        if not nulls_first:
            cursor.expect("LAST")
    return WrittenKey(items[0], place, descending, nulls_first)


def _expression(cursor: Cursor) -> list[Token]:
    """The tokens up to a comma, a direction or the next clause."""
    taken: list[Token] = []
    depth = 0
    while (token := cursor.current) is not None:
        if depth == 0 and (token.token_type in (TokenType.COMMA, *_BEGINS)
                           or cursor.word() in ("ASC", "DESC", "NULLS")):
            break
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        taken.append(cursor.advance())
    return taken
