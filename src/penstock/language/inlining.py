"""Queries over queries: what a SELECT reads that is itself a SELECT, put in its place.

A view, a query of WITH and a query in FROM are rows with names, made of a stream's rows by a
filter, a projection, lookups or a union. A SELECT that reads them is bound as if their text stood
in its own: each of their columns stands for its expression, and their conditions join its own. So
the planner sees streams and relations only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import NotYet, Refused
from penstock.language.places import Misfit, Place
from penstock.language.scope import FromItem
from penstock.language.tokens import place_of
from penstock.model import (
    STREAM,
    Branch,
    Call,
    Column,
    Expression,
    Field,
    Lookup,
    PythonCall,
    lookup_source,
)

MOST_BRANCHES = 1_000
"""The most SELECTs that a query may consist of: a union of unions doubles with each step."""
MOST_PARTS = 20_000
"""The most parts of an expression: ``a + a`` of a column that is ``a + a`` doubles, too."""
DEEPEST = 100
"""How deeply an expression may be nested."""
_INSTEAD = "let it be a query of its own"


@dataclass(frozen=True, slots=True)
class Inlined:
    """Rows that a SELECT may read by a name, and how they are made."""

    title: str
    """What they are called in messages, such as ``view v``."""
    branches: tuple[Branch, ...]
    views: tuple[str, ...] = ()
    """The views that are read for them, directly or not."""

    @property
    def columns(self) -> tuple[Field, ...]:
        """Their columns."""
        return tuple(Field(name, type_) for name, type_ in self.branches[0].outputs)


def check_inlinable(branches: Sequence[Branch], title: str) -> None:
    """Complain about a query that cannot stand in another: Misfit says why."""
    for branch in branches:
        if branch.grouping is not None:
            raise Misfit(NotYet, f"{title} aggregates, which only a query does so far", _INSTEAD)
        if branch.join is not None:
            raise Misfit(NotYet, f"{title} joins streams, which only a query does so far", _INSTEAD)
        for output in branch.select:
            calls = [part for part in walk_once(output.expression) if isinstance(part, PythonCall)]
            if not all(call.deterministic for call in calls):
                message = f"the column '{output.name}' of {title} has another value at every call"
                raise Misfit(Refused, message, "call the function in the query that reads it")
    check_size(branches, title)


def check_size(branches: Sequence[Branch], title: str) -> None:
    """Complain about a query that has grown beyond measure with what it reads."""
    if len(branches) > MOST_BRANCHES:
        raise Misfit(Refused, f"{title} consists of more than {MOST_BRANCHES:,} SELECTs")
    known: dict[int, tuple[int, int]] = {}
    for expression in (e for branch in branches for e in branch.expressions):
        parts, depth = _size(expression, known)
        if parts > MOST_PARTS or depth > DEEPEST:
            raise Misfit(Refused, f"an expression of {title} is too large with all that it reads")


def walk_once(expression: Expression) -> list[Expression]:
    """The parts of an expression, each object once."""
    found: dict[int, Expression] = {}
    rest = [expression]
    while rest:
        part = rest.pop()
        if id(part) not in found:
            found[id(part)] = part
            rest.extend(part.args if isinstance(part, Call | PythonCall) else ())
    return list(found.values())


def _size(expression: Expression, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """The parts of an expression, and how deeply it is nested.

    An object that stands at many places is looked at once: the tree may be very large.
    """
    if id(expression) not in known:
        args = expression.args if isinstance(expression, Call | PythonCall) else ()
        below = [_size(arg, known) for arg in args]
        known[id(expression)] = (1 + sum(parts for parts, _ in below),
                                 1 + max((depth for _, depth in below), default=0))
    return known[id(expression)]


@dataclass(slots=True)
class Assembly:
    """What a SELECT comes to read: streams first, then the relations, each with its number."""

    count: int
    """How many streams it reads."""
    lookups: list[Lookup]
    where: list[Expression]
    """What is looked up and asked by the rows that it reads."""

    @classmethod
    def of(cls, count: int) -> Assembly:
        """Nothing is looked up or asked yet."""
        return cls(count, [], [])

    def add(self, alias: str, read: Branch, number: int) -> FromItem:
        """Read the rows of a branch as those of the stream of that number."""
        sources = {STREAM: STREAM + number}
        for place, lookup in enumerate(read.lookups):
            sources[lookup_source(place)] = lookup_source(len(self.lookups), self.count)
            self.lookups.append(replace(lookup, on=_moved(lookup.on, sources)))
        self.where += [_moved(condition, sources) for condition in read.where]
        fields = tuple(Field(name, type_) for name, type_ in read.outputs)
        made = tuple(_moved(output.expression, sources) for output in read.select)
        return FromItem(alias, fields, STREAM + number, made)


def _moved(expression: Expression, sources: Mapping[int, int]) -> Expression:
    """The expression with the sources of its columns renumbered; itself if none changes."""
    if isinstance(expression, Column):
        source = sources.get(expression.source, expression.source)
        return expression if source == expression.source else replace(expression, source=source)
    if not isinstance(expression, Call | PythonCall):
        return expression
    args = tuple(_moved(arg, sources) for arg in expression.args)
    same = all(new is old for new, old in zip(args, expression.args, strict=True))
    return expression if same else replace(expression, args=args)


def parentheses_around(tokens: Sequence[Token], place: Place) -> Place | None:
    """The innermost parentheses around a place."""
    opened: list[int] = []
    for token in tokens:
        if token.token_type is TokenType.L_PAREN:
            opened.append(token.start)
        elif token.token_type is TokenType.R_PAREN and opened:
            found = Place(opened.pop(), place_of(token).end)
            if found.start <= place.start and place.end <= found.end:
                return found
    return None
