"""Early selections: which rows of a stream need not enter the window of a shared join.

Selections stay above a join, so that they do not keep queries apart. But a row that no query of the
join can want makes no pair for anybody. So what all queries ask of one side is asked before the
join. Where they ask for different things, a row has to meet one *alternative* of several: what one
query asks for, or a weaker bound that covers many. Rows that meet none stay out of the window.

This pays while there are few alternatives: a row is then compared a few times, and saves a look-up
of all rows within its reach. It does not pay if some query wants every row, or if a row would have
to be compared with the constants of hundreds of queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

from penstock.model import (
    BOOLEAN,
    Branch,
    Call,
    Column,
    Expression,
    Literal,
    is_expensive,
    walk,
)
from penstock.planning.operations import (
    AND,
    EQUAL,
    FLOATING,
    IN,
    INTEGRAL,
    LOWER_BOUNDS,
    OR,
    UPPER_BOUNDS,
)
from penstock.rendering import render

MOST_ALTERNATIVES = 8
"""With more alternatives than this, rows are not selected before the join."""
MOST_VALUES = 32
"""The most constants with which one alternative compares a row for equality."""

Alternative = tuple[Expression, ...]
"""Conditions that hold together."""


@dataclass(frozen=True, slots=True)
class EarlySelection:
    """What is asked of the rows of one side before they are joined."""

    all_ask: tuple[Expression, ...] = ()
    """What every query of the join asks for."""
    one_of: tuple[Alternative, ...] = ()
    """Beside that, a row has to meet one of these, if there are any."""
    wants_all: int | None = None
    """The position of a branch that asks for nothing else, if that is why there are none."""
    too_many: int = 0
    """How many different things are asked for, if they are too many for that."""

    @property
    def where(self) -> tuple[Expression, ...]:
        """The conditions, all of which must hold."""
        options = [_joined(AND, one) for one in self.one_of]
        return (*self.all_ask, _joined(OR, options)) if options else self.all_ask


def early_selection(branches: Sequence[Branch], side: int) -> EarlySelection:
    """What some branches of a join ask of the rows of one side.

    >>> from penstock.language import bind
    >>> asked = ("A.v > 5 AND A.w = 1", "A.v > 9 AND A.w = 1", "A.k = 3 AND A.w = 1")
    >>> app = bind("CREATE STREAM s (k INT, v INT, w INT) FROM rate;" + "".join(
    ...     f"CREATE QUERY q{n} AS SELECT A.k FROM s A, s B WHERE A.k = B.k AND {one} "
    ...     "WINDOW 1 MIN;" for n, one in enumerate(asked)))
    >>> branches = [query.branches[0] for query in app.queries.values()]
    >>> [render(condition) for condition in early_selection(branches, side=0).where]
    ['w = 1', '(v > 5) OR (k = 3)']
    """
    asked = [_of_side(branch, side) for branch in branches]
    all_ask = tuple(one for one in asked[0] if all(one in other for other in asked))
    rest = [tuple(one for one in each if one not in all_ask) for each in asked]
    if not any(rest):
        return EarlySelection(all_ask)
    if not all(rest):
        return EarlySelection(all_ask, wants_all=rest.index(()))
    found = _merged(rest)
    if found is None or len(found) > MOST_ALTERNATIVES:
        return EarlySelection(all_ask, too_many=len(set(rest)))
    return EarlySelection(all_ask, found)


def lets_through(conditions: Iterable[Expression], branch: Branch, side: int) -> bool:
    """Whether all rows that a branch wants of a side meet conditions asked before its join."""
    asked = _of_side(branch, side)
    return all(any(all(any(_implies(one, each) for one in asked) for each in _parts(AND, option))
                   for option in _parts(OR, condition)) for condition in conditions)


def _of_side(branch: Branch, side: int) -> Alternative:
    """What a branch asks of the rows of a side alone."""
    return tuple(
        condition for condition in branch.where if not is_expensive(condition)
        and {part.source for part in walk(condition) if isinstance(part, Column)} == {side})


# --- alternatives -------------------------------------------------------------------------------


def _merged(asked: Iterable[Alternative]) -> tuple[Alternative, ...] | None:
    """Alternatives that differ in their constants only, as one that covers them all.

    None if one would compare with too many values.
    """
    found: dict[object, Alternative] = {}
    for conditions in asked:
        ordered = tuple(sorted(conditions, key=lambda one: repr(_shape(one))))
        shape = tuple(map(_shape, ordered))
        known = found.get(shape)
        if known is None:
            found[shape] = ordered
            continue
        wider = [_weaker(one, other) for one, other in zip(known, ordered, strict=True)]
        found[shape] = tuple(one for one in wider if one is not None)
        if len(found[shape]) < len(wider):
            return None
    return tuple(found.values())


def _shape(condition: Expression) -> object:
    """What two conditions have in common if one condition can cover both."""
    kind, constants = _compared(condition)
    if not constants:
        return condition
    assert isinstance(condition, Call)
    return kind, condition.args[0], constants[0].type


def _compared(condition: Expression) -> tuple[str, tuple[Literal, ...]]:
    """Whether a condition compares with constants, how, and with which ones."""
    if not isinstance(condition, Call) or len(condition.args) < 2:
        return "", ()
    function, (_, *others) = condition.function, condition.args
    constants = tuple(other for other in others if isinstance(other, Literal)
                      and _is_ordered(other))
    if len(constants) != len(others):
        return "", ()
    if function in (EQUAL, IN):
        # Spark looks many constants up in a table, which keeps -0.0 and 0.0 apart.
        return (IN, constants) if constants[0].type.name not in FLOATING else ("", ())
    return (function, constants) if function in LOWER_BOUNDS | UPPER_BOUNDS else ("", ())


def _is_ordered(literal: Literal) -> bool:
    """Whether Python orders its values as Spark does."""
    value = literal.value
    return value is not None and literal.type.name in _ORDERED and not (
        isinstance(value, float) and isnan(value))


_ORDERED = frozenset({*INTEGRAL, *FLOATING, "DECIMAL", "DATE", "TIMESTAMP", "STRING"})


def _weaker(one: Expression, other: Expression) -> Expression | None:
    """A condition that holds where either does; None if it would compare with too many values."""
    if one == other:
        return one
    assert isinstance(one, Call) and isinstance(other, Call)
    (kind, mine), (_, theirs) = _compared(one), _compared(other)
    if kind in LOWER_BOUNDS:
        return min(one, other, key=_bound)
    if kind in UPPER_BOUNDS:
        return max(one, other, key=_bound)
    values = tuple(dict.fromkeys((*mine, *theirs)))
    if len(values) > MOST_VALUES:
        return None
    return replace(one, function=IN, args=(one.args[0], *values))


def _bound(condition: Call) -> Any:
    _, (constant,) = _compared(condition)
    return constant.value


# --- what is known of a selection ---------------------------------------------------------------


def _implies(one: Expression, other: Expression) -> bool:
    """Whether a row that meets one condition meets the other."""
    if one == other:
        return True
    (kind, mine), (_, theirs) = _compared(one), _compared(other)
    if not mine or not theirs or _shape(one) != _shape(other):
        return False
    if kind == IN:
        return set(mine) <= set(theirs)
    weaker, stricter = theirs[0].value, mine[0].value
    if kind in UPPER_BOUNDS:
        weaker, stricter = stricter, weaker
    return bool(weaker <= stricter)  # type: ignore[operator]


def _parts(function: str, condition: Expression) -> list[Expression]:
    """The conditions that a function joins, or the one that is there."""
    if isinstance(condition, Call) and condition.function == function:
        return [part for arg in condition.args for part in _parts(function, arg)]
    return [condition]


def _joined(function: str, conditions: Sequence[Expression]) -> Expression:
    return conditions[0] if len(conditions) == 1 else Call(function, tuple(conditions), BOOLEAN)


def told(alternatives: Iterable[Alternative]) -> str:
    """Alternatives in words."""
    return " OR ".join(render(_joined(AND, one)) for one in alternatives)
