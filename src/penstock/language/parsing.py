"""Tokens into sqlglot's tree; what sqlglot cannot read becomes an error of ours."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import LanguageError, Refused, TypeFault
from penstock.language.dialect import Unparsed, parse_query
from penstock.language.places import Place, Source, suggestion
from penstock.language.tokens import place_of

_LONGEST_INTERVAL = 100
_INSTEAD = {
    "WITHIN": "WITHIN GROUP follows PERCENTILE_CONT(p) alone; write TOPK(x, 1) for MODE()",
    "PARTITION BY": "leave it out: Spark deals the rows out as it needs",
    "PLACING": "write CONCAT(LEFT(a, 1), 'x', SUBSTR(a, 3))",
    "SYSTEM_TIME": "leave FOR SYSTEM_TIME AS OF out: a relation is read when the run begins",
    "~": "write RLIKE '^a' for a regular expression",
    "FILL": "write EMPTY GROUPS FOR 1 HOUR: groups known for so long have counts of 0",
    "CREATE": "a ; ends the statement before",
}
_ENDS_JOIN = (
    TokenType.R_PAREN,
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.UNION,
)
_WORDS = ("FROM", "WHERE", "JOIN", "ON", "AS", "AND", "OR", "UNION", "SELECT", "GROUP", "HAVING")


def parsed(tokens: Sequence[Token], source: Source, around: Place) -> exp.Expr:
    """Sqlglot's tree; whatever goes wrong inside sqlglot is an error of the text."""
    _check_intervals(tokens, source)
    _check_joins(tokens, source)
    _check_foreign_windows(tokens, source)
    try:
        tree = parse_query(tokens, source.text)
    except Unparsed as error:
        raise _unparsed(error, tokens, source) from None
    except RecursionError:
        raise source.syntax("this query is nested too deeply", around) from None
    except Exception as error:  # whatever sqlglot raises, the text is at fault
        raise source.syntax(f"this is not a query: {error}"[:200], around) from None
    if tree is None:
        raise source.syntax("expected SELECT", around)
    return tree


def _check_intervals(tokens: Sequence[Token], source: Source) -> None:
    """Complain about a long text in an interval: sqlglot's time grows with its square."""
    for before, token in pairwise(tokens):
        if before.token_type is TokenType.INTERVAL and len(token.text) > _LONGEST_INTERVAL:
            message = f"an interval has at most {_LONGEST_INTERVAL} characters"
            raise source.syntax(message, place_of(token), "write INTERVAL '10' MINUTE")


def _check_foreign_windows(tokens: Sequence[Token], source: Source) -> None:
    """Complain about windows as other systems write them."""
    for token, following in pairwise(tokens):
        word, place = token.text.upper(), place_of(token)
        if following.token_type is not TokenType.L_PAREN:
            continue
        if word == "CUMULATE":
            hint = "write HOP(...), whose windows have one size"
            raise source.fault(Refused, "CUMULATE is not admitted", place, hint)


def _check_joins(tokens: Sequence[Token], source: Source) -> None:
    """Complain about a JOIN without its ON, which would pair every row with every other.

    sqlglot takes such a join for the beginning of a nested one and reads the rest again for each.
    """
    lacking = [0]  # for each open parenthesis the index of the JOIN that lacks its ON, or 0
    for index, token in enumerate(tokens):
        kind = token.token_type
        if kind in (TokenType.ON, TokenType.USING):
            lacking[-1] = 0
        elif kind is TokenType.JOIN or kind in _ENDS_JOIN:
            if lacking[-1]:
                raise _without_on(tokens, lacking[-1], source)
            if kind is TokenType.JOIN and not _is_cross(tokens, index):
                lacking[-1] = index
        if kind is TokenType.L_PAREN:
            lacking.append(0)
        elif kind is TokenType.R_PAREN and len(lacking) > 1:
            lacking.pop()
    if lacking[-1]:
        raise _without_on(tokens, lacking[-1], source)


def _is_cross(tokens: Sequence[Token], join: int) -> bool:
    """Whether it is CROSS JOIN or NATURAL JOIN, which are refused by name elsewhere."""
    before = (token.token_type for token in tokens[max(0, join - 2) : join])
    return any(kind in (TokenType.CROSS, TokenType.NATURAL) for kind in before)


def _without_on(tokens: Sequence[Token], join: int, source: Source) -> LanguageError:
    following = tokens[join + 1] if join + 1 < len(tokens) else None
    place = place_of(tokens[join])
    if following is None:
        return source.syntax("expected a relation after JOIN", place)
    hint = f"write JOIN {source.text[following.start : following.end + 1]} ON ..."
    return source.fault(
        TypeFault, "a join needs its condition", place.until(place_of(following)), hint
    )


def _foreign(tokens: Sequence[Token], at: int) -> str:
    """What to write instead of a word that other systems have."""
    before = tokens[at - 1].text if at else ""
    if before in ("->", "->>"):
        return "write GET_JSON_OBJECT(text, '$.a')"
    after = tokens[at + 1].text if at + 1 < len(tokens) else ""
    if tokens[at].text.upper() == "WITHIN" and after.isdigit():
        return "write WINDOW 1 HOUR at the end of the query"
    return _INSTEAD.get(tokens[at].text.upper(), "")


def _unparsed(error: Unparsed, tokens: Sequence[Token], source: Source) -> LanguageError:
    at = next((i for i, t in enumerate(tokens) if t.start == error.place.start), len(tokens) - 1)
    hint = ""
    for token in reversed(tokens[max(0, at - 1) : at + 1]):
        if token.text.isalpha() and token.text.upper() not in _WORDS:
            hint = hint or suggestion(token.text, _WORDS)
    written = source.text[error.place.start : error.place.end]
    message = error.message.lower()
    hint = _foreign(tokens, at) or hint
    if message.startswith(("expected", "expecting")):
        wanted = error.message.split(" ", 1)[1].split(" but got")[0].replace("TYPE", "a type")
        where = "after" if error.ended else "at"
        return source.syntax(f"expected {wanted} {where} '{written}'", error.place, hint)
    if error.ended:
        return source.syntax(f"expected more after '{written}'", error.place, hint)
    if message.startswith("required argument"):
        return source.syntax(
            f"something is missing at '{written}'",
            error.place,
            hint or "expected a value or a column",
        )
    hint = hint or "expected an operator, a comma, or a clause such as FROM, JOIN or WHERE"
    return source.syntax(f"unexpected '{written}'", error.place, hint)
