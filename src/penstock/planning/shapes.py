"""Shapes: what remains of a branch when its constants are taken out.

A thousand rules ``port = 80 AND length > 1000`` differ in their constants only. With the constants
moved into a table they are one shape, ``port = ? AND length > ?``. Spark compiles it once, however
many queries come and go, and the table finds the rules that a row may satisfy.

A constant becomes a parameter only where Spark computes the same type and value with a column in
its place. Patterns, units, schemas and the like stay in the shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from penstock.model import (
    BOOLEAN,
    INT,
    PARAMETER,
    Branch,
    Call,
    Column,
    Expression,
    Literal,
    Output,
    PythonCall,
    Type,
    Value,
    walk,
)
from penstock.plan import Key, Shape
from penstock.planning.operations import EQUAL, IN, OR, may_vary
from penstock.rendering import render

LONGEST_LIST = 32
"""A longer IN list that is not looked up stays in the shape: it would widen the table."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """A conjunct that holds exactly when its expression equals one of some distinct constants."""

    conjunct: int
    literals: tuple[Literal, ...]


def take(
    branch: Branch, key: Key, listed: OneOf | None = None
) -> tuple[Shape, tuple[tuple[Value, ...], ...]]:
    """The shape of a branch, and the constants that fill it: one row, or one for each listed value.

    >>> over = Call("gt", (Column("port", INT), Literal(1024, INT)), BOOLEAN)
    >>> shape, constants = take(Branch((), (), (over,)), Key("always"))
    >>> shape.where[0].args[1].name, constants
    ('?0', ((1024,),))
    """
    taker = _Taker()
    where, slot = [], None
    for position, conjunct in enumerate(branch.where):
        if listed is not None and position == listed.conjunct and key.expression is not None:
            conjunct = Call(EQUAL, (key.expression, listed.literals[0]), BOOLEAN)
            where.append(taker.inside(conjunct))
            slot = len(taker.constants) - 1  # the equality's constant is its last argument
        else:
            where.append(taker.inside(conjunct))
    select = tuple((out.name, taker.output(out.expression)) for out in branch.select)
    shape = Shape(key, tuple(where), select, tuple(taker.parameters))
    constants = tuple(taker.constants)
    if slot is None or listed is None:
        return shape, (constants,)
    values = [literal.value for literal in listed.literals]
    return shape, tuple((*constants[:slot], value, *constants[slot + 1 :]) for value in values)


def fill(shape: Shape, constants: Sequence[Value]) -> Branch:
    """A shape's conditions and columns with constants put back, as a branch of no stream."""
    def constant(column: Column) -> Expression:
        if column.source != PARAMETER:
            return column
        return Literal(constants[int(column.name[1:])], column.type)

    return Branch(
        inputs=(),
        select=tuple(Output(name, substitute(e, constant)) for name, e in shape.select),
        where=tuple(substitute(e, constant) for e in shape.where),
    )


def substitute(expression: Expression, by: Callable[[Column], Expression]) -> Expression:
    """The expression with every column replaced."""
    if isinstance(expression, Column):
        return by(expression)
    if isinstance(expression, Call | PythonCall):
        return replace(expression, args=tuple(substitute(arg, by) for arg in expression.args))
    return expression


def columns(expressions: Sequence[Expression]) -> Iterator[Column]:
    """The columns that expressions refer to, each once, in order of appearance."""
    seen: set[Column] = set()
    for expression in expressions:
        for part in walk(expression):
            if isinstance(part, Column) and part not in seen:
                seen.add(part)
                yield part


def conjunction(where: Sequence[Expression]) -> str:
    """Conditions that must all hold as text, with a question mark for each parameter."""
    texts = [render(substitute(conjunct, _marked)) for conjunct in where]
    loose = [isinstance(conjunct, Call) and conjunct.function == OR for conjunct in where]
    alone = len(where) == 1
    return " AND ".join(
        f"({text})" if either and not alone else text
        for text, either in zip(texts, loose, strict=True)
    )


class _Mark(int):
    """A constant that shows itself as a question mark."""

    def __repr__(self) -> str:
        return "?"


def _marked(column: Column) -> Expression:
    return Literal(_Mark(), INT) if column.source == PARAMETER else column


class _Taker:
    """Walks a branch and keeps the constants it takes out."""

    def __init__(self) -> None:
        self.parameters: list[Type] = []
        self.constants: list[Value] = []

    def output(self, expression: Expression) -> Expression:
        """A column of the answer: a bare constant is what tells rules apart (``'rule-17'``)."""
        if isinstance(expression, Literal) and expression.value is not None:
            return self._parameter(expression)
        return self.inside(expression)

    def inside(self, expression: Expression) -> Expression:
        if not isinstance(expression, Call):
            return expression
        if expression.function == IN:
            return self._list(expression)
        args = tuple(self._argument(expression, arg) for arg in expression.args)
        return Call(expression.function, args, expression.type, expression.detail)

    def _argument(self, call: Call, arg: Expression) -> Expression:
        if not isinstance(arg, Literal):
            return self.inside(arg)
        others = tuple(other.type for other in call.args if not isinstance(other, Literal))
        if not may_vary(call.function, call.type, arg, others):
            return arg
        return self._parameter(arg)

    def _list(self, call: Call) -> Expression:
        """An IN list as parameters, padded to a power of two so that few lengths occur."""
        tested, listed = self.inside(call.args[0]), call.args[1:]
        if not _is_plain_list(call.args[0], listed):
            return Call(IN, (tested, *listed), call.type, call.detail)
        padding = (1 << (len(listed) - 1).bit_length()) - len(listed)
        padded = [arg for arg in (*listed, *[listed[-1]] * padding) if isinstance(arg, Literal)]
        return Call(IN, (tested, *map(self._parameter, padded)), call.type, call.detail)

    def _parameter(self, literal: Literal) -> Column:
        slot = len(self.constants)
        self.parameters.append(literal.type)
        self.constants.append(literal.value)
        return Column(f"?{slot}", literal.type, source=PARAMETER)


def _is_plain_list(tested: Expression, listed: Sequence[Expression]) -> bool:
    return (
        len(listed) <= LONGEST_LIST
        and not isinstance(tested, Literal)
        and all(
            isinstance(arg, Literal) and arg.value is not None and arg.type == tested.type
            for arg in listed
        )
    )
