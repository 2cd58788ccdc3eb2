"""The columns of a stream: those that its source has, and those that are computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import Refused, TypeFault
from penstock.language import coercion, types
from penstock.language.dialect import place_of_node
from penstock.language.expressions import expression_binder
from penstock.language.parsing import parsed
from penstock.language.places import Misfit, Place, Source
from penstock.language.scope import FromItem, Scope
from penstock.language.tokens import Cursor, place_of
from penstock.model import (
    Expression,
    Field,
    Function,
    Output,
    Type,
    is_expensive,
    name_key,
)

_CLAUSE = "a computed column"


@dataclass(frozen=True, slots=True)
class _Written:
    """A computed column as it is written."""

    name: str
    type: Type | None
    """None where the type is that of the expression."""
    tokens: Sequence[Token]
    place: Place


def stream_columns(
    cursor: Cursor, name: str, registered: Mapping[str, Function]
) -> tuple[tuple[Field, ...], tuple[Output, ...]]:
    """Take ``(a INT, b TIMESTAMP AS (...), ...)``: all columns, and how some are computed.

    ``name`` is the stream's. A computed column sees the columns of the source, wherever they stand.
    """
    written = _columns(cursor)
    read = tuple(column for column in written if isinstance(column, Field))
    if not read:
        message = "every column of this stream is computed"
        raise cursor.source.fault(
            TypeFault, message, cursor.place, "declare the columns that its source has, too")
    of = FromItem(name, read, 0)
    columns: list[Field] = []
    computed: list[Output] = []
    others = {name_key(column.name) for column in written if isinstance(column, _Written)}
    for column in written:
        if isinstance(column, Field):
            columns.append(column)
        else:
            expression = _bound(cursor, column, of, registered, others)
            columns.append(Field(column.name, expression.type))
            computed.append(Output(column.name, expression))
    return tuple(columns), tuple(computed)


def _columns(cursor: Cursor) -> list[Field | _Written]:
    cursor.expect("(")
    found: list[Field | _Written] = []
    seen: set[str] = set()
    while True:
        name, place = cursor.name("the name of a column")
        if name_key(name) in seen:
            raise cursor.source.fault(TypeFault, f"'{name}' is declared twice", place)
        seen.add(name_key(name))
        type_ = None if cursor.word() == "AS" else types.parse_type(cursor)
        if cursor.take("AS"):
            found.append(_Written(name, type_, _parenthesised(cursor), place))
        else:
            assert type_ is not None  # else AS comes next
            found.append(Field(name, type_))
        if not cursor.take(","):
            cursor.expect(")")
            return found


def _parenthesised(cursor: Cursor) -> Sequence[Token]:
    """Take an expression in parentheses; answer its tokens."""
    opened = cursor.expect("(")
    begin, depth = cursor.index, 1
    while cursor.current is not None:
        kind = cursor.advance().token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if depth == 0:
            tokens = cursor.tokens[begin : cursor.index - 1]
            if not tokens:
                place = place_of(opened).until(place_of(cursor.tokens[cursor.index - 1]))
                raise cursor.source.syntax("expected an expression", place)
            return tokens
    raise cursor.source.syntax("this parenthesis is not closed", place_of(opened))


def _bound(
    cursor: Cursor, column: _Written, of: FromItem, registered: Mapping[str, Function],
    others: set[str],
) -> Expression:
    """The expression of a computed column, in its type."""
    source = cursor.source
    around = place_of(column.tokens[0]).until(place_of(column.tokens[-1]))
    node = _expression(column.tokens, source, around)
    for part in node.find_all(exp.Column):
        if name_key(part.parts[0].name) in others:
            place = place_of_node(part) or around
            message = f"'{part.parts[0].name}' is computed, too"
            hint = "a computed column sees those of the source; repeat the expression"
            raise source.fault(Refused, message, place, hint)
    bound = expression_binder(source, Scope([of]), registered, around, _CLAUSE).bind(node)
    if is_expensive(bound):
        message = "a Python function is not admitted in a computed column"
        raise source.fault(Refused, message, around, "call it in a query")
    try:
        bound = _typed(bound, column)
    except Misfit as misfit:
        raise source.fault(misfit.kind, misfit.message, around, misfit.hint) from None
    types.check_storable(bound.type, source, around, f"the column '{column.name}'")
    return bound


def _expression(tokens: Sequence[Token], source: Source, around: Place) -> exp.Expr:
    """The tree of an expression that stands alone: sqlglot reads it as that of a SELECT list."""
    first = tokens[0]
    select = Token(TokenType.SELECT, "SELECT", first.line, first.col, first.start, first.start)
    tree = parsed([select, *tokens], source, around)
    others = [name for name, value in tree.args.items() if name != "expressions" and value]
    if not isinstance(tree, exp.Select) or others or len(tree.expressions) != 1:
        raise source.syntax("expected one expression", around)
    found: exp.Expr = tree.expressions[0]
    return found


def _typed(bound: Expression, column: _Written) -> Expression:
    """The expression in the type that is declared for its column."""
    wanted = column.type
    if wanted is None or bound.type == wanted:
        return bound
    if (constant := coercion.converted(bound, wanted)) is not None:
        return constant
    if coercion.common(bound.type, wanted) != wanted:
        found = coercion.article(bound.type)
        message = f"'{column.name}' is declared {wanted}, and this is {found}"
        hint = f"write CAST(... AS {wanted})" if coercion.castable(bound.type, wanted) else ""
        raise Misfit(TypeFault, message, hint)
    return coercion.cast(bound, wanted)
