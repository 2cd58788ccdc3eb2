"""Our dialect on top of sqlglot's Spark dialect.

sqlglot turns many functions into nodes of its own with changed arguments, so that other dialects
can be written. We only read: here a function call stays a name with its arguments, and every
operand remembers its place in the text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from penstock.language.durations import is_unit
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

STANDARD = ("HOP", "TUMBLE", "SESSION")
"""The windows of standard SQL."""

_SPECIAL = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "POSITION")
"""Functions with words among their arguments, such as ``CAST(a AS INT)``."""


_CONSTRUCTORS = (TokenType.ARRAY, TokenType.MAP, TokenType.STRUCT)
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_ARGUMENT = (TokenType.L_PAREN, TokenType.COMMA, TokenType.FARROW)
_OPENERS = (TokenType.SELECT, TokenType.COMMA, TokenType.L_PAREN, TokenType.SEMICOLON)
_CLOSERS = (TokenType.FROM, TokenType.COMMA, TokenType.R_PAREN, TokenType.SEMICOLON)
_MEANINGFUL = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING)
_OPAQUE = (exp.DataType, exp.Interval, exp.Extract, exp.Trim, exp.Having, exp.Group, exp.Window)
"""Nodes whose words are read as a whole."""


_FILLERS: dict[str, type[exp.Expr]] = dict.fromkeys(("AT", "TIME", "ZONE"), exp.AtTimeZone)
"""Words that belong to a node and are not kept in it."""


class Unparsed(ParseError):
    """sqlglot's parser gave up at this place."""

    def __init__(self, message: str, place: Place, ended: bool = False) -> None:
        """``message`` is sqlglot's; ``ended`` says that the text ends there."""
        super().__init__(message)
        self.message, self.place, self.ended = message, place, ended


class Penstock(Spark):
    """Penstock SQL as sqlglot sees it."""

    class Tokenizer(Spark.Tokenizer):
        """Spark's, without commands: sqlglot reads the rest of a command as a string."""

        COMMANDS: ClassVar[set[TokenType]] = set()

    class Parser(SparkParser):
        """Spark's, without knowledge of functions."""

        FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            name: SparkParser.FUNCTION_PARSERS[name] for name in _SPECIAL
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
        }
        ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}
        ADD_JOIN_ON_TRUE: ClassVar[bool] = False
        STATEMENT_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {}
        QUERY_MODIFIER_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
            clause: SparkParser.QUERY_MODIFIER_PARSERS[clause] for clause in _CLAUSES
        }

        def raise_error(self, message: str, token: Any = None) -> None:
            """Raise at the token, whatever sqlglot's error level."""
            at = token or self._curr or self._prev
            place = Place(at.start, at.end + 1) if at else Place(0, 1)
            raise Unparsed(message, place, ended=not (token or self._curr))

        def _parse_unary(self) -> exp.Expr | None:
            first = self._index
            return self._mark(super()._parse_unary(), first)

        def _parse_expression(self) -> exp.Expr | None:
            first = self._index
            node = super()._parse_expression()
            if node is not None:
                node.meta["written"] = _written(self._tokens[first : self._index], self.sql)
            return self._mark(node, first)

        def _parse_types(self, *args: Any, **options: Any) -> exp.Expr | None:
            first = self._index
            return self._mark(super()._parse_types(*args, **options), first)

        def _mark(self, node: exp.Expr | None, first: int) -> exp.Expr | None:
            """Remember the tokens an operand was made of, unless it knows them."""
            if node is not None and "start" not in node.meta and self._index > first:
                start, end = self._tokens[first].start, self._tokens[self._index - 1].end
                node.meta.update(start=start, end=end)
            return node


def parse_query(tokens: Sequence[Token], text: str) -> exp.Expr | None:
    """The tree of a SELECT, or of several joined by UNION ALL."""
    parser = Penstock().parser(error_level=ErrorLevel.IMMEDIATE)
    _check_commas(tokens)
    trees = parser.parse(_prepared(tokens), text)
    tree = trees[0] if trees else None
    if tree is not None:
        _check_complete(tokens, tree)
    return tree


def _neighbours(tokens: Sequence[Token]) -> Iterator[tuple[TokenType, Token, TokenType]]:
    """Each token with the kinds of those before and after it."""
    kinds = [TokenType.SEMICOLON, *(t.token_type for t in tokens), TokenType.SEMICOLON]
    return zip(kinds, tokens, kinds[2:], strict=False)


def _prepared(tokens: Sequence[Token]) -> list[Token]:
    """The tokens as sqlglot understands them: ``ARRAY(`` is no type, ``(TABLE s`` is a name."""
    prepared = []
    for before, token, after in _neighbours(list(_with_intervals(tokens))):
        called = token.token_type in _CONSTRUCTORS or token.token_type is TokenType.SESSION
        if called and after is TokenType.L_PAREN:
            token = Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end)
        if token.token_type is TokenType.TABLE and after in _NAMES and before in _ARGUMENT:
            continue
        prepared.append(token)
    return prepared


def _with_intervals(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens with the word INTERVAL before ``10 MIN`` in HOP and TUMBLE, for sqlglot's sake."""
    depth, opened = 0, 0
    for k, token in enumerate(tokens):
        following = tokens[k + 1] if k + 1 < len(tokens) else None
        if token.token_type is TokenType.L_PAREN:
            depth += 1
            if not opened and k and tokens[k - 1].text.upper() in STANDARD:
                opened = depth
        elif token.token_type is TokenType.R_PAREN:
            depth -= 1
            opened = opened if depth >= opened else 0
        elif opened and token.token_type is TokenType.NUMBER and tokens[k - 1].text == ",":
            if following is not None and is_unit(following.text):
                yield Token(
                    TokenType.INTERVAL, "INTERVAL", token.line, token.col, token.start, token.end
                )
        yield token


def _check_commas(tokens: Sequence[Token]) -> None:
    """Complain about a comma with nothing before or after it, which sqlglot forgives.

    Also about ``|>``, with which sqlglot would build subqueries of its own.
    """
    for before, token, after in _neighbours(tokens):
        if token.token_type is TokenType.PIPE_GT:
            raise Unparsed("Unexpected", Place(token.start, token.end + 1))
        if token.token_type is TokenType.COMMA and (before in _OPENERS or after in _CLOSERS):
            raise Unparsed("Required argument", Place(token.start, token.end + 1))


def _check_complete(tokens: Sequence[Token], tree: exp.Expr) -> None:
    """Complain when a name or constant of the text is not in the tree.

    sqlglot reads many dialects and forgives much; what it drops must not change a query silently.
    """
    places: set[int] = set()
    ends: dict[int, int] = {}
    kinds: set[type[exp.Expr]] = set()
    for node in tree.walk():
        kinds.add(type(node))
        start, end = node.meta.get("start"), node.meta.get("end")
        if isinstance(start, int) and isinstance(end, int):
            places.add(start)
            if isinstance(node, _OPAQUE):
                ends[start] = max(end, ends.get(start, end))
    starts = sorted(ends)
    reach = [-1, *accumulate((ends[start] for start in starts), max)]
    for token in tokens:
        if _FILLERS.get(token.text.upper()) in kinds:
            continue
        if token.token_type in _MEANINGFUL and token.start not in places:
            if reach[bisect_right(starts, token.start)] < token.start:
                raise Unparsed("Unexpected", Place(token.start, token.end + 1))


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
