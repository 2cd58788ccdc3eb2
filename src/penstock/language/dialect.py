"""Our dialect on top of sqlglot's Spark dialect.

sqlglot turns many functions into nodes of its own with changed arguments, so that other dialects
can be written. We only read: here a function call stays a name with its arguments, and every
operand remembers its place in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.tokens import Token, TokenType

from penstock.language.places import Place

_CLAUSES = (
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.QUALIFY,
    TokenType.WINDOW,
    TokenType.ORDER_BY,
    TokenType.LIMIT,
    TokenType.FETCH,
    TokenType.OFFSET,
    TokenType.CLUSTER_BY,
    TokenType.DISTRIBUTE_BY,
    TokenType.SORT_BY,
    TokenType.TABLE_SAMPLE,
)
"""Clauses that are read, if only to be refused by name; any other is a syntax error."""

_SPECIAL = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING")
"""Functions with words among their arguments, such as ``CAST(a AS INT)``."""


class Unparsed(ParseError):
    """sqlglot's parser gave up at this place."""

    def __init__(self, message: str, place: Place) -> None:
        """``message`` is sqlglot's."""
        super().__init__(message)
        self.message, self.place = message, place


class Penstock(Spark):
    """Penstock SQL as sqlglot sees it."""

    class Tokenizer(Spark.Tokenizer):
        """Spark's, without commands: sqlglot reads the rest of a command as a string."""

        COMMANDS: ClassVar[set[TokenType]] = set()

    class Parser(Spark.Parser):
        """Spark's, without knowledge of functions."""

        FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            name: Spark.Parser.FUNCTION_PARSERS[name] for name in _SPECIAL
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            "CASE": Spark.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]
        }
        STATEMENT_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {}
        QUERY_MODIFIER_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
            clause: Spark.Parser.QUERY_MODIFIER_PARSERS[clause] for clause in _CLAUSES
        }

        def raise_error(self, message: str, token: Any = None) -> None:
            """Raise at the token, whatever sqlglot's error level."""
            at = token or self._curr or self._prev
            place = Place(at.start, at.end + 1) if at else Place(0, 1)
            raise Unparsed(message, place)

        def _parse_unary(self) -> exp.Expr | None:
            first = self._index
            return self._mark(super()._parse_unary(), first)

        def _parse_expression(self) -> exp.Expr | None:
            first = self._index
            node = super()._parse_expression()
            if node is not None:
                node.meta["written"] = _written(self._tokens[first : self._index], self.sql)
            return self._mark(node, first)

        def _mark(self, node: exp.Expr | None, first: int) -> exp.Expr | None:
            """Remember the tokens an operand was made of, unless it knows them."""
            if node is not None and "start" not in node.meta and self._index > first:
                start, end = self._tokens[first].start, self._tokens[self._index - 1].end
                node.meta.update(start=start, end=end)
            return node


def parse_query(tokens: Sequence[Token], text: str) -> exp.Expr | None:
    """The tree of a SELECT, or of several joined by UNION ALL."""
    parser = Penstock().parser(error_level=ErrorLevel.IMMEDIATE)
    trees = parser.parse(list(tokens), text)
    return trees[0] if trees else None


def place_of_node(node: exp.Expr) -> Place | None:
    """Where a node stands in the text: its own place, or that of all below it."""
    if isinstance(node.meta.get("start"), int):
        return Place(node.meta["start"], node.meta["end"] + 1)
    spans = [n.meta for n in node.walk() if isinstance(n.meta.get("start"), int)]
    if spans:
        return Place(min(s["start"] for s in spans), max(s["end"] for s in spans) + 1)
    return None


def _written(tokens: Sequence[Token], text: str) -> str:
    """The tokens as written, without comments and with single spaces."""
    parts: list[str] = []
    for before, token in zip((None, *tokens), tokens, strict=False):
        if before is not None and before.start == token.start:
            continue  # the parts of `10L` share one place
        if before is not None and before.end + 1 < token.start:
            parts.append(" ")
        parts.append(text[token.start : token.end + 1])
    return "".join(parts)
