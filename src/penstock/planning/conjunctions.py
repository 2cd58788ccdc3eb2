"""Which conditions of a query may be evaluated in any order: its conjunction.

A condition may move if one call of a deterministic Python function decides it: a predicate, or a
comparison of a value with a constant such as `score(x) > 3`. No condition that must stay may be
written before it. Such a condition is decided by its own row alone, so in any order the same rows
are left (`penstock.spark.compile.conjunction_worker` says what becomes of errors). SQL conditions
come first in any case: Spark evaluates them without moving a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from penstock.model import (
    STRING,
    Branch,
    Call,
    Expression,
    Literal,
    PythonCall,
    is_expensive,
    walk,
)

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
COMPARED = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "DATE",
            "TIMESTAMP", STRING.name)
"""Types whose values a worker compares as Spark does."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a query that call Python, in the order in which they are planned."""

    movable: tuple[Expression, ...]
    """The conjunction."""
    fixed: tuple[Expression, ...]
    """What comes after it, as written."""

    @property
    def all(self) -> tuple[Expression, ...]:
        """The conjunction, then the others."""
        return (*self.movable, *self.fixed)

    def written(self, where: Sequence[Expression]) -> tuple[int, ...]:
        """The place of each of them among all conditions, as written."""
        return tuple(where.index(condition) for condition in self.all)


def conditions(where: Sequence[Expression], computed: Iterable[Expression] = ()) -> Conditions:
    """The conditions among these that call Python.

    >>> from penstock.model import BIGINT, BOOLEAN
    >>> f, g, h = (PythonCall(name, (), BOOLEAN) for name in "fgh")
    >>> sometimes = PythonCall("sometimes", (), BOOLEAN, deterministic=False)
    >>> found = conditions([f, Call("not", (g,), BOOLEAN), h, sometimes, g])
    >>> [call.function for call in found.movable]
    ['f', 'h']
    >>> len(found.fixed)
    3

    A value that is needed again is computed once, behind the conjunction: by another condition, or
    for what is ``computed``, as the columns of the answer.

    >>> score = PythonCall("score", (), BIGINT)
    >>> high = Call("gt", (score, Literal(3, BIGINT)), BOOLEAN)
    >>> conditions([high, f]).movable == (high, f), conditions([high, f], [score]).movable == (f,)
    (True, True)
    """
    expensive = tuple(dict.fromkeys(one for one in where if is_expensive(one)))
    if not expensive:  # most queries: a thousand of them are planned at once
        return Conditions((), ())
    needed = Counter(call for one in (*expensive, *computed) for call in _calls(one))
    free = takewhile(_is_deterministic, expensive)
    movable = tuple(
        one for one in free if (call := decided_by(one)) is not None
        and (call is one or needed[call] == 1))
    return Conditions(movable, tuple(one for one in expensive if one not in movable))


def computed_by(branch: Branch) -> tuple[Expression, ...]:
    """What a branch computes beside its conditions; of a window aggregate nothing.

    Window aggregates that share panes may differ in it, and share their conjunction.
    """
    return () if branch.grouping is not None else tuple(o.expression for o in branch.select)


def decided_by(condition: Expression) -> PythonCall | None:
    """The one call by whose value a worker can decide a condition alone, if there is one.

    The arguments of the call come from SQL.
    """
    call = condition
    if isinstance(condition, Call) and condition.function in COMPARISONS:
        call, constant = condition.args
        if not isinstance(constant, Literal) or constant.value is None or (
                constant.type != call.type or call.type.name not in COMPARED):
            return None
    if not isinstance(call, PythonCall) or any(map(is_expensive, call.args)):
        return None
    return call


def _is_deterministic(condition: Expression) -> bool:
    return all(call.deterministic for call in _calls(condition))


def _calls(condition: Expression) -> set[PythonCall]:
    return {part for part in walk(condition) if isinstance(part, PythonCall)}
