"""Tokens into sqlglot's tree; what sqlglot cannot read becomes an error of ours."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from penstock.errors import LanguageError
from penstock.language.dialect import Unparsed, parse_query
from penstock.language.places import Place, Source, suggestion

_WORDS = ("FROM", "WHERE", "JOIN", "ON", "AS", "AND", "OR", "UNION", "SELECT", "GROUP", "HAVING")


def parsed(tokens: Sequence[Token], source: Source, around: Place) -> exp.Expr:
    """Sqlglot's tree; whatever goes wrong inside sqlglot is an error of the text."""
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


def _unparsed(error: Unparsed, tokens: Sequence[Token], source: Source) -> LanguageError:
    at = next((i for i, t in enumerate(tokens) if t.start == error.place.start), len(tokens) - 1)
    hint = ""
    for token in reversed(tokens[max(0, at - 1) : at + 1]):
        if token.text.isalpha() and token.text.upper() not in _WORDS:
            hint = hint or suggestion(token.text, _WORDS)
    written = source.text[error.place.start : error.place.end]
    message = error.message.lower()
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
